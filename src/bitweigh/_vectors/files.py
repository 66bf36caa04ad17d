"""Vector indexes on disk: a folder with an index of codes, and beside it what it was made with.

`vectors.json` says which files belong to the index in `index/`, by the checksum of its manifest. A
save writes new files first. Then, before that index is replaced, `vectors.json` comes to describe
the old one and the new one, and afterwards only the new one: at every moment it fits the index that
is there. Each of these steps is done whole or not at all.

A first save leaves `vectors.json.tmp` for the time that the codes take: a folder of codes that is
not described is ours if that describes it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
import xxhash

from bitweigh import hashers, weighers
from bitweigh._checks import MAX_BITS
from bitweigh._disk.folders import HeldFolder, undisturbed
from bitweigh._disk.reading import kind_of, open_plain, pieces, resolved, watched
from bitweigh._disk.writing import sync_folder, temporary_of, write_synced
from bitweigh._storage.content import header_of, stored_arrays
from bitweigh._storage.files import DAMAGED, check_file, map_array, read_array, read_manifest
from bitweigh._storage.manifest import MANIFEST, Manifest
from bitweigh._storage.ownership import INDEX_FILES
from bitweigh._vectors.manifest import NAME, VECTOR_FILES, Entry, entries_of, read, to_bytes
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors, blocks_of
from bitweigh.errors import CorruptFileError
from bitweigh.hashers import _files as estimator_files
from bitweigh.hashers._estimator import Estimator
from bitweigh.index import Index
from bitweigh.typing import Ids

__all__ = ["VectorState", "load", "save"]

Data: TypeAlias = Callable[[], Iterable[memoryview]]

Kind = TypeVar("Kind", bound=Estimator)

CODES = "index"


def save(held: VectorState, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this, or leave what it holds."""
    # A search may build bands meanwhile: what is described must be what is saved.
    index = held.index.copy()
    entry, files = _described(held, index)
    folder = HeldFolder(resolved(path))
    try:
        try:
            directory = folder.take()
            VECTOR_FILES.refuse_others(folder.path, _is_unfinished)
            _refuse_linked_codes(folder.path)
            _replace(folder.path, directory, index, entry, files)
        finally:
            folder.let_go()
    finally:
        folder.let_go()


def _replace(
    folder: Path, directory: int, index: Index, entry: Entry, files: dict[str, Data]
) -> None:
    old = entries_of(folder / NAME)
    wanted = sorted(files.keys() - _stored_names(folder, old))
    made: list[Path] = []
    try:
        for name in wanted:
            made.append(folder / temporary_of(name))
            if not os.path.lexists(folder / name):
                made.append(folder / name)
            write_synced(folder, name, files[name]()).replace(folder / name)
        os.fsync(directory)
        if os.path.lexists(folder / NAME):
            current = _matching(old, _stored_checksum(folder))
            if current is None or current.index != entry.index:
                _publish(folder, directory, [entry] if current is None else [current, entry])
            index.save(folder / CODES)
            _publish(folder, directory, [entry])
        else:
            _save_first(folder, directory, index, entry)
    except BaseException:
        _undo(folder, directory, old, entry, made)
        raise
    _clean(folder, old, entry)


def _save_first(folder: Path, directory: int, index: Index, entry: Entry) -> None:
    """Save where nothing is described. The description lies ready before there are codes.

    So whoever finds codes without a description after a kill can tell whose they are.
    """
    if os.path.lexists(folder / CODES):
        # Of such a save. A new description would not be theirs.
        (folder / CODES / MANIFEST).unlink(missing_ok=True)
        sync_folder(folder / CODES)
    description = write_synced(folder, NAME, [memoryview(to_bytes([entry]))])
    os.fsync(directory)
    index.save(folder / CODES)
    description.replace(folder / NAME)
    os.fsync(directory)


