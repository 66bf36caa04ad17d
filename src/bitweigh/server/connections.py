"""Connections: uvicorn's protocol, with limits on their number and on the size and time of heads.

What is refused here never reaches the application, so its answers are bytes.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bitweigh.server.settings import Limits
from bitweigh.server.transports import JoinedWrites

__all__ = ["protocol_of"]

_MAX_HEADER_BYTES = 64 << 10


def protocol_of(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol of a server with these limits; uvicorn makes one for each connection."""
    return type("Limited", (Connection,), {"limits": limits})


class Connection(HttpToolsProtocol):
    """A connection with limits; `protocol_of` sets them."""

    limits: ClassVar[Limits]
    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        if len(self.connections) > self.limits.connections:
            joined.write(_BUSY)
            joined.close()
            return
        self._wait_for_headers()

    def _wait_for_headers(self) -> None:
        self._header_bytes = 0
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.slow_seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(_SLOW)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._timer is not None:
            # The parser keeps a header in memory until it ends, however long that is.
            self._header_bytes += len(data)
            if self._header_bytes > _MAX_HEADER_BYTES:
                self._too_large()
        elif self.cycle is None or self.cycle.response_complete:
            # Empty lines, or the rest of a body that nobody reads.
            self._wait_for_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_headers()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def _count(self, n_bytes: int) -> None:
        self._header_bytes += n_bytes
        if self._header_bytes > _MAX_HEADER_BYTES:
            self._too_large()
            raise ValueError("headers are too large")

    def _too_large(self) -> None:
        self.transport.write(_LARGE)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        if not self.transport.is_closing():
            self.transport.write(_INVALID)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)


def _raw(status: str, detail: str) -> bytes:
    code = status[:3]
    body = (
        f'{{"type":"urn:bitweigh:problem:connection","title":"{status[4:]}","status":{code},'
        f'"detail":"{detail}"}}'
    )
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
    ).encode()


_INVALID = _raw("400 Bad Request", "not HTTP/1.1")
_BUSY = _raw("503 Service Unavailable", "too many connections")
_SLOW = _raw("408 Request Timeout", "the headers came too slowly")
_LARGE = _raw("431 Request Header Fields Too Large", "the headers are too large")
