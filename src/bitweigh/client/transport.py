"""What both kinds of clients give to httpx: the address, headers, and files in pieces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

import bitweigh
from bitweigh.client.exchange import Policy, Request

__all__ = ["PIECE", "checked_policy", "is_small", "options_of", "url_of", "whole_file"]

# Of bodies. httpx copies what is left of a piece whenever the socket has taken a part of it.
PIECE = 256 << 10


def url_of(given: str) -> str:
    """The address of a server, without a slash at its end."""
    if not given.startswith(("http://", "https://")):
        raise ValueError(f"url must begin with http:// or https://, got {given!r}")
    return given.rstrip("/")


def checked_policy(timeout: float, retries: int) -> Policy:
    """How long and how often to try."""
    if not 0 < timeout < float("inf"):
        raise ValueError(f"timeout must be a positive number of seconds, got {timeout}")
    if retries < 0:
        raise ValueError(f"retries must be at least 0, got {retries}")
    return Policy(float(timeout), retries)


def is_small(body: bytes | Path) -> TypeGuard[bytes]:
    """Whether a body is sent in one piece."""
    return isinstance(body, bytes) and len(body) <= PIECE


def options_of(
    request: Request, url: str, key: str | None, seconds: float | None
) -> dict[str, Any]:
    """Arguments of httpx's `stream`, but for the body."""
    headers = {"user-agent": f"bitweigh/{bitweigh.__version__}"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if request.body is not None:
        headers["content-type"] = request.content_type
    if isinstance(request.body, Path):
        headers["content-length"] = str(request.body.stat().st_size)
    elif request.body is not None:
        headers["content-length"] = str(len(request.body))
    return {
        "method": request.method,
        "url": url + request.path,
        "params": dict(request.params),
        "headers": headers,
        "timeout": seconds,
    }


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of another when the block ends well, and else is deleted."""
    handle, name = tempfile.mkstemp(".part", ".download-", target.parent)
    staged = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        staged.rename(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
