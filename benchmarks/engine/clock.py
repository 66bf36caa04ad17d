"""Measuring in turns, by the engine's clock or by the wall clock, and statistics of the times.

Machines drift, so everything that is compared takes turns in one process, on one CPU, all with the
same queries. A turn begins with a query that is not recorded: it brings back into the cache what
this turn needs, not the previous one.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

import bitweigh
from benchmarks.engine.sections import Costs
from bitweigh.typing import Method

__all__ = [
    "Spread",
    "Times",
    "Turn",
    "engine_turn",
    "fastest",
    "spread_of",
    "take_turns",
    "typical",
    "wall_turn",
]

Times: TypeAlias = NDArray[np.float64]
"""Times in microseconds, (nq,) for a turn or (rounds, nq)."""
Turn: TypeAlias = Callable[[], Times]
"""A function that runs the same queries each time and returns their times."""
_Name = TypeVar("_Name", bound=Hashable)


class Spread(TypedDict):
    """The distribution of a figure over queries."""

    p50: float
    p99: float
    max: float


def nanoseconds(result: bitweigh.SearchResult) -> NDArray[np.int64]:
    """Return the engine's time by its own clock; the result must have been searched with stats."""
    assert result.stats is not None
    return result.stats.nanoseconds


def engine_turn(
    index: bitweigh.Index,
    costs: Costs,
    k: int,
    method: Method = "auto",
    kept: bitweigh.Filter | None = None,
) -> Turn:
    """Return a turn of single-query searches, each timed by the engine."""

    def turn() -> Times:
        index.search(costs[-1], k, threads=1, method=method, filter=kept)
        found = (
            index.search(query, k, threads=1, method=method, filter=kept, stats=True)
            for query in costs
        )
        return np.array([nanoseconds(result) for result in found]) / 1e3

    return turn


def wall_turn(ask: Callable[[int], object], queries: int) -> Turn:
    """Return a turn that times `ask`, called with the number of a query, by the wall clock."""

    def turn() -> Times:
        ask(queries - 1)
        times = np.empty(queries)
        for number in range(queries):
            started = time.perf_counter_ns()
            ask(number)
            times[number] = time.perf_counter_ns() - started
        return times / 1e3

    return turn


def take_turns(
    turns: Mapping[_Name, Turn], rounds: int, *, pinned: bool = True
) -> dict[_Name, Times]:
    """Run all turns, round by round, without garbage collection; return times (rounds, nq) each."""
    times: dict[_Name, list[Times]] = {name: [] for name in turns}
    gc.collect()
    gc.disable()
    try:
        with _on_one_cpu() if pinned else nullcontext():
            for _ in range(rounds):
                for name, turn in turns.items():
                    times[name].append(turn())
    finally:
        gc.enable()
    return {name: np.array(rows) for name, rows in times.items()}


@contextmanager
def _on_one_cpu() -> Iterator[None]:
    """Pin this thread to one CPU, where the system allows it, so that caches stay warm."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(usable)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


def typical(times: Times) -> float:
    """Return the mean over the queries of each query's median over the rounds."""
    return float(np.median(times, axis=0).mean())


def fastest(times: Times) -> float:
    """Return the mean over the queries of each query's best round."""
    return float(times.min(axis=0).mean())


def spread_of(values: Times) -> Spread:
    """Return median, 99th percentile (interpolated) and largest value."""
    p50, p99, largest = np.percentile(values, [50, 99, 100]).tolist()
    return Spread(p50=p50, p99=p99, max=largest)
