"""Errors that only a server has; all others are those of the library and of Python."""

from __future__ import annotations

import errno

__all__ = ["ConflictError", "DiskFullError", "ServerError", "UnavailableError"]


class UnavailableError(ConnectionError):
    """The server could not be reached, or is starting, stopping or rebuilding; status 503.

    Attributes
    ----------
    retry_after : float or None
        Seconds after which the server asks to be tried again, if it says so.

    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        """Keep the time."""
        super().__init__(reason)
        self.retry_after = retry_after


class DiskFullError(OSError):
    """The server has no room on its disk and wrote nothing; searches go on; status 507."""

    def __init__(self, reason: str) -> None:
        """Be an OSError whose errno is ENOSPC."""
        super().__init__(errno.ENOSPC, reason)


class ConflictError(RuntimeError):
    """The collection is not in a state for this: it has another definition, or no hasher yet."""


class ServerError(RuntimeError):
    """The server failed, or something else than a bitweigh server answered.

    Attributes
    ----------
    status : int
        The status of the answer.

    """

    def __init__(self, status: int, reason: str) -> None:
        """Keep the status."""
        super().__init__(f"{reason} (status {status})")
        self.status = status
