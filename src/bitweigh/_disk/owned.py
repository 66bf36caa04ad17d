"""Folders that belong to one process: what it needs on disk for a while, and nobody else.

The owner has such a folder locked. A process that was killed cannot delete its folders, but its
locks end, and the next process that asks for a folder of the same name deletes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from bitweigh._disk.reading import NO_FOLLOW

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["OwnedFolder"]

_FOLDER = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)


class OwnedFolder:
    """A new folder ``<name>-<random>`` in `parent`; folders that others have abandoned go."""

    def __init__(self, parent: Path, name: str) -> None:
        """Create and lock it."""
        for path in parent.glob(f"{name}-????????"):
            _remove_abandoned(path)
        self._process = os.getpid()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
            self._file = _locked(self.path)
            # Until it is locked it looks abandoned, and another process may have deleted it.
            if fcntl is None or (self._file is not None and self.path.exists()):
                return
            self._unlock()

    def remove(self) -> None:
        """Delete it, unless this is a forked child. Files that are mapped keep their content."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _locked(path: Path) -> int | None:
    """The descriptor of a folder, locked; None if another process has it or it is gone."""
    if fcntl is None:
        return None
    try:
        file = os.open(path, _FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _remove_abandoned(path: Path) -> None:
    file = _locked(path)
    if file is not None:
        with contextlib.suppress(OSError):
            shutil.rmtree(path)
        os.close(file)
