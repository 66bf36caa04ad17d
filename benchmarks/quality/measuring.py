"""The measurement: all methods are built, then take turns, one query and one thread at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypedDict

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.quality.methods import Ids, K, Method, Search
from benchmarks.quality.sets import Vectors
from bitweigh import evaluation

__all__ = ["Figures", "measure"]

_TURN = 100
"""Queries of a method's turn: long enough for its data to be in the caches again."""
_WARM = 5


class Figures(TypedDict):
    """What one method with one setting costs and finds."""

    family: str
    name: str
    setting: str
    seconds: float
    """To learn and to add all rows, on all CPUs."""
    bytes_per_row: float
    ms: float
    """The median of single queries on one thread."""
    precision: float
    """The share of the K nearest rows that is found."""


def measure(
    data: Vectors, methods: Iterable[Method], say: Callable[[str], object]
) -> list[Figures]:
    """Measure every method with each of its settings; `say` is told what is being done."""
    truth = evaluation.euclidean_top(data.rows, data.queries, K)
    measured: list[Figures] = []
    searches: list[Search] = []
    for method in methods:
        say(f"building {method.name}")
        began = time.perf_counter()
        built = method.build(data.rows)
        seconds = time.perf_counter() - began
        for setting, search in built.searches.items():
            searches.append(search)
            measured.append(
                Figures(
                    family=method.family,
                    name=method.name,
                    setting=setting,
                    seconds=seconds,
                    bytes_per_row=built.n_bytes / len(data.rows),
                    ms=0.0,
                    precision=0.0,
                )
            )
    say("searching")
    with threadpool_limits(limits=1):
        answers = _in_turns(data, searches)
    for figures, (ids, times) in zip(measured, answers, strict=True):
        figures["ms"] = 1e3 * float(np.median(times))
        figures["precision"] = evaluation.precision_at_k(ids, truth)
    return measured


def _in_turns(data: Vectors, searches: list[Search]) -> list[tuple[Ids, list[float]]]:
    """Return the answers (nq, K) and the seconds of each query, for each search."""
    found: list[list[Ids]] = [[] for _ in searches]
    times: list[list[float]] = [[] for _ in searches]
    for first in range(0, len(data.queries), _TURN):
        turn = data.queries[first : first + _TURN]
        for number, search in enumerate(searches):
            for query in turn[:_WARM]:
                search(query)
            for query in turn:
                began = time.perf_counter()
                ids = search(query)
                times[number].append(time.perf_counter() - began)
                found[number].append(ids)
    return [(np.stack(ids), seconds) for ids, seconds in zip(found, times, strict=True)]
