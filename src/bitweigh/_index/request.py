"""Searches in the engine: for the nearest rows, rows within a radius, or rows in order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._checks import as_integer
from bitweigh._index.code_queries import CodeQueries
from bitweigh._results import RangeResult, SearchResult, SearchStats
from bitweigh.errors import LimitError
from bitweigh.typing import Method

__all__ = [
    "MAX_LIMIT",
    "METHODS",
    "Request",
    "in_order",
    "nearest",
    "nearest_to_codes",
    "search_options",
    "within",
]

METHODS = get_args(Method)
_N_COUNTERS = len(SearchStats._fields)
_FIRST_NEIGHBOURS = 16
MAX_LIMIT = 2**62


class Request(NamedTuple):
    """A search for the engine, without its queries: the segments and the options."""

    engine: _core.Engine
    segments: _core.SegmentSet
    options: _core.SearchOptions


def search_options(
    method: Method = "auto",
    threads: int | None = None,
    limit: int | None = None,
    deadline: _core.Deadline | None = None,
) -> _core.SearchOptions:
    """The checked arguments of a search as the engine's options."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if threads is None:
        max_threads = _system.default_threads()
    else:
        max_threads = as_integer(threads, "threads", 1, _system.MAX_THREADS)
    max_rows = MAX_LIMIT if limit is None else as_integer(limit, "limit", 0, MAX_LIMIT)
    if deadline is None:
        return _cached_options(method, max_threads, threads is None, max_rows)
    options = _engine_options(method, max_threads, threads is None, max_rows)
    options.deadline = deadline
    return options


def _engine_options(
    method: Method, threads: int, cap_threads: bool, limit: int
) -> _core.SearchOptions:
    options = _core.SearchOptions()
    options.method = _core.Method[method]
    options.threads = threads
    options.cap_threads = cap_threads
    options.limit = limit
    return options


# Creating options takes longer than the rest of preparing a short search. Nothing changes those in
# the cache; they have no deadline, which belongs to a single call.
_cached_options = lru_cache(maxsize=64)(_engine_options)


def nearest(
    request: Request,
    costs: NDArray[np.float64],
    k: int,
    stats: bool = False,
    pages: _core.PageCounter | None = None,
) -> SearchResult:
    """The k nearest rows of each query; costs are (n_bits, 2) or (nq, n_bits, 2).

    `pages` counts what a search on one thread reads.
    """
    engine, segments, options = request
    shape = (k,) if costs.ndim == 2 else (len(costs), k)
    distances, ids = np.empty(shape), np.empty(shape, np.int64)
    counters = _counters_for(costs) if stats else None
    engine.search(segments, costs, k, options, distances, ids, counters, pages)
    result = SearchResult(distances, ids)
    if counters is not None:
        result._counters = counters
    return result


def nearest_to_codes(
    request: Request, queries: CodeQueries, k: int, stats: bool = False
) -> SearchResult:
    """The k nearest rows of each query, (nq, k), or (k,) for a single query."""
    shape = (len(queries), k)
    distances, ids = np.empty(shape), np.empty(shape, np.int64)
    counters = np.empty((len(queries), _N_COUNTERS), np.int64) if stats else None
    engine, segments, options = request
    for block, costs in queries.blocks(options.deadline if options.deadline.exists else None):
        counted = None if counters is None else counters[block]
        engine.search(segments, costs, k, options, distances[block], ids[block], counted)
    if queries.single:
        distances, ids = distances[0], ids[0]
        counters = None if counters is None else counters[0]
    result = SearchResult(distances, ids)
    if counters is not None:
        result._counters = counters
    return result


def within(
    request: Request,
    costs: NDArray[np.float64],
    radii: NDArray[np.float64],
    stats: bool = False,
    first: int = 0,
) -> RangeResult:
    """All rows within the radius of each query; LimitError if a query has more than the limit.

    `first` is the number of the first query, for errors about one batch of many.
    """
    engine, segments, options = request
    lims = np.empty(len(radii) + 1, dtype=np.int64)
    counters = _counters_for(costs) if stats else None
    try:
        distances, ids = engine.range_search(segments, costs, radii, options, lims, counters)
    except _core.TooManyRowsError as error:
        query = first + int(str(error))
        raise LimitError(query, options.limit, "codes within its radius") from None
    # The engine's int64 is C's long long, a different type to NumPy than its int64.
    result = RangeResult(lims, distances, ids.view(np.int64))
    if counters is not None:
        result._counters = counters
    return result


def in_order(request: Request, costs: NDArray[np.float64]) -> Iterator[tuple[float, int]]:
    """All rows of a single query as (distance, id), nearest first.

    The answer for a larger k begins with that for a smaller one, so each search continues where the
    last one ended. With four times as many rows each time, all searches together cost little more
    than the last one.
    """
    done, k = 0, _FIRST_NEIGHBOURS
    while True:
        distances, ids = nearest(request, costs, k)
        found = int(np.count_nonzero(ids >= 0))
        yield from zip(distances[done:found].tolist(), ids[done:found].tolist(), strict=True)
        if found < k:
            return
        done, k = k, 4 * k


def _counters_for(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """An array for the counters: (n_counters,) for a single query, else (nq, n_counters)."""
    shape = _N_COUNTERS if costs.ndim == 2 else (len(costs), _N_COUNTERS)
    return np.empty(shape, np.int64)
