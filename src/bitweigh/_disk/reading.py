"""Reading files that may be anything: only plain files are read, and only up to a known size.

A link, pipe, device or folder in the place of a file is refused. None of them is read, waited for
or followed.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from bitweigh.errors import CorruptFileError

__all__ = [
    "NO_FOLLOW",
    "PIECE_BYTES",
    "head_of",
    "kind_of",
    "open_plain",
    "pieces",
    "read_plain",
    "resolved",
    "watched",
]

# Bytes that are read, hashed or written between two checks for Ctrl-C.
PIECE_BYTES = 1 << 24
# Windows has neither flag: there pipes are not in the file system, and only `kind_of` finds links.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def resolved(path: str | os.PathLike[str]) -> Path:
    """The path with all links resolved; unchanged if it leads through none."""
    real = os.path.realpath(path)
    return Path(path) if real == str(Path(path).absolute()) else Path(real)


def kind_of(path: Path) -> str:
    """The kind of file at a path, "" for a plain one; raises FileNotFoundError if there is none."""
    mode = path.lstat().st_mode
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")


def open_plain(path: Path) -> io.FileIO:
    """Open a file for reading; raises CorruptFileError for anything but a plain file."""
    # Checked before opening, which has side effects on some devices.
    if stat.S_ISREG(path.lstat().st_mode):
        try:
            # One call, so that no interrupt comes before an object owns the open file.
            file = next(map(io.FileIO, map(os.open, [path], [_READ])))
        except OSError as error:
            # A link or a folder has replaced it since.
            if error.errno not in (errno.ELOOP, errno.EISDIR):
                raise
        else:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file
            file.close()
    raise CorruptFileError(path, f"must be a plain file, is {kind_of(path) or 'being replaced'}")


def pieces(file: io.FileIO, size: int, path: Path) -> Iterator[bytes]:
    """The next `size` bytes in pieces; raises CorruptFileError if the file has fewer."""
    while size:
        piece = file.read(min(size, PIECE_BYTES))
        if not piece:
            raise CorruptFileError(path, "the file ends too early")
        size -= len(piece)
        yield piece


def read_plain(path: Path, max_bytes: int) -> bytes:
    """All bytes of a file; raises CorruptFileError if there are more than `max_bytes`."""
    with open_plain(path) as file:
        return _all_of(file, path, max_bytes)


def _all_of(file: io.FileIO, path: Path, max_bytes: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise CorruptFileError(path, f"must have at most {max_bytes} bytes, has {size}")
    return b"".join(pieces(file, size, path))


def head_of(path: Path, n_bytes: int) -> bytes:
    """The first `n_bytes` of a file, or all of a shorter one."""
    with open_plain(path) as file:
        return b"".join(pieces(file, min(n_bytes, os.fstat(file.fileno()).st_size), path))


@contextlib.contextmanager
def watched(path: Path, max_bytes: int) -> Iterator[tuple[bytes, Callable[[], bool]]]:
    """Yield all bytes of a file, and a function that tells whether it is still in place.

    For files that are only ever replaced by renaming. The file stays open, so that no other file
    can get its inode number: the same number means the same file.
    """
    with open_plain(path) as file:
        opened = os.fstat(file.fileno())

        def is_still_there() -> bool:
            try:
                return os.path.samestat(opened, path.lstat())
            except FileNotFoundError:
                return False

        yield _all_of(file, path, max_bytes), is_still_there
