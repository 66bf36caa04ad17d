"""Alg. 1 and Alg. 2 of the paper: their claims, and their answers against the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitweigh import _paper, paper, reference
from bitweigh.typing import BitOrder

ORDERS: list[BitOrder] = ["big", "little"]


def exact_costs(rng: np.random.Generator, n_bits: int) -> np.ndarray:
    """Draw multiples of 2^-8 below 2^20, whose sums are exact in any order."""
    costs = rng.integers(-(2**27), 2**27, (n_bits, 2)) / 2**8
    costs[rng.random(n_bits) < 0.2] = 1.0  # bits that cost the same either way
    return costs


def assert_equals_the_definition(
    index: paper.MIWQ | paper.PQTable | paper.SingleIndex,
    codes: np.ndarray,
    costs: np.ndarray,
    k: int,
    order: str,
) -> paper.ProbeStats:
    found = index.search(costs, k)
    stats = found.stats
    expected = reference.search(codes, costs, k, bitorder=order)
    np.testing.assert_array_equal(found.distances, expected.distances)
    # The printed stop leaves open which of several rows at the K-th distance are returned.
    distinct = expected.distances < expected.distances[-1]
    np.testing.assert_array_equal(found.ids[distinct], expected.ids[distinct])
    return stats


@settings(max_examples=150)
@given(
    st.integers(1, 150),
    st.integers(0, 400),
    st.data(),
    st.sampled_from(ORDERS),
    st.sampled_from(["ascending", "descending"]),
    st.integers(0, 2**32 - 1),
)
def test_alg_2_equals_the_definition(
    n_bits: int, n: int, data: st.DataObject, bitorder: BitOrder, order: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < rng.random(n_bits), axis=1, bitorder=bitorder)
    least = -(-n_bits // 16)  # substrings of at most 16 bits: few rows leave longer ones empty
    m = data.draw(st.integers(least, max(least, min(n_bits, 20))))
    k = data.draw(st.integers(1, n + 3))
    index = paper.MIWQ(codes, n_bits, m=m, order=order, bitorder=bitorder)
    stats = assert_equals_the_definition(index, codes, exact_costs(rng, n_bits), k, bitorder)
    assert stats.candidates <= n
    assert stats.empty_buckets <= stats.buckets <= stats.rounds * m


@settings(max_examples=150)
@given(
    st.integers(1, 150),
    st.integers(0, 400),
    st.data(),
    st.sampled_from(ORDERS),
    st.sampled_from(["own", "max_heap"]),
    st.integers(0, 2**32 - 1),
)
def test_pq_table_equals_the_definition(
    n_bits: int, n: int, data: st.DataObject, bitorder: BitOrder, merge: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < rng.random(n_bits), axis=1, bitorder=bitorder)
    least = -(-n_bits // 16)
    m = data.draw(st.integers(least, max(least, min(n_bits, 20))))
    k = data.draw(st.integers(1, n + 3))
    index = paper.PQTable(codes, n_bits, m=m, merge=merge, bitorder=bitorder)
    costs = exact_costs(rng, n_bits)
    stats = assert_equals_the_definition(index, codes, costs, k, bitorder)
    assert stats.candidates <= n
    # The index keeps nothing of a query.
    assert index.search(costs, k).stats == stats


@settings(max_examples=60)
@given(st.integers(8, 64), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_miwq_and_pq_table_max_heap_probe_as_many_buckets(n_bits: int, n: int, seed: int) -> None:
    # Both take the buckets of the same tables in the same order of cost, if costs are distinct.
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < 0.5, axis=1)
    costs = rng.integers(-(2**40), 2**40, (n_bits, 2)) / 2**8
    m = -(-n_bits // 12)
    ours = paper.MIWQ(codes, n_bits, m=m).search(costs, 3).stats
    theirs = paper.PQTable(codes, n_bits, m=m, merge="max_heap").search(costs, 3).stats
    assert ours == theirs


@settings(max_examples=100)
@given(
    st.integers(1, 14), st.integers(0, 400), st.data(), st.sampled_from(ORDERS), st.integers(0, 99)
)
def test_alg_1_equals_the_definition(
    n_bits: int, n: int, data: st.DataObject, bitorder: BitOrder, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < 0.5, axis=1, bitorder=bitorder)
    k = data.draw(st.integers(1, n + 3))
    index = paper.SingleIndex(codes, n_bits, bitorder=bitorder)
    assert_equals_the_definition(index, codes, exact_costs(rng, n_bits), k, bitorder)


def test_long_substrings_use_the_sparse_directory() -> None:
    rng = np.random.default_rng(3)
    codes = np.packbits(rng.random((3000, 48)) < 0.5, axis=1)
    index = paper.MIWQ(codes, 48, m=2)
    assert_equals_the_definition(index, codes, exact_costs(rng, 48), 1, "big")


@settings(max_examples=40)
@given(st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_every_bucket_comes_exactly_once_in_rising_cost(n_bits: int, seed: int) -> None:
    # Corollary 1 and Theorem 1: with one row in each bucket, K = all of them walks every bucket.
    rng = np.random.default_rng(seed)
    values = np.arange(2**n_bits)
    codes = np.packbits((values[:, np.newaxis] >> np.arange(n_bits)) & 1, axis=1)
    costs = exact_costs(rng, n_bits)
    found = paper.SingleIndex(codes, n_bits).search(costs, 2**n_bits)
    stats = found.stats
    assert sorted(found.ids.tolist()) == values.tolist()
    assert (np.diff(found.distances) >= 0).all()
    assert stats.buckets == stats.candidates == 2**n_bits
    assert stats.empty_buckets == stats.duplicates == 0


def test_alg_2_looks_at_few_rows_of_clustered_codes() -> None:
    rng = np.random.default_rng(5)
    centres = rng.random((20, 64)) < 0.5
    bits = centres[rng.integers(0, 20, 20_000)] ^ (rng.random((20_000, 64)) < 0.08)
    codes = np.packbits(bits, axis=1)
    costs = np.stack([bits[7], ~bits[7]], axis=-1) * rng.random((64, 1)).round(2)
    stats = assert_equals_the_definition(
        paper.MIWQ(codes, 64), codes, costs.round(2) * 64, 1, "big"
    )
    assert stats.candidates < 2000


@pytest.mark.parametrize("method", [paper.MIWQ, paper.MIH, paper.PQTable, paper.SingleIndex])
def test_several_queries_give_what_each_gives_alone(
    method: Callable[..., paper.MIWQ | paper.MIH | paper.PQTable | paper.SingleIndex],
) -> None:
    rng = np.random.default_rng(2)
    codes = np.packbits(rng.random((300, 24)) < 0.5, axis=1)
    costs = rng.random((5, 24, 2))
    index = method(codes, 24)
    together = index.search(costs, 7)
    counts = together.stats
    for number, own in enumerate(costs):
        alone = index.search(own, 7)
        count = alone.stats
        np.testing.assert_array_equal(together.distances[number], alone.distances)
        np.testing.assert_array_equal(together.ids[number], alone.ids)
        assert count == tuple(one[number] for one in counts)


def test_the_number_of_tables_follows_the_paper_s_rule() -> None:
    assert _paper.substrings_by_rule(64, 1_000_000) == 3
    assert _paper.substrings_by_rule(128, 1_000_000) == 6
    assert _paper.substrings_by_rule(32, 10**9) == 1
    assert _paper.substrings_by_rule(64, 2) == 64
    assert [_paper.pq_tables_by_rule(bits, 10**6) for bits in (32, 64, 128, 256)] == [2, 4, 8, 16]
    assert paper.MIWQ(np.zeros((1000, 8), dtype=np.uint8), 64).m == 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda codes: paper.SingleIndex(codes, 64), "n_bits must be at most 32 .* got 64"),
        (lambda codes: paper.MIWQ(codes, 64, m=1), "m must be from 2 to 64, got 1"),
        (lambda codes: paper.MIWQ(codes, 64, m=65), "m must be from 2 to 64, got 65"),
        (lambda codes: paper.MIWQ(codes, 64, order="up"), "order must be .* got 'up'"),
        (lambda codes: paper.PQTable(codes, 64, merge="heap"), "merge must be .* got 'heap'"),
        (lambda codes: paper.PQTable(codes, 64, m=1), "m must be from 2 to 64, got 1"),
        (lambda codes: paper.MIWQ(codes, 72), r"codes must have shape \(n, 9\)"),
        (lambda codes: paper.MIWQ(codes, 64).search(np.ones((64, 2)), 0), "k must be"),
        (lambda codes: paper.MIWQ(codes, 64).search(np.full((64, 2), np.nan), 1), "finite"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make(np.zeros((5, 8), dtype=np.uint8))
