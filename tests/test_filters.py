"""Filters: exact among the allowed rows, whichever way they are specified."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from cases import Case, Setting, assert_same, cases, settings_to_run
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import SearchResult


def ids_of(case: Case) -> NDArray[np.int64]:
    return np.arange(len(case.codes)) if case.ids is None else case.ids


def among(case: Case, keep: NDArray[np.bool_], k: int) -> SearchResult:
    """Return the reference's answer for an index of only these rows."""
    return bitweigh.reference.search(
        case.codes[keep], case.costs, k, ids=ids_of(case)[keep], bitorder=case.bitorder
    )


@settings(max_examples=examples(400))
@given(
    cases(),
    settings_to_run(),
    st.sampled_from([0.0, 0.005, 0.1, 0.5, 0.99, 1.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_a_search_equals_the_definition_among_what_is_allowed(
    case: Case, setting: Setting, share: float, deny: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    keep = rng.random(len(case.codes)) < share
    # Named in any order, with ids that the index does not have.
    named = ids_of(case)[~keep if deny else keep]
    named = rng.permutation(np.concatenate([named, [2**60, 2**61]]))
    wanted = {"deny" if deny else "allow": named}
    index = setting.index(case)
    found = index.search(
        case.costs, case.k, threads=setting.threads, method=setting.method, **wanted
    )
    assert_same(found, among(case, keep, case.k))


@settings(max_examples=examples(100))
@given(cases(most_queries=1), settings_to_run(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_range_search_and_iterator_keep_to_what_is_allowed(
    case: Case, setting: Setting, share: float, seed: int
) -> None:
    if len(case.costs) == 0:
        return
    rng = np.random.default_rng(seed)
    keep = rng.random(len(case.codes)) < share
    allow = ids_of(case)[keep]
    index = setting.index(case)
    costs = case.costs if case.costs.ndim == 2 else case.costs[0]
    one = Case(case.n_bits, case.bitorder, case.codes, case.ids, costs, 1)
    n = int(keep.sum())
    expected = among(one, keep, max(1, n))
    radius = expected.distances[n // 2] if n else 0.0
    within = int((expected.distances[:n] <= radius).sum())
    found = index.range_search(costs, radius, allow=allow, method=setting.method)
    np.testing.assert_array_equal(found.ids, expected.ids[:within])
    walked = list(islice(index.iterate(costs, allow=allow), 40))
    assert [own for _, own in walked] == expected.ids[: min(n, 40)].tolist()


def test_booleans_speak_of_the_ids_from_0_on_and_name_no_other() -> None:
    index = bitweigh.Index(8)
    index.add(np.zeros((5, 1), dtype=np.uint8), ids=[0, 1, 2, 3, 100])
    costs = np.ones((8, 2))
    flags = np.array([True, False, True])
    assert index.search(costs, 5, allow=flags).ids.tolist() == [0, 2, -1, -1, -1]
    assert index.search(costs, 5, deny=flags).ids.tolist() == [1, 3, 100, -1, -1]


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.99])
def test_few_blocks_are_read_where_few_rows_are_allowed(share: float) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (40_000, 8), dtype=np.uint8)
    index = bitweigh.Index(64)
    index.add(codes)
    costs = rng.standard_normal((64, 2))
    allow = np.flatnonzero(rng.random(40_000) < share)
    found = index.search(costs, 3, allow=allow, stats=True)
    stats = found.stats
    assert stats is not None
    expected = bitweigh.reference.search(codes[allow], costs, 3, ids=allow)
    assert_same(found, expected)
    looked_at = stats.rows_scanned + stats.rows_scored_directly
    assert looked_at <= 32 * len(allow) if share < 0.01 else looked_at > 0


def test_nothing_allowed_finds_nothing() -> None:
    index = bitweigh.Index(8)
    index.add(np.arange(50, dtype=np.uint8).reshape(-1, 1))
    assert index.search(np.ones((8, 2)), 2, allow=[]).ids.tolist() == [-1, -1]
    assert index.search(np.ones((8, 2)), 2, deny=range(49)).ids.tolist() == [49, -1]


def test_numbers_that_no_id_can_be_are_ignored() -> None:
    index = bitweigh.Index(8)
    index.add(np.zeros((3, 1), dtype=np.uint8))
    huge = np.array([1, 2**64 - 1], dtype=np.uint64)
    assert index.search(np.ones((8, 2)), 2, allow=huge).ids.tolist() == [1, -1]
    assert index.search(np.ones((8, 2)), 2, deny=[-5, 0]).ids.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["allow", "deny"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_flags_equal_the_ids_that_they_name(name: str, shuffled: bool) -> None:
    rng = np.random.default_rng(5)
    ids = np.arange(7, 3007)
    index = bitweigh.Index(8)
    index.add(np.zeros((3000, 1), np.uint8), rng.permutation(ids) if shuffled else ids)
    index.remove(ids[100:200])
    flags = rng.random(2000) < 0.3
    costs = np.ones((8, 2))
    by_flags = index.search(costs, 3000, **{name: flags})
    assert_same(by_flags, index.search(costs, 3000, **{name: np.flatnonzero(flags)}))
    # A strided view of other memory.
    assert_same(by_flags, index.search(costs, 3000, **{name: np.repeat(flags, 2)[::2]}))


def test_a_removed_row_is_not_allowed_again() -> None:
    index = bitweigh.Index(8)
    index.add(np.zeros((500, 1), dtype=np.uint8))
    index.remove([3, 400])
    assert index.search(np.ones((8, 2)), 3, allow=[3, 4, 400]).ids.tolist() == [4, -1, -1]
    flags = np.zeros(500, dtype=np.bool_)
    flags[[3, 4, 400]] = True
    assert index.search(np.ones((8, 2)), 3, allow=flags).ids.tolist() == [4, -1, -1]
    assert index.search(np.ones((8, 2)), 500, deny=~flags).ids.tolist() == [4] + [-1] * 499
