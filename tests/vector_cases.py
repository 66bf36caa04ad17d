"""A fitted VectorIndex and its data, for tests of vector indexes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bitweigh.vector_index import VectorIndex


def random_rows(n: int, d: int = 12, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Draw n correlated rows around 0.5."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 0.5).astype(dtype)


DATA = random_rows(600)
QUERIES = random_rows(9, seed=1)


def fitted_index(**options: Any) -> VectorIndex:
    """Return an index fitted on DATA that holds DATA, by default with 10 bits of LSH."""
    index = VectorIndex(**{"n_bits": 10, "hasher": "lsh", **options}).fit(DATA)
    index.add(DATA)
    return index


def same_bytes(first: Iterable[Any], second: Iterable[Any]) -> bool:
    """Whether two results, or tuples of arrays, are equal in every bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))
