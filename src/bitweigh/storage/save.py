"""Saving: new files first, each synced before it gets its name; then the manifest, in one step.

Until the manifest is replaced the folder holds the old index, from then on the new one; whatever
else lies there means nothing. A file is named after its content and never changed, so what the old
index shares with the new one is not written again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from bitweigh.results import CorruptIndexError
from bitweigh.storage.atomic import locked as _locked
from bitweigh.storage.atomic import make_folder
from bitweigh.storage.atomic import sync_folder as _sync_folder
from bitweigh.storage.atomic import write_synced as _write_synced
from bitweigh.storage.content import Content, stored_arrays
from bitweigh.storage.files import read_manifest
from bitweigh.storage.manifest import FORMAT, MANIFEST, is_own_name

__all__ = ["save"]


def save(content: Content, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this index, or leave it as it was."""
    folder = Path(path)
    manifest, arrays = stored_arrays(content)
    new_folders = make_folder(folder, _refuse_others, _sync_folder)
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
