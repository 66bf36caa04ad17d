"""Exceptions of shards and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bitweigh.errors import OverloadedError

__all__ = [
    "ControlPlaneError",
    "IncompleteError",
    "Missing",
    "OverloadedError",
    "PublishConflictError",
    "VersionGoneError",
]


class Missing(NamedTuple):
    """A shard that has not answered."""

    shard: int
    """The number of the shard."""
    rows: int
    """Its rows."""
    reason: str
    """Why it has not answered."""


class PublishConflictError(RuntimeError):
    """Somebody else has published a version meanwhile; nothing was changed.

    Attributes
    ----------
    number : int
        The number of the version that is there already.

    """

    def __init__(self, number: int) -> None:
        """Keep the number, and say what to do."""
        super().__init__(
            f"version {number} was published by somebody else meanwhile: start again from it"
        )
        self.number = number

    def __reduce__(self) -> tuple[type[PublishConflictError], tuple[int]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return PublishConflictError, (self.number,)


class IncompleteError(RuntimeError):
    """Some shards have not answered, so there is no answer; `partial=True` returns the rest.

    Attributes
    ----------
    missing : list of Missing
        The shards, their rows and the reasons.

    """

    def __init__(self, missing: Sequence[Missing], rows: int) -> None:
        """Keep the shards and the number of all rows, and name the first shards."""
        named = [
            f"shard {each.shard} ({each.rows:,} of {rows:,} rows): {each.reason}"
            for each in missing[:3]
        ]
        more = f"; and {len(missing) - 3} more shards" if len(missing) > 3 else ""
        super().__init__("; ".join(named) + more)
        self.missing = list(missing)
        self.rows = rows

    def __reduce__(self) -> tuple[type[IncompleteError], tuple[list[Missing], int]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return IncompleteError, (self.missing, self.rows)


class VersionGoneError(RuntimeError):
    """A holder does not have the version open that a query was begun with.

    Attributes
    ----------
    number : int
        The number of the version.

    """

    def __init__(self, number: int) -> None:
        """Keep the number."""
        super().__init__(f"version {number} is not open any more")
        self.number = number

    def __reduce__(self) -> tuple[type[VersionGoneError], tuple[int]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return VersionGoneError, (self.number,)


class ControlPlaneError(RuntimeError):
    """The keeper of a cluster does not answer: searches go on, changes must wait."""
