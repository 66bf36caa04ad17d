"""Searching a state: codes first and, where vectors are kept, the nearest ones by true distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.filters import AnyFilter, ids_among, segments_of
from bitweigh._index.request import Request, in_order, nearest, search_options
from bitweigh._index.request import within as codes_within
from bitweigh._progress import ProgressBar
from bitweigh._results import RangeResult, SearchResult
from bitweigh._vectors.hashing import cost_blocks, costs_of
from bitweigh._vectors.ranking import all_within, rank
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors

__all__ = [
    "Options",
    "codes_in_order",
    "codes_in_range",
    "nearest_vectors",
    "vectors_in_order",
]


class Options(NamedTuple):
    """What searches have in common, checked."""

    id_filter: AnyFilter | None
    threads: int | None = None
    deadline: _core.Deadline | None = None


def _request(state: VectorState, options: Options, limit: int | None = None) -> Request:
    index = state.index
    return Request(
        index._engine,
        segments_of(index._state, options.id_filter, options.deadline),
        search_options(threads=options.threads, limit=limit, deadline=options.deadline),
    )


def nearest_vectors(
    state: VectorState,
    queries: NDArray[Any],
    k: int,
    n_codes: int,
    options: Options,
    bar: ProgressBar,
) -> SearchResult:
    """Find the `n_codes` nearest codes of each query, and among them the k nearest vectors."""
    distances = np.empty((len(queries), k))
    ids = np.empty((len(queries), k), np.int64)
    request = _request(state, options)
    for block, rows, costs in cost_blocks(state, queries):
        if options.id_filter is None:
            state.index._recent.add(costs, n_codes)
        found = nearest(request, costs, n_codes)
        if state.vectors is None:
            distances[block], ids[block] = found.distances, found.ids
        else:
            rank(
                state.vectors,
                rows,
                found.ids,
                state.metric,
                options.threads,
                distances[block],
                ids[block],
                options.deadline,
            )
        bar.advance(len(rows))
    return SearchResult(distances, ids)


def codes_in_range(
    state: VectorState,
    queries: NDArray[Any],
    radii: NDArray[np.float64],
    limit: int | None,
    options: Options,
) -> RangeResult:
    """Find all vectors whose codes are within each query's radius."""
    request = _request(state, options, limit)
    found = [
        codes_within(request, costs, radii[block], first=block.start)
        for block, _, costs in cost_blocks(state, queries)
    ]
    counts = [np.diff(result.lims) for result in found]
    return RangeResult(
        np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts])),
        np.concatenate([np.empty(0), *(result.distances for result in found)]),
        np.concatenate([np.empty(0, np.int64), *(result.ids for result in found)]),
    )


def vectors_in_order(
    state: VectorState, vectors: Vectors, row: NDArray[np.float64], id_filter: AnyFilter | None
) -> Iterator[tuple[float, int]]:
    """Yield all vectors as (distance, id), nearest first; the first one takes a pass over all."""
    everything = np.array([np.inf])
    among = ids_among(state.index.ids, id_filter)
    _, distances, ids = all_within(vectors, among, row, state.metric, everything, None, None)
    yield from zip(distances.tolist(), ids.tolist(), strict=True)


def codes_in_order(
    state: VectorState, row: NDArray[np.float64], id_filter: AnyFilter | None
) -> Iterator[tuple[float, int]]:
    """All codes as (distance, id), nearest first, searched for as far as they are consumed."""
    request = _request(state, Options(id_filter, threads=1))
    return in_order(request, costs_of(state, row)[0])
