"""Measurement of one setting: precision, time and counts of every method.

A setting is a set of codes (data, hasher, bits) with the costs that a weigher gives its queries.
Every answer of an exact method is compared with that of the engine, which is exact by contract.
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
MAX_TIES = 5000
# Tolerance for float64 sums in another order than the definition's, relative to the summed costs.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Effort:
    """How much time to spend on timing."""

    timed_queries: int = 100
    """Maximum number of timed queries; slow methods get fewer."""
    rounds: int = 3
    """Rounds of timing; in each, every method has one turn."""
    turn_seconds: float = 1.0
    """Approximate limit for a turn, and for the trial of one number of tables."""


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
        """The first four fields of a Cell."""
        return (self.role, self.hasher, self.weigher, self.bits)

    def queries_for(self, method: Method) -> CostArray:
        """Return the costs (nq, n_bits, 2) that a method searches with."""
        if method.hamming:
            return bitweigh.costs.hamming(self.query_codes, self.bits)
        return self.costs


def measure(
    setting: Setting, effort: Effort
) -> tuple[list[Cell], list[SweepPoint], list[Ambiguity]]:
    """Return the cells of all methods and K, the trials of m, and the numbers of tied codes."""
    candidates = Methods(setting.codes, setting.bits)
    expected = candidates.engine.search(setting.costs, max(KS))
    cells, sweeps = [], []
    for k in KS:
        methods, trials = candidates.best_for(
            k, setting.costs[: effort.timed_queries], effort.turn_seconds
        )
        sweeps += [
            SweepPoint(
                *setting.key, trial.k, trial.method, trial.m, trial.ms, trial.by_rule, trial.chosen
            )
            for trial in trials
        ]
        times = _times(setting, methods, k, effort)
        scan_ms = times["Linear Scan"].ms
        for method in methods:
            cell = _answered(setting, method, k, expected, times[method.name].queries)
            cells.append(_with_time(cell, times[method.name], scan_ms))
    return cells, sweeps, _ambiguity(setting, candidates.engine)


class _Time(NamedTuple):
    """Milliseconds per query: the median, the lowest and the highest round."""

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
    times: dict[str, list[float]] = {method.name: [] for method in methods}
    for _ in range(effort.rounds):
        for method in methods:
            times[method.name].append(1e3 * seconds_per_query(method.search, turns[method.name], k))
    return {
        name: _Time(median(rounds), min(rounds), max(rounds), len(turns[name]))
        for name, rounds in times.items()
    }


def _answered(setting: Setting, method: Method, k: int, expected: SearchResult, timed: int) -> Cell:
    """Return a method's precision and counts; the slow PQTable answers only `timed` queries."""
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
        # Timing uses float32 tables, which are faster; their rounding could swap close neighbours.
        found = paper.linear_scan(setting.codes, queries, k, dtype=np.float64)
    else:
        found = method.search(queries, k)
    if method.exact:
        _compare(setting, method, found, expected)
    if len(queries) == len(setting.costs):
        cell = replace(cell, precision=precision_at_k(found.ids, setting.truth))
    return replace(cell, queries=len(queries))


def _compare(setting: Setting, method: Method, found: Answer, expected: SearchResult) -> None:
    """Raise unless an exact method returns the defined distances; tied ids may differ."""
    nq, k = found.distances.shape
    sizes = np.abs(setting.costs[:nq]).max(axis=2).sum(axis=1)[:, np.newaxis]
    gaps = np.abs(found.distances - expected.distances[:nq, :k])
    if not (gaps <= ROUNDING * sizes).all():
        raise RuntimeError(
            f"{method.name} is not exact at {setting.key}, k = {k}: a distance is off by "
            f"{gaps.max():g}"
        )


def _ambiguity(setting: Setting, index: bitweigh.Index) -> list[Ambiguity]:
    """Count the codes exactly as far as the k-th, by Hamming and by weighted distance."""
    sample = slice(0, AMBIGUITY_QUERIES)
    max_k = min(len(setting.codes), MAX_TIES)
    weighted = index.search(setting.costs[sample], max_k).distances
    hamming = [_hamming_counts(setting, code) for code in setting.query_codes[sample]]
    return [
        Ambiguity(
            *setting.key,
            k,
            float(np.mean([_count_at(counts, k) for counts in hamming])),
            float((weighted == weighted[:, k - 1 : k]).sum(axis=1).mean()),
        )
        for k in KS
        if k <= max_k
    ]


def _hamming_counts(setting: Setting, code: Codes) -> NDArray[np.int64]:
    """Count the codes at each Hamming distance from `code`."""
    distances = np.bitwise_count(setting.codes ^ code).sum(axis=1, dtype=np.int64)
    return np.bincount(distances, minlength=setting.bits + 1)


def _count_at(counts: NDArray[np.int64], k: int) -> int:
    """Return the number of codes at the distance of the k-th nearest."""
    return int(counts[np.searchsorted(np.cumsum(counts), k)])
