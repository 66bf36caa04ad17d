"""True distances: candidates ranked by the vectors themselves, and all vectors within a radius.

The distance to a query is a sum in float64 over the features, one vector at a time: it does not
depend on what else is ranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.filters import Filter
from bitweigh._results import RangeResult, SearchResult
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors, blocks_of
from bitweigh.errors import CorruptFileError, LimitError
from bitweigh.hashers._vectors import blocks, unit_rows
from bitweigh.typing import Ids, Metric

__all__ = ["blocks_for", "nearest", "within"]


def blocks_for(
    held: VectorState, vectors: NDArray[Any], name: str
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The rows in blocks as the hasher takes them, each with the number of its first row."""
    for first, block in blocks(vectors, held.index.n_bits, name=name):
        yield first, unit_rows(block, first, name=name) if held.metric == "cosine" else block


def nearest(
    kept: Vectors, query: NDArray[np.float64], candidates: Ids, k: int, metric: Metric
) -> SearchResult:
    """The k nearest of some candidates, fewer if there are not as many."""
    ids = np.sort(candidates[candidates >= 0])
    try:
        vectors = kept.of(ids).astype(np.float64)
    except KeyError as error:
        raise _without_vector(error) from None
    distances = _distances(vectors, query, metric)
    # The sort is stable and the ids ascend: equal distances go to the lowest id.
    order = np.argsort(distances, kind="stable")[:k]
    return SearchResult(distances[order], ids[order])


def within(
    held: VectorState,
    kept: Vectors,
    queries: NDArray[Any],
    radii: NDArray[np.float64],
    limit: int | None,
    wanted: Filter | None,
) -> RangeResult:
    """All vectors within each radius, of those that the filter allows."""
    ids = held.index.ids
    if wanted is not None:
        ids = ids[wanted.among(ids)]
    rows = [row for _, block in blocks_for(held, queries, "Q") for row in block]
    found: list[list[SearchResult]] = [[] for _ in rows]
    counts = np.zeros(len(rows), dtype=np.int64)
    first = 0
    try:
        for block in blocks_of(kept, ids):
            own, vectors = ids[first : first + len(block)], block.astype(np.float64)
            first += len(block)
            for number, query in enumerate(rows):
                distances = _distances(vectors, query, held.metric)
                here = distances <= radii[number]
                found[number].append(SearchResult(distances[here], own[here]))
                counts[number] += np.count_nonzero(here)
                if limit is not None and counts[number] > limit:
                    raise LimitError(f"more than limit = {limit} vectors are within the radius")
    except KeyError as error:
        raise _without_vector(error) from None
    ordered = [_in_order(parts) for parts in found]
    return RangeResult(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        np.concatenate([np.empty(0), *(one.distances for one in ordered)]),
        np.concatenate([np.empty(0, np.int64), *(one.ids for one in ordered)]),
    )


def _in_order(parts: list[SearchResult]) -> SearchResult:
    """What the blocks had for one query, nearest first; their ids ascend."""
    distances = np.concatenate([np.empty(0), *(part.distances for part in parts)])
    ids = np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)])
    order = np.argsort(distances, kind="stable")
    return SearchResult(distances[order], ids[order])


def _without_vector(error: KeyError) -> CorruptFileError:
    return CorruptFileError("vectors", f"the id {error} has no vector")


def _distances(
    vectors: NDArray[np.float64], query: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """Euclidean, or 1 - cosine for a query of length 1; float64 (n,)."""
    if metric == "euclidean":
        euclidean: NDArray[np.float64] = np.sqrt(((vectors - query) ** 2).sum(axis=1))
        return euclidean
    lengths = np.sqrt((vectors**2).sum(axis=1))
    cosines: NDArray[np.float64] = (vectors * query).sum(axis=1) / lengths
    return np.clip(1.0 - cosines, 0.0, 2.0)
