"""Builds on a disk that is full in the middle, several times.

A disk of memory (root can mount one) gets a ballast file that leaves little room. Each time the
build fails, the ballast is made smaller, and the same call continues. Without root a limit on the
size of files takes the place of a full disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.streaming.builds import Build, digests

__all__ = ["Attempt", "CannotMountError", "can_mount", "fill_disk", "limit_files"]

# A build takes less than this many bytes a row at any time, and so does its index.
DISK_BYTES = 60
# Room for each attempt until the second band is begun, and after that, in bytes a row: less than a
# band takes. In between the runs of the first band, 12 bytes a row, are deleted.
ROOM_BYTES = 8
LATER_ROOM_BYTES = 3
# Too little for the directories of an index of a few thousand rows.
PUBLISHING_ROOM = 1 << 13


class CannotMountError(Exception):
    """Even root cannot mount a disk, as in most containers."""


class Attempt(NamedTuple):
    """One process of a build."""

    room: int
    """Bytes that it could write, or the size that no file could exceed."""
    ended: str
    """The stage in which there was no room, or "finished"."""
    kept: int
    """Finished parts of earlier attempts that are still there, by the journal."""
    lost: int
    """Finished parts of earlier attempts that are not."""
    again: int
    """The parts that it has begun though they were finished before."""
    error: str
    same_files: bool | None
    """Of an index that is finished, whether every byte is as it should be."""


def fill_disk(
    codes: Path, folder: Path, rows: int, *, rows_at_once: int | None = None
) -> Iterator[Attempt]:
    """Build on a mounted disk that is full again and again, at last while publishing."""
    expected = _expected(codes, folder, rows_at_once)
    disk = folder / "disk"
    with mounted(disk, rows * DISK_BYTES + (64 << 20)):
        build = Build(codes, disk / "index", rows_at_once=rows_at_once)
        for end, bytes_left in (("ranges of band 1", ROOM_BYTES), ("result", LATER_ROOM_BYTES)):
            while not build.has(end):
                with _room(disk, rows * bytes_left) as room:
                    yield _attempt(build, expected, room, "--end-after", end)
        for bytes_left in (PUBLISHING_ROOM, rows * ROOM_BYTES):
            with _room(disk, bytes_left) as room:
                yield _attempt(build, expected, room)


def limit_files(
    codes: Path, folder: Path, rows: int, *, rows_at_once: int | None = None
) -> Iterator[Attempt]:
    """Build with limits on the size of files, each larger than the one before."""
    expected = _expected(codes, folder, rows_at_once)
    build = Build(codes, folder / "index", rows_at_once=rows_at_once)
    for limit in (rows // 20, 5 * rows, 100 * rows):
        yield _attempt(build, expected, limit, "--max-file-bytes", str(limit))
    build.clear()


def can_mount() -> bool:
    """Whether this user can mount disks."""
    return os.name == "posix" and os.geteuid() == 0 and shutil.which("mount") is not None


@contextlib.contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """Mount a disk of memory for the time of a block."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise CannotMountError(error.stderr.decode().strip()) from None
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def _expected(codes: Path, folder: Path, rows_at_once: int | None) -> dict[str, str]:
    """Return the digests of an index whose build had room."""
    build = Build(codes, folder / "whole", rows_at_once=rows_at_once)
    build.run()
    found = digests(build.index)
    build.clear()
    return found


@contextlib.contextmanager
def _room(disk: Path, room: int) -> Iterator[int]:
    """Leave so many bytes of a disk for the time of a block."""
    ballast = disk / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        os.posix_fallocate(file, 0, shutil.disk_usage(disk).free - room)
    finally:
        os.close(file)
    try:
        yield shutil.disk_usage(disk).free
    finally:
        ballast.unlink()


def _attempt(build: Build, expected: dict[str, str], room: int, *options: str) -> Attempt:
    before = build.finished()
    process = build.start(*options)
    _, errors = process.communicate()
    error = errors.strip().rpartition("\n")[2]
    if process.returncode != 0 and "no room for" not in error:
        raise RuntimeError(f"the build failed: {errors}")
    ended = build.stage()
    same = digests(build.index) == expected if ended == "finished" else None
    kept = build.finished() if ended != "finished" else before
    lost = len(before - kept)
    return Attempt(room, ended, len(before) - lost, lost, build.again(before), error, same)
