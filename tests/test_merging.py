"""`bitweigh.merge`: results of shards are merged into the result of one index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, assert_same, cases
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import bitweigh
from bitweigh import RangeResult, ScoredResult, SearchResult

INF = np.inf


def shards_of(case: Case, n_shards: int, seed: int) -> list[bitweigh.Index]:
    """Return indexes that have the rows of the case between them, some perhaps none."""
    ids = np.arange(len(case.codes)) if case.ids is None else case.ids
    owner = np.random.default_rng(seed).integers(0, n_shards, len(ids))
    shards = []
    for number in range(n_shards):
        shard = bitweigh.Index(case.n_bits, bitorder=case.bitorder)
        shard.add(case.codes[owner == number], ids[owner == number])
        shards.append(shard)
    return shards


@given(cases(), st.integers(1, 5), st.integers(0, 2**32 - 1), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_merged_shards_answer_as_one_index(
    case: Case, n_shards: int, seed: int, data: st.DataObject
) -> None:
    more = data.draw(st.lists(st.integers(0, 3), min_size=n_shards, max_size=n_shards))
    found = [
        shard.search(case.costs, case.k + extra)
        for shard, extra in zip(shards_of(case, n_shards, seed), more, strict=True)
    ]
    assert_same(bitweigh.merge(found, case.k), case.reference())


@given(cases(), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(150), deadline=None)
def test_merged_ranges_are_those_of_one_index(case: Case, n_shards: int, seed: int) -> None:
    (whole,) = shards_of(case, 1, 0)
    radius = float(np.median(whole.search(case.costs, case.k).distances)) if case.costs.size else 0
    found = [shard.range_search(case.costs, radius) for shard in shards_of(case, n_shards, seed)]
    expected = whole.range_search(case.costs, radius)
    for ours, theirs in zip(bitweigh.merge(found), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_merged_scores_are_those_of_one_collection() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (50, 2), dtype=np.uint8)
    queries = rng.integers(-2, 3, (4, 16)).astype(np.float32)
    whole, *shards = (bitweigh.BinaryEmbeddings(dim=16) for _ in range(3))
    whole.add(codes)
    for number, shard in enumerate(shards):
        shard.add(codes[number::2], ids=range(number, 50, 2))
    merged = bitweigh.merge([shard.search(queries, 30) for shard in shards], 30)
    assert isinstance(merged, ScoredResult)
    for ours, theirs in zip(merged, whole.search(queries, 30), strict=True):
        np.testing.assert_array_equal(ours.view(np.int64), theirs.view(np.int64))


def result(distances: list[Any], ids: list[Any]) -> SearchResult:
    return SearchResult(np.array(distances, float), np.array(ids, np.int64))


def test_k_beyond_all_rows_is_padded() -> None:
    merged = bitweigh.merge([result([1, INF], [5, -1]), result([0, INF], [7, -1])], 6)
    assert merged.ids.tolist() == [7, 5, -1, -1, -1, -1]
    assert merged.distances.tolist() == [0, 1, INF, INF, INF, INF]


def test_a_result_that_may_lack_neighbours_is_refused() -> None:
    short = result([[1, 2], [1, INF]], [[5, 6], [5, -1]])
    with pytest.raises(ValueError, match=r"results\[1\] has 2 neighbours .* at least k=3"):
        bitweigh.merge([result([[1, 2, 3]] * 2, [[1, 2, 3]] * 2), short], 3)
    assert bitweigh.merge([short], 2).ids.tolist() == [[5, 6], [5, -1]]


def test_an_id_that_occurs_twice_for_a_query_is_refused() -> None:
    one, other = result([[1], [1]], [[5], [6]]), result([[3], [2]], [[7], [6]])
    with pytest.raises(ValueError, match="without common ids, but 6 occurs twice for query 1"):
        bitweigh.merge([one, other], 1)
    lims = np.array([0, 1, 2])
    ranges = [RangeResult(lims, found.distances[:, 0], found.ids[:, 0]) for found in (one, other)]
    with pytest.raises(ValueError, match="without common ids, but 6 occurs twice for query 1"):
        bitweigh.merge(ranges)


def test_the_same_id_may_occur_for_different_queries() -> None:
    one, other = result([[1], [1]], [[5], [6]]), result([[3], [0]], [[6], [5]])
    assert bitweigh.merge([one, other], 1).ids.tolist() == [[5], [5]]


def test_the_order_of_the_results_does_not_matter() -> None:
    one, other = result([1, 1], [9, 12]), result([1, 1], [3, 10])
    for found in ([one, other], [other, one]):
        assert bitweigh.merge(found, 2).ids.tolist() == [3, 9]


@pytest.mark.parametrize(
    ("results", "k", "error", "message"),
    [
        ([], 1, ValueError, "at least one result"),
        ([(1, 2)], 1, TypeError, "results of searches, got tuple"),
        ([result([1], [1])], None, TypeError, "k must be given"),
        ([result([1], [1])], 0, ValueError, "k must be from 1"),
        ([result([1], [1]), result([[1]], [[2]])], 1, ValueError, r"got \(1,\), \(1, 1\)"),
        ([result([[1]], [[1]]), result([[1]] * 2, [[2]] * 2)], 1, ValueError, "the same queries"),
        ([result([1], [1, 2])], 1, ValueError, "as many ids as distances"),
        ([RangeResult(np.zeros(2, np.int64), np.empty(0), np.empty(0, np.int64))], 1, ValueError,
         "k must not be given for range results"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused(
    results: Any, k: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bitweigh.merge(results, k)


def test_results_of_different_kinds_or_queries_are_refused() -> None:
    empty = RangeResult(np.zeros(2, np.int64), np.empty(0), np.empty(0, np.int64))
    more = RangeResult(np.zeros(3, np.int64), np.empty(0), np.empty(0, np.int64))
    with pytest.raises(TypeError, match="of one class, got SearchResult and RangeResult"):
        bitweigh.merge([result([1], [1]), empty], 1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="the same queries, got 1, 2 queries"):
        bitweigh.merge([empty, more])
