"""The paper's exact methods on a million rows, compared with the reference."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from bitweigh import paper, reference
from bitweigh._results import SearchResult
from bitweigh.typing import Codes

N = 1_000_000
K = 100
METHODS = ["Linear Scan", "Alg. 2", "PQTable", "PQTable_max_heap"]


@cache
def million(n_bits: int) -> tuple[Codes, NDArray[np.float64]]:
    """Codes around 2000 centres, and two queries near one of them whose sums are exact."""
    rng = np.random.default_rng(n_bits)
    centres = rng.integers(0, 256, (2000, n_bits // 8), dtype=np.uint8)
    codes = centres[rng.integers(0, len(centres), N)]
    for _ in range(3):  # up to three bits differ
        flips = rng.integers(0, n_bits, N)
        codes[np.arange(N), flips // 8] ^= (128 >> (flips % 8)).astype(np.uint8)
    bits = np.unpackbits(codes[:2], axis=1)
    # Multiples of 2^-8 below 2^20: every order of adding is exact.
    weights = rng.integers(1, 2**24, bits.shape) / 2**8
    return codes, np.stack([bits * weights, (1 - bits) * weights], axis=-1)


@pytest.mark.parametrize(
    ("method", "n_bits"),
    [("Alg. 1", 32), *((method, n_bits) for method in METHODS for n_bits in (32, 64))],
)
def test_an_exact_method_has_the_distances_of_the_definition(method: str, n_bits: int) -> None:
    codes, costs = million(n_bits)
    if method == "Linear Scan":
        found = paper.linear_scan(codes, costs, K, dtype=np.float64)
    elif method == "Alg. 1":
        found = paper.SingleIndex(codes, n_bits).search(costs, K)
    elif method == "Alg. 2":
        found = paper.MIWQ(codes, n_bits).search(costs, K)
    else:
        merge = "own" if method == "PQTable" else "max_heap"
        found = paper.PQTable(codes, n_bits, merge=merge).search(costs, K)
    expected = _definition(n_bits)
    np.testing.assert_array_equal(found.distances, expected.distances)
    # Where distances are distinct the rows are too; the printed stop leaves the last ties open.
    for ours, theirs, distances in zip(found.ids, expected.ids, expected.distances, strict=True):
        values, counts = np.unique(distances, return_counts=True)
        distinct = np.isin(distances, values[counts == 1]) & (distances < distances[-1])
        assert distinct.any()
        np.testing.assert_array_equal(ours[distinct], theirs[distinct])


@cache
def _definition(n_bits: int) -> SearchResult:
    codes, costs = million(n_bits)
    return reference.search(codes, costs, K)
