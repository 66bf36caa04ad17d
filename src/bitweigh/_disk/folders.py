"""Folders that one saves to at a time: made where they are missing, locked, left as they were.

`take` and `let_go` are called so that a Ctrl-C at any moment leaves no lock behind:

    held = HeldFolder(path)
    try:
        try:
            held.take()
            ...
        finally:
            held.let_go()
    finally:
        held.let_go()

Nothing is taken before the first `try`, and an interrupt that ends one `let_go` leaves the other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from bitweigh._disk.reading import NO_FOLLOW, kind_of
from bitweigh._disk.writing import sync_folder

try:
    import fcntl
except ImportError:  # not on Windows, where two processes must not save to one folder at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["FolderLock", "HeldFolder", "held", "undisturbed"]

Found = TypeVar("Found")

_ATTEMPTS = 10
_FOLDER = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)


class FolderLock:
    """An flock on a folder that is there. It ends with the process, however that ends."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Shared locks exclude only others that are not; nothing is taken yet."""
        self.path = path
        self._shared = shared
        self._files: list[int] = []
        self._thread = 0
        self._is_inner = False

    def take(self) -> int:
        """Wait for the lock and return the open folder.

        A thread that has the lock of a folder gets it again, whatever path leads there.
        """
        self._thread = threading.get_ident()
        while True:
            with _opening:
                _taken.add(self)
                # In one call: no interrupt comes between opening the folder and keeping its number.
                self._files.extend(map(os.open, [self.path], [_FOLDER]))
            (file,) = self._files
            if fcntl is None:
                return file
            outer = self._taken_here()
            self._is_inner = outer is not None
            if outer is not None:
                # Through the same open folder as before, where a lock never waits for itself.
                fcntl.flock(outer, fcntl.LOCK_EX)
                return file
            fcntl.flock(file, fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX)
            # The last holder of the lock may have removed the folder, and someone made another.
            if os.path.samestat(os.fstat(file), self.path.lstat()):
                return file
            self.let_go()

    def let_go(self) -> None:
        """Release what was taken, if anything was; may be called again."""
        if self._files and fcntl is not None:
            fcntl.flock(self._files[0], fcntl.LOCK_UN)
        self._close()
        with _opening:
            _taken.discard(self)

    def __del__(self) -> None:
        """Release what nobody can release any more."""
        self._close()

    def _close(self) -> None:
        if self._files:
            # In one call: the number is neither lost nor closed twice.
            list(map(os.close, map(self._files.pop, [0])))

    def _taken_here(self) -> int | None:
        """The folder as this thread has opened it before to take its lock."""
        with _opening:
            others = [lock for lock in _taken if lock is not self and not lock._is_inner]
        own = os.fstat(self._files[0])
        files = [file for lock in others if lock._thread == self._thread for file in lock._files]
        return next((file for file in files if os.path.samestat(own, os.fstat(file))), None)


class HeldFolder:
    """A folder to save to: locked, and made if it was missing."""

    def __init__(self, path: Path) -> None:
        """Nothing is made or taken yet."""
        self.path = path
        self._lock = FolderLock(path)
        self._made: list[Path] = []  # the lowest first

    def take(self) -> int:
        """Make the folder and those above it that are missing, and wait for its lock.

        Raises FileExistsError where there is something else than a folder.
        """
        while True:
            self._make()
            try:
                return self._lock.take()
            except FileNotFoundError:
                # Another save has failed, and has removed the folder that it had made.
                self._lock.let_go()

    def let_go(self) -> None:
        """Remove the folders that were made and have nothing in them; release the lock."""
        try:
            # With the lock: somebody who waits for it sees that the folder is gone.
            for own in self._made:
                with contextlib.suppress(OSError):
                    own.rmdir()
        finally:
            self._lock.let_go()

    def _make(self) -> None:
        missing = [own for own in (self.path, *self.path.parents) if not os.path.lexists(own)]
        for own in reversed(missing):
            # Before it is made: an interrupt right after that must find it here.
            self._made.insert(0, own)
            try:
                own.mkdir()
            except FileExistsError:
                self._made.remove(own)
        for own in missing:
            sync_folder(own.parent)
        with contextlib.suppress(FileNotFoundError):
            self._refuse_others()

    def _refuse_others(self) -> None:
        found = kind_of(self.path)
        if found != "a folder":
            reason = f"is {found or 'a file'}, not the folder of an index"
            raise FileExistsError(errno.EEXIST, reason, str(self.path))


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Hold a folder meanwhile: others who want to save to it wait, this thread does not."""
    folder = HeldFolder(path)
    try:
        yield folder.take()
    finally:
        folder.let_go()


def undisturbed(folder: Path, attempt: Callable[[], Found | None]) -> Found:
    """What `attempt` reads from a folder; None says that a save has come in between.

    The last of several attempts keeps saves from coming, with a lock that others who read share.
    """
    for _ in range(_ATTEMPTS - 1):
        found = attempt()
        if found is not None:
            return found
    lock = FolderLock(folder, shared=True)
    try:
        try:
            # Without, where the file system has no locks.
            with contextlib.suppress(OSError):
                lock.take()
            found = attempt()
        finally:
            lock.let_go()
    finally:
        lock.let_go()
    if found is None:
        raise OSError(f"{folder} is being saved to faster than it can be read")
    return found


# A fork copies open folders, and a lock lasts until every copy is closed: also when the process
# that took it was killed. So a child closes its copies. No folder is opened during a fork, so that
# it knows all of them.
_opening = threading.RLock()
_taken: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _close_copies() -> None:
    try:
        for lock in list(_taken):
            lock._close()
    finally:
        _opening.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_opening.acquire,
        after_in_parent=_opening.release,
        after_in_child=_close_copies,
    )
