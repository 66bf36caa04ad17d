"""Measurements of one index on disk, and of the paper's methods in memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import paper
from bitweigh_experiments.datasets import CodeSource
from bitweigh_experiments.reproduce.large.memory import drop_cached
from bitweigh_experiments.reproduce.large.records import Exactness, Timing
from bitweigh_experiments.reproduce.large.scans import CostArray, definition, full_scan
from bitweigh_experiments.reproduce.methods import SplitIndex, seconds_per_query
from bitweigh_experiments.reproduce.results import KS

__all__ = ["FirstAnswer", "cold", "compare", "first_answer", "our_timings", "peer_timings"]

PEER_SECONDS = 10.0  # about as long for each of the paper's methods and K
BLOCK_ROWS = 32
_PEERS: dict[str, Callable[[bitweigh.typing.Codes, int], SplitIndex]] = {
    "MIH": paper.MIH,
    "MIWQ": paper.MIWQ,
    "PQTable": paper.PQTable,
    "PQTable_max_heap": lambda codes, n_bits: paper.PQTable(codes, n_bits, merge="max_heap"),
}


class FirstAnswer(NamedTuple):
    """Milliseconds from `load(mmap=True)` to the first answer."""

    warm: float
    cold: float | None
    """None where cached pages cannot be dropped."""


def first_answer(path: Path, costs: CostArray) -> FirstAnswer:
    """Load and search once, after dropping cached pages where that is possible, and again."""
    gc.collect()  # an index that is still mapped would keep its pages
    dropped = drop_cached(path)
    first, second = _load_and_search(path, costs[0]), _load_and_search(path, costs[0])
    return FirstAnswer(second, first if dropped else None)


def _load_and_search(path: Path, query: CostArray) -> float:
    start = time.perf_counter()
    bitweigh.Index.load(path, mmap=True).search(query, 10, threads=1)
    return 1e3 * (time.perf_counter() - start)


def cold(path: Path, costs: CostArray, k: int) -> float | None:
    """Return the mean milliseconds of a search none of whose pages are cached.

    Pages are dropped before each query; loading does not count. None if they cannot be dropped.
    """
    total = 0.0
    for query in costs:
        gc.collect()
        if not drop_cached(path):
            return None
        index = bitweigh.Index.load(path, mmap=True)
        start = time.perf_counter()
        index.search(query, k, threads=1)
        total += time.perf_counter() - start
        del index
    return 1e3 * total / len(costs)


def our_timings(index: bitweigh.Index, costs: CostArray, threads: int) -> Iterator[Timing]:
    """Yield for each K the time of a query alone on one thread, and in a batch on several.

    Every query is answered once before the clock starts.
    """
    rows, nq = len(index), len(costs)
    for k in KS:
        counts = [_counts(index, query, k) for query in costs]
        start, cpu_start = time.perf_counter(), time.thread_time()
        for query in costs:
            index.search(query, k, threads=1)
        seconds, cpu_seconds = time.perf_counter() - start, time.thread_time() - cpu_start
        start = time.perf_counter()
        index.search(costs, k, threads=threads)
        batch = 1e3 * (time.perf_counter() - start) / nq
        yield Timing(
            index.n_bits,
            rows,
            k,
            "bitweigh",
            1e3 * seconds / nq,
            nq,
            buckets=float(np.mean([probes for probes, _ in counts])),
            candidates=float(np.mean([seen for _, seen in counts])),
            cpu_share=cpu_seconds / seconds,
        )
        yield Timing(index.n_bits, rows, k, "bitweigh batch", batch, nq)


def _counts(index: bitweigh.Index, query: CostArray, k: int) -> tuple[int, int]:
    """Return the keys that a search looks up, and the rows that it looks at."""
    stats = index.search(query, k, threads=1, stats=True).stats
    if stats is None:
        raise RuntimeError("a search with stats=True counted nothing")
    seen = BLOCK_ROWS * stats.blocks_probed + stats.rows_scanned + stats.rows_scored_directly
    return int(stats.probes), int(seen)


def peer_timings(
    source: CodeSource, costs: CostArray, names: tuple[str, ...], seconds: float = PEER_SECONDS
) -> Iterator[Timing]:
    """Yield the paper's methods over all codes in memory, one method after the other.

    The number of tables is that of the paper's rule. A method gets as many queries as it answers
    in about `seconds`, at least two.
    """
    codes = np.empty((source.rows, -(-source.n_bits // 8)), dtype=np.uint8)
    for number in range(source.n_pieces):
        piece = source.piece(number)
        codes[number * source.piece_rows :][: len(piece)] = piece
    for name in names:
        index = _PEERS[name](codes, source.n_bits)
        for k in KS:
            first = seconds_per_query(index.search, costs[:2], k)
            queries = costs[: max(2, int(seconds / max(first, 1e-6)))]
            start = time.perf_counter()
            answer = index.search(queries, k)
            ms = 1e3 * (time.perf_counter() - start) / len(queries)
            yield Timing(
                source.n_bits,
                source.rows,
                k,
                name,
                ms,
                len(queries),
                buckets=float(np.mean(answer.stats.buckets)),
                candidates=float(np.mean(answer.stats.candidates)),
                m=index.m,
            )
        del index


def compare(
    index: bitweigh.Index, source: CodeSource, costs: CostArray, defined: int, threads: int
) -> Exactness:
    """Compare answers, ids and distances, with a scan of all codes and with the definition."""
    k = max(KS)
    ours = index.search(costs, k, threads=threads)
    scanned = full_scan(source, costs, k, threads)
    checked = definition(source, costs[:defined], k, threads)
    wrong = _differ(ours, scanned)
    wrong[: len(checked.ids)] |= _differ(ours, checked)
    return Exactness(source.n_bits, source.rows, k, len(costs), len(checked.ids), int(wrong.sum()))


def _differ(ours: bitweigh.SearchResult, other: bitweigh.SearchResult) -> NDArray[np.bool_]:
    """Return for each query of `other` whether its answers differ in an id or a distance."""
    n = len(other.ids)
    same: NDArray[np.bool_] = (ours.ids[:n] == other.ids) & (ours.distances[:n] == other.distances)
    return np.logical_not(same.all(axis=1))
