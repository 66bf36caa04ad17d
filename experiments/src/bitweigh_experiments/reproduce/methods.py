"""The methods of the paper behind one call, each with the number of tables that suits it best."""

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
MAX_KEY_BITS = 32  # of a substring in those tables
# Bits of a substring beyond log2 n, with several tables and with one.
SPARSE_BITS, SINGLE_SPARSE_BITS = 6, 16


@dataclass(frozen=True, slots=True)
class Method:
    """One method over one set of codes."""

    name: str
    search: Search
    """Of several queries, one after the other on one thread: what is timed."""
    exact: bool = True
    index: SplitIndex | None = None
    """Its tables, which also count."""
    hamming: bool = False
    """Whether it ranks by Hamming distance from the query's own code."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The time of a method with some number of tables."""

    k: int
    method: str
    m: int
    ms: float
    by_rule: bool
    chosen: bool


class Methods:
    """All methods over one set of codes; tables are built once for each m that is tried."""

    def __init__(self, codes: Codes, n_bits: int) -> None:
        """Build what every K uses."""
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

    def best_for(
        self, k: int, costs: CostArray, seconds: float
    ) -> tuple[list[Method], list[Trial]]:
        """Every method at its best number of tables, and what was tried to find it.

        `costs` are the queries to try with; the trial of one m may take about `seconds`.
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
    """The mean over the queries, one after the other.

    In one call, unlike `evaluation.time_queries`: some methods take no longer than a call does.
    """
    start = time.perf_counter()
    search(costs, k)
    return (time.perf_counter() - start) / len(costs)


class _Sweep:
    """The indexes of one method with different numbers of tables, built when first asked for."""

    def __init__(
        self,
        make: Callable[..., SplitIndex],
        counts: Callable[[SplitIndex], Iterator[int]],
    ) -> None:
        self._make = make
        self._counts = counts
        self._by_rule = make()
        self._built = {self._by_rule.m: self._by_rule}

    def index_of(self, m: int) -> SplitIndex:
        if m not in self._built:
            self._built[m] = self._make(m=m)
        return self._built[m]

    def best_for(
        self, name: str, k: int, costs: CostArray, seconds: float
    ) -> tuple[SplitIndex, list[Trial]]:
        taken: dict[int, float] = {}
        for m in self._counts(self._by_rule):
            search = self.index_of(m).search
            first = seconds_per_query(search, costs[:1], k)
            enough = max(1, min(len(costs), int(seconds / max(first, 1e-6))))
            taken[m] = seconds_per_query(search, costs[:enough], k)
        best = min(taken, key=lambda m: taken[m])
        return self.index_of(best), [
            Trial(k, name, m, 1e3 * own, m == self._by_rule.m, m == best)
            for m, own in sorted(taken.items())
        ]


def _around(by_rule: SplitIndex) -> Iterator[int]:
    yield from (m for m in range(by_rule.m - 1, by_rule.m + 2) if _sensible(m, by_rule))


def _halved_and_doubled(by_rule: SplitIndex) -> Iterator[int]:
    choices = (by_rule.m // 2, by_rule.m, by_rule.m * 2)
    yield from (m for m in choices if m == by_rule.m or _sensible(m, by_rule))


def _sensible(m: int, by_rule: SplitIndex) -> bool:
    """Whether m tables are possible and worth a trial.

    With substrings much longer than log2 n nearly all buckets are empty. On 20,000 and on a million
    rows 32-bit substrings of 64-bit codes were 20 to 10,000 times slower than the rule's. A single
    table over 32 bits is the exception: from some 100,000 rows on it can be the best.
    """
    n_bits, spread = by_rule.n_bits, log2(max(len(by_rule), 2))
    if not -(-n_bits // MAX_KEY_BITS) <= m <= n_bits:
        return False
    return -(-n_bits // m) <= spread + (SINGLE_SPARSE_BITS if m == 1 else SPARSE_BITS)


def _one_by_one(index: bitweigh.Index, costs: CostArray, k: int) -> SearchResult:
    """The engine's search, like the others one query after the other on one thread."""
    found = [index.search(own, k, threads=1) for own in costs]
    return SearchResult(
        np.array([one.distances for one in found]), np.array([one.ids for one in found])
    )
