"""Baseline and MIH: their guarantees, which are weaker than exactness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitweigh import costs as ways
from bitweigh import paper, reference
from bitweigh.typing import BitOrder

ORDERS: list[BitOrder] = ["big", "little"]


def hamming_costs(costs: np.ndarray) -> np.ndarray:
    """Return the costs of plain Hamming distance to the cheapest code."""
    one = costs[:, 1] < costs[:, 0]
    return np.stack([one, ~one], axis=-1).astype(np.float64)


@settings(max_examples=60)
@given(
    st.integers(1, 140), st.integers(0, 300), st.data(), st.sampled_from(ORDERS), st.integers(0, 99)
)
def test_baseline_is_the_hamming_ranking(
    n_bits: int, n: int, data: st.DataObject, bitorder: BitOrder, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < 0.5, axis=1, bitorder=bitorder)
    costs = rng.integers(-3, 4, (n_bits, 2)).astype(np.float64)
    k = data.draw(st.integers(1, n + 3))
    found = paper.hamming_ranking(codes, costs, k, bitorder=bitorder)
    expected = reference.search(codes, hamming_costs(costs), k, bitorder=bitorder)
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(found.ids, expected.ids)


@settings(max_examples=120)
@given(
    st.integers(1, 60),
    st.integers(1, 300),
    st.data(),
    st.sampled_from(ORDERS),
    st.integers(0, 2**32 - 1),
)
def test_mih_ranks_the_full_shell_by_weight(
    n_bits: int, n: int, data: st.DataObject, bitorder: BitOrder, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < rng.random(), axis=1, bitorder=bitorder)
    costs = rng.integers(0, 2**20, (n_bits, 2)) / 2**8
    least = -(-n_bits // 12)
    m = data.draw(st.integers(least, n_bits))
    k = data.draw(st.integers(1, n + 2))
    plain = reference.distances(codes, hamming_costs(costs), bitorder=bitorder)
    radius = np.sort(plain)[min(k, n) - 1]
    shell = np.flatnonzero(plain <= radius)
    expected = reference.search(codes[shell], costs, k, ids=shell, bitorder=bitorder)
    found = paper.MIH(codes, n_bits, m=m, bitorder=bitorder).search(costs, k)
    stats = found.stats
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert stats.candidates >= len(shell)
    assert stats.rounds == radius + 1


def test_the_three_ways_to_cull_find_more_and_more_of_the_exact_answer() -> None:
    rng = np.random.default_rng(1)
    codes = np.packbits(rng.random((5000, 32)) < 0.5, axis=1)
    shares = {"found": 0, "shell": 0, "met": 0}
    for _ in range(40):
        costs = ways.inner_product(rng.standard_normal(32))
        exact = set(reference.search(codes, costs, 10).ids.tolist())
        for culled in shares:
            found = paper.MIH(codes, 32, culled=culled).search(costs, 10)
            shares[culled] += len(exact & set(found.ids.tolist()))
    assert 0 < shares["found"] < shares["shell"] < shares["met"] < 400


def test_mih_ends_when_k_is_more_than_there_are_codes() -> None:
    found = paper.MIH(np.zeros((2, 1), dtype=np.uint8), 8).search(np.ones((8, 2)), 4)
    assert found.ids.tolist() == [0, 1, -1, -1]
    assert paper.MIH(np.empty((0, 1), dtype=np.uint8), 8).search(np.ones((8, 2)), 1).ids == [-1]


def test_an_unknown_way_to_cull_is_refused() -> None:
    with pytest.raises(ValueError, match="culled must be one of found, shell, met, got 'most'"):
        paper.MIH(np.zeros((2, 1), dtype=np.uint8), 8, culled="most")
