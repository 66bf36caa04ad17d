"""Codes and queries to build and search clusters with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bitweigh

__all__ = ["some_codes", "some_costs"]


def some_codes(rows: int, seed: int = 0) -> NDArray[np.uint8]:
    """Clustered codes of 64 bits."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((2000, 64), dtype=np.float32)
    codes = np.empty((rows, 8), np.uint8)
    for first in range(0, rows, 1 << 18):
        n = min(1 << 18, rows - first)
        noisy = centres[rng.integers(0, len(centres), n)] + 0.7 * rng.standard_normal(
            (n, 64), dtype=np.float32
        )
        codes[first : first + n] = np.packbits(noisy > 0, axis=1)
    return codes


def some_costs(codes: NDArray[np.uint8], queries: int, seed: int = 1) -> NDArray[np.float32]:
    """Costs of noisy rows, as queries have them that are like the data."""
    rng = np.random.default_rng(seed)
    chosen = codes[rng.integers(0, len(codes), queries)]
    weights = rng.random((queries, 64), dtype=np.float32) + 0.1
    pairs = np.stack([np.zeros_like(weights), weights], axis=-1)
    return bitweigh.costs.from_weights(chosen, pairs).astype(np.float32)
