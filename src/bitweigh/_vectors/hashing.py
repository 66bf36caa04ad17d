"""Rows as hashers take them, and queries to costs. Rows are checked here, and only here."""
# ruff: noqa: N803 Q goes with scikit-learn's X

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_array
from bitweigh._vectors.state import VectorState
from bitweigh.hashers._vectors import as_vectors, blocks, unit_rows

__all__ = ["as_queries", "cost_blocks", "costs_of", "one_query", "row_blocks"]


def as_queries(state: VectorState, Q: object, name: str = "Q") -> tuple[NDArray[Any], bool]:
    """Queries (nq, n_features), not yet checked for NaN, and whether there was a single query."""
    single = np.ndim(Q) == 1  # type: ignore[arg-type]
    rows = as_array(Q, name, allow_objects=True)[np.newaxis] if single else Q
    return as_vectors(rows, "VectorIndex", state.hasher.n_features_in_, name=name), single


def one_query(state: VectorState, q: object) -> NDArray[np.float64]:
    """A single query, (1, n_features), checked and as a hasher takes it."""
    queries, single = as_queries(state, q, "q")
    if not single:
        raise ValueError(f"q must be one query, (n_features,), got {queries.shape}")
    finite = np.isfinite(queries[0])
    if not finite.all():
        place = int(np.argmin(finite))
        raise ValueError(f"q must be finite, got {queries[0, place]} at q[{place}]")
    ((_, row),) = row_blocks(state, queries, "q")
    return row


def row_blocks(
    state: VectorState, vectors: NDArray[Any], name: str
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the rows in blocks as a hasher takes them, each with the number of its first row.

    Raises ValueError for a row that is not finite or, with "cosine", all zeros.
    """
    for first, block in blocks(vectors, state.index.n_bits, name=name):
        yield first, unit_rows(block, first, name=name) if state.metric == "cosine" else block


def cost_blocks(
    state: VectorState, queries: NDArray[Any]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield blocks of queries: their positions, the queries (m, n_features), and their costs."""
    for first, block in row_blocks(state, queries, "Q"):
        yield slice(first, first + len(block)), block, costs_of(state, block)


def costs_of(state: VectorState, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The costs (m, n_bits, 2) of queries that are as a hasher takes them."""
    costs = state.weigher._costs_block(state.hasher._project_block(rows))
    return np.ascontiguousarray(costs, np.float64)
