"""Files that are there whole or not at all: locked folders, writes synced before a rename."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bitweigh.storage.manifest import PIECE_BYTES

try:
    import fcntl
except ImportError:  # not on Windows, where two processes must not save to one folder at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked", "make_folder", "sync_folder", "write_synced"]

# Synced at once: a Ctrl-C waits for a sync to end.
SYNC_BYTES = 1 << 25


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def make_folder(
    folder: Path,
    refuse: Callable[[Path], None],
    sync: Callable[[Path], None] = sync_folder,
) -> list[Path]:
    """Make the folder and those above it that are missing; returns which, the lowest first.

    `refuse` raises if a folder that is there already holds what is not ours.
    """
    missing = [own for own in (folder, *folder.parents) if not own.exists()]
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        refuse(folder)
        return []
    for own in missing:
        sync(own.parent)
    return missing


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """One process, and one thread of it, saves to a folder at a time. A kill releases the lock."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield directory
    finally:
        if fcntl is not None:
            # A child forked meanwhile has the folder open too: closing it here is not enough.
            fcntl.flock(directory, fcntl.LOCK_UN)
        os.close(directory)


def write_synced(folder: Path, name: str, data: Iterable[memoryview]) -> Path:
    """Write what is to become a file of this name, and sync it."""
    temporary = folder / f"{name}.tmp"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        unsynced = 0
        for piece in data:
            for first in range(0, len(piece), PIECE_BYTES):
                written = _write_all(file, piece[first : first + PIECE_BYTES])
                unsynced += written
                if unsynced >= SYNC_BYTES:
                    os.fsync(file)
                    unsynced = 0
        os.fsync(file)
    finally:
        os.close(file)
    return temporary


def _write_all(file: int, data: memoryview) -> int:
    done = 0
    while done < len(data):
        written = os.write(file, data[done:])
        if written <= 0:
            raise OSError(errno.EIO, "nothing could be written")
        done += written
    return done