def _undo(folder: Path, directory: int, old: list[Entry], entry: Entry, made: list[Path]) -> None:
    """Remove what a save has made that did not come to its end."""
    now = entries_of(folder / NAME)
    if _matching(now, _stored_checksum(folder)) == entry:
        # The new index is there, and all that it needs: what is left is to tidy up.
        with contextlib.suppress(OSError):
            _publish(folder, directory, [entry])
            _clean(folder, old, entry)
        _remove([folder / temporary_of(NAME)])
        return
    if not os.path.lexists(folder / NAME):
        # First the codes, then what tells that they are ours.
        with contextlib.suppress(OSError):
            (folder / CODES / MANIFEST).unlink(missing_ok=True)
            _remove(INDEX_FILES.left_over(folder / CODES, set(), set()))
            (folder / CODES).rmdir()
    _remove([folder / temporary_of(NAME), *made])
    if old and now != old:
        with contextlib.suppress(OSError):
            _publish(folder, directory, old)


def _described(held: VectorState, index: Index) -> tuple[Entry, dict[str, Data]]:
    """What belongs to the index, and the data of its files by name."""
    files: dict[str, Data] = {}

    def named(kind: str, end: str, data: Data) -> str:
        digest = xxhash.xxh3_128()
        for piece in data():
            digest.update(piece)
        name = f"{kind}-{digest.hexdigest()}.{end}"
        files[name] = data
        return name

    hasher, weigher = (estimator_files.to_bytes(own) for own in (held.hasher, held.weigher))
    vectors = ids = None
    if held.vectors is not None and len(index):
        own_ids, own = index.ids, held.vectors
        vectors = named("vectors", "npy", lambda: _vector_data(own, own_ids))
        ids = named("ids", "npy", lambda: _id_data(own_ids))
    entry = Entry(
        _checksum_of(index),
        held.metric,
        held.rerank,
        held.seed,
        held.hasher.n_features_in_,
        len(index),
        named("hasher", "npz", lambda: [memoryview(hasher)]),
        named("weigher", "npz", lambda: [memoryview(weigher)]),
        vectors,
        ids,
    )
    return entry, files


def _vector_data(vectors: Vectors, ids: Ids) -> Iterator[memoryview]:
    dtype = vectors.dtype.newbyteorder("<")
    yield memoryview(header_of(dtype.str, (len(ids), vectors.n_features)))
    for block in blocks_of(vectors, ids):
        yield block.astype(dtype, copy=False).reshape(-1).view(np.uint8).data


def _id_data(ids: Ids) -> Iterator[memoryview]:
    yield memoryview(header_of("<i8", ids.shape))
    yield ids.astype("<i8", copy=False).view(np.uint8).data


def _checksum_of(index: Index) -> str:
    """Of the manifest that saving the index would write."""
    raw = stored_arrays(index._content())[0].to_bytes()
    return Manifest.from_bytes(raw, Path(CODES)).checksum


def _stored_checksum(folder: Path) -> str | None:
    try:
        return read_manifest(folder / CODES).checksum
    except (FileNotFoundError, CorruptFileError):
        return None


def _matching(entries: list[Entry], checksum: str | None) -> Entry | None:
    return next((entry for entry in entries if entry.index == checksum), None)


def _stored_names(folder: Path, entries: list[Entry]) -> set[str]:
    """The files that are there and need not be written again, as far as their sizes tell."""
    whole = set()
    for entry in entries:
        for name in (entry.hasher, entry.weigher):
            with contextlib.suppress(OSError, CorruptFileError), open_plain(folder / name) as file:
                _check_digest(file, folder / name, entry, MAX_BITS)
                whole.add(name)
        for array in entry.arrays() or ():
            size = len(header_of(array.dtype, array.shape)) + array.nbytes
            with contextlib.suppress(OSError):
                if (folder / array.name).lstat().st_size == size:
                    whole.add(array.name)
    return whole


def _publish(folder: Path, directory: int, entries: list[Entry]) -> None:
    raw = to_bytes(entries)
    write_synced(folder, NAME, [memoryview(raw)]).replace(folder / NAME)
    os.fsync(directory)


def _is_unfinished(path: Path) -> bool:
    """Whether this is the folder of codes of a first save that was killed."""
    if path.name != CODES or kind_of(path) != "a folder":
        return False
    described = entries_of(path.with_name(temporary_of(NAME)))
    if _matching(described, _stored_checksum(path.parent)) is not None:
        return True
    return not os.path.lexists(path / MANIFEST) and all(map(INDEX_FILES.is_own, path.iterdir()))


