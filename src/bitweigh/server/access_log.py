"""The access log: one line of JSON for each request.

Lines are written a few times a second rather than one by one: at thousands of requests a second,
Python's logging and a system call for each would cost more than everything else but the search.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, TextIO

import orjson

__all__ = ["AccessLog"]

_FLUSH_SECONDS = 0.1


class AccessLog:
    """Writes lines to a stream. For the event loop alone."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream, by default to the standard output."""
        self._stream = stream or sys.stdout
        self._lines: list[bytes] = []

    def write(self, line: dict[str, Any]) -> None:
        """Add a line."""
        self._lines.append(orjson.dumps(line))
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write all lines that wait."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        lines.append(b"")
        try:
            self._stream.write(b"\n".join(lines).decode())
            self._stream.flush()
        except (OSError, ValueError):
            pass  # whoever read the log has gone; requests are more important
