"""Folders that one save at a time may write to: created if missing, and locked.

`acquire` and `release` are called so that a Ctrl-C at any moment leaves no lock behind:

    folder = LockedFolder(path)
    try:
        try:
            folder.acquire()
            ...
        finally:
            folder.release()
    finally:
        folder.release()

Nothing is acquired before the first `try`, and if an interrupt ends one `release`, the other runs.
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
except ImportError:  # Windows, where two processes must not save to the same folder at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["FolderLock", "LockedFolder", "locked_folder", "read_between_saves"]

Result = TypeVar("Result")

_ATTEMPTS = 10
_FOLDER = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)


class FolderLock:
    """An flock on an existing folder. The lock ends with the process, however that ends."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Create a lock without acquiring it; shared locks exclude only exclusive ones."""
        self.path = path
        self._shared = shared
        self._files: list[int] = []
        self._thread = 0
        self._is_inner = False

    def acquire(self) -> int:
        """Wait for the lock and return the descriptor of the open folder.

        A thread that has the lock of a folder gets it again, whatever path leads there.
        """
        self._thread = threading.get_ident()
        while True:
            with _opening:
                _locks.add(self)
                # One call, so that no interrupt comes between opening the folder and storing its
                # descriptor.
                self._files.extend(map(os.open, [self.path], [_FOLDER]))
            (file,) = self._files
            if fcntl is None:
                return file
            outer = self._outer_file()
            self._is_inner = outer is not None
            if outer is not None:
                # Through the descriptor of the outer lock: a lock never waits for itself.
                fcntl.flock(outer, fcntl.LOCK_EX)
                return file
            fcntl.flock(file, fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX)
            # The previous owner of the lock may have removed the folder, and a new one may exist.
            if os.path.samestat(os.fstat(file), self.path.lstat()):
                return file
            self.release()

    def release(self) -> None:
        """Release the lock if it was acquired; may be called again."""
        if self._files and fcntl is not None:
            fcntl.flock(self._files[0], fcntl.LOCK_UN)
        self._close()
        with _opening:
            _locks.discard(self)

    def __del__(self) -> None:
        """Close the folder, which releases a lock that nothing else can release."""
        if hasattr(self, "_files"):  # not if an interrupt ended __init__
            self._close()

    def _close(self) -> None:
        if self._files:
            # One call, so that the descriptor is neither lost nor closed twice.
            list(map(os.close, map(self._files.pop, [0])))

    def _outer_file(self) -> int | None:
        """The descriptor through which this thread already locks the same folder, or None."""
        with _opening:
            others = [lock for lock in _locks if lock is not self and not lock._is_inner]
        folder = os.fstat(self._files[0])
        files = [file for lock in others if lock._thread == self._thread for file in lock._files]
        return next((file for file in files if os.path.samestat(folder, os.fstat(file))), None)


class LockedFolder:
    """A folder to save to: locked, and created if it is missing."""

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is created or locked yet."""
        self.path = path
        self._lock = FolderLock(path)
        self._created: list[Path] = []  # deepest first

    def acquire(self) -> int:
        """Create the folder and its missing parents, and wait for its lock.

        Returns the descriptor of the open folder. Raises FileExistsError if the path leads to
        something other than a folder.
        """
        while True:
            self._create()
            try:
                return self._lock.acquire()
            except FileNotFoundError:
                # Another save has failed, and has removed the folder that it had created.
                self._lock.release()

    def release(self) -> None:
        """Remove the created folders that are empty, and release the lock."""
        try:
            # While locked, so that whoever waits for the lock sees that the folder is gone.
            for folder in self._created:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        finally:
            self._lock.release()

    def _create(self) -> None:
        missing = [path for path in (self.path, *self.path.parents) if not os.path.lexists(path)]
        for folder in reversed(missing):
            # Recorded first, so that an interrupt right after `mkdir` finds it here.
            self._created.insert(0, folder)
            try:
                folder.mkdir()
            except FileExistsError:
                self._created.remove(folder)
        for folder in missing:
            sync_folder(folder.parent)
        with contextlib.suppress(FileNotFoundError):
            self._refuse_unless_folder()

    def _refuse_unless_folder(self) -> None:
        kind = kind_of(self.path)
        if kind != "a folder":
            reason = f"is {kind or 'a file'}, not the folder of an index"
            raise FileExistsError(errno.EEXIST, reason, str(self.path))


@contextlib.contextmanager
def locked_folder(path: Path) -> Iterator[int]:
    """Lock a folder: other threads and processes wait to save to it, this thread does not."""
    folder = LockedFolder(path)
    try:
        yield folder.acquire()
    finally:
        folder.release()


def read_between_saves(folder: Path, attempt: Callable[[], Result | None]) -> Result:
    """The result of `attempt`, which returns None if a save interfered and is then repeated.

    The last of several attempts keeps saves out with a lock that readers share.
    """
    for _ in range(_ATTEMPTS - 1):
        result = attempt()
        if result is not None:
            return result
    lock = FolderLock(folder, shared=True)
    try:
        try:
            # Some file systems have no locks; then the last attempt does without.
            with contextlib.suppress(OSError):
                lock.acquire()
            result = attempt()
        finally:
            lock.release()
    finally:
        lock.release()
    if result is None:
        raise OSError(f"{folder} is being saved to faster than it can be read")
    return result


# A fork copies open folders, and a lock lasts until every copy is closed, even if the process that
# acquired it was killed. So a child closes its copies. No folder is opened during a fork, so the
# child knows all of them.
_opening = threading.RLock()
_locks: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _close_copies() -> None:
    try:
        for lock in list(_locks):
            lock._close()
    finally:
        _opening.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_opening.acquire,
        after_in_parent=_opening.release,
        after_in_child=_close_copies,
    )
