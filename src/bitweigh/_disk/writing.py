"""Writing files so that they are complete or absent: under another name, synced, then renamed."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from bitweigh._disk.reading import PIECE_BYTES, kind_of

__all__ = [
    "link_synced",
    "refuse_unless_plain",
    "sync_folder",
    "temporary_of",
    "write_file",
    "write_synced",
]

# Bytes between two syncs. It is limited because Ctrl-C waits for a sync to end.
SYNC_BYTES = 1 << 25


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    directory: list[int] = []
    try:
        # One call, so that no interrupt comes between opening the folder and storing its
        # descriptor.
        directory.extend(map(os.open, [folder], [os.O_RDONLY]))
        os.fsync(directory[0])
    finally:
        list(map(os.close, directory))


def temporary_of(name: str) -> str:
    """The name of a file while it is being written."""
    return f"{name}.tmp"


def write_file(path: Path, data: Iterable[memoryview]) -> None:
    """Write a file in one step: whoever reads it finds the old one or the new one.

    Raises FileExistsError if the path leads to anything but a plain file, such as /dev/null, where
    root would replace the device.
    """
    refuse_unless_plain(path)
    # No other thread or process writes to this name.
    unique = f"{path.name}.{os.getpid()}-{threading.get_ident()}"
    try:
        write_synced(path.parent, unique, data).replace(path)
    except BaseException:
        path.with_name(temporary_of(unique)).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_synced(folder: Path, name: str, data: Iterable[memoryview]) -> Path:
    """Write and sync the temporary file for this name, and return its path."""
    temporary = folder / temporary_of(name)
    with _open_new(temporary) as file:
        unsynced = 0
        for piece in data:
            for first in range(0, len(piece), PIECE_BYTES):
                unsynced += _write_all(file.fileno(), piece[first : first + PIECE_BYTES])
                if unsynced >= SYNC_BYTES:
                    os.fsync(file.fileno())
                    unsynced = 0
        os.fsync(file.fileno())
    return temporary


def link_synced(folder: Path, name: str, path: Path) -> Path:
    """Sync a file and give it the temporary name as well, on the same disk; return that path."""
    temporary = folder / temporary_of(name)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    temporary.unlink(missing_ok=True)
    temporary.hardlink_to(path)
    return temporary


def refuse_unless_plain(path: Path) -> None:
    """Raise FileExistsError if the path is a link, a pipe, a device or a folder."""
    try:
        kind = kind_of(path)
    except FileNotFoundError:
        return
    if kind:
        reason = f"must be a plain file to be replaced, is {kind}: remove it first"
        raise FileExistsError(errno.EEXIST, reason, str(path))


def _open_new(path: Path) -> io.FileIO:
    """Create and open a file: never an existing one, nor one that a link leads to."""
    try:
        return io.FileIO(path, "x")
    except FileExistsError:
        # A save that was killed left it behind.
        refuse_unless_plain(path)
        path.unlink(missing_ok=True)
        return io.FileIO(path, "x")


def _write_all(file: int, data: memoryview) -> int:
    done = 0
    while done < len(data):
        written = os.write(file, data[done:])
        if written <= 0:
            raise OSError(errno.EIO, "nothing could be written")
        done += written
    return done
