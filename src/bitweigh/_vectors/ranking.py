"""True distances: candidates ranked by the vectors themselves, and all vectors within a radius.

The distance between a query and a vector is a float64 sum in a fixed order, computed by the
compiled module: it depends on these two alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._checks import as_integer
from bitweigh._index.filters import AnyFilter, ids_among
from bitweigh._results import RangeResult
from bitweigh._vectors.hashing import row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors
from bitweigh.errors import CorruptFileError, LimitError
from bitweigh.typing import Ids, Metric

__all__ = ["Metric", "all_within", "rank", "within"]

# Queries in a block: so many that reading a vector takes little of the time.
_BLOCK_QUERIES = 256
# Distances computed at a time when all vectors are read: 32 MB of float64.
_BLOCK_DISTANCES = 2**22
# The same for a call with a deadline: NumPy takes less than a millisecond for them.
_DEADLINE_BLOCK_DISTANCES = 2**16


def rank(
    vectors: Vectors,
    queries: NDArray[np.float64],
    candidates: Ids,
    metric: Metric,
    threads: int | None,
    distances: NDArray[np.float64],
    ids: Ids,
    deadline: _core.Deadline | None = None,
) -> None:
    """Write the nearest candidates of each query into `distances` and `ids`, both (nq, k).

    `candidates` are ids (nq, m), padded with -1. If a query has fewer than k, +inf and -1 follow.
    """
    rows = vectors.rows_of(candidates.reshape(-1), deadline).reshape(candidates.shape)
    missing = (rows < 0) & (candidates >= 0)
    if missing.any():
        raise _no_vector_error(int(candidates[missing][0]))
    workers, capped = _workers(threads)
    _core.rank_candidates(
        vectors.arrays, queries, rows, candidates, metric, workers, capped, distances, ids, deadline
    )


def within(
    state: VectorState,
    vectors: Vectors,
    queries: NDArray[Any],
    radii: NDArray[np.float64],
    limit: int | None,
    id_filter: AnyFilter | None,
    threads: int | None,
    deadline: _core.Deadline | None = None,
) -> RangeResult:
    """Find all vectors within each query's radius that the filter allows."""
    ids = ids_among(state.index.ids, id_filter)
    query_blocks = (block for _, block in row_blocks(state, queries, "Q"))
    checked = np.concatenate([np.empty((0, queries.shape[1])), *query_blocks])
    return all_within(vectors, ids, checked, state.metric, radii, limit, threads, deadline)


def all_within(
    vectors: Vectors,
    ids: Ids,
    queries: NDArray[np.float64],
    metric: Metric,
    radii: NDArray[np.float64],
    limit: int | None,
    threads: int | None,
    deadline: _core.Deadline | None = None,
) -> RangeResult:
    """Find all vectors of these ids, ascending, that are within the radius of each query."""
    workers, capped = _workers(threads)
    found: list[_Found] = []
    counts = np.zeros(len(queries), dtype=np.int64)
    at_once = _BLOCK_DISTANCES if deadline is None else _DEADLINE_BLOCK_DISTANCES
    for first_query in range(0, len(queries), _BLOCK_QUERIES):
        here = slice(first_query, first_query + _BLOCK_QUERIES)
        step = at_once // min(len(queries), _BLOCK_QUERIES)
        for first in range(0, len(ids), step):
            block = ids[first : first + step]
            rows = vectors.rows_of(block, deadline)
            if (rows < 0).any():
                raise _no_vector_error(int(block[rows < 0][0]))
            distances = np.empty((len(queries[here]), len(block)))
            _core.vector_distances(
                vectors.arrays, queries[here], rows, metric, workers, capped, distances, deadline
            )
            near = distances <= radii[here, np.newaxis]
            if not near.any():
                continue
            per_query = near.sum(axis=1)
            counts[here] += per_query
            if limit is not None and (counts > limit).any():
                raise LimitError(int(np.argmax(counts > limit)), limit, "vectors within its radius")
            columns = np.nonzero(near)[1]
            found.append(_Found(first_query, per_query, distances[near], block[columns]))
    return _joined(found, counts, deadline)


class _Found(NamedTuple):
    """Results in a block of vectors for a block of queries, query by query."""

    first_query: int
    counts: NDArray[np.int64]
    """The number of results of each query."""
    distances: NDArray[np.float64]
    ids: Ids


def _joined(
    found: list[_Found], counts: NDArray[np.int64], deadline: _core.Deadline | None
) -> RangeResult:
    """Join the results of each query, nearest first; `counts` has their number for each query."""
    lims = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    distances, ids = np.empty(lims[-1]), np.empty(lims[-1], np.int64)
    free = lims[:-1].copy()  # where the next result of each query goes
    for part in found:
        here = slice(part.first_query, part.first_query + len(part.counts))
        starts = np.cumsum(part.counts) - part.counts
        places = np.repeat(free[here] - starts, part.counts) + np.arange(len(part.ids))
        distances[places], ids[places] = part.distances, part.ids
        free[here] += part.counts
        if deadline is not None:
            deadline.check()
    _core.sort_found(distances, ids, lims, deadline)
    if deadline is not None and len(counts):
        deadline.check()
    return RangeResult(lims, distances, ids)


def _workers(threads: int | None) -> tuple[int, bool]:
    """The maximum number of threads, and whether to use fewer when there is little work."""
    if threads is None:
        return _system.default_threads(), True
    return as_integer(threads, "threads", 1, _system.MAX_THREADS), False


def _no_vector_error(id_: int) -> CorruptFileError:
    return CorruptFileError("vectors", f"the id {id_} has no vector")
