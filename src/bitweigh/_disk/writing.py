"""Files that are there whole or not at all: written under another name, synced, renamed."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from bitweigh._disk.reading import PIECE_BYTES, kind_of

__all__ = ["refuse_unless_plain", "sync_folder", "temporary_of", "write_file", "write_synced"]

# Synced at once: a Ctrl-C waits for a sync to end.
SYNC_BYTES = 1 << 25


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk."""
    directory: list[int] = []
    try:
        # In one call: no interrupt comes between opening the folder and keeping its number.
        directory.extend(map(os.open, [folder], [os.O_RDONLY]))
        os.fsync(directory[0])
    finally:
        list(map(os.close, directory))


def temporary_of(name: str) -> str:
    """What a file is called while it is written."""
    return f"{name}.tmp"


def write_file(path: Path, data: Iterable[memoryview]) -> None:
    """Write a file in one step: whoever reads it finds the old one or the new one.

    Raises FileExistsError where there is anything but a plain file: not /dev/null, where root would
    replace the device.
    """
    refuse_unless_plain(path)
    # A name that no other thread or process writes to.
    unique = f"{path.name}.{os.getpid()}-{threading.get_ident()}"
    try:
        write_synced(path.parent, unique, data).replace(path)
    except BaseException:
        path.with_name(temporary_of(unique)).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_synced(folder: Path, name: str, data: Iterable[memoryview]) -> Path:
    """Write what is to become a file of this name, and sync it."""
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


def refuse_unless_plain(path: Path) -> None:
    """Raise FileExistsError where a link, a pipe, a device or a folder has the name of a file."""
    try:
        found = kind_of(path)
    except FileNotFoundError:
        return
    if found:
        reason = f"must be a plain file to be replaced, is {found}: remove it first"
        raise FileExistsError(errno.EEXIST, reason, str(path))


def _open_new(path: Path) -> io.FileIO:
    """A new file, never one that was there, nor one that a link leads to."""
    try:
        return io.FileIO(path, "x")
    except FileExistsError:
        # What a killed save has left.
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
