"""`search_codes` for packed queries, and `contributions` of single bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, Setting, assert_same, cases, settings_to_run
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import bitweigh
from bitweigh._index import code_queries


@st.composite
def weights_of(draw: st.DrawFn, n_bits: int, nq: int | None) -> Any:
    """Draw weights in one of the shapes that `search_codes` takes, or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes: list[tuple[int, ...] | None] = [None, (n_bits,), (n_bits, 2)]
    if nq is not None:
        shapes.append((nq, n_bits, 2))
    shape = draw(st.sampled_from(shapes))
    if shape is None:
        return None
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return rng.standard_normal(shape).astype(dtype)


@given(cases(), settings_to_run(), st.data(), st.sampled_from([1, 600, 2**19]))
@settings(max_examples=examples(300), deadline=None)
def test_codes_are_searched_as_their_costs_are(
    case: Case, setting: Setting, data: st.DataObject, block_costs: int
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    nq = data.draw(st.none() | st.integers(0, 9))
    bits = rng.random((nq or 1, case.n_bits)) < 0.5
    queries = np.packbits(bits[0] if nq is None else bits[:nq], axis=-1, bitorder=case.bitorder)
    weights = data.draw(weights_of(case.n_bits, nq))
    index = setting.index(case)
    if weights is None:
        costs = bitweigh.costs.hamming(queries, case.n_bits, bitorder=case.bitorder)
    else:
        costs = bitweigh.costs.from_weights(queries, weights, bitorder=case.bitorder)
    options: dict[str, Any] = {"threads": setting.threads, "method": setting.method}
    before = code_queries._BLOCK_COSTS
    code_queries._BLOCK_COSTS = block_costs
    try:
        found = index.search_codes(queries, case.k, weights=weights, **options)
    finally:
        code_queries._BLOCK_COSTS = before
    assert_same(found, index.search(costs, case.k, **options))


@pytest.fixture
def index() -> bitweigh.Index:
    index = bitweigh.Index(12)
    codes = np.random.default_rng(0).integers(0, 256, (200, 2), dtype=np.uint8)
    index.add(codes & np.array([255, 240], np.uint8), ids=range(100, 300))
    return index


QUERIES = np.array([[1, 16], [255, 240], [7, 0]], dtype=np.uint8)


def test_all_options_of_search_are_those_of_search_codes(index: bitweigh.Index) -> None:
    costs = bitweigh.costs.hamming(QUERIES, 12)
    for options in (
        {"allow": range(120, 160)},
        {"deny": [100, 101]},
        {"method": "scan", "threads": 2},
        {"timeout": 1000},
    ):
        found = index.search_codes(QUERIES, 5, **options)  # type: ignore[arg-type]
        assert_same(found, index.search(costs, 5, **options))  # type: ignore[arg-type]
    with pytest.raises(bitweigh.DeadlineError):
        index.search_codes(QUERIES, 5, timeout=0)


def test_the_work_is_counted_for_each_query(
    index: bitweigh.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_queries, "_BLOCK_COSTS", 2 * 12 * 2)  # two queries at a time
    stats = index.search_codes(QUERIES, 5, stats=True).stats
    assert stats is not None
    looked_at = stats.rows_scored_directly + stats.rows_scanned
    assert looked_at.tolist() == [200] * 3
    single = index.search_codes(QUERIES[0], 5, stats=True).stats
    assert single is not None
    assert single.rows_scored_directly + single.rows_scanned == 200
    assert index.search_codes(QUERIES, 5).stats is None


@pytest.mark.parametrize(
    ("queries", "weights", "error", "message"),
    [
        (QUERIES.astype(float), None, TypeError, "queries must have dtype uint8"),
        (QUERIES[:, :1], None, ValueError, r"queries must have shape \(n, 2\)"),
        (QUERIES[0, :1], None, ValueError, r"queries must have shape \(2,\) or \(nq, 2\)"),
        (QUERIES | 1, None, ValueError, r"queries\[0\] has unused bits set"),
        (QUERIES, np.ones(11), ValueError, r"weights must have shape \(12,\), .* got \(11,\)"),
        (QUERIES, np.ones((12, 3)), ValueError, r"weights must have shape .* got \(12, 3\)"),
        (QUERIES, np.ones((2, 12, 2)), ValueError, "are for 2 queries, got 3 queries"),
        (QUERIES[0], np.ones((3, 12, 2)), ValueError, "are for 3 queries, got a single query"),
        (QUERIES, np.ones(12, int), TypeError, "weights must have dtype float32 or float64"),
        (QUERIES, np.full(12, np.nan), ValueError, "every weight must be finite, got nan"),
    ],
)
def test_wrong_queries_and_weights_are_refused(
    index: bitweigh.Index, queries: Any, weights: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        index.search_codes(queries, 3, weights=weights)


@given(cases(most_queries=1), settings_to_run())
@settings(max_examples=examples(100), deadline=None)
def test_contributions_add_up_to_the_distance_in_the_order_of_the_definition(
    case: Case, setting: Setting
) -> None:
    costs = case.costs.reshape(-1, case.n_bits, 2)
    if not len(costs):
        return
    index = setting.index(case)
    found = index.search(costs[0], case.k)
    ids = found.ids[found.ids >= 0]
    paid = index.contributions(costs[0], ids)
    assert paid.shape == (len(ids), case.n_bits)
    assert paid.dtype == np.float64
    total = np.zeros(len(ids))
    for first in range(0, case.n_bits, 8):
        group = np.zeros(len(ids))
        for bit in range(first, min(first + 8, case.n_bits)):
            group = group + paid[:, bit]
        total = total + group
    np.testing.assert_array_equal(total, found.distances[: len(ids)])


def test_contributions_follow_the_order_of_the_ids(index: bitweigh.Index) -> None:
    costs = np.arange(24.0).reshape(12, 2)
    ids = [250, 100, 250]
    paid = index.contributions(costs, ids)
    bits = np.unpackbits(index.codes_of(ids), axis=1, count=12)
    np.testing.assert_array_equal(paid, costs[np.arange(12), bits])
    assert index.contributions(costs, []).shape == (0, 12)


def test_contributions_of_unknown_ids_and_wrong_costs_are_refused(index: bitweigh.Index) -> None:
    with pytest.raises(KeyError, match="7"):
        index.contributions(np.ones((12, 2)), [100, 7, 8])
    with pytest.raises(ValueError, match="must be one query"):
        index.contributions(np.ones((2, 12, 2)), [100])
    costs = np.ones((12, 2))
    costs[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"costs\[3, 1\] is inf, every cost must be finite"):
        index.contributions(costs, [100])
