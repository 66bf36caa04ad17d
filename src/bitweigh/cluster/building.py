"""Building, changing and resharding: new versions of shards, published in one step.

Rows are staged by shard, each shard is stored, and then the version is published. Until then nobody
sees anything of it, and whatever was there stays. A shard that does not change is not written
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from bitweigh._checks import as_bitorder, as_choice, as_ids, as_integer, as_n_bits
from bitweigh._progress import ProgressBar
from bitweigh._storage.manifest import read_manifest
from bitweigh._streaming.batches import code_format
from bitweigh._streaming.sources import FileSource, RowSource
from bitweigh.cluster.opening import newest, open_template, open_version, read
from bitweigh.cluster.partition import MAX_SHARDS, HashPartition, Partition, RangePartition
from bitweigh.cluster.shuffle import (
    Layout,
    Piece,
    Sorted,
    SourceFiles,
    change_shard,
    collect_shard,
    record_of,
    sort_rows,
    sort_shard,
)
from bitweigh.cluster.sources import PathLike, rows_from
from bitweigh.cluster.stores import Store, new_build, open_store
from bitweigh.cluster.tasks import Workers, as_workers, run_tasks
from bitweigh.cluster.templates import VectorTemplate, template_like
from bitweigh.cluster.url_sources import UrlSource
from bitweigh.cluster.version import ShardOptions, StoredShard, Version
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.typing import BitOrder, Ids, OnDuplicate, OnMissing, RowLayout
from bitweigh.vector_index import VectorIndex

__all__ = ["ROWS_PER_SHARD", "as_partition", "build", "reshard", "update"]

ROWS_PER_SHARD = 20_000_000
"""About as many as a shard has by default."""
# Bytes of rows that a task sorts; it has them in memory twice.
_PIECE_BYTES = 1 << 26


def build(
    source: PathLike | Sequence[PathLike] | ArrayLike,
    url: PathLike,
    *,
    like: VectorIndex | BinaryEmbeddings | None = None,
    codes: str | None = None,
    vectors: str | None = None,
    ids: Any = None,  # noqa: ANN401 checked by `as_source` and `as_ids`
    n_bits: int | None = None,
    bitorder: BitOrder | None = None,
    rows_per_shard: int = ROWS_PER_SHARD,
    shards: int | None = None,
    ranges: Sequence[int] | None = None,
    bands: int | None = None,
    band_bits: int | None = None,
    memory_limit: int | None = None,
    layout: RowLayout | None = None,
    overwrite: bool = False,
    workers: Workers = 1,
    threads: int | None = None,
    progress: bool = False,
) -> Version:
    """Build shards from codes, and publish them as a version.

    The files of a shard follow from its rows and these options alone: they are the same whoever
    builds them.

    Parameters
    ----------
    source : path, URL, list of these, or uint8 (n, n_bytes)
        Files of packed codes as in `Index.from_batches` (parquet, npy, bvecs, u8bin), a folder of
        them, a pattern such as ``codes/*.parquet``, or an array. In object stores, parquet files:
        the URL of one, a pattern such as ``s3://bucket/day=*/*.parquet``, or a prefix, for the
        files directly below it. Tasks read them where they run, one row group at a time.
    url : str or path
        A folder, or a URL of an object store such as ``s3://bucket/name``, which needs obstore.
    like : VectorIndex or BinaryEmbeddings, optional
        A fitted index, or a collection of embeddings, whose rows do not matter: `source` has
        vectors, and the shards make of them what it would, with the same hasher, weigher and
        options. ``cluster.open(url).vectors`` or ``.embeddings`` searches them.
    codes, vectors, ids : str, optional
        Columns of parquet files; by default "code", with `like` "vector", and ids that count rows
        from 0. For other files `ids` are npy files, for an array an array.
    n_bits, bitorder, bands, band_bits, memory_limit, layout
        As in `Index.from_batches`, for codes; the memory limit is that of each shard.
    rows_per_shard : int
        About how many rows a shard has, which decides how many shards there are.
    shards : int, optional
        How many shards there are.
    ranges : sequence of int, optional
        The first id of each shard, ascending from 0, to put ids into shards by range. By default
        ids are spread evenly by a hash.
    overwrite : bool
        Whether to publish a new version where there is one already; otherwise that is an error.
    workers : int or "ray"
        How many processes build, or the Ray cluster that this process is connected to.
    threads : int, optional
        Threads of each worker; by default all CPUs are shared by the workers of this machine.
    progress : bool
        Show a progress bar; needs rich.

    Returns
    -------
    Version
        The published version.

    Raises
    ------
    FileExistsError
        If there is a version already and `overwrite` is False.
    FileNotFoundError
        If there is no such file, or none that a pattern or prefix means.
    PublishConflictError
        If somebody else has published a version meanwhile.
    ValueError
        If rows or options are wrong, or an id occurs twice.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=4)
    >>> [shard.rows for shard in version.shards]
    [21, 23, 27, 29]

    """
    workers = as_workers(workers)
    options = ShardOptions(bands, band_bits, memory_limit, layout)
    template = None
    if like is not None:
        if n_bits is not None or bitorder is not None or options != ShardOptions():
            raise ValueError("with like= the bits and the options of bands are those of `like`")
        template, options = template_like(like)
    rows = rows_from(source, codes, ids, vectors, template)
    partition = as_partition(rows.rows, rows_per_shard, shards, ranges)
    store = open_store(url)
    parent = newest(store)
    if parent is not None and not overwrite:
        raise FileExistsError(f"{store.url} has version {parent.number}; overwrite=True adds one")
    if template is None:
        bits, order = code_format(rows, None, n_bits, bitorder)
        made = Layout(as_n_bits(bits), as_bitorder(order), partition, options)
    else:
        folder = _store_template(store, template)
        made = Layout(template.n_bits, template.bitorder, partition, options, template.kind, folder)
    with _staging(store) as name, ProgressBar("building", 2 * rows.rows, shown=progress) as bar:
        pieces = _sorted_pieces(store, name, made, rows, 0, workers, bar)
        stored = _collected(store, name, made, pieces, workers, threads, bar)
        next_id = max((piece.next_id for piece in pieces), default=0)
        return _published(store, parent, made, next_id, stored)


def update(
    url: PathLike,
    *,
    add: PathLike | Sequence[PathLike] | ArrayLike | None = None,
    codes: str | None = None,
    vectors: str | None = None,
    ids: Any = None,  # noqa: ANN401
    remove: ArrayLike | None = None,
    on_duplicate: OnDuplicate = "error",
    on_missing: OnMissing = "error",
    workers: Workers = 1,
    threads: int | None = None,
    progress: bool = False,
) -> Version:
    """Remove and add rows, and publish the result as a new version.

    Only shards that change are written. They are what building all rows at once would give.

    Parameters
    ----------
    url : str or path
        As in `build`.
    add : path, URL, list of these, or uint8 (n, n_bytes), optional
        Rows to add, as `source` of `build`. Without ids they are numbered after the largest id so
        far.
    codes, vectors, ids
        As in `build`.
    remove : int64 (n,), optional
        Ids to remove, before others are added.
    on_duplicate : "error" or "replace"
        What to do with a row whose id is there already.
    on_missing : "error" or "ignore"
        What to do with an id to remove that is not there.
    workers, threads, progress
        As in `build`.

    Returns
    -------
    Version
        The published version.

    Raises
    ------
    KeyError
        If an id to remove is not there.
    PublishConflictError
        If somebody else has published a version meanwhile; nothing was changed.
    ValueError
        If rows are wrong, or an id is there already.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=4)
    ...     version = cluster.update(folder, add=codes[:1], remove=[7, 8])
    >>> version.number, version.rows, version.next_id
    (2, 99, 101)

    """
    workers = as_workers(workers)
    as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate))
    as_choice(on_missing, "on_missing", get_args(OnMissing))
    store = open_store(url)
    parent = read(store)
    made = Layout.of(parent)
    removed = np.unique(as_ids([] if remove is None else remove))
    rows = None
    if add is not None:
        rows = rows_from(add, codes, ids, vectors, open_template(store, parent))
    total = 0 if rows is None else 2 * rows.rows
    with _staging(store) as name, ProgressBar("updating", total, shown=progress) as bar:
        pieces = []
        if rows is not None:
            pieces = _sorted_pieces(store, name, made, rows, parent.next_id, workers, bar)
        stored, found = _changed(
            store, name, made, parent, pieces, removed, on_duplicate, workers, threads, bar
        )
        if found < len(removed) and on_missing == "error":
            raise _missing_error(store, parent, removed)
        next_id = max([parent.next_id, *(piece.next_id for piece in pieces)])
        return _published(store, parent, made, next_id, stored)


def reshard(
    url: PathLike,
    shards: int | None = None,
    *,
    ranges: Sequence[int] | None = None,
    workers: Workers = 1,
    threads: int | None = None,
    progress: bool = False,
) -> Version:
    """Spread the rows of the newest version over another number of shards.

    The shards are those that `build` would have made.

    Parameters
    ----------
    url : str or path
        As in `build`.
    shards : int, optional
        How many shards there are to be, with ids spread evenly by a hash.
    ranges : sequence of int, optional
        The first id of each shard, as in `build`; give this or `shards`.
    workers, threads, progress
        As in `build`.

    Returns
    -------
    Version
        The published version.

    Raises
    ------
    PublishConflictError
        If somebody else has published a version meanwhile; nothing was changed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=4)
    ...     version = cluster.reshard(folder, ranges=[0, 40])
    >>> [shard.rows for shard in version.shards]
    [40, 60]

    """
    workers = as_workers(workers)
    if (shards is None) == (ranges is None):
        raise ValueError("give shards= or ranges=")
    store = open_store(url)
    parent = read(store)
    partition = as_partition(parent.rows, 1, shards, ranges)
    made = Layout.of(parent, partition)
    with _staging(store) as name, ProgressBar("resharding", 2 * parent.rows, shown=progress) as bar:
        step = _rows_per_piece(store, made)
        parts = [
            (shard.folder, first, min(first + step, shard.rows))
            for shard in parent.shards
            for first in range(0, shard.rows, step)
        ]
        tasks = [
            (store.address, name, made, folder, Piece(number, first, last, 0))
            for number, (folder, first, last) in enumerate(parts)
        ]
        sizes = [last - first for _, first, last in parts]
        pieces = run_tasks(sort_shard, tasks, workers, bar, sizes)
        stored = _collected(store, name, made, pieces, workers, threads, bar)
        return _published(store, parent, made, parent.next_id, stored)


def as_partition(
    rows: int, rows_per_shard: object, shards: object, ranges: Sequence[int] | None
) -> Partition:
    """The partition of so many rows that a caller means."""
    if ranges is not None:
        if shards is not None:
            raise ValueError("give shards= or ranges=, not both")
        starts = as_ids(list(ranges), "ranges")
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any():
            raise ValueError("ranges must be ascending ids, the first of which is 0")
        as_integer(len(starts), "the number of ranges", 1, MAX_SHARDS)
        return RangePartition(tuple(starts.tolist()))
    if shards is None:
        per_shard = as_integer(rows_per_shard, "rows_per_shard", 1, 2**32 - 65)
        shards = max(1, -(-rows // per_shard))
        if shards > MAX_SHARDS:
            raise ValueError(
                f"rows_per_shard={per_shard} makes {shards} shards: {MAX_SHARDS} at most"
            )
    return HashPartition(as_integer(shards, "shards", 1, MAX_SHARDS))


@contextmanager
def _staging(store: Store) -> Iterator[str]:
    """The name of a build, whose staged files last as long as the context."""
    name = new_build()
    try:
        yield name
    finally:
        store.remove_staged(name)


def _sorted_pieces(
    store: Store,
    name: str,
    made: Layout,
    rows: RowSource,
    first_id: int,
    workers: Workers,
    bar: ProgressBar,
) -> list[Sorted]:
    """Stage all rows by shard."""
    edges = rows.edges(_rows_per_piece(store, made))
    pieces = [
        Piece(number, first, last, first_id)
        for number, (first, last) in enumerate(pairwise(edges))
        if first < last
    ]
    source: RowSource | SourceFiles = rows
    if isinstance(rows, FileSource):
        source = SourceFiles.of(rows)
    elif not isinstance(rows, UrlSource):
        workers = 1  # arrays are in the memory of this process
    tasks = [(store.address, name, made, source, piece) for piece in pieces]
    return run_tasks(sort_rows, tasks, workers, bar, [piece.last - piece.first for piece in pieces])


def _rows_per_piece(store: Store, made: Layout) -> int:
    """Rows that a task sorts."""
    return max(1, _PIECE_BYTES // record_of(made.template(store)).itemsize)


def _store_template(store: Store, template: VectorTemplate) -> str:
    """Store a template as shards are; returns the name of its folder."""
    with store.workspace() as work:
        template.save(work / "template")
        name = read_manifest(work / "template").checksum
        store.add_shard(name, work / "template")
    return name


def _collected(
    store: Store,
    name: str,
    made: Layout,
    pieces: Sequence[Sorted],
    workers: Workers,
    threads: int | None,
    bar: ProgressBar,
) -> list[StoredShard]:
    """Store every shard out of the staged pieces."""
    places = [[piece.rows_of(shard) for piece in pieces] for shard in range(made.partition.shards)]
    tasks = [(store.address, name, made, here, threads) for here in places]
    return run_tasks(collect_shard, tasks, workers, bar, [_rows(here) for here in places])


def _changed(
    store: Store,
    name: str,
    made: Layout,
    parent: Version,
    pieces: Sequence[Sorted],
    removed: Ids,
    on_duplicate: OnDuplicate,
    workers: Workers,
    threads: int | None,
    bar: ProgressBar,
) -> tuple[list[StoredShard], int]:
    """Store the shards that change; returns all, and how many of the ids were removed."""
    shard_of = made.partition.shard_of(removed)
    stored = list(parent.shards)
    numbers, tasks, sizes = [], [], []
    for number, shard in enumerate(parent.shards):
        places = [piece.rows_of(number) for piece in pieces]
        gone = removed[shard_of == number]
        if _rows(places) or len(gone):
            numbers.append(number)
            sizes.append(_rows(places))
            tasks.append(
                (store.address, name, made, shard.folder, gone, places, on_duplicate, threads)
            )
    results = run_tasks(change_shard, tasks, workers, bar, sizes)
    for number, (shard, _) in zip(numbers, results, strict=True):
        stored[number] = shard
    return stored, sum(found for _, found in results)


def _missing_error(store: Store, parent: Version, removed: Ids) -> KeyError:
    shards = open_version(store, parent)
    missing = removed[~shards.contains(removed)]
    return KeyError(f"id {missing[0]} is not in version {parent.number}; on_missing='ignore' skips")


def _published(
    store: Store,
    parent: Version | None,
    made: Layout,
    next_id: int,
    shards: Sequence[StoredShard],
) -> Version:
    """Publish a version of these shards; raises PublishConflictError if there is one."""
    version = Version(
        1 if parent is None else parent.number + 1,
        None if parent is None else parent.number,
        made.n_bits,
        made.bitorder,
        next_id,
        made.partition,
        made.options,
        tuple(shards),
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        made.kind,
        made.template_folder,
    )
    store.create_version(version.number, version.to_json())
    return version


def _rows(places: Sequence[tuple[int, int]]) -> int:
    return sum(end - begin for begin, end in places)
