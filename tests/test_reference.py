"""The reference, compared with the definition in words, one addition at a time."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bitweigh import reference


def distance_in_words(code: bytes, costs: np.ndarray, bitorder: str) -> float:
    """Add groups of 8 bits in ascending bit number, then the groups; each sum starts from +0.0."""
    total = 0.0
    for group, byte in enumerate(code):
        subtotal = 0.0
        for i in range(8 * group, min(8 * group + 8, len(costs))):
            mask = 128 >> i % 8 if bitorder == "big" else 1 << i % 8
            subtotal += float(costs[i, 1 if byte & mask else 0])
        total += subtotal
    return total


@settings(max_examples=60)
@given(cases(bits=st.integers(1, 70), rows=st.integers(0, 20), most_queries=2))
def test_distances_are_added_in_the_defined_order(case: Case) -> None:
    found = reference.distances(case.codes, case.costs, bitorder=case.bitorder)
    queries = case.costs if case.costs.ndim == 3 else case.costs[np.newaxis]
    expected = [
        [distance_in_words(code.tobytes(), costs, case.bitorder) for code in case.codes]
        for costs in queries
    ]
    expected_array = np.array(expected, dtype=np.float64).reshape(len(queries), len(case.codes))
    np.testing.assert_array_equal(
        found.view(np.int64).reshape(expected_array.shape), expected_array.view(np.int64)
    )


def test_search_orders_by_distance_then_id_and_pads() -> None:
    codes = np.packbits([[1, 0], [0, 0], [1, 0]], axis=1)
    found = reference.search(codes, np.array([[1.0, 0.0], [0.0, 0.0]]), 4, ids=[9, 5, 2])
    assert found.ids.tolist() == [2, 9, 5, -1]
    assert found.distances.tolist() == [0.0, 0.0, 1.0, np.inf]


def test_minus_zero_never_comes_out() -> None:
    found = reference.distances(np.zeros((1, 1), dtype=np.uint8), np.full((8, 2), -0.0))
    assert not np.signbit(found).any()


def test_wrong_number_of_ids_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ids must have shape \(2,\)"):
        reference.search(np.zeros((2, 1), dtype=np.uint8), np.zeros((8, 2)), 1, ids=[1])


def test_costs_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        reference.distances(np.zeros((2, 1), dtype=np.uint8), np.full((8, 2), np.nan))
