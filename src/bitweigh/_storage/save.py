"""Saving: new files first, each synced before it gets its name; then the manifest, in one step.

Until the manifest is replaced the folder holds the old index, from then on the new one; whatever
else lies there means nothing. A file is named after its content and never changed, so what the old
index shares with the new one is not written again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bitweigh._disk.folders import HeldFolder
from bitweigh._disk.reading import resolved
from bitweigh._disk.writing import sync_folder as _sync_folder
from bitweigh._disk.writing import temporary_of
from bitweigh._disk.writing import write_synced as _write_synced
from bitweigh._storage.content import Content, StoredArray, header_of, stored_arrays
from bitweigh._storage.files import read_manifest
from bitweigh._storage.manifest import MANIFEST, MOST_BYTES, ArrayFile
from bitweigh._storage.ownership import INDEX_FILES
from bitweigh.errors import CorruptFileError

__all__ = ["save"]


def save(content: Content, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this index, or leave it as it was."""
    manifest, arrays = stored_arrays(content)
    raw = manifest.to_bytes()
    if len(raw) > MOST_BYTES:
        raise ValueError(
            f"the index has {len(manifest.parts())} parts, too many to be saved: call compact()"
        )
    held = HeldFolder(resolved(path), _sync_folder)
    try:
        try:
            directory = held.take()
            INDEX_FILES.refuse_others(held.path)
            _replace(held.path, directory, raw, arrays)
        finally:
            held.let_go()
    finally:
        held.let_go()


def _replace(folder: Path, directory: int, raw: bytes, arrays: dict[str, StoredArray]) -> None:
    stored = _stored_files(folder)
    wanted = sorted(arrays.keys() - {name for name in stored if _is_whole(folder, stored[name])})
    new: list[str] = []
    manifest: Path | None = None
    try:
        for name in wanted:
            temporary = _write_synced(folder, name, arrays[name].data())
            if not os.path.lexists(folder / name):
                new.append(name)
            temporary.replace(folder / name)
        os.fsync(directory)
        manifest = _write_synced(folder, MANIFEST, [memoryview(raw)])
        manifest.replace(folder / MANIFEST)
        os.fsync(directory)
    except BaseException:
        # If the manifest has been replaced, the disk may have the old one or the new one: the files
        # of both are needed.
        if manifest is None or os.path.lexists(manifest):
            _remove(folder, [*map(temporary_of, [*wanted, MANIFEST]), *new])
        raise
    # What cannot be removed now will be next time.
    with contextlib.suppress(OSError):
        for left in list(INDEX_FILES.left_over(folder, set(stored), set(arrays))):
            left.unlink(missing_ok=True)


def _stored_files(folder: Path) -> dict[str, ArrayFile]:
    """The files of the index that the folder holds by name, none if it cannot be read."""
    try:
        return read_manifest(folder).files()
    except (FileNotFoundError, CorruptFileError):
        return {}


def _is_whole(folder: Path, file: ArrayFile) -> bool:
    """Whether it is there and need not be written again, as far as its size tells."""
    try:
        size = (folder / file.name).lstat().st_size
    except OSError:
        return False
    return size == len(header_of(file.dtype, file.shape)) + file.nbytes


def _remove(folder: Path, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
