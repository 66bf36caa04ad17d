"""True distances: candidates ranked by the vectors themselves, and all vectors within a radius.

The distance between a query and a vector is a sum in float64 in a fixed order, by the compiled
module: it depends on the two of them alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._checks import as_integer
from bitweigh._index.filters import Filter
from bitweigh._results import RangeResult
from bitweigh._vectors.hashing import row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors
from bitweigh.errors import CorruptFileError, LimitError
from bitweigh.typing import Ids, Metric

__all__ = ["rank", "within"]

# Distances computed at a time where all vectors are read: 32 MB.
_BLOCK_DISTANCES = 2**22


def rank(
    vectors: Vectors,
    queries: NDArray[np.float64],
    candidates: Ids,
    metric: Metric,
    threads: int | None,
    distances: NDArray[np.float64],
    ids: Ids,
) -> None:
    """Write the nearest candidates of each query into `distances` and `ids`, both (nq, k).

    `candidates` are ids (nq, m), -1 for none. Where there are fewer than k, +inf and -1 follow.
    """
    rows = vectors.rows_of(candidates.reshape(-1)).reshape(candidates.shape)
    missing = (rows < 0) & (candidates >= 0)
    if missing.any():
        raise _without_vector(int(candidates[missing][0]))
    workers, capped = _workers(threads)
    _core.rank_candidates(
        vectors.arrays, queries, rows, candidates, metric, workers, capped, distances, ids
    )


def within(
    state: VectorState,
    vectors: Vectors,
    queries: NDArray[Any],
    radii: NDArray[np.float64],
    limit: int | None,
    wanted: Filter | None,
    threads: int | None,
) -> RangeResult:
    """All vectors within each radius, of those that the filter allows."""
    workers, capped = _workers(threads)
    ids = state.index.ids
    if wanted is not None:
        ids = ids[wanted.among(ids)]
    checked = [np.empty((0, queries.shape[1])), *(b for _, b in row_blocks(state, queries, "Q"))]
    rows = np.concatenate(checked)
    found: list[list[tuple[NDArray[np.float64], Ids]]] = [[] for _ in rows]
    counts = np.zeros(len(rows), dtype=np.int64)
    step = max(1, _BLOCK_DISTANCES // max(1, len(rows)))
    for first in range(0, len(ids), step):
        block = ids[first : first + step]
        places = vectors.rows_of(block)
        if (places < 0).any():
            raise _without_vector(int(block[places < 0][0]))
        distances = np.empty((len(rows), len(block)))
        _core.vector_distances(
            vectors.arrays, rows, places, state.metric, workers, capped, distances
        )
        near = distances <= radii[:, np.newaxis]
        counts += near.sum(axis=1)
        if limit is not None and (counts > limit).any():
            raise LimitError(f"more than limit = {limit} vectors are within the radius")
        for parts, gaps, inside in zip(found, distances, near, strict=True):
            parts.append((gaps[inside], block[inside]))
    ordered = [_in_order(parts) for parts in found]
    return RangeResult(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        np.concatenate([np.empty(0), *(distances for distances, _ in ordered)]),
        np.concatenate([np.empty(0, np.int64), *(ids for _, ids in ordered)]),
    )


def _in_order(
    parts: list[tuple[NDArray[np.float64], Ids]],
) -> tuple[NDArray[np.float64], Ids]:
    """What the blocks had for one query, nearest first; the ids of the blocks ascend."""
    distances = np.concatenate([np.empty(0), *(distances for distances, _ in parts)])
    ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in parts)])
    order = np.argsort(distances, kind="stable")
    return distances[order], ids[order]


def _workers(threads: int | None) -> tuple[int, bool]:
    """How many threads may work, and whether fewer should where there is little to do."""
    if threads is None:
        return _system.default_threads(), True
    return as_integer(threads, "threads", 1, _system.MAX_THREADS), False


def _without_vector(missing: int) -> CorruptFileError:
    return CorruptFileError("vectors", f"the id {missing} has no vector")
