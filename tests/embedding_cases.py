"""Rescored embeddings by definition, in NumPy, and collections for their tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import bitweigh
from bitweigh.embeddings import BinaryEmbeddings

RESCORE: list[Any] = ["int8", "float16", "float32"]


def some_embeddings(n: int, dim: int = 24, seed: int = 0) -> np.ndarray:
    """Draw n embeddings of unit length."""
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def rescored(x: np.ndarray, rescore: Any = "int8", **options: Any) -> BinaryEmbeddings:
    """Return a collection of these embeddings."""
    embeddings = BinaryEmbeddings(x.shape[1], rescore=rescore, **options)
    embeddings.add(x)
    return embeddings


def scales_by_hand(x: np.ndarray) -> np.ndarray:
    """Return 1/127 of the largest absolute value of each dimension, or of all if that is 0."""
    largest = np.abs(x.astype(np.float64)).max(axis=0)
    largest[largest == 0] = largest.max()
    return np.where(largest == 0, 1.0, largest / 127)


def scores_by_hand(
    x: np.ndarray, query: np.ndarray, rescore: str, scales: np.ndarray
) -> np.ndarray:
    """Return the product of a query with each embedding as it is kept, in float64."""
    weights = query.astype(np.float64)
    if rescore == "int8":
        kept = np.clip(np.rint(x.astype(np.float64) / scales), -127, 127).astype(np.int8)
        weights = weights * scales
    else:
        kept = x.astype(rescore)
    return (kept.astype(np.float64) * weights).sum(axis=1) + 0.0


def best_by_hand(
    x: np.ndarray,
    ids: np.ndarray,
    query: np.ndarray,
    k: int,
    rescore_from: int,
    rescore: str,
    scales: np.ndarray,
) -> tuple[list[float], list[int]]:
    """Return scores and ids: the best by their bits, ranked by their vectors, padded to k."""
    costs = bitweigh.costs.inner_product(query)
    packed = np.packbits(x > 0, axis=1)
    near = bitweigh.reference.search(packed, costs, k=rescore_from, ids=ids).ids
    rows = np.flatnonzero(np.isin(ids, near))
    scores = scores_by_hand(x[rows], query, rescore, scales)
    order = np.lexsort((ids[rows], -scores))[:k]
    padding = k - len(order)
    return (
        [*scores[order].tolist(), *[-np.inf] * padding],
        [*ids[rows][order].tolist(), *[-1] * padding],
    )
