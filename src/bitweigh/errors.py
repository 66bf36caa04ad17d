"""Exceptions that bitweigh defines."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CorruptFileError", "DeadlineError", "LimitError", "OverloadedError"]


class LimitError(ValueError):
    """More rows are within the radius than the limit allows.

    Attributes
    ----------
    query : int
        The number of a query with too many.
    limit : int
        The limit.

    """

    def __init__(self, query: int, limit: int, what: str) -> None:
        """Keep the two numbers, and say what there are too many of."""
        super().__init__(f"query {query} has more than limit={limit} {what}")
        self.query = query
        self.limit = limit
        self._what = what

    def __reduce__(self) -> tuple[type[LimitError], tuple[int, int, str]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return LimitError, (self.query, self.limit, self._what)


class DeadlineError(TimeoutError):
    """A search took longer than its `timeout`; it has no answer, not even a part of one.

    Attributes
    ----------
    timeout : float
        The seconds that the search was given.
    seconds_late : float
        How many seconds after the deadline the search had ended on all its threads, by the clock of
        the engine. Waiting for Python's lock to raise this error is not counted.

    """

    def __init__(self, timeout: float, seconds_late: float) -> None:
        """Keep the two numbers, and say the first."""
        super().__init__(f"the search took longer than timeout={timeout:g} seconds")
        self.timeout = timeout
        self.seconds_late = seconds_late

    def __reduce__(self) -> tuple[type[DeadlineError], tuple[float, float]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return DeadlineError, (self.timeout, self.seconds_late)


class OverloadedError(RuntimeError):
    """More is waiting than a queue has room for; this call was not accepted.

    Attributes
    ----------
    retry_after : float
        Seconds after which there will probably be room.

    """

    def __init__(self, retry_after: float, reason: str = "too many queries are waiting") -> None:
        """Keep the time."""
        super().__init__(f"{reason}: try again in {retry_after:.2g} seconds")
        self.retry_after = retry_after
        self._reason = reason

    def __reduce__(self) -> tuple[type[OverloadedError], tuple[float, str]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return OverloadedError, (self.retry_after, self._reason)


class CorruptFileError(ValueError):
    """A stored file is damaged, missing, or not one that bitweigh can read."""

    def __init__(self, path: str | Path, reason: str) -> None:
        """Name the file, and the reason why it cannot be used."""
        super().__init__(f"{path}: {reason}")
        self.path = Path(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[Path, str]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return CorruptFileError, (self.path, self.reason)
