"""Opening files that may be anything: plain ones are read as far as they are said to go.

A link, a pipe, a device or a folder in the place of a file is refused. None of them is read, waited
for or followed.
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

# What is read, hashed or written between two looks at Ctrl-C.
PIECE_BYTES = 1 << 24
# Windows has neither: there a pipe is not in the file system, and `kind_of` alone finds links.
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
    """The path without the links that it leads through; as it was given if there are none."""
    real = os.path.realpath(path)
    return Path(path) if real == str(Path(path).absolute()) else Path(real)


def kind_of(path: Path) -> str:
    """What is there, "" for a plain file; raises FileNotFoundError where there is nothing."""
    return _kind(path.lstat().st_mode)


def _kind(mode: int) -> str:
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")


def open_plain(path: Path) -> io.FileIO:
    """Open a file for reading; raises CorruptFileError for anything but a plain file."""
    # Not even opened: that alone does something to some devices.
    found = kind_of(path)
    if not found:
        try:
            # In one call: no interrupt comes before there is something that closes the file.
            file = next(map(io.FileIO, map(os.open, [path], [_READ])))
        except OSError as error:
            # It was replaced by a link or a folder just now.
            if error.errno not in (errno.ELOOP, errno.EISDIR):
                raise
            found = kind_of(path)
        else:
            found = _kind(os.fstat(file.fileno()).st_mode)
            if not found:
                return file
            file.close()
    raise CorruptFileError(path, f"must be a plain file, is {found or 'being replaced'}")


def pieces(file: io.FileIO, size: int, path: Path) -> Iterator[bytes]:
    """The next `size` bytes, some at a time; raises CorruptFileError where there are fewer."""
    while size:
        piece = file.read(min(size, PIECE_BYTES))
        if not piece:
            raise CorruptFileError(path, "the file ends too early")
        size -= len(piece)
        yield piece


def read_plain(path: Path, most_bytes: int) -> bytes:
    """All of a file; raises CorruptFileError for one that has more bytes than that."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise CorruptFileError(path, f"must have at most {most_bytes} bytes, has {size}")
        return b"".join(pieces(file, size, path))


def head_of(path: Path, n_bytes: int) -> bytes:
    """How a file begins."""
    with open_plain(path) as file:
        return b"".join(pieces(file, min(n_bytes, os.fstat(file.fileno()).st_size), path))


@contextlib.contextmanager
def watched(path: Path) -> Iterator[Callable[[], bool]]:
    """Tells whether a file that is only ever replaced by renaming has been there all the time.

    It is held open, so that no other file can get its number: one that has the number is the same.
    """
    with open_plain(path) as file:
        own = os.fstat(file.fileno())

        def is_there() -> bool:
            try:
                return os.path.samestat(own, path.lstat())
            except FileNotFoundError:
                return False

        yield is_there
