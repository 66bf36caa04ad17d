"""Reading and writing at a place of a file, all of it or an error; syncing; digests that follow."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from bitweigh._disk.reading import PIECE_BYTES, open_plain
from bitweigh._disk.writing import sync_folder, temporary_of
from bitweigh._storage.arrays import Shape, header_of
from bitweigh.errors import CorruptFileError

__all__ = [
    "OutputArray",
    "is_disk_full",
    "naming_full_disk",
    "read_into",
    "write_all",
    "write_whole",
]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_disk_full(error: OSError) -> bool:
    """Whether a write failed since there is no room for it."""
    return error.errno in _FULL


@contextlib.contextmanager
def naming_full_disk(folder: Path, progress_text: Callable[[], str]) -> Iterator[None]:
    """Say in errors of a full disk how far the build in a folder is, and that it can continue."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise OSError(
            error.errno,
            f"no room for the build in {folder}: {progress_text()}; what is finished is kept, and "
            "the same call continues when there is room",
        ) from error


def write_all(file: int, data: memoryview, offset: int) -> None:
    """Write all bytes at an offset. `os.pwrite` may write fewer, at the limits of a disk."""
    while len(data):
        done = os.pwrite(file, data[:PIECE_BYTES], offset)
        data, offset = data[done:], offset + done


def read_into(path: Path, offset: int, data: memoryview) -> None:
    """Fill `data` from an offset of a file on."""
    with open_plain(path) as file:
        file.seek(offset)
        while len(data):
            count = file.readinto(data[:PIECE_BYTES])
            if not count:
                raise CorruptFileError(path, "the file ends too early")
            data = data[count:]


def write_whole(path: Path, parts: Iterable[memoryview]) -> None:
    """Write a file so that it is complete, and on disk, or absent."""
    temporary = path.with_name(temporary_of(path.name))
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            offset = 0
            for part in parts:
                write_all(file, part, offset)
                offset += len(part)
            os.fsync(file)
        finally:
            os.close(file)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class OutputArray:
    """A .npy file whose elements are written in any order, and hashed in ascending order.

    The digest reads what was just written, so its pages are in memory. Threads may write at the
    same time to places that do not overlap; one at a time may advance the digest.
    """

    def __init__(self, path: Path, dtype: str, shape: Shape) -> None:
        """Open the file, or create it with all elements zero."""
        self.path = path
        self.dtype = dtype
        self.shape = shape
        self._itemsize = np.dtype(dtype).itemsize
        self._header = header_of(dtype, shape)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.ftruncate(self._file, self.size)
        write_all(self._file, memoryview(self._header), 0)
        self._hasher = xxhash.xxh3_128()
        self._hashed = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._header) + int(np.prod(self.shape)) * self._itemsize

    def write(self, first: int, values: NDArray[np.generic]) -> None:
        """Write contiguous values from element `first` on."""
        data = values.reshape(-1).view(np.uint8).data
        write_all(self._file, data, len(self._header) + first * self._itemsize)

    def sync(self) -> None:
        """Wait until what was written is on disk."""
        os.fsync(self._file)

    def hash_until(self, elements: int) -> None:
        """Hash the elements before this one, which are final."""
        end = len(self._header) + elements * self._itemsize
        while self._hashed < end:
            piece = os.pread(self._file, min(PIECE_BYTES >> 2, end - self._hashed), self._hashed)
            if not piece:
                raise CorruptFileError(self.path, "the file ends too early")
            self._hasher.update(piece)
            self._hashed += len(piece)

    def digest(self) -> str:
        """XXH3 of the whole file, 128 bits in hexadecimal."""
        self.hash_until(int(np.prod(self.shape)))
        return self._hasher.hexdigest()

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
