"""Cost functions: each compared with the distance it should give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitweigh import costs, reference
from bitweigh.typing import BitOrder

ORDERS: list[BitOrder] = ["big", "little"]


def packed(bits: np.ndarray, bitorder: BitOrder) -> np.ndarray:
    return np.packbits(bits, axis=-1, bitorder=bitorder)


@given(st.integers(1, 40), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
def test_hamming_costs_give_the_hamming_distance(n_bits: int, order: BitOrder, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((9, n_bits)) < 0.5
    query = rng.random((2, n_bits)) < 0.5
    made = costs.hamming(packed(query, order), n_bits, bitorder=order)
    found = reference.distances(packed(bits, order), made, bitorder=order)
    np.testing.assert_array_equal(found, (query[:, np.newaxis] != bits).sum(axis=-1))


@given(st.integers(1, 40), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
def test_weights_are_looked_up_by_query_xor_code(n_bits: int, order: BitOrder, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((9, n_bits)) < 0.5
    query = rng.random(n_bits) < 0.5
    weights = rng.integers(-9, 10, (n_bits, 2)).astype(np.float64)
    made = costs.from_weights(packed(query, order), weights, bitorder=order)
    found = reference.distances(packed(bits, order), made, bitorder=order)
    differs = (query ^ bits).astype(int)
    np.testing.assert_array_equal(found, weights[np.arange(n_bits), differs].sum(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_product_costs_give_minus_the_inner_product(dtype: type) -> None:
    rng = np.random.default_rng(3)
    query = rng.integers(-9, 10, (4, 21)).astype(dtype)
    bits = rng.random((9, 21)) < 0.5
    codes = np.packbits(bits, axis=1)
    plain, signed = costs.inner_product(query), costs.inner_product(query, signed=True)
    assert plain.dtype == signed.dtype == dtype
    np.testing.assert_array_equal(reference.distances(codes, plain), -(query @ bits.T))
    np.testing.assert_array_equal(reference.distances(codes, signed), -(query @ (2 * bits - 1).T))


def test_one_weight_per_bit_costs_nothing_where_bits_agree() -> None:
    made = costs.from_weights(np.packbits([1, 0]), np.array([3.0, 4.0]))
    assert made.tolist() == [[3.0, 0.0], [0.0, 4.0]]


def test_weights_of_each_query_are_its_own() -> None:
    queries = np.packbits([[1, 0], [0, 1]], axis=1)
    by_flag = costs.from_weights(queries, np.array([[1.0, 2.0], [3.0, 4.0]]), per_query=True)
    pairs = np.array([[[0.0, 1.0], [0.0, 2.0]], [[0.0, 3.0], [0.0, 4.0]]])
    np.testing.assert_array_equal(by_flag, costs.from_weights(queries, pairs))
    assert by_flag.tolist() == [[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [4.0, 0.0]]]


def test_a_two_by_two_matrix_of_weights_is_read_by_bit_unless_said_otherwise() -> None:
    queries = np.packbits([[0, 0], [0, 0]], axis=1)
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert costs.from_weights(queries, weights)[1].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert costs.from_weights(queries, weights, per_query=True)[1].tolist() == [[0, 3], [0, 4]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_keep_their_dtype(dtype: type) -> None:
    assert costs.from_weights(np.packbits([1, 0]), np.ones(2, dtype=dtype)).dtype == dtype


def test_one_query_in_gives_one_out() -> None:
    one, several = np.packbits([1, 0, 1]), np.packbits([[1, 0, 1]], axis=1)
    assert costs.hamming(one, 3).shape == (3, 2)
    assert costs.hamming(several, 3).shape == (1, 3, 2)
    assert costs.from_weights(one, np.ones(3)).shape == (3, 2)
    assert costs.from_weights(several, np.ones(3)).shape == (1, 3, 2)
    assert costs.inner_product(np.ones(3)).shape == (3, 2)
    assert costs.inner_product(np.ones((1, 3))).shape == (1, 3, 2)


def test_no_query_in_gives_no_query_out() -> None:
    assert costs.hamming(np.empty((0, 1), dtype=np.uint8), 3).shape == (0, 3, 2)
    assert costs.inner_product(np.empty((0, 3))).shape == (0, 3, 2)
