"""One write for each answer: uvicorn writes its head and its body apart.

A system call, which wakes the client for a head without a body, takes longer than most of what a
server does for a short search.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["JoinedWrites"]

# Bytes that wait for more; longer ones are written at once.
_MAX_JOINED = 64 << 10


class JoinedWrites:
    """A transport whose writes of one step of the event loop are one write."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Wrap a transport."""
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write with whatever else is written before the loop goes on."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MAX_JOINED:
            self._flush()

    def _flush(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces:
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Write what waits, then close."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Everything else is the transport's own."""
        return getattr(self._transport, name)