def _refuse_linked_codes(folder: Path) -> None:
    path = folder / CODES
    if os.path.lexists(path) and kind_of(path) != "a folder":
        reason = f"must be a folder, is {kind_of(path) or 'a file'}: remove it first"
        raise FileExistsError(errno.EEXIST, reason, str(path))


def _clean(folder: Path, old: list[Entry], entry: Entry) -> None:
    """Remove files of ours that nothing needs; what cannot be removed now will be next time."""
    named = {name for one in old for name in one.names()}
    with contextlib.suppress(OSError):
        _remove(VECTOR_FILES.left_over(folder, named, entry.names()))


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], mapped: bool) -> VectorState:
    """What a folder holds; raises CorruptFileError where it is damaged."""
    folder = resolved(path)
    return undisturbed(folder, lambda: _load_once(folder, mapped))


def _load_once(folder: Path, mapped: bool) -> VectorState | None:
    """None if a save has come in between: it replaces the description before anything else."""
    with watched(folder / NAME) as is_still_there:
        entries = read(folder / NAME)
        try:
            return _load(folder, entries, mapped)
        except (FileNotFoundError, CorruptFileError) as error:
            if not is_still_there():
                return None
            if isinstance(error, CorruptFileError):
                raise
            raise CorruptFileError(Path(error.filename), "the file is missing") from None


def _load(folder: Path, entries: list[Entry], mapped: bool) -> VectorState:
    codes = folder / CODES
    if os.path.lexists(codes) and kind_of(codes) != "a folder":
        raise CorruptFileError(codes, f"must be a folder, is {kind_of(codes) or 'a file'}")
    index = Index.load(codes, mmap=mapped)
    entry = _matching(entries, None if index._source is None else index._source.checksum)
    if entry is None:
        raise CorruptFileError(folder / NAME, f"does not describe what {CODES} holds")
    hasher = _load_estimator(folder / entry.hasher, entry, index, hashers.KINDS)
    weigher = _load_estimator(folder / entry.weigher, entry, index, weighers.KINDS)
    facts = (hasher.n_features_in_, hasher.n_bits_, weigher.n_bits_, hasher.bitorder, len(index))
    if facts != (entry.n_features, index.n_bits, index.n_bits, index.bitorder, entry.rows):
        raise CorruptFileError(folder / NAME, "its hasher, weigher and codes do not fit each other")
    vectors = _load_vectors(folder, entry, index, mapped)
    return VectorState(index, hasher, weigher, vectors, entry.metric, entry.rerank, entry.seed)


def _load_estimator(path: Path, entry: Entry, index: Index, kinds: tuple[type[Kind], ...]) -> Kind:
    """The hasher or weigher in a file, if that is what its name says."""
    with open_plain(path) as file:
        _check_digest(file, path, entry, index.n_bits)
        return estimator_files.read_from(file, path, kinds)


def _check_digest(file: io.FileIO, path: Path, entry: Entry, n_bits: int) -> None:
    """Raise CorruptFileError if the file is not what its name says, or too large to be that."""
    most_bytes = estimator_files.most_bytes_for(entry.n_features, n_bits)
    size = os.fstat(file.fileno()).st_size
    if size > most_bytes:
        raise CorruptFileError(path, f"must have at most {most_bytes} bytes, has {size}")
    digest = xxhash.xxh3_128()
    for piece in pieces(file, size, path):
        digest.update(piece)
    if digest.hexdigest() != path.stem[-32:]:
        raise CorruptFileError(path, DAMAGED)


def _load_vectors(folder: Path, entry: Entry, index: Index, mapped: bool) -> Vectors | None:
    if entry.rerank is None:
        return None
    files = entry.arrays()
    if files is None:
        return Vectors.empty(entry.rerank, entry.n_features)
    vectors, ids = files
    if mapped:
        return Vectors.of_arrays(map_array(folder, ids), map_array(folder, vectors))
    own_ids = read_array(folder, ids, True)
    if not np.array_equal(own_ids, index.ids):
        raise CorruptFileError(folder / ids.name, "these are not the ids of the index")
    check_file(folder, vectors)
    try:
        return Vectors.of_arrays(own_ids, map_array(folder, vectors)).only(own_ids)
    except ValueError:  # as for vectors that a caller adds
        raise CorruptFileError(folder / vectors.name, "must hold finite numbers") from None
