"""The durable folder: new files first, each synced before it gets its name, then the manifest.

Replacing the manifest is one step. Before it the folder holds the old content, after it the new:
files that the manifest does not list mean nothing. A file is named after its content and never
changes, so files that old and new content share are not written again. Everything that bitweigh
stores in a folder is saved and loaded here.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from bitweigh._disk.folders import LockedFolder, read_between_saves
from bitweigh._disk.reading import open_plain, pieces, resolved, watched
from bitweigh._disk.writing import (
    link_synced,
    refuse_unless_plain,
    temporary_of,
    write_synced,
)
from bitweigh._storage.arrays import ArrayData, ArrayFile, agrees, digest_of_pieces
from bitweigh._storage.formats import (
    FORMATS,
    INDEX,
    FileKind,
    FolderKind,
    Format,
    why_unknown,
)
from bitweigh._storage.manifest import (
    FILE_NAME,
    MANIFEST,
    MAX_BYTES,
    Manifest,
    OtherFile,
    format_named_in,
    parse,
    read_manifest,
)
from bitweigh.errors import CorruptFileError

__all__ = [
    "FileData",
    "OlderLayout",
    "folder_format",
    "folder_kind",
    "is_ours",
    "leftover_files",
    "listed_files",
    "load",
    "refuse_others",
    "save",
]

Result = TypeVar("Result")

_UNFINISHED = temporary_of("")
_HEAD_BYTES = 128


class FileData(Protocol):
    """The content of a file to write."""

    @property
    def file(self) -> ArrayFile | OtherFile:
        """The name and size of the file."""

    def data(self) -> Iterable[memoryview]:
        """All bytes of the file; may be called repeatedly."""


class OlderLayout(Protocol):
    """The layout of folders of an older version, which a save replaces."""

    def owns(self, path: Path) -> bool:
        """Whether a file or folder belongs to the older layout."""

    def remove(self, folder: Path) -> None:
        """Remove the remaining files of the older layout, once the folder has a manifest."""


def folder_kind(path: str | os.PathLike[str]) -> FolderKind:
    """The kind of index in a folder, by its manifest alone; raises FileNotFoundError if none.

    A manifest that names no format counts as that of an index: loading it reports what is wrong.
    """
    return folder_format(path).kind


def folder_format(path: str | os.PathLike[str]) -> Format:
    """The format of a folder, determined as in `folder_kind`."""
    folder = resolved(path)
    format_name = _format_name_in(folder)
    if format_name is None:
        reason = "no such file, so the folder holds no index"
        raise FileNotFoundError(errno.ENOENT, reason, str(folder / MANIFEST))
    unknown = why_unknown(format_name)
    if unknown is not None:
        raise CorruptFileError(folder / MANIFEST, unknown)
    return FORMATS.get(format_name, INDEX)


def save(
    path: str | os.PathLike[str],
    in_format: Format,
    manifest: bytes,
    files: Mapping[str, FileData],
    older: OlderLayout | None = None,
) -> None:
    """Make the folder hold these files, or leave it as it was.

    Raises FileExistsError for a folder that holds anything other than this format or `older`.
    """
    folder = LockedFolder(resolved(path))
    try:
        try:
            directory = folder.acquire()
            refuse_others(folder.path, in_format, older)
            listed = _replace(folder.path, directory, manifest, files)
            # Files that cannot be removed now are removed by the next save.
            with contextlib.suppress(OSError):
                for unused in list(leftover_files(folder.path, in_format, listed, set(files))):
                    unused.unlink(missing_ok=True)
                if older is not None:
                    older.remove(folder.path)
        finally:
            folder.release()
    finally:
        folder.release()


def load(
    path: str | os.PathLike[str],
    in_format: Format,
    read: Callable[[Path, Manifest], Result],
    read_older: Callable[[Path], Result | None] | None = None,
) -> Result:
    """The result of `read` for a folder and its manifest, repeated if a save interferes.

    `read_older` is called instead if the folder has no manifest but an older one of this format. It
    returns None if a save interfered.

    Raises CorruptFileError if a file is missing, and FileNotFoundError if the folder holds nothing,
    or something of another format.
    """
    folder = resolved(path)
    try:
        return read_between_saves(folder, partial(_attempt, folder, in_format, read, read_older))
    except FileNotFoundError:
        found = FORMATS.get(_format_name_in(folder) or "", in_format)
        if found is not in_format:
            raise _other_format(folder, found, in_format) from None
        raise


def _attempt(
    folder: Path,
    in_format: Format,
    read: Callable[[Path, Manifest], Result],
    read_older: Callable[[Path], Result | None] | None,
) -> Result | None:
    """The result of reading a folder; None if a save interfered.

    A save may remove the files of a manifest after it was read, but never while that manifest is in
    place. So a file counts as missing only if the manifest was in place after the file was looked
    for.
    """
    if read_older is not None and _has_older(folder, in_format):
        return read_older(folder)
    with watched(folder / MANIFEST, MAX_BYTES) as (raw, is_still_there):
        manifest = parse(raw, folder / MANIFEST)
        if manifest.format is not in_format:
            raise _other_format(folder, manifest.format, in_format)
        try:
            return read(folder, manifest)
        except FileNotFoundError as error:
            if is_still_there():
                raise CorruptFileError(Path(error.filename), "the file is missing") from None
            return None


def _has_older(folder: Path, in_format: Format) -> bool:
    """Whether a folder has no manifest, but the older one of a format."""
    older = in_format.older_manifest
    return (
        older is not None
        and not os.path.lexists(folder / MANIFEST)
        and os.path.lexists(folder / older)
    )


def _other_format(folder: Path, found: Format, expected: Format) -> FileNotFoundError:
    reason = f"the folder holds {found.what}, not {expected.what}: bitweigh.load reads it"
    return FileNotFoundError(errno.ENOENT, reason, str(folder))


def listed_files(folder: Path) -> set[str]:
    """The names of the files that the manifest of a folder lists; none if it cannot be read."""
    try:
        return read_manifest(folder).listed()
    except (FileNotFoundError, CorruptFileError):
        return set()


def is_ours(path: Path, in_format: Format) -> bool:
    """Whether we wrote this file, perhaps only partly, judging by its name and first bytes."""
    name = path.name.removesuffix(_UNFINISHED)
    kind = _kind_of(name, in_format)
    if name != MANIFEST and kind is None:
        return False
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
    except (FileNotFoundError, CorruptFileError):
        return False
    is_whole = not path.name.endswith(_UNFINISHED)
    # After a power failure, unsynced data may be all zeros.
    if not (is_whole or any(head)):
        return True
    return agrees(head, in_format.head) if kind is None else kind.fits(head, size, is_whole)


def leftover_files(
    folder: Path, in_format: Format, listed: Iterable[str], in_use: set[str]
) -> Iterator[Path]:
    """Our files except the manifest and `in_use`; those in `listed` are ours whatever they hold."""
    ours = set(listed)
    for path in sorted(folder.iterdir()):
        if path.name not in {MANIFEST, *in_use} and (path.name in ours or is_ours(path, in_format)):
            yield path


def _kind_of(name: str, in_format: Format) -> FileKind | None:
    match = FILE_NAME.fullmatch(name)
    if match is None:
        return None
    kinds = (kind for kind in in_format.files if (kind.name, kind.ending) == match.groups())
    return next(kinds, None)


def _format_name_in(folder: Path) -> str | None:
    """The format that a manifest names, "" if that is not one of ours, None without a manifest."""
    if os.path.lexists(folder / MANIFEST):
        return format_named_in(folder / MANIFEST)
    for known in FORMATS.values():
        if _has_older(folder, known):
            try:
                return format_named_in(folder / str(known.older_manifest))
            except CorruptFileError:  # a link or the like; reading it reports that
                return known.name
    return None


def refuse_others(folder: Path, in_format: Format, older: OlderLayout | None = None) -> None:
    """Raise FileExistsError for a folder that holds something else, or links in place of files.

    A folder with our manifest may hold other files too. Without a manifest every file must be ours,
    left by a save that was killed.
    """
    entries = sorted(folder.iterdir())
    for path in entries:
        name = path.name.removesuffix(_UNFINISHED)
        if name in (MANIFEST, in_format.older_manifest) or _kind_of(name, in_format) is not None:
            refuse_unless_plain(path)
        if path.name == temporary_of(MANIFEST) and not is_ours(path, in_format):
            _refuse(folder, f"its {path.name} is not what a save of {in_format.what} has left")
    format_name = _format_name_in(folder)
    if format_name in FORMATS and format_name != in_format.name:
        _refuse(folder, f"the folder holds {FORMATS[format_name].what}, not {in_format.what}")
    if folder / MANIFEST in entries:
        if format_name != in_format.name:
            unknown = why_unknown(format_name or "")
            _refuse(folder, f"its {MANIFEST} is {unknown or f'not that of {in_format.what}'}")
        return
    for path in entries:
        if not (is_ours(path, in_format) or (older is not None and older.owns(path))):
            missing = in_format.what.partition(" ")[2]
            _refuse(folder, f"the folder holds no {missing}, but {path.name!r}")


def _refuse(folder: Path, reason: str) -> NoReturn:
    raise FileExistsError(errno.EEXIST, reason, str(folder))


def _replace(
    folder: Path, directory: int, manifest: bytes, files: Mapping[str, FileData]
) -> set[str]:
    """Write the new files and the manifest; returns the files that the old manifest listed."""
    listed = listed_files(folder)
    to_write = [
        name
        for name in sorted(files)
        if name not in listed or not _is_whole(folder, files[name].file)
    ]
    new: list[str] = []
    written: Path | None = None
    try:
        for name in to_write:
            temporary = _placed(folder, name, files[name])
            if not os.path.lexists(folder / name):
                new.append(name)
            temporary.replace(folder / name)
        os.fsync(directory)
        written = write_synced(folder, MANIFEST, [memoryview(manifest)])
        written.replace(folder / MANIFEST)
        os.fsync(directory)
    except BaseException:
        # Once the manifest is replaced, the disk may have the old one or the new one, so the files
        # of both are needed.
        if written is None or os.path.lexists(written):
            _remove(folder, [*map(temporary_of, [*to_write, MANIFEST]), *new])
        raise
    return listed


def _placed(folder: Path, name: str, data: FileData) -> Path:
    """The temporary file for this name, written and synced."""
    if isinstance(data, ArrayData) and data.built is not None:
        try:
            return link_synced(folder, name, data.built)
        except OSError:  # the file is on another disk, or the file system has no links
            if not data.pieces:
                raise
    return write_synced(folder, name, data.data())


def _is_whole(folder: Path, file: ArrayFile | OtherFile) -> bool:
    """Whether a file is complete and need not be written again; arrays are judged by their size."""
    path = folder / file.name
    try:
        if path.lstat().st_size != file.size:
            return False
        if isinstance(file, ArrayFile):
            return True
        with open_plain(path) as opened:
            return digest_of_pieces(pieces(opened, file.size, path)) == file.checksum
    except (OSError, CorruptFileError):
        return False


def _remove(folder: Path, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
