"""Exceptions of shards and clusters."""

from __future__ import annotations

__all__ = ["PublishConflictError"]


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
