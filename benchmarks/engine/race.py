"""The engine, its scan and the paper's Alg. 2 on the same codes and queries."""

from __future__ import annotations

import time
from typing import TypedDict

import numpy as np

import bitweigh
from benchmarks.engine.clock import Times, Turn, engine_turn, take_turns, typical
from benchmarks.engine.sections import Codes, Costs
from bitweigh import paper
from bitweigh.paper._tables import MAX_KEY_BITS

__all__ = ["Race", "alg2_tables", "race"]

_TRIED_QUERIES = 10
# Numbers of tables that take this many times as long as the fastest in a trial are not measured.
_HOPELESS = 2.0
_TURN_SECONDS = 1.0
_QUERIES = 20, 200
"""Minimum and maximum queries of a turn; in between, as many as fit into _TURN_SECONDS."""


class Race(TypedDict):
    """Microseconds per query."""

    queries: int
    engine_us: float
    scan_us: float
    alg2_us: float | None
    """None if Alg. 2 did not take part."""
    tables: int | None
    """The fastest number of tables of Alg. 2."""


def alg2_tables(codes: Codes, n_bits: int) -> list[paper.MIWQ]:
    """Build Alg. 2 with the number of tables of the paper's rule, one fewer and one more."""
    rule = paper.MIWQ(codes, n_bits, bitorder="little")
    min_tables = -(-n_bits // MAX_KEY_BITS)
    others = [m for m in (rule.m - 1, rule.m + 1) if min_tables <= m <= n_bits]
    return [rule, *(paper.MIWQ(codes, n_bits, m=m, bitorder="little") for m in others)]


def race(
    index: bitweigh.Index, tables: list[paper.MIWQ], costs: Costs, k: int, rounds: int
) -> Race:
    """Let the methods take turns; for Alg. 2 the best number of tables counts."""
    tried = {candidate.m: _try(candidate, index, costs[:_TRIED_QUERIES], k) for candidate in tables}
    fastest = min(tried.values(), default=0.0)
    promising = [candidate for candidate in tables if tried[candidate.m] <= _HOPELESS * fastest]
    scan_us = typical(take_turns({0: engine_turn(index, costs[:1], k, "scan")}, 1)[0])
    min_queries, max_queries = _QUERIES
    fitting = int(1e6 * _TURN_SECONDS / max(fastest, scan_us))
    queries = costs[: min(max_queries, max(min_queries, fitting))]
    turns: dict[str | int, Turn] = {
        candidate.m: _alg2_turn(candidate, queries, k) for candidate in promising
    }
    turns["engine"] = engine_turn(index, queries, k)
    turns["scan"] = engine_turn(index, queries, k, "scan")
    times = {name: typical(turn_times) for name, turn_times in take_turns(turns, rounds).items()}
    best = min((candidate.m for candidate in promising), key=lambda m: times[m], default=None)
    return Race(
        queries=len(queries),
        engine_us=times["engine"],
        scan_us=times["scan"],
        alg2_us=None if best is None else times[best],
        tables=best,
    )


def _try(candidate: paper.MIWQ, index: bitweigh.Index, costs: Costs, k: int) -> float:
    """Return microseconds per query; raise if the answer differs from the engine's."""
    started = time.perf_counter()
    distances = candidate.search(costs, k).distances
    us = 1e6 * (time.perf_counter() - started) / len(costs)
    # Alg. 2 adds in another order, and may return any of several rows at the last distance.
    if not np.allclose(distances, index.search(costs, k).distances, rtol=1e-9, atol=1e-9):
        raise RuntimeError(f"Alg. 2 with {candidate.m} tables and the engine disagree, k = {k}")
    return us


def _alg2_turn(candidate: paper.MIWQ, costs: Costs, k: int) -> Turn:
    """Return a turn of one call for all queries: Alg. 2 has no clock, and calls have overhead."""

    def turn() -> Times:
        candidate.search(costs[-1], k)
        started = time.perf_counter()
        candidate.search(costs, k)
        return np.array([1e6 * (time.perf_counter() - started) / len(costs)])

    return turn
