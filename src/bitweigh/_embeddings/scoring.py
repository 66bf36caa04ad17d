"""Scores: of the bits, and of kept vectors for the best by their bits.

The score of a kept vector is a float64 sum in a fixed order, computed by the compiled module: it
depends on the query and the vector alone. The engine knows distances, which are minus the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh._checks import as_integer, as_query_costs
from bitweigh._embeddings.state import EmbeddingsState
from bitweigh._index.filters import Filter, as_filter, ids_among
from bitweigh._index.request import in_order, search_options
from bitweigh._index.request import within as codes_within
from bitweigh._results import RangeResult, ScoredRangeResult, ScoredResult
from bitweigh._vectors.codes_and_vectors import n_candidates
from bitweigh._vectors.ranking import all_within, rank
from bitweigh._vectors.store import Vectors
from bitweigh.costs import inner_product
from bitweigh.errors import LimitError
from bitweigh.typing import Floats

__all__ = [
    "TOO_MANY",
    "Limits",
    "as_scores",
    "best",
    "folded",
    "in_order_of_bits",
    "in_order_of_vectors",
    "n_to_rescore",
    "refuse_signed",
    "scored",
]

TOO_MANY = "embeddings with a score of at least min_score"
"""What a `LimitError` counts."""

# Sums of products of such numbers with float32 are finite.
_MAX_QUERY = 1e200


class Limits(NamedTuple):
    """What to search, and for how long; the fields are arguments of the search methods."""

    threads: int | None = None
    allow: ArrayLike | None = None
    deny: ArrayLike | None = None
    filter: Filter | None = None
    deadline: _core.Deadline | None = None


def n_to_rescore(
    state: EmbeddingsState, k: int, rescore_from: object, extra: int = 0, rows: int | None = None
) -> int:
    """The number of embeddings to rescore, found by their bits; 0 to rank by bits alone.

    `extra` and `rows` as in `n_candidates`.
    """
    if (
        state.vectors is not None
        and rescore_from is not None
        and as_integer(rescore_from, "rescore_from", 0, 2**32) == 0
    ):
        return 0
    return n_candidates(state, k, rescore_from, "rescore", extra, rows)


def best(
    state: EmbeddingsState,
    queries: Floats,
    k: int,
    n_rescored: int,
    signed: bool,
    limits: Limits,
) -> ScoredResult:
    """The k embeddings with the largest scores; queries are (dim,) or (nq, dim)."""
    vectors = state.vectors
    rescoring = vectors is not None and n_rescored > 0
    if rescoring:
        refuse_signed(signed, "rescore_from=0")
    rows = folded(state, queries) if rescoring else None
    costs = as_query_costs(
        inner_product(queries, signed=signed), state.index.n_bits, limits.deadline
    )
    options = search_options(threads=limits.threads, deadline=limits.deadline)
    found = state.index._nearest(
        costs, n_rescored if rescoring else k, options, limits.allow, limits.deny, limits.filter
    )
    if vectors is None or rows is None:
        # Not -distances, which would turn 0.0 into -0.0.
        return ScoredResult(0.0 - found.distances, found.ids)
    distances, ids = np.empty((len(rows), k)), np.empty((len(rows), k), np.int64)
    candidates = found.ids.reshape(len(rows), n_rescored)
    rank(
        vectors, rows, candidates, "inner_product", limits.threads, distances, ids, limits.deadline
    )
    scores = 0.0 - distances
    return ScoredResult(scores[0], ids[0]) if queries.ndim == 1 else ScoredResult(scores, ids)


def scored(
    state: EmbeddingsState,
    queries: Floats,
    bounds: NDArray[np.float64],
    by_vectors: bool,
    signed: bool,
    limit: int | None,
    limits: Limits,
) -> ScoredRangeResult:
    """All embeddings with scores of at least each query's bound, by kept vectors or by bits."""
    try:
        found = _within(state, queries, 0.0 - bounds, by_vectors, signed, limit, limits)
    except LimitError as error:
        raise LimitError(error.query, error.limit, TOO_MANY) from None
    return as_scores(found)


def _within(
    state: EmbeddingsState,
    queries: Floats,
    radii: NDArray[np.float64],
    by_vectors: bool,
    signed: bool,
    limit: int | None,
    limits: Limits,
) -> RangeResult:
    threads, allow, deny, filter_, deadline = limits
    if by_vectors:
        refuse_signed(signed, "by='codes'")
        assert state.vectors is not None
        rows = folded(state, queries)
        ids = ids_among(state.index.ids, as_filter(allow, deny, filter_))
        return all_within(
            state.vectors, ids, rows, "inner_product", radii, limit, threads, deadline
        )
    costs = inner_product(queries, signed=signed)
    checked = as_query_costs(costs, state.index.n_bits, deadline)
    options = search_options(threads=threads, limit=limit, deadline=deadline)
    return codes_within(state.index._request(options, allow, deny, filter_), checked, radii)


def in_order_of_bits(
    state: EmbeddingsState, query: Floats, limits: Limits
) -> Iterator[tuple[float, int]]:
    """All embeddings as (score, id), largest score of the bits first."""
    costs = as_query_costs(inner_product(query), state.index.n_bits)
    options = search_options(threads=1)
    request = state.index._request(options, limits.allow, limits.deny, limits.filter)
    return ((0.0 - distance, id_) for distance, id_ in in_order(request, costs))


def in_order_of_vectors(
    state: EmbeddingsState, vectors: Vectors, query: Floats, limits: Limits
) -> Iterator[tuple[float, int]]:
    """All embeddings as (score, id), largest score of the vectors first.

    All are scored before the first is yielded.
    """
    rows = folded(state, query)
    ids = ids_among(state.index.ids, as_filter(limits.allow, limits.deny, limits.filter))

    def pairs() -> Iterator[tuple[float, int]]:
        everything = np.array([np.inf])
        found = all_within(vectors, ids, rows, "inner_product", everything, None, None)
        _, scores, near = as_scores(found)
        yield from zip(scores.tolist(), near.tolist(), strict=True)

    return pairs()


def refuse_signed(signed: bool, instead: str) -> None:
    """Raise ValueError for `signed` where scores are those of vectors."""
    if signed:
        raise ValueError(f"signed=True is for scores of bits: pass {instead} with it")


def as_scores(found: RangeResult) -> ScoredRangeResult:
    """Distances as scores, in place."""
    # Not -distances, which would turn 0.0 into -0.0.
    scores = np.subtract(0.0, found.distances, out=found.distances)
    return ScoredRangeResult(found.lims, scores, found.ids)


def folded(state: EmbeddingsState, queries: Floats) -> NDArray[np.float64]:
    """Queries (nq, dim) whose products with the numbers that are kept are the scores."""
    rows = np.array(queries, np.float64, order="C").reshape(-1, state.index.n_bits)
    if state.scales is not None:
        with np.errstate(over="ignore"):
            rows *= state.scales
    if np.abs(rows).max(initial=0.0) > _MAX_QUERY:
        raise ValueError("queries are too large: a score might not be finite")
    return rows
