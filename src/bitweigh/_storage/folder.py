"""The durable folder: new files first, each synced before it gets its name; then the manifest.

Until the manifest is replaced, which is one step, a folder holds what it held before, and from then
on the new: whatever else lies there means nothing. A file is named after its content and never
changed, so what old and new have in common is not written again. Everything that bitweigh keeps in
a folder is saved and loaded here.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from bitweigh._disk.folders import HeldFolder, undisturbed
from bitweigh._disk.reading import open_plain, pieces, resolved, watched
from bitweigh._disk.writing import refuse_unless_plain, temporary_of, write_synced
from bitweigh._storage.arrays import ArrayFile, agrees, digest_of_pieces
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
    Manifest,
    OtherFile,
    format_named_in,
    read_manifest,
)
from bitweigh.errors import CorruptFileError

__all__ = [
    "FileData",
    "OlderLayout",
    "folder_format",
    "folder_kind",
    "is_ours",
    "left_over",
    "listed_files",
    "load",
    "save",
]

Found = TypeVar("Found")

_UNFINISHED = temporary_of("")
_HEAD_BYTES = 128


class FileData(Protocol):
    """What a file is to hold."""

    @property
    def file(self) -> ArrayFile | OtherFile:
        """Its name and size."""

    def data(self) -> Iterable[memoryview]:
        """All bytes; can be asked for again."""


class OlderLayout(Protocol):
    """Folders of a version that had other files, which a save replaces."""

    def owns(self, path: Path) -> bool:
        """Whether this is a file or folder of it."""

    def remove(self, folder: Path) -> None:
        """Remove all of it that is left, once the folder has a manifest."""


def folder_kind(path: str | os.PathLike[str]) -> FolderKind:
    """What a folder holds, by its manifest alone; raises FileNotFoundError where it holds nothing.

    A manifest that says nothing is taken for that of an index: whoever loads that hears what is
    wrong with it.
    """
    return folder_format(path).kind


def folder_format(path: str | os.PathLike[str]) -> Format:
    """The format of what a folder holds, as `folder_kind` finds it."""
    folder = resolved(path)
    named = _format_in(folder)
    if named is None:
        reason = "no such file, so the folder holds no index"
        raise FileNotFoundError(errno.ENOENT, reason, str(folder / MANIFEST))
    unknown = why_unknown(named)
    if unknown is not None:
        raise CorruptFileError(folder / MANIFEST, unknown)
    return FORMATS.get(named, INDEX)


def save(
    path: str | os.PathLike[str],
    in_format: Format,
    manifest: bytes,
    files: Mapping[str, FileData],
    older: OlderLayout | None = None,
) -> None:
    """Make the folder hold these files, or leave it as it was.

    Raises FileExistsError for a folder that holds anything else than this format, or `older`.
    """
    held = HeldFolder(resolved(path))
    try:
        try:
            directory = held.take()
            _refuse_others(held.path, in_format, older)
            listed = _replace(held.path, directory, manifest, files)
            # What cannot be removed now will be next time.
            with contextlib.suppress(OSError):
                for unused in list(left_over(held.path, in_format, listed, set(files))):
                    unused.unlink(missing_ok=True)
                if older is not None:
                    older.remove(held.path)
        finally:
            held.let_go()
    finally:
        held.let_go()


def load(
    path: str | os.PathLike[str],
    in_format: Format,
    read: Callable[[Path, Manifest], Found],
    read_older: Callable[[Path], Found | None] | None = None,
) -> Found:
    """What `read` makes of a folder and its manifest, tried again where a save comes in between.

    `read_older` is asked where there is no manifest but an older one of this format. It returns
    None if a save has come in between.

    Raises CorruptFileError where a file is missing, and FileNotFoundError where the folder holds
    nothing, or something of another format.
    """
    folder = resolved(path)
    try:
        return undisturbed(folder, partial(_attempt, folder, in_format, read, read_older))
    except FileNotFoundError:
        found = FORMATS.get(_format_in(folder) or "", in_format)
        if found is not in_format:
            raise _other_format(folder, found, in_format) from None
        raise


def _attempt(
    folder: Path,
    in_format: Format,
    read: Callable[[Path, Manifest], Found],
    read_older: Callable[[Path], Found | None] | None,
) -> Found | None:
    """What is read from a folder, None if a save has come in between.

    A save may remove the files of a manifest after it was read, but never while that manifest is in
    its place: a file is missing only if the manifest has been there from before it was read until
    after the file was looked for.
    """
    if read_older is not None and _has_older(folder, in_format):
        return read_older(folder)
    with watched(folder / MANIFEST) as is_still_there:
        manifest = read_manifest(folder)
        if manifest.format is not in_format:
            raise _other_format(folder, manifest.format, in_format)
        try:
            return read(folder, manifest)
        except FileNotFoundError as error:
            if is_still_there():
                raise CorruptFileError(Path(error.filename), "the file is missing") from None
            return None


def _has_older(folder: Path, in_format: Format) -> bool:
    """Whether there is no manifest but the older one of a format."""
    older = in_format.older_manifest
    return (
        older is not None
        and not os.path.lexists(folder / MANIFEST)
        and os.path.lexists(folder / older)
    )


def _other_format(folder: Path, found: Format, wanted: Format) -> FileNotFoundError:
    reason = f"the folder holds {found.what}, not {wanted.what}: bitweigh.load reads it"
    return FileNotFoundError(errno.ENOENT, reason, str(folder))


def listed_files(folder: Path) -> set[str]:
    """The names of the files that the manifest of a folder lists, none if it cannot be read."""
    try:
        return read_manifest(folder).listed()
    except (FileNotFoundError, CorruptFileError):
        return set()


def is_ours(path: Path, in_format: Format) -> bool:
    """Whether this is a file as we write it, maybe half written, by name and first bytes."""
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
    # When the power fails, zeros may be all that is left of what was not synced.
    if not (is_whole or any(head)):
        return True
    return agrees(head, in_format.head) if kind is None else kind.fits(head, size, is_whole)


def left_over(
    folder: Path, in_format: Format, listed: Iterable[str], kept: set[str]
) -> Iterator[Path]:
    """Files of ours but the manifest and `kept`; those in `listed` are ours whatever they hold."""
    ours = set(listed)
    for path in sorted(folder.iterdir()):
        if path.name not in {MANIFEST, *kept} and (path.name in ours or is_ours(path, in_format)):
            yield path


def _kind_of(name: str, in_format: Format) -> FileKind | None:
    match = FILE_NAME.fullmatch(name)
    if match is None:
        return None
    kinds = (kind for kind in in_format.files if (kind.name, kind.ending) == match.groups())
    return next(kinds, None)


def _format_in(folder: Path) -> str | None:
    """The format of what a folder holds, "" where it is not ours, None where there is nothing."""
    if os.path.lexists(folder / MANIFEST):
        return format_named_in(folder / MANIFEST)
    for known in FORMATS.values():
        if _has_older(folder, known):
            try:
                return format_named_in(folder / str(known.older_manifest))
            except CorruptFileError:  # a link or the like, which whoever reads it names
                return known.name
    return None


def _refuse_others(folder: Path, in_format: Format, older: OlderLayout | None) -> None:
    """Raise FileExistsError for a folder that holds something else, or links to elsewhere.

    Beside a manifest of ours anything may lie that is in nobody's way. Without one everything must
    be ours, as a save that was killed leaves it.
    """
    entries = sorted(folder.iterdir())
    for path in entries:
        name = path.name.removesuffix(_UNFINISHED)
        if name in (MANIFEST, in_format.older_manifest) or _kind_of(name, in_format) is not None:
            refuse_unless_plain(path)
        if path.name == temporary_of(MANIFEST) and not is_ours(path, in_format):
            _refuse(folder, f"its {path.name} is not what a save of {in_format.what} has left")
    named = _format_in(folder)
    if named in FORMATS and named != in_format.name:
        _refuse(folder, f"the folder holds {FORMATS[named].what}, not {in_format.what}")
    if folder / MANIFEST in entries:
        if named != in_format.name:
            unknown = why_unknown(named or "")
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
    """Write what is new, and say which files the manifest listed that was there before."""
    listed = listed_files(folder)
    wanted = [
        name
        for name in sorted(files)
        if name not in listed or not _is_whole(folder, files[name].file)
    ]
    new: list[str] = []
    written: Path | None = None
    try:
        for name in wanted:
            temporary = write_synced(folder, name, files[name].data())
            if not os.path.lexists(folder / name):
                new.append(name)
            temporary.replace(folder / name)
        os.fsync(directory)
        written = write_synced(folder, MANIFEST, [memoryview(manifest)])
        written.replace(folder / MANIFEST)
        os.fsync(directory)
    except BaseException:
        # If the manifest has been replaced, the disk may have the old one or the new one: the files
        # of both are needed.
        if written is None or os.path.lexists(written):
            _remove(folder, [*map(temporary_of, [*wanted, MANIFEST]), *new])
        raise
    return listed


def _is_whole(folder: Path, file: ArrayFile | OtherFile) -> bool:
    """Whether it is there and need not be written again: as far as its size tells, if an array."""
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
