"""Queries of every form, from arrays to what requests have."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bitweigh.client.bulk import packed_codes, vectors_of

__all__ = [
    "Query",
    "any_query",
    "code_queries",
    "cost_queries",
    "id_list",
    "item_queries",
    "text_queries",
    "vector_queries",
]

Query: TypeAlias = dict[str, Any]
"""A query as JSON."""


def vector_queries(vectors: ArrayLike) -> tuple[list[Query], bool]:
    """Float queries, and whether there is only one, (dim,)."""
    array = vectors_of(vectors, "vectors")
    rows = np.atleast_2d(array).tolist()
    return [{"vector": row} for row in rows], array.ndim == 1


def code_queries(codes: ArrayLike, weights: ArrayLike | None) -> tuple[list[Query], bool]:
    """Packed queries, with weights (n_bits,) for all or (nq, n_bits) for each."""
    array = packed_codes(codes, "codes")
    rows = np.atleast_2d(array)
    queries: list[Query] = [{"code": base64.b64encode(row).decode()} for row in rows]
    return _weighted(queries, weights), array.ndim == 1


def cost_queries(costs: ArrayLike) -> tuple[list[Query], bool]:
    """Costs, (n_bits, 2) or (nq, n_bits, 2)."""
    array = np.asarray(costs, np.float64)
    if array.ndim not in (2, 3) or array.shape[-1] != 2:
        raise ValueError(f"costs must have shape (n_bits, 2) or (nq, n_bits, 2), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("costs must be finite")
    rows = array[np.newaxis] if array.ndim == 2 else array
    return [{"costs": row.tolist()} for row in rows], array.ndim == 2


def item_queries(
    ids: ArrayLike | None, keys: str | Sequence[str] | None, weights: ArrayLike | None
) -> tuple[list[Query], bool]:
    """Items of the collection as queries, by id or by key; one of them is a single query."""
    if (ids is None) == (keys is None):
        raise ValueError("give either ids or keys")
    if keys is not None:
        named = [keys] if isinstance(keys, str) else list(keys)
        return _weighted([{"key": key} for key in named], weights), isinstance(keys, str)
    assert ids is not None
    single = np.ndim(ids) == 0
    return _weighted([{"id": id_} for id_ in id_list(np.atleast_1d(ids))], weights), single


def text_queries(texts: str | Sequence[str]) -> tuple[list[Query], bool]:
    """Texts; one is a single query."""
    single = isinstance(texts, str)
    return [{"text": text} for text in ([texts] if isinstance(texts, str) else texts)], single


def any_query(
    vector: ArrayLike | None,
    costs: ArrayLike | None,
    code: ArrayLike | None,
    item_id: int | None,
    text: str | None,
    key: str | None,
) -> Query:
    """The one query that is given, in whichever form."""
    given: list[tuple[list[Query], bool]] = []
    if vector is not None:
        given.append(vector_queries(vector))
    if costs is not None:
        given.append(cost_queries(costs))
    if code is not None:
        given.append(code_queries(code, None))
    if item_id is not None:
        given.append(item_queries(item_id, None, None))
    if text is not None:
        given.append(text_queries(text))
    if key is not None:
        given.append(item_queries(None, key, None))
    if len(given) != 1 or not given[0][1]:
        raise ValueError("give one query: a vector, costs, a code, an id, a key or a text")
    return given[0][0][0]


def _weighted(queries: list[Query], weights: ArrayLike | None) -> list[Query]:
    if weights is None:
        return queries
    array = np.asarray(weights, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("weights must be finite")
    rows = array.tolist() if array.ndim == 2 else [array.tolist()] * len(queries)
    if len(rows) != len(queries):
        raise ValueError(f"there must be weights for {len(queries)} queries, got {len(rows)}")
    return [{**query, "weights": row} for query, row in zip(queries, rows, strict=True)]


def id_list(ids: ArrayLike) -> list[int]:
    """Ids as Python's integers, which are exact in JSON."""
    array = np.asarray(ids)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got {array.dtype}")
    found: list[int] = array.ravel().tolist()
    return found
