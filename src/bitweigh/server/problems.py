"""Problems: what a request is refused for, as RFC 9457's application/problem+json."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

__all__ = ["PROBLEM_JSON", "Problem", "is_full"]

PROBLEM_JSON = b"application/problem+json"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TITLES = {
    400: "Bad request",
    401: "No valid key",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported content type",
    421: "Unknown host",
    422: "Not valid",
    429: "Too many requests",
    431: "Too many headers",
    500: "Internal error",
    503: "Unavailable",
    504: "Deadline exceeded",
    507: "No space",
}


class Problem(Exception):  # noqa: N818 as RFC 9457 calls it
    """A request that gets a status and a reason instead of an answer.

    `name` is a short word that programs can compare; `detail` is for people, and names the
    argument, what was expected and what came.
    """

    def __init__(
        self,
        status: int,
        name: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **more: object,
    ) -> None:
        """Keep everything that the answer will say."""
        super().__init__(detail)
        self.status = status
        self.name = name
        self.detail = detail
        self.headers = headers or {}
        self.more = more

    def body(self) -> dict[str, Any]:
        """The JSON object of the answer."""
        return {
            "type": f"urn:bitweigh:problem:{self.name}",
            "title": _TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }


def is_full(error: BaseException | None) -> bool:
    """Whether there is no room on the disk, or it cannot be written."""
    if isinstance(error, sqlite3.OperationalError):
        said = str(error)
        return "full" in said or "I/O" in said or "readonly" in said
    if isinstance(error, OSError):
        return error.errno in _FULL or is_full(error.__cause__)
    return False
