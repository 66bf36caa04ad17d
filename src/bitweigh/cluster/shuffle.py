"""The tasks that make shards from rows in any order, in bounded memory.

`sort_rows` reads a piece of the source and stages its rows, sorted by shard; `sort_shard` does so
with the rows of a shard. `collect_shard` takes the rows of one shard out of all staged pieces and
stores the shard; `change_shard` adds them to a shard. All are plain functions of values that can be
pickled, and doing one twice changes nothing: a task that was killed is simply run again, anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import id_in_use_error
from bitweigh._streaming.sources import FileSource, RowSource
from bitweigh._vectors.store import Vectors
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.row_files import sorted_in_files
from bitweigh.cluster.shard_files import write_shard
from bitweigh.cluster.stores import Store, open_store
from bitweigh.cluster.templates import CodesTemplate, Template, loaded_template
from bitweigh.cluster.version import Kind, ShardOptions, StoredShard, Version
from bitweigh.typing import BitOrder, Codes, Ids, OnDuplicate

__all__ = [
    "Layout",
    "Piece",
    "Sorted",
    "SourceFiles",
    "change_shard",
    "collect_shard",
    "record_of",
    "sort_rows",
    "sort_shard",
]

# Bytes of a staged piece that are read at a time.
_BYTES_READ = 1 << 22


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of codes, as `FileSource` reads them."""

    paths: tuple[str, ...]
    ids: tuple[str, ...] = ()
    column: str | None = None
    id_column: str | None = None
    vectors: bool = False

    @classmethod
    def of(cls, source: FileSource) -> SourceFiles:
        """The files of a source."""
        paths = tuple(str(path.absolute()) for path in source.paths)
        ids = tuple(str(path.absolute()) for path in source.id_paths)
        return cls(paths, ids, source.column, source.id_column, source.vectors)

    def opened(self) -> FileSource:
        """The source of rows."""
        return FileSource(
            self.paths,
            ids=self.ids or None,
            column=self.column,
            id_column=self.id_column,
            vectors=self.vectors,
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the files of the shards depend on besides the rows."""

    n_bits: int
    bitorder: BitOrder
    partition: Partition
    options: ShardOptions
    kind: Kind = "codes"
    template_folder: str | None = None

    @classmethod
    def of(cls, version: Version, partition: Partition | None = None) -> Layout:
        """That of a version, perhaps with another partition."""
        return cls(
            version.n_bits,
            version.bitorder,
            partition or version.partition,
            version.options,
            version.kind,
            version.template,
        )

    def template(self, store: Store) -> Template:
        """What rows are made into."""
        if self.kind == "codes" or self.template_folder is None:
            return CodesTemplate(self.n_bits, self.bitorder)
        return loaded_template(self.kind, store.shard_folder(self.template_folder))


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
    store = open_store(url)
    template = layout.template(store)
    records = np.empty(piece.last - piece.first, record_of(template))
    at = 0
    for values, given in rows.read(piece.first, piece.last):
        codes, ids, vectors = template.converted(values, given)
        here = records[at : at + len(codes)]
        here["code"] = codes
        if vectors is not None:
            here["vector"] = vectors
        first_id = piece.first_id + piece.first + at
        here["id"] = np.arange(first_id, first_id + len(codes)) if ids is None else ids
        at += len(codes)
    _release_arrow()
    return _staged(store, build, layout, piece.number, records)


def sort_shard(url: str, build: str, layout: Layout, folder: str, piece: Piece) -> Sorted:
    """Stage rows of a stored shard as a piece, sorted by the shards of another partition."""
    store = open_store(url)
    template = layout.template(store)
    stored, vectors = template.load_shard(store.shard_folder(folder), mmap=True)
    ids = stored.ids[piece.first : piece.last]
    records = np.empty(len(ids), record_of(template))
    records["code"], records["id"] = stored.codes_of(ids), ids
    if vectors is not None:
        records["vector"] = vectors.of(ids)
    return _staged(store, build, layout, piece.number, records)


def collect_shard(
    url: str,
    build: str,
    layout: Layout,
    places: Sequence[tuple[int, int]],
    threads: int | None = 1,
) -> StoredShard:
    """Store a shard, whose rows begin and end at these places of the staged pieces."""
    store = open_store(url)
    template = layout.template(store)
    with store.workspace() as work:
        kept = None if template.empty_vectors is None else template.empty_vectors.emptied(work)
        codes, ids, vectors = _read_staged(store, build, template, places, kept)
        rows = sorted_in_files(codes, ids, work)
        del codes, ids
        return _stored(store, work, template, layout, *rows, vectors, threads)


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
    template = layout.template(store)
    stored, kept = template.load_shard(store.shard_folder(folder), mmap=True)
    with store.workspace() as work:
        # New vectors follow the old ones, and replace those of the same ids.
        new_codes, new_ids, vectors = _read_staged(store, build, template, places, kept)
        ids = stored.ids
        codes, ids, n_removed = _changed_rows(
            stored.codes_of(ids), ids, removed, new_codes, new_ids, on_duplicate
        )
        rows = sorted_in_files(codes, ids, work)
        del new_codes, codes, ids
        return _stored(store, work, template, layout, *rows, vectors, threads), n_removed


def _changed_rows(
    codes: Codes, ids: Ids, removed: Ids, new_codes: Codes, new_ids: Ids, on_duplicate: OnDuplicate
) -> tuple[Codes, Ids, int]:
    """All rows after a change, in any order, and how many of the ids were removed."""
    kept = ~np.isin(ids, removed)
    n_removed = len(ids) - int(np.count_nonzero(kept))
    used = np.isin(new_ids, ids[kept])
    if used.any():
        if on_duplicate != "replace":
            raise id_in_use_error(new_ids, used, "code")
        kept &= ~np.isin(ids, new_ids)
    codes = np.concatenate([codes[kept], new_codes])
    return codes, np.concatenate([ids[kept], new_ids]), n_removed


def _stored(
    store: Store,
    work: Path,
    template: Template,
    layout: Layout,
    codes: Codes,
    ids: Ids,
    vectors: Vectors | None,
    threads: int | None,
) -> StoredShard:
    folder = work / "shard"
    stored = write_shard(codes, ids, vectors, template, layout.options, folder, threads)
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
    store: Store,
    build: str,
    template: Template,
    places: Sequence[tuple[int, int]],
    kept: Vectors | None,
) -> tuple[Codes, Ids, Vectors | None]:
    """The rows at these places of the staged pieces; their vectors are added to those kept."""
    record = record_of(template)
    rows = sum(end - begin for begin, end in places)
    codes = np.empty((rows, (template.n_bits + 7) // 8), np.uint8)
    ids = np.empty(rows, np.int64)
    writer = None if kept is None else kept.writer()
    at, step = 0, max(1, _BYTES_READ // record.itemsize)
    for piece, (begin, end) in enumerate(places):
        for first in range(begin, end, step):
            n = min(end - first, step)
            raw = store.read_staged(
                build, _name(piece), first * record.itemsize, n * record.itemsize
            )
            here = np.frombuffer(raw, record)
            codes[at : at + n], ids[at : at + n] = here["code"], here["id"]
            if writer is not None:
                writer.write(here["vector"])
            at += n
    return codes, ids, None if writer is None else writer.finish(ids)


def _release_arrow() -> None:
    """Give back the memory that Arrow keeps for the next file: half of what a task takes."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()


def record_of(template: Template) -> np.dtype[np.void]:
    """A staged row."""
    fields: list[Any] = [("id", "<i8"), ("code", np.uint8, ((template.n_bits + 7) // 8,))]
    kept = template.empty_vectors
    if kept is not None:
        fields.append(("vector", kept.dtype, (kept.n_features,)))
    return np.dtype(fields)


def _name(piece: int) -> str:
    return f"piece-{piece:06d}"
