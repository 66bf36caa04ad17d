"""The tasks that make shards from rows in any order, in bounded memory.

`sort_rows` reads a piece of the source and stages its rows, sorted by shard; `sort_shard` does so
with the rows of a shard. `collect_shard` takes the rows of one shard out of all staged pieces and
stores the shard; `change_shard` adds them to a shard. All are plain functions of values that can be
pickled, and doing one twice changes nothing: a task that was killed is simply run again, anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_rows, id_in_use_error
from bitweigh._streaming.sources import FileSource, RowSource
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.shard_files import write_shard
from bitweigh.cluster.stores import Store, open_store
from bitweigh.cluster.version import ShardOptions, StoredShard
from bitweigh.index import Index
from bitweigh.typing import BitOrder, Codes, Ids, OnDuplicate

__all__ = [
    "Layout",
    "Piece",
    "Sorted",
    "SourceFiles",
    "change_shard",
    "collect_shard",
    "rows_of",
    "sort_rows",
    "sort_shard",
]

# Rows of a staged piece that are read at a time.
_ROWS_READ = 1 << 18


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of codes, as `FileSource` reads them."""

    paths: tuple[str, ...]
    ids: tuple[str, ...] = ()
    column: str | None = None
    id_column: str | None = None

    @classmethod
    def of(cls, source: FileSource) -> SourceFiles:
        """The files of a source."""
        paths = tuple(str(path.absolute()) for path in source.paths)
        ids = tuple(str(path.absolute()) for path in source.id_paths)
        return cls(paths, ids, source.column, source.id_column)

    def opened(self) -> FileSource:
        """The source of rows."""
        return FileSource(
            self.paths, ids=self.ids or None, column=self.column, id_column=self.id_column
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the files of the shards depend on besides the rows."""

    n_bits: int
    bitorder: BitOrder
    partition: Partition
    options: ShardOptions


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of the source that one task sorts."""

    number: int
    first: int
    last: int
    first_id: int
    """The id of row 0 of a source without ids."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """What `sort_rows` staged."""

    ends: tuple[int, ...]
    """The number of rows of the piece in all shards up to each."""
    next_id: int
    """One more than the largest id."""

    def rows_of(self, shard: int) -> tuple[int, int]:
        """Where the rows of a shard begin and end in the piece."""
        return (self.ends[shard - 1] if shard else 0), self.ends[shard]


def sort_rows(
    url: str, build: str, layout: Layout, source: SourceFiles | RowSource, piece: Piece
) -> Sorted:
    """Stage the rows of a piece of the source, sorted by shard."""
    rows = source.opened() if isinstance(source, SourceFiles) else source
    records = np.empty(piece.last - piece.first, _record(layout.n_bits))
    at = 0
    for values, given in rows.read(piece.first, piece.last):
        codes, ids = as_rows(values, given, layout.n_bits, layout.bitorder)
        here = records[at : at + len(codes)]
        here["code"] = codes
        first_id = piece.first_id + piece.first + at
        here["id"] = np.arange(first_id, first_id + len(codes)) if ids is None else ids
        at += len(codes)
    return _staged(open_store(url), build, layout, piece.number, records)


def sort_shard(url: str, build: str, layout: Layout, folder: str, number: int) -> Sorted:
    """Stage the rows of a stored shard as a piece, sorted by the shards of another partition."""
    store = open_store(url)
    codes, ids = rows_of(store, folder)
    records = np.empty(len(ids), _record(layout.n_bits))
    records["code"], records["id"] = codes, ids
    del codes, ids
    return _staged(store, build, layout, number, records)


def collect_shard(
    url: str,
    build: str,
    layout: Layout,
    places: Sequence[tuple[int, int]],
    threads: int | None = 1,
) -> StoredShard:
    """Store a shard, whose rows begin and end at these places of the staged pieces."""
    store = open_store(url)
    return _stored(store, layout, *_read_staged(store, build, layout, places), threads)


def change_shard(
    url: str,
    build: str,
    layout: Layout,
    folder: str,
    removed: Ids,
    places: Sequence[tuple[int, int]],
    on_duplicate: OnDuplicate,
    threads: int | None = 1,
) -> tuple[StoredShard, int]:
    """Store a shard again without some ids, and with rows of staged pieces.

    Returns it and the number of ids that were there to be removed. Raises ValueError if an added id
    is there still, unless its row is to be replaced.
    """
    store = open_store(url)
    codes, ids = rows_of(store, folder)
    kept = ~np.isin(ids, removed)
    n_removed = len(ids) - int(np.count_nonzero(kept))
    new_codes, new_ids = _read_staged(store, build, layout, places)
    used = np.isin(new_ids, ids[kept])
    if used.any():
        if on_duplicate != "replace":
            raise id_in_use_error(new_ids, used, "code")
        kept &= ~np.isin(ids, new_ids)
    codes = np.concatenate([codes[kept], new_codes])
    ids = np.concatenate([ids[kept], new_ids])
    return _stored(store, layout, codes, ids, threads), n_removed


def rows_of(store: Store, folder: str) -> tuple[Codes, Ids]:
    """All rows of a stored shard, in ascending id."""
    index = Index.load(store.shard_folder(folder), mmap=True)
    ids = index.ids
    return index.codes_of(ids), ids


def _stored(
    store: Store, layout: Layout, codes: Codes, ids: Ids, threads: int | None
) -> StoredShard:
    with store.workspace() as work:
        folder = work / "shard"
        stored = write_shard(
            codes, ids, layout.n_bits, layout.bitorder, layout.options, folder, threads
        )
        store.add_shard(stored.folder, folder)
    return stored


def _staged(
    store: Store, build: str, layout: Layout, number: int, records: NDArray[np.void]
) -> Sorted:
    """Stage rows as the piece of this number."""
    shard_of = layout.partition.shard_of(records["id"])
    ends = np.cumsum(np.bincount(shard_of, minlength=layout.partition.shards))
    records = records[np.argsort(shard_of, kind="stable")]
    with store.workspace() as work:
        file = work / "piece"
        records.tofile(file)
        store.put_staged(build, _name(number), file)
    return Sorted(tuple(ends.tolist()), int(records["id"].max(initial=-1)) + 1)


def _read_staged(
    store: Store, build: str, layout: Layout, places: Sequence[tuple[int, int]]
) -> tuple[Codes, Ids]:
    """The rows at these places of the staged pieces."""
    record = _record(layout.n_bits)
    rows = sum(end - begin for begin, end in places)
    codes = np.empty((rows, (layout.n_bits + 7) // 8), np.uint8)
    ids = np.empty(rows, np.int64)
    at = 0
    for piece, (begin, end) in enumerate(places):
        for first in range(begin, end, _ROWS_READ):
            n = min(end - first, _ROWS_READ)
            raw = store.read_staged(
                build, _name(piece), first * record.itemsize, n * record.itemsize
            )
            here = np.frombuffer(raw, record)
            codes[at : at + n], ids[at : at + n] = here["code"], here["id"]
            at += n
    return codes, ids


def _record(n_bits: int) -> np.dtype[np.void]:
    """A staged row."""
    return np.dtype([("id", "<i8"), ("code", np.uint8, ((n_bits + 7) // 8,))])


def _name(piece: int) -> str:
    return f"piece-{piece:06d}"
