"""The paper's methods behind one interface, each with its best number of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log2
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import SearchResult, paper
from bitweigh.typing import Codes

__all__ = ["CostArray", "Method", "Methods", "Trial", "seconds_per_query"]

CostArray = NDArray[np.float64]
Answer = SearchResult | paper.PaperResult
Search = Callable[[CostArray, int], Answer]
SplitIndex: TypeAlias = paper.MIH | paper.MIWQ | paper.PQTable
"""Codes cut into m substrings, with a table for each."""
MAX_KEY_BITS = 32  # bits of a substring in those tables
# How many bits a substring may have beyond log2 n, with several tables and with one.
SPARSE_BITS, SINGLE_SPARSE_BITS = 6, 16


@dataclass(frozen=True, slots=True)
class Method:
    """One method over one set of codes."""

    name: str
    search: Search
    """The timed call: answers queries one after the other on one thread."""
    exact: bool = True
    index: SplitIndex | None = None
    """The method's tables, which also count probes and candidates."""
    hamming: bool = False
    """Whether the method ranks by Hamming distance from the query's code."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The time of a method with m tables."""

    k: int
    method: str
    m: int
    ms: float
    by_rule: bool
    chosen: bool


class Methods:
    """All methods over one set of codes; tables are built once for each m tried."""

    def __init__(self, codes: Codes, n_bits: int) -> None:
        """Build the tables by each method's own rule, and the engine's index."""
        self._codes = codes
        self._sweeps = {
            "MIH": _Sweep(partial(paper.MIH, codes, n_bits), _around),
            "MIWQ": _Sweep(partial(paper.MIWQ, codes, n_bits), _around),
            "PQTable": _Sweep(partial(paper.PQTable, codes, n_bits), _halved_and_doubled),
            "PQTable_max_heap": _Sweep(
                partial(paper.PQTable, codes, n_bits, merge="max_heap"), _halved_and_doubled
            ),
        }
        self._descending = _Sweep(partial(paper.MIWQ, codes, n_bits, order="descending"), _around)
        self.engine = bitweigh.Index(n_bits)
        self.engine.add(codes)
        self.engine.build()

    def best_for(
        self, k: int, costs: CostArray, seconds: float
    ) -> tuple[list[Method], list[Trial]]:
        """Return every method at its best number of tables, and the trials that found it.

        `costs` are the queries of the trials; the trial of one m may take about `seconds`.
        """
        trials: list[Trial] = []
        best: dict[str, SplitIndex] = {}
        for name, sweep in self._sweeps.items():
            best[name], tried = sweep.best_for(name, k, costs, seconds)
            trials += tried
        best["MIWQ descending"] = self._descending.index_of(best["MIWQ"].m)
        return [
            Method(
                "Baseline", partial(paper.hamming_ranking, self._codes), exact=False, hamming=True
            ),
            Method("MIH", best["MIH"].search, exact=False, index=best["MIH"]),
            Method("Linear Scan", partial(paper.linear_scan, self._codes)),
            *(
                Method(name, best[name].search, index=best[name])
                for name in ("MIWQ", "MIWQ descending", "PQTable", "PQTable_max_heap")
            ),
            Method("bitweigh", partial(_one_by_one, self.engine)),
        ], trials


def seconds_per_query(search: Search, costs: CostArray, k: int) -> float:
    """Return the mean time per query, answered one after the other.

    All queries go into one call, unlike in `evaluation.time_queries`, because some methods take no
    longer than the overhead of a call.
    """
    start = time.perf_counter()
    search(costs, k)
    return (time.perf_counter() - start) / len(costs)


class _Sweep:
    """The indexes of one method with different numbers of tables, built on first use."""

    def __init__(
        self,
        build: Callable[..., SplitIndex],
        counts: Callable[[SplitIndex], Iterator[int]],
    ) -> None:
        self._build = build
        self._counts = counts
        self._by_rule = build()
        self._built = {self._by_rule.m: self._by_rule}

    def index_of(self, m: int) -> SplitIndex:
        if m not in self._built:
            self._built[m] = self._build(m=m)
        return self._built[m]

    def best_for(
        self, name: str, k: int, costs: CostArray, seconds: float
    ) -> tuple[SplitIndex, list[Trial]]:
        seconds_by_m: dict[int, float] = {}
        for m in self._counts(self._by_rule):
            search = self.index_of(m).search
            first = seconds_per_query(search, costs[:1], k)
            n_queries = max(1, min(len(costs), int(seconds / max(first, 1e-6))))
            seconds_by_m[m] = seconds_per_query(search, costs[:n_queries], k)
        best = min(seconds_by_m, key=lambda m: seconds_by_m[m])
        return self.index_of(best), [
            Trial(k, name, m, 1e3 * per_query, m == self._by_rule.m, m == best)
            for m, per_query in sorted(seconds_by_m.items())
        ]


def _around(by_rule: SplitIndex) -> Iterator[int]:
    yield from (m for m in range(by_rule.m - 1, by_rule.m + 2) if _worth_trying(m, by_rule))


def _halved_and_doubled(by_rule: SplitIndex) -> Iterator[int]:
    choices = (by_rule.m // 2, by_rule.m, by_rule.m * 2)
    yield from (m for m in choices if m == by_rule.m or _worth_trying(m, by_rule))


def _worth_trying(m: int, by_rule: SplitIndex) -> bool:
    """Whether m tables are possible and worth a trial.

    With substrings much longer than log2 n nearly all buckets are empty. For 20,000 and for a
    million rows, 32-bit substrings of 64-bit codes were 20 to 10,000 times slower than those of the
    rule. A single table over 32 bits is the exception: from about 100,000 rows on it can be best.
    """
    n_bits, log_n = by_rule.n_bits, log2(max(len(by_rule), 2))
    if not -(-n_bits // MAX_KEY_BITS) <= m <= n_bits:
        return False
    return -(-n_bits // m) <= log_n + (SINGLE_SPARSE_BITS if m == 1 else SPARSE_BITS)


def _one_by_one(index: bitweigh.Index, costs: CostArray, k: int) -> SearchResult:
    """Search the engine like the other methods: one query after the other on one thread."""
    results = [index.search(query, k, threads=1) for query in costs]
    return SearchResult(
        np.array([result.distances for result in results]),
        np.array([result.ids for result in results]),
    )
