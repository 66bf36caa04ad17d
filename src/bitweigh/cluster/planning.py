"""What codes would take on one machine and on several, before anything is built.

Sizes follow from the layout that a build would choose, or from a version. Times are those of the
worst case, which is all that is known without the data: a scan of all codes. Both come from
measurements on one machine, so they say which way is faster rather than how fast it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from bitweigh._checks import as_integer, as_n_bits, as_optional_integer
from bitweigh._free_memory import total_memory
from bitweigh._index.bands import BandOptions, code_bytes, extra_bytes
from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.row_layout import choose_row_layout, lean_bytes
from bitweigh._streaming.batches import code_format
from bitweigh._streaming.sources import files_at
from bitweigh._wording import counted, readable_bytes
from bitweigh.cluster.building import ROWS_PER_SHARD, as_partition
from bitweigh.cluster.opening import newest, read
from bitweigh.cluster.sources import PathLike, rows_from
from bitweigh.cluster.stores import FolderStore, is_url, open_store
from bitweigh.cluster.url_sources import names_files
from bitweigh.cluster.version import ShardOptions, Version
from bitweigh.typing import RowLayout

__all__ = ["Plan", "plan"]

# A scan reads 100 million codes of 64 bits in 30 ms: the table "Growth" of docs/benchmarks.md.
_SCAN_MS_PER_BYTE = 30.4 / 8e8
# One holder adds 1.4 ms to a query and two add 2.0 ms, on one machine with 2 CPUs.
_CALL_MS = 1.4
_NEXT_CALL_MS = 0.6
# Ray's daemons take 390 MB on each node, and a holder 114 MB besides its shards.
_NODE_BYTES = 504_000_000
# As the choice of a layout assumes: ids below 2^32.
_ID_BYTES = 4
_MAX_ROWS = 2**62


class Plan(NamedTuple):
    """What codes take on one machine and on several; ``print`` it.

    Examples
    --------
    >>> from bitweigh import cluster
    >>> plan = cluster.plan(rows=10**9, n_bits=64, nodes=4, memory=16 * 2**30)
    >>> plan.shards, plan.machines
    (50, 2)

    """

    rows: int
    n_bits: int
    shards: int
    n_bytes: int
    """Bytes of the files of all shards, in memory as on disk."""
    exact: bool
    """Whether the bytes are those of a version; otherwise they are estimated."""
    memory: int
    """Bytes of memory of a machine."""
    machines: int | None
    """How many machines hold all shards in memory; None if one shard is too large for one."""
    nodes: int
    """The nodes that `bytes_per_node` and `cluster_ms` are for."""
    bytes_per_node: int
    """Bytes of the shards of the node that has most."""
    alone_ms: float
    """Milliseconds of a query on one machine, if all codes are scanned on one thread."""
    cluster_ms: float
    """The same on `nodes` nodes, with the calls."""

    @property
    def advice(self) -> str:
        """One line: whether to use a cluster, and why."""
        if self.machines is None:
            return (
                f"more shards are needed: one takes {readable_bytes(self.n_bytes // self.shards)}, "
                f"a machine has {readable_bytes(self.memory)}"
            )
        if self.machines > 1:
            return (
                f"a cluster of {self.machines} machines has memory for all codes; one machine "
                "would read from disk"
            )
        if self.alone_ms <= self.cluster_ms:
            return (
                f"one machine is faster: the calls of a cluster take {_calls_ms(self.nodes):.1f} "
                f"ms, a scan of all codes {_milliseconds(self.alone_ms)}"
            )
        return (
            "one machine is faster where bands help; where they do not, "
            f"{counted(self.nodes, 'node')} would be"
        )

    def __str__(self) -> str:
        """The plan in a few lines, and the advice."""
        about = "" if self.exact else "about "
        machine = f"of {readable_bytes(self.memory)}"
        if self.machines is None:
            needed = f"no machine {machine} has room for a shard"
        else:
            needed = f"{counted(self.machines, 'machine')} {machine}"
        nodes = counted(self.nodes, "node")
        return "\n".join(
            [
                f"{counted(self.rows, 'code')} of {self.n_bits} bits in "
                f"{counted(self.shards, 'shard')}",
                f"files          {about}{readable_bytes(self.n_bytes)}",
                f"in memory      {needed}; on {nodes} {about}"
                f"{readable_bytes(self.bytes_per_node)} each",
                f"a query        at worst {_milliseconds(self.alone_ms)} on one machine, "
                f"{_milliseconds(self.cluster_ms)} on {nodes}",
                f"advice         {self.advice}",
            ]
        )


class _Sizes(NamedTuple):
    """Rows and bytes of the shards."""

    n_bits: int
    rows: Sequence[int]
    n_bytes: Sequence[int]
    exact: bool


def plan(
    source: PathLike | Sequence[PathLike] | ArrayLike | None = None,
    *,
    rows: int | None = None,
    n_bits: int | None = None,
    codes: str | None = None,
    rows_per_shard: int | None = None,
    shards: int | None = None,
    bands: int | None = None,
    band_bits: int | None = None,
    memory_limit: int | None = None,
    layout: RowLayout | None = None,
    nodes: int | None = None,
    memory: int | None = None,
) -> Plan:
    """Say what codes would take on one machine, and when a cluster is slower.

    A cluster is for codes that do not fit into the memory of a machine. It seldom makes queries
    faster: its calls take longer than most searches do.

    Parameters
    ----------
    source : path, URL, list of these, or uint8 (n, n_bytes), optional
        Codes as in `build`; only their number and length matter. Or the folder or URL of shards,
        which is any that neither ends in .parquet nor is a pattern. Their newest version says how
        large they are; then only `nodes` and `memory` may be given.
    rows, n_bits : int, optional
        The number and length of codes, instead of a source.
    codes, rows_per_shard, shards, bands, band_bits, memory_limit, layout
        As in `build`.
    nodes : int, optional
        Nodes of the cluster to compare with, at most as many as shards; by default as many as are
        needed, but two if there are two shards.
    memory : int, optional
        Bytes of memory of a machine; by default that of this one.

    Returns
    -------
    Plan
        Sizes, machines, and milliseconds of a query in the worst case. Sizes are estimated with all
        bands that may be built; a build leaves out those that do not pay.

    Raises
    ------
    FileNotFoundError
        If there are no shards at a URL, or a file does not exist.
    ValueError
        If options are wrong or contradict each other.

    Examples
    --------
    >>> from bitweigh import cluster
    >>> print(cluster.plan(rows=40_000_000, n_bits=64, memory=16 * 10**9))
    40,000,000 codes of 64 bits in 2 shards
    files          about 816.8 MB
    in memory      1 machine of 16.0 GB; on 2 nodes about 408.4 MB each
    a query        at worst 12 ms on one machine, 8.1 ms on 2 nodes
    advice         one machine is faster where bands help; where they do not, 2 nodes would be

    """
    memory = as_integer(total_memory() if memory is None else memory, "memory", 1, 2**62)
    options = ShardOptions(bands, band_bits, memory_limit, layout)
    version = None if source is None else _version_at(source)
    if version is not None:
        of_build = (rows, n_bits, codes, rows_per_shard, shards)
        if options != ShardOptions() or any(option is not None for option in of_build):
            raise ValueError("shards have their options already: give nodes= and memory= only")
        sizes = _stored_sizes(version)
    else:
        count, bits = _rows_and_bits(source, rows, n_bits, codes)
        per_shard = ROWS_PER_SHARD if rows_per_shard is None else rows_per_shard
        sizes = _estimated_sizes(count, bits, options, per_shard, shards)
    return _plan_of(sizes, nodes, memory)


def _version_at(source: Any) -> Version | None:  # noqa: ANN401
    """The newest version at a folder or URL; None for a source of codes."""
    if not isinstance(source, str | os.PathLike):
        return None
    if is_url(source) and names_files(os.fspath(source)):
        return None
    store = open_store(source)
    if not isinstance(store, FolderStore):
        return read(store)
    if store.folder.is_dir():
        return newest(store)
    if not all(file.exists() for file in files_at(store.folder)):
        raise FileNotFoundError(f"{source}: no such file or folder")
    return None


def _rows_and_bits(
    source: Any,  # noqa: ANN401
    rows: int | None,
    n_bits: int | None,
    codes: str | None,
) -> tuple[int, int]:
    if source is None:
        if rows is None or n_bits is None or codes is not None:
            raise ValueError("give a source of codes, or rows= and n_bits=")
        return as_integer(rows, "rows", 0, _MAX_ROWS), as_n_bits(n_bits)
    if rows is not None:
        raise ValueError("a source has its own rows: leave out rows=")
    found = rows_from(source, codes, None)
    return found.rows, code_format(found, None, n_bits, None)[0]


def _stored_sizes(version: Version) -> _Sizes:
    rows = [shard.rows for shard in version.shards]
    return _Sizes(version.n_bits, rows, [shard.n_bytes for shard in version.shards], True)


def _estimated_sizes(
    rows: int, n_bits: int, options: ShardOptions, rows_per_shard: int, shards: int | None
) -> _Sizes:
    count = as_partition(rows, rows_per_shard, shards, None).shards
    fewer, larger = divmod(rows, count)
    each = [fewer + 1] * larger + [fewer] * (count - larger)
    # There are two different numbers of rows at most.
    n_bytes = {size: _shard_bytes(size, n_bits, options) for size in {*each}}
    return _Sizes(n_bits, each, [n_bytes[size] for size in each], False)


def _shard_bytes(rows: int, n_bits: int, options: ShardOptions) -> int:
    """Bytes of the arrays of a shard, with all bands that may be built."""
    bands = options.band_options()
    choice = choose_row_layout(rows, n_bits, bands, options.layout)
    if choice.layout == "lean":
        return lean_bytes(rows, n_bits, choice.lean_bands, bands.band_bits)
    unbanded = _ID_BYTES * rows + code_bytes(rows, n_bits)
    if rows < SegmentPolicy(n_bits, "big", BandOptions()).banded_rows:
        return unbanded
    count, width = bands.shape(rows, n_bits, _ID_BYTES)
    return unbanded + (extra_bytes(rows, n_bits, count, width) if count else 0)


def _plan_of(sizes: _Sizes, nodes: int | None, memory: int) -> Plan:
    shards, rows = len(sizes.rows), sum(sizes.rows)
    bytes_on = _most_on(sizes.n_bytes)
    machines = _machines(bytes_on, shards, memory)
    usual = min(shards, max(2, machines or shards))
    asked = as_optional_integer(nodes, "nodes", 1, shards)
    count = usual if asked is None else asked
    code_length = (sizes.n_bits + 7) // 8
    node_rows = _most_on(sizes.rows)(count)
    return Plan(
        rows=rows,
        n_bits=sizes.n_bits,
        shards=shards,
        n_bytes=sum(sizes.n_bytes),
        exact=sizes.exact,
        memory=memory,
        machines=machines,
        nodes=count,
        bytes_per_node=bytes_on(count),
        alone_ms=_SCAN_MS_PER_BYTE * rows * code_length,
        cluster_ms=_calls_ms(count) + _SCAN_MS_PER_BYTE * node_rows * code_length,
    )


def _machines(bytes_on: Callable[[int], int], shards: int, memory: int) -> int | None:
    """The fewest machines that hold all shards in memory; None if none is large enough."""
    if bytes_on(1) <= memory:
        return 1
    counts = range(2, shards + 1)
    return next((n for n in counts if bytes_on(n) + _NODE_BYTES <= memory), None)


def _most_on(sizes: Sequence[int]) -> Callable[[int], int]:
    """What the fullest of n nodes has, if each has the same number of whole shards, or one more."""
    sums = list(accumulate(sorted(sizes, reverse=True)))

    def most(nodes: int) -> int:
        return sums[-(-len(sizes) // nodes) - 1]

    return most


def _calls_ms(nodes: int) -> float:
    """What the calls of a query take; measured for one to four holders, more are extrapolated."""
    return _CALL_MS + _NEXT_CALL_MS * (nodes - 1)


def _milliseconds(time: float) -> str:
    if time < 0.01:
        return "less than 0.01 ms"
    return f"{time:.2g} ms" if time < 10 else f"{time:,.0f} ms"
