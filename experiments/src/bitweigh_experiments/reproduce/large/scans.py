"""Searches of all codes of a source, a piece at a time: the paper's scan, ours, the definition.

Invariant of `_Best`: the k smallest rows so far by (distance, row).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import SearchResult, paper, reference
from bitweigh.typing import Codes
from bitweigh_experiments.datasets import CodeSource

__all__ = ["Scanned", "definition", "full_scan", "time_linear_scan"]

CostArray: TypeAlias = NDArray[np.float64]


class _Best:
    def __init__(self, nq: int, k: int) -> None:
        self.distances = np.full((nq, k), np.inf)
        self.ids = np.full((nq, k), -1, dtype=np.int64)

    def add(self, found: SearchResult, first_row: int) -> None:
        """Merge the answer of a later piece, whose rows are higher than all so far."""
        distances = np.hstack([self.distances, found.distances])
        ids = np.hstack([self.ids, np.where(found.ids < 0, -1, found.ids + first_row)])
        # Stable: of equal distances, earlier pieces come first, and so do lower rows of a piece.
        order = np.argsort(distances, axis=1, kind="stable")[:, : self.ids.shape[1]]
        self.distances = np.take_along_axis(distances, order, axis=1)
        self.ids = np.take_along_axis(ids, order, axis=1)

    def result(self) -> SearchResult:
        return SearchResult(self.distances, self.ids)


class Scanned(NamedTuple):
    """What the paper's scan found and took."""

    seconds: float
    """Seconds of scanning per query."""
    cpu_share: float
    """CPU time divided by time."""
    found: SearchResult


def time_linear_scan(source: CodeSource, costs: CostArray, k: int) -> Scanned:
    """Run the paper's Linear Scan over every piece; only scanning is timed.

    Each piece is read into memory before the clock starts.
    """
    best = _Best(len(costs), k)
    seconds = cpu_seconds = 0.0
    for number in range(source.n_pieces):
        codes = np.array(source.piece(number))
        start, cpu_start = time.perf_counter(), time.thread_time()
        found = paper.linear_scan(codes, costs, k)
        seconds += time.perf_counter() - start
        cpu_seconds += time.thread_time() - cpu_start
        best.add(found, number * source.piece_rows)
    return Scanned(seconds / len(costs), cpu_seconds / seconds, best.result())


def full_scan(source: CodeSource, costs: CostArray, k: int, threads: int) -> SearchResult:
    """Find the nearest of all codes with the engine's scan, all queries in one batch."""

    def search(codes: Codes) -> SearchResult:
        index = bitweigh.Index(source.n_bits, build="manual")
        index.add(codes)
        return index.search(costs, k, method="scan", threads=threads)

    return _by_piece(source, costs, k, search)


def definition(source: CodeSource, costs: CostArray, k: int, threads: int) -> SearchResult:
    """Find the nearest of all codes by the definition of distance.

    `bitweigh.reference` computes the sum of every group of 8 bits, for each of the 256 values that
    a byte can have; adding these in ascending order is what the definition says.
    """
    tables = [_group_sums(query) for query in costs]

    def search(codes: Codes) -> SearchResult:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(lambda table: _nearest(codes, table, k), tables))
        return SearchResult(
            np.array([result.distances for result in found]),
            np.array([result.ids for result in found]),
        )

    return _by_piece(source, costs, k, search)


def _by_piece(
    source: CodeSource, costs: CostArray, k: int, search: Callable[[Codes], SearchResult]
) -> SearchResult:
    best = _Best(len(costs), k)
    for number in range(source.n_pieces):
        best.add(search(np.array(source.piece(number))), number * source.piece_rows)
    return best.result()


def _group_sums(query: CostArray) -> CostArray:
    """Return the sum of each byte's costs by its value, (n_bytes, 256)."""
    values = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    sums = np.zeros((-(-len(query) // 8), 256))
    for byte, first in enumerate(range(0, len(query), 8)):
        group = query[first : first + 8]
        # The padding bits of the last byte are 0, and so are the bits of its possible values.
        possible = values[values[:, 0] % 2 ** (8 - len(group)) == 0]
        sums[byte, possible[:, 0]] = reference.distances(possible, group)
    return sums


def _nearest(codes: Codes, sums: CostArray, k: int) -> SearchResult:
    total = np.zeros(len(codes))
    for byte, by_value in enumerate(sums):
        total += by_value[codes[:, byte]]
    k_here = min(k, len(total))
    farthest = np.partition(total, k_here - 1)[k_here - 1]
    rows = np.flatnonzero(total <= farthest)
    rows = rows[np.lexsort((rows, total[rows]))[:k_here]]
    distances, ids = np.full(k, np.inf), np.full(k, -1, dtype=np.int64)
    distances[:k_here], ids[:k_here] = total[rows], rows
    return SearchResult(distances, ids)
