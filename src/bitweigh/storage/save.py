"""Saving: new files first, each synced before it gets its name; then the manifest, in one step.

Until the manifest is replaced the folder holds the old index, from then on the new one; whatever
else lies there means nothing. A file is named after its content and never changed, so what the old
index shares with the new one is not written again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bitweigh.results import CorruptIndexError
from bitweigh.storage.content import Content, stored_arrays
from bitweigh.storage.files import read_manifest
from bitweigh.storage.manifest import FORMAT, MANIFEST, PIECE_BYTES, is_own_name

try:
    import fcntl
except ImportError:  # not on Windows, where two processes must not save to one folder at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["save"]

# Synced at once: a Ctrl-C waits for a sync to end.
SYNC_BYTES = 1 << 25


def save(content: Content, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this index, or leave it as it was."""
    folder = Path(path)
    manifest, arrays = stored_arrays(content)
    new_folders = _make_folder(folder)
    published = False
    try:
        with _locked(folder) as directory:
            wanted = sorted(arrays.keys() - _stored_names(folder))
            try:
                for name in wanted:
                    temporary = _write_synced(folder, name, arrays[name].data())
                    temporary.replace(folder / name)
                os.fsync(directory)
                temporary = _write_synced(folder, MANIFEST, [memoryview(manifest.to_bytes())])
                published = True
                temporary.replace(folder / MANIFEST)
                os.fsync(directory)
            except BaseException:
                # Once the manifest may have been replaced, nobody knows which files are needed.
                if not published:
                    _remove(folder, [*wanted, MANIFEST])
                raise
            _clean(folder, set(arrays))
    except BaseException:
        if not published:
            with contextlib.suppress(OSError):
                for own in new_folders:
                    own.rmdir()
        raise


def _make_folder(folder: Path) -> list[Path]:
    """Make the folder and those above it that are missing; returns which, the lowest first."""
    missing = [own for own in (folder, *folder.parents) if not own.exists()]
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        _refuse_others(folder)
        return []
    for own in missing:
        _sync_folder(own.parent)
    return missing


def _refuse_others(folder: Path) -> None:
    """Raise FileExistsError for what is neither an index nor what a save has left of one."""
    reason = ""
    manifest = folder / MANIFEST
    if not folder.is_dir():
        reason = "is a file, not the folder of an index"
    elif manifest.exists():
        # A damaged one may be replaced, somebody else's may not.
        with manifest.open("rb") as file:
            if FORMAT.encode() not in file.read(4096):
                reason = f"its {MANIFEST} is not that of an index"
    else:
        others = [entry.name for entry in folder.iterdir() if not is_own_name(entry.name)]
        reason = f"the folder holds no index, but {others[0]!r}" if others else ""
    if reason:
        raise FileExistsError(errno.EEXIST, reason, str(folder)) from None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
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


def _stored_names(folder: Path) -> set[str]:
    """The files of the index that the folder holds, as far as they are there and whole."""
    try:
        files = read_manifest(folder).files()
    except (FileNotFoundError, CorruptIndexError):
        return set()
    return {name for name, file in files.items() if _is_whole(folder / name, file.nbytes)}


def _is_whole(path: Path, nbytes: int) -> bool:
    try:
        # The header is shorter than a page.
        return 0 < path.stat().st_size - nbytes <= 4096
    except OSError:
        return False


def _write_synced(folder: Path, name: str, data: Iterable[memoryview]) -> Path:
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


def _remove(folder: Path, names: list[str]) -> None:
    """Remove what this save has written, but for the manifest that was there before."""
    with contextlib.suppress(OSError):
        for name in names:
            (folder / f"{name}.tmp").unlink(missing_ok=True)
            if name != MANIFEST:
                (folder / name).unlink(missing_ok=True)


def _clean(folder: Path, kept: set[str]) -> None:
    """Remove files of ours that no index needs. What cannot be removed now will be next time."""
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if is_own_name(path.name) and path.name != MANIFEST and path.name not in kept:
                path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
