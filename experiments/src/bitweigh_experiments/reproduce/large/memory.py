"""Anonymous memory of this process, and files without their cached pages."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["PeakMemory", "drop_cached", "folder_bytes"]

_INTERVAL = 0.02  # seconds between samples


class PeakMemory:
    """The peak of RssAnon, sampled on a thread while the `with` block runs.

    Mapped files do not count: the system may drop their pages at any time.
    """

    def __init__(self) -> None:
        """Take no sample yet."""
        self.bytes: int | None = None
        """The peak; None where the system does not tell."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin to sample."""
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the last sample."""
        self._done.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        now = _anonymous()
        if now is not None:
            self.bytes = max(now, self.bytes or 0)


def _anonymous() -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return None


def drop_cached(folder: Path) -> bool:
    """Drop the cached pages of a folder's files, which no process may have mapped.

    Returns whether the system can. Only these files are touched: dropping all caches, as root may,
    would slow down everything else on the machine.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)  # only clean pages can be dropped
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
    return True


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
