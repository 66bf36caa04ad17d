"""One setting of the paper's experiments, measured: precision, time and counts of every method.

A setting is a set of codes (data, hasher, bits) with the costs that a weigher gives its queries.
Every answer of an exact method is compared with the engine's, which is the definition's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import SearchResult, paper
from bitweigh.evaluation import Truth, precision_at_k, speed_up
from bitweigh.typing import Codes
from bitweigh_experiments.reproduce.methods import (
    Answer,
    CostArray,
    Method,
    Methods,
    seconds_per_query,
)
from bitweigh_experiments.reproduce.results import KS, Ambiguity, Cell, SweepPoint

__all__ = ["Effort", "Setting", "measure"]

AMBIGUITY_QUERIES = 50
MOST_TIES = 5000
# Sums of float64 in another order than the definition's, as a share of the costs summed.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Effort:
    """How much time to spend on timing."""

    timed_queries: int = 100
    """At most; slow methods are given fewer."""
    rounds: int = 3
    """In each round every method has its turn."""
    turn_seconds: float = 1.0
    """About what a turn may take, and a trial of a number of tables."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Codes and queries to measure with."""

    role: str
    hasher: str
    weigher: str
    bits: int
    codes: Codes
    query_codes: Codes
    costs: CostArray
    truth: Truth

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What a Cell begins with."""
        return (self.role, self.hasher, self.weigher, self.bits)

    def queries_for(self, method: Method) -> CostArray:
        """The costs (nq, n_bits, 2) that a method is asked with."""
        if method.hamming:
            return bitweigh.costs.hamming(self.query_codes, self.bits)
        return self.costs


def measure(
    setting: Setting, effort: Effort
) -> tuple[list[Cell], list[SweepPoint], list[Ambiguity]]:
    """Cells of all methods and all K, the trials of m, and how many codes tie."""
    contest = Methods(setting.codes, setting.bits)
    expected = contest.engine.search(setting.costs, max(KS))
    cells, sweeps = [], []
    for k in KS:
        methods, trials = contest.best_for(
            k, setting.costs[: effort.timed_queries], effort.turn_seconds
        )
        sweeps += [
            SweepPoint(*setting.key, one.k, one.method, one.m, one.ms, one.by_rule, one.chosen)
            for one in trials
        ]
        times = _times(setting, methods, k, effort)
        scan_ms = times["Linear Scan"].ms
        for method in methods:
            cell = _answered(setting, method, k, expected, times[method.name].queries)
            cells.append(_with_time(cell, times[method.name], scan_ms))
    return cells, sweeps, _ambiguity(setting, contest.engine)


class _Time(NamedTuple):
    """Milliseconds per query: the median of the rounds, the lowest and the highest."""

    ms: float
    low: float
    high: float
    queries: int


def _with_time(cell: Cell, time: _Time, scan_ms: float) -> Cell:
    return replace(
        cell,
        ms=time.ms,
        ms_low=time.low,
        ms_high=time.high,
        speed_up=float(speed_up(scan_ms, time.ms)),
        timed_queries=time.queries,
    )


def _times(setting: Setting, methods: list[Method], k: int, effort: Effort) -> dict[str, _Time]:
    turns = {}
    for method in methods:
        queries = setting.queries_for(method)[: effort.timed_queries]
        first = seconds_per_query(method.search, queries[:2], k)
        turns[method.name] = queries[: max(2, int(effort.turn_seconds / max(first, 1e-6)))]
    taken: dict[str, list[float]] = {method.name: [] for method in methods}
    for _ in range(effort.rounds):
        for method in methods:
            taken[method.name].append(1e3 * seconds_per_query(method.search, turns[method.name], k))
    return {
        name: _Time(median(own), min(own), max(own), len(turns[name]))
        for name, own in taken.items()
    }


def _answered(setting: Setting, method: Method, k: int, expected: SearchResult, timed: int) -> Cell:
    """A method's precision and counts. PQTable, which is slow, answers the timed queries only."""
    cell = Cell(*setting.key, k, method.name)
    queries = setting.queries_for(method)
    if method.name.startswith("PQTable"):
        queries = queries[:timed]
    found: Answer
    if method.index is not None:
        answer = method.index.search(queries, k)
        found, counts = answer, answer.stats
        cell = replace(
            cell,
            m=method.index.m,
            buckets=float(np.mean(counts.buckets)),
            empty_buckets=float(np.mean(counts.empty_buckets)),
            candidates=float(np.mean(counts.candidates)),
            duplicates=float(np.mean(counts.duplicates)),
            rounds=float(np.mean(counts.rounds)),
        )
    elif method.name == "Linear Scan":
        # Timed with float32 tables, which are faster; their rounding could swap close neighbours.
        found = paper.linear_scan(setting.codes, queries, k, dtype=np.float64)
    else:
        found = method.search(queries, k)
    if method.exact:
        _compare(setting, method, found, expected)
    if len(queries) == len(setting.costs):
        cell = replace(cell, precision=precision_at_k(found.ids, setting.truth))
    return replace(cell, queries=len(queries))


def _compare(setting: Setting, method: Method, found: Answer, expected: SearchResult) -> None:
    """Exact methods must return the definition's distances; ids may differ where they tie."""
    nq, k = found.distances.shape
    sizes = np.abs(setting.costs[:nq]).max(axis=2).sum(axis=1)[:, np.newaxis]
    gaps = np.abs(found.distances - expected.distances[:nq, :k])
    if not (gaps <= ROUNDING * sizes).all():
        raise RuntimeError(
            f"{method.name} is not exact at {setting.key}, k = {k}: a distance is off by "
            f"{gaps.max():g}"
        )


def _ambiguity(setting: Setting, index: bitweigh.Index) -> list[Ambiguity]:
    """How many codes are exactly as far as the k-th, by Hamming distance and by weight."""
    some = slice(0, AMBIGUITY_QUERIES)
    most = min(len(setting.codes), MOST_TIES)
    weighted = index.search(setting.costs[some], most).distances
    hamming = [_hamming_counts(setting, code) for code in setting.query_codes[some]]
    return [
        Ambiguity(
            *setting.key,
            k,
            float(np.mean([_count_at(own, k) for own in hamming])),
            float((weighted == weighted[:, k - 1 : k]).sum(axis=1).mean()),
        )
        for k in KS
        if k <= most
    ]


def _hamming_counts(setting: Setting, code: Codes) -> NDArray[np.int64]:
    """How many codes are at each Hamming distance from `code`."""
    distances = np.bitwise_count(setting.codes ^ code).sum(axis=1, dtype=np.int64)
    return np.bincount(distances, minlength=setting.bits + 1)


def _count_at(counts: NDArray[np.int64], k: int) -> int:
    """The number of codes at the distance of the k-th."""
    return int(counts[np.searchsorted(np.cumsum(counts), k)])
