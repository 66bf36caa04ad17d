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
# Tables that take longer than this many times the fastest at the first try are not measured.
_HOPELESS = 2.0
_TURN_SECONDS = 1.0
_QUERIES = 20, 200
"""At least and at most, of a turn; in between as many as the slowest answers in its time."""


class Race(TypedDict):
    """Microseconds per query."""

    queries: int
    engine_us: float
    scan_us: float
    alg2_us: float | None
    """None where it did not take part."""
    tables: int | None
    """Of Alg. 2: the fastest number of them."""


def alg2_tables(codes: Codes, n_bits: int) -> list[paper.MIWQ]:
    """Alg. 2 with as many tables as the paper's rule says, with one less and with one more."""
    rule = paper.MIWQ(codes, n_bits, bitorder="little")
    least = -(-n_bits // MAX_KEY_BITS)
    others = [m for m in (rule.m - 1, rule.m + 1) if least <= m <= n_bits]
    return [rule, *(paper.MIWQ(codes, n_bits, m=m, bitorder="little") for m in others)]


def race(
    index: bitweigh.Index, tables: list[paper.MIWQ], costs: Costs, k: int, rounds: int
) -> Race:
    """Let them take turns; of Alg. 2 the best number of tables counts."""
    tried = {own.m: _try(own, index, costs[:_TRIED_QUERIES], k) for own in tables}
    fastest = min(tried.values(), default=0.0)
    kept = [own for own in tables if tried[own.m] <= _HOPELESS * fastest]
    scan_us = typical(take_turns({0: engine_turn(index, costs[:1], k, "scan")}, 1)[0])
    least, most = _QUERIES
    fitting = int(1e6 * _TURN_SECONDS / max(fastest, scan_us))
    queries = costs[: min(most, max(least, fitting))]
    turns: dict[str | int, Turn] = {own.m: _alg2_turn(own, queries, k) for own in kept}
    turns["engine"] = engine_turn(index, queries, k)
    turns["scan"] = engine_turn(index, queries, k, "scan")
    times = {name: typical(own) for name, own in take_turns(turns, rounds).items()}
    best = min((own.m for own in kept), key=lambda m: times[m], default=None)
    return Race(
        queries=len(queries),
        engine_us=times["engine"],
        scan_us=times["scan"],
        alg2_us=None if best is None else times[best],
        tables=best,
    )


def _try(own: paper.MIWQ, index: bitweigh.Index, costs: Costs, k: int) -> float:
    """Microseconds per query; the answer has to be the engine's."""
    started = time.perf_counter()
    distances = own.search(costs, k).distances
    taken = 1e6 * (time.perf_counter() - started) / len(costs)
    # Alg. 2 adds in another order, and may return any of several rows at the last distance.
    if not np.allclose(distances, index.search(costs, k).distances, rtol=1e-9, atol=1e-9):
        raise RuntimeError(f"Alg. 2 with {own.m} tables and the engine disagree, k = {k}")
    return taken


def _alg2_turn(own: paper.MIWQ, costs: Costs, k: int) -> Turn:
    """It has no clock of its own: all queries in one call, so that the call costs next to none."""

    def turn() -> Times:
        own.search(costs[-1], k)
        started = time.perf_counter()
        own.search(costs, k)
        return np.array([1e6 * (time.perf_counter() - started) / len(costs)])

    return turn
