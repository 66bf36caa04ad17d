"""Vector indexes on disk: a folder with an index of codes, and beside it what it was made with.

`vectors.json` says which files belong to the index in `index/`, by the checksum of its manifest. A
save writes new files first. Then, before that index is replaced, `vectors.json` comes to describe
the old one and the new one, and afterwards only the new one: at every moment it fits the index that
is there. Each of these steps is done whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import xxhash

from bitweigh import hashers, weighers
from bitweigh.checks import Ids
from bitweigh.hashers import files as estimator_files
from bitweigh.hashers.base import Hasher
from bitweigh.index import Index
from bitweigh.index import load as load_index
from bitweigh.results import CorruptIndexError
from bitweigh.storage.atomic import locked, make_folder, write_synced
from bitweigh.storage.content import header_of, stored_arrays
from bitweigh.storage.files import DAMAGED, check_file, map_array, read_array, read_manifest
from bitweigh.storage.manifest import Manifest, digest_of
from bitweigh.vector_index.manifest import FORMAT, NAME, Entry, Metric, is_own_name, read, to_bytes
from bitweigh.vector_index.store import Kept, Vectors, blocks_of
from bitweigh.weighers.base import Weigher

__all__ = ["Held", "load", "save"]

Data: TypeAlias = Callable[[], Iterable[memoryview]]

CODES = "index"
# A save that ends while an index is read removes the files that it was read from.
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Everything that a vector index holds at one moment."""

    index: Index
    hasher: Hasher
    weigher: Weigher
    vectors: Vectors | None
    """If they are kept: those of all ids of the index, and maybe others."""
    metric: Metric
    rerank: Kept | None
    seed: int


def save(held: Held, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this, or leave what it holds."""
    folder = Path(path)
    # A search may build bands meanwhile: what is described must be what is saved.
    index = held.index.copy()
    entry, files = _described(held, index)
    new_folders = make_folder(folder, _refuse_others)
    try:
        with locked(folder) as directory:
            try:
                old = _entries_of(folder)
                for name in sorted(files.keys() - _stored_names(folder, old)):
                    write_synced(folder, name, files[name]()).replace(folder / name)
                os.fsync(directory)
                current = _matching(old, _stored_checksum(folder))
                is_first = not (folder / NAME).exists()
                if is_first:
                    # From now on the folder is known as ours, and so is the index in it.
                    _publish(folder, directory, [entry])
                elif current is not None and current.index != entry.index:
                    _publish(folder, directory, [current, entry])
                try:
                    index.save(folder / CODES)
                except BaseException:
                    if is_first and _stored_checksum(folder) is None:
                        (folder / NAME).unlink(missing_ok=True)
                    raise
                _publish(folder, directory, [entry])
            finally:
                _clean(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            for own in new_folders:
                own.rmdir()  # if there is nothing in it
        raise


def _described(held: Held, index: Index) -> tuple[Entry, dict[str, Data]]:
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
    except (FileNotFoundError, CorruptIndexError):
        return None


def _entries_of(folder: Path) -> list[Entry]:
    """What the folder says it holds, nothing if it cannot be read."""
    try:
        return read(folder)[1]
    except (FileNotFoundError, CorruptIndexError):
        return []


def _matching(entries: list[Entry], checksum: str | None) -> Entry | None:
    return next((entry for entry in entries if entry.index == checksum), None)


def _stored_names(folder: Path, entries: list[Entry]) -> set[str]:
    """The files that are there and need not be written again, as far as their sizes tell."""
    whole = set()
    for entry in entries:
        for name in (entry.hasher, entry.weigher):
            with contextlib.suppress(OSError):
                if digest_of((folder / name).read_bytes()) in name:
                    whole.add(name)
        for file in entry.arrays() or ():
            size = len(header_of(file.dtype, file.shape)) + file.nbytes
            with contextlib.suppress(OSError):
                if (folder / file.name).stat().st_size == size:
                    whole.add(file.name)
    return whole


def _publish(folder: Path, directory: int, entries: list[Entry]) -> None:
    raw = to_bytes(entries)
    write_synced(folder, NAME, [memoryview(raw)]).replace(folder / NAME)
    os.fsync(directory)


def _refuse_others(folder: Path) -> None:
    """Raise FileExistsError for a folder that holds anything but a vector index."""
    reason = ""
    if not folder.is_dir():
        reason = "is a file, not the folder of a vector index"
    elif (folder / NAME).exists():
        with (folder / NAME).open("rb") as file:
            if FORMAT.encode() not in file.read(4096):
                reason = f"its {NAME} is not that of a vector index"
    else:
        others = [entry.name for entry in folder.iterdir() if not is_own_name(entry.name)]
        reason = f"the folder holds no vector index, but {others[0]!r}" if others else ""
    if reason:
        raise FileExistsError(errno.EEXIST, reason, str(folder)) from None


def _clean(folder: Path) -> None:
    """Remove files of ours that nothing needs; what cannot be removed now will be next time."""
    with contextlib.suppress(OSError, CorruptIndexError):
        try:
            kept = {name for entry in read(folder)[1] for name in entry.names()}
        except FileNotFoundError:
            kept = set()
        for path in list(folder.iterdir()):
            if is_own_name(path.name) and path.name not in {NAME, *kept}:
                path.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], mapped: bool) -> Held:
    """What a folder holds; raises CorruptIndexError where it is damaged."""
    folder = Path(path)
    for _ in range(_ATTEMPTS):
        raw, entries = read(folder)
        try:
            return _load(folder, entries, mapped)
        except (FileNotFoundError, CorruptIndexError) as error:
            if read(folder)[0] != raw:
                continue
            if isinstance(error, CorruptIndexError):
                raise
            raise CorruptIndexError(Path(error.filename), "the file is missing") from None
    raise OSError(f"{folder} is being saved to faster than it can be read")


def _load(folder: Path, entries: list[Entry], mapped: bool) -> Held:
    index = load_index(folder / CODES, mmap=mapped)
    entry = _matching(entries, None if index._source is None else index._source.checksum)
    if entry is None:
        raise CorruptIndexError(folder / NAME, f"does not describe what {CODES} holds")
    hasher = estimator_files.from_bytes(*_checked(folder / entry.hasher), hashers.KINDS)
    weigher = estimator_files.from_bytes(*_checked(folder / entry.weigher), weighers.KINDS)
    facts = (hasher.n_features_in_, hasher.n_bits_, weigher.n_bits_, hasher.bitorder, len(index))
    if facts != (entry.n_features, index.n_bits, index.n_bits, index.bitorder, entry.rows):
        raise CorruptIndexError(
            folder / NAME, "its hasher, weigher and codes do not fit each other"
        )
    vectors = _load_vectors(folder, entry, index, mapped)
    return Held(index, hasher, weigher, vectors, entry.metric, entry.rerank, entry.seed)


def _checked(path: Path) -> tuple[bytes, Path]:
    """What a small file holds, if that is what its name says."""
    raw = path.read_bytes()
    if digest_of(raw) != path.stem[-32:]:
        raise CorruptIndexError(path, DAMAGED)
    return raw, path


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
        raise CorruptIndexError(folder / ids.name, "these are not the ids of the index")
    check_file(folder, vectors)
    return Vectors.of_arrays(own_ids, map_array(folder, vectors)).only(own_ids)
