"""The paper's methods, compared with the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bitweigh import paper, reference
from bitweigh._results import SearchResult


@pytest.mark.parametrize("n_bits", [5, 32, 64, 72, 128, 200, 256])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_linear_scan_equals_the_definition_where_float32_is_exact(
    n_bits: int, bitorder: str
) -> None:
    rng = np.random.default_rng(n_bits)
    codes = np.packbits(rng.random((500, n_bits)) < 0.5, axis=1, bitorder=bitorder)
    costs = rng.integers(-20, 20, (n_bits, 2)).astype(np.float64)
    found = paper.linear_scan(codes, costs, 12, bitorder=bitorder)
    expected = reference.search(codes, costs, 12, bitorder=bitorder)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_linear_scan_in_double_precision_equals_the_definition_where_sums_are_exact() -> None:
    rng = np.random.default_rng(1)
    codes = np.packbits(rng.random((500, 64)) < 0.5, axis=1)
    costs = rng.integers(0, 2**28, (64, 2)) / 2**8
    found = paper.linear_scan(codes, costs, 12, dtype=np.float64)
    expected = reference.search(codes, costs, 12)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_linear_scan_pads_like_a_search() -> None:
    found = paper.linear_scan(np.zeros((2, 1), dtype=np.uint8), np.ones((8, 2)), 4)
    assert found.ids.tolist() == [0, 1, -1, -1]
    assert found.distances.tolist() == [8, 8, np.inf, np.inf]


def test_linear_scan_of_no_codes_pads_everything() -> None:
    found = paper.linear_scan(np.empty((0, 1), dtype=np.uint8), np.ones((8, 2)), 2)
    assert found.ids.tolist() == [-1, -1]


@pytest.mark.parametrize("scan", [paper.linear_scan, paper.hamming_ranking])
def test_several_queries_give_what_each_gives_alone(scan: Callable[..., SearchResult]) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (50, 3), dtype=np.uint8)
    costs = rng.random((4, 20, 2))
    codes[:, 2] &= 0xF0
    together = scan(codes, costs, 60)
    for number, own in enumerate(costs):
        alone = scan(codes, own, 60)
        np.testing.assert_array_equal(together.distances[number], alone.distances)
        np.testing.assert_array_equal(together.ids[number], alone.ids)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_linear_scan_refuses_costs_that_are_not_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        paper.linear_scan(np.zeros((2, 1), dtype=np.uint8), np.full((8, 2), value), 4)
