"""What an index asks of the engine: the nearest rows, those within a radius, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._checks import as_integer
from bitweigh._index.filters import Filter, allowed_in
from bitweigh._index.state import State
from bitweigh._results import RangeResult, SearchResult, SearchStats
from bitweigh.errors import LimitError
from bitweigh.typing import BitOrder, Method

__all__ = ["NO_LIMIT", "Request", "in_order", "nearest", "request_for", "within"]

NO_LIMIT = 2**62
_N_COUNTERS = len(SearchStats._fields)
_FIRST_NEIGHBOURS = 16


class Request(NamedTuple):
    """The arguments that all searches of the engine share, in the order of its parameters."""

    segments: _core.SegmentList
    allowed: list[_core.Allowed] | None
    """The rows of each segment that may be returned; None for all."""
    costs: NDArray[np.float64]
    """(nq, n_bits, 2)"""
    single: bool
    """Whether the caller gave one query without its axis."""
    bitorder: BitOrder
    method: Method
    kernel: str
    threads: int
    cap_threads: bool
    """Whether fewer threads will do where there is little work."""
    tuning: _core.Tuning


def request_for(
    state: State,
    costs: NDArray[np.float64],
    single: bool,
    bitorder: BitOrder,
    kernel: str,
    tuning: _core.Tuning,
    method: Method = "auto",
    threads: int | None = None,
    row_filter: Filter | None = None,
) -> Request:
    """Searches of a state for checked costs."""
    if threads is None:
        workers = _system.default_threads()
    else:
        workers = as_integer(threads, "threads", 1, _system.MAX_THREADS)
    return Request(
        state.core,
        None if row_filter is None else allowed_in(row_filter, state),
        costs,
        single,
        bitorder,
        method,
        kernel,
        workers,
        threads is None,
        tuning,
    )


def nearest(request: Request, k: int, stats: bool = False) -> SearchResult:
    """The k nearest rows of each query."""
    nq, single = len(request.costs), request.single
    shape = (k,) if single else (nq, k)
    distances, ids = np.empty(shape), np.empty(shape, np.int64)
    counters = np.empty((nq, _N_COUNTERS), np.int64) if stats else None
    _core.search(*request, k, distances, ids, counters)
    result = SearchResult(distances, ids)
    if counters is not None:
        result.stats = _stats_of(counters, single)
    return result


def within(
    request: Request, radii: NDArray[np.float64], limit: int | None, stats: bool = False
) -> RangeResult:
    """All rows within the radius of each query; LimitError if a query has more than `limit`."""
    lims = np.empty(len(radii) + 1, dtype=np.int64)
    counters = np.empty((len(radii), _N_COUNTERS), np.int64) if stats else None
    try:
        distances, ids = _core.range_search(
            *request, radii, NO_LIMIT if limit is None else limit, lims, counters
        )
    except _core.TooManyRowsError:
        raise LimitError(f"more than limit = {limit} codes are within the radius") from None
    # The engine's int64 is C's long long, which NumPy tells from its own although they are equal.
    result = RangeResult(lims, distances, ids.view(np.int64))
    if counters is not None:
        result.stats = _stats_of(counters, request.single)
    return result


def in_order(request: Request) -> Iterator[tuple[float, int]]:
    """All rows of a single query as (distance, id), nearest first.

    A longer answer begins with the shorter one, so each search continues where the last one ended.
    Asking for four times as many rows each time costs little more than the last search alone.
    """
    done, k = 0, _FIRST_NEIGHBOURS
    while True:
        distances, ids = nearest(request, k)
        found = int(np.count_nonzero(ids >= 0))
        yield from zip(distances[done:found].tolist(), ids[done:found].tolist(), strict=True)
        if found < k:
            return
        done, k = k, 4 * k


def _stats_of(counters: NDArray[np.int64], single: bool) -> SearchStats:
    return SearchStats(*(counters[0].tolist() if single else counters.T))
