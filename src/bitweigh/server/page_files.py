"""The page that a browser shows at ``/``: its files, which need no key, and what they may load.

The files hold no data. What the page shows it asks for by the routes of the API, with a key.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Mapping
from pathlib import Path

from bitweigh.server.calls import Reply

__all__ = ["PAGE_FOLDER", "page_reply", "page_routes"]

PAGE_FOLDER = Path(__file__).with_name("page")
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
# Payloads may have pictures as data URLs; nothing else comes from anywhere but this server.
_POLICY = (
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
# "gzip" in an Accept-Encoding, unless its weight is 0.
_GZIP = re.compile(rb"(?i)\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")


@functools.cache
def page_routes() -> dict[str, Path]:
    """The path of each file of the page: "/" and those below "/page/"."""
    routes = {"/": PAGE_FOLDER / "index.html"}
    for path in sorted(PAGE_FOLDER.rglob("*")):
        if path.suffix in _TYPES and not path.name.endswith(".d.ts"):
            routes[f"/page/{path.relative_to(PAGE_FOLDER).as_posix()}"] = path
    return routes


@functools.cache
def _preloaded() -> bytes:
    """Names all modules, so that a browser loads them at once and not one import after another."""
    modules = [path for path, file in page_routes().items() if file.suffix == ".js"]
    own = [path for path in modules if not path.endswith(".iife.min.js")]
    return ", ".join(f"<{path}>; rel=modulepreload" for path in own).encode()


@functools.lru_cache(maxsize=64)
def _compressed(content: bytes) -> bytes:
    """By gzip, without a time stamp: the same bytes for the same file."""
    return gzip.compress(content, mtime=0)


def page_reply(path: str, asked: Mapping[bytes, bytes]) -> Reply | None:
    """The file at a path, compressed if the request's headers allow it; None if there is none."""
    file = page_routes().get(path)
    if file is None:
        return None
    headers = [*_HEADERS, (b"vary", b"accept-encoding")]
    if path == "/":
        headers.append((b"link", _preloaded()))
    body = file.read_bytes()
    if _GZIP.search(asked.get(b"accept-encoding", b"")):
        body = _compressed(body)
        headers.append((b"content-encoding", b"gzip"))
    return Reply(200, body, _TYPES[file.suffix], headers)
