"""Filter objects: the answers of the arguments they were created from, after any change."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from itertools import combinations, islice, product

import numpy as np
import pytest
from cases import Case, Setting, assert_same, cases, settings_to_run
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import Filter, Index, RangeResult
from bitweigh.embeddings import BinaryEmbeddings

SHARES = st.sampled_from([0.0, 0.005, 0.05, 0.1, 0.5, 0.99, 1.0])
SEEDS = st.integers(0, 2**32 - 1)
Argument = dict[str, NDArray[np.int64] | NDArray[np.bool_]]


def argument(rng: np.random.Generator, ids: NDArray[np.int64], share: float) -> Argument:
    """Draw `allow` or `deny`, as ids in any order with others among them, or as flags."""
    name = rng.choice(["allow", "deny"])
    named = ids[rng.random(len(ids)) < share]
    if rng.random() < 0.5:
        flags = np.zeros(rng.integers(0, 3000), np.bool_)
        flags[named[named < len(flags)]] = True
        return {name: flags}
    strangers = rng.integers(-5, 2**62, 3)
    return {name: rng.permutation(np.concatenate([named, named[:2], strangers]))}


def assert_same_range(found: RangeResult, expected: RangeResult) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def removed_some(index: Index, rng: np.random.Generator) -> None:
    share = rng.choice([0.0, 0.1, 0.97])
    index.remove(index.ids[rng.random(len(index)) < share])


@settings(max_examples=examples(300))
@given(cases(), settings_to_run(), SHARES, SEEDS)
def test_a_search_with_a_filter_equals_one_with_its_argument(
    case: Case, setting: Setting, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    index = setting.index(case)
    given_as = argument(rng, index.ids, share)
    removed_some(index, rng)
    kept = index.filter(**given_as)
    keep = np.isin(index.ids, named_by(given_as)) == ("allow" in given_as)
    live = index.ids[keep]
    expected = bitweigh.reference.search(
        index.codes_of(live), case.costs, case.k, ids=live, bitorder=case.bitorder
    )
    how = {"threads": setting.threads, "method": setting.method}
    assert_same(index.search(case.costs, case.k, **how, **given_as), expected)
    for _ in range(2):  # applied, and kept
        assert_same(index.search(case.costs, case.k, **how, filter=kept), expected)


def named_by(given_as: Argument) -> NDArray[np.int64]:
    (array,) = given_as.values()
    return np.flatnonzero(array) if array.dtype == np.bool_ else array


@settings(max_examples=examples(80))
@given(cases(most_queries=1), settings_to_run(), SHARES, SEEDS)
def test_every_search_method_takes_a_filter(
    case: Case, setting: Setting, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    index = setting.index(case)
    given_as = argument(rng, index.ids, share)
    removed_some(index, rng)
    kept = index.filter(**given_as)
    costs = case.costs.reshape(-1, case.n_bits, 2)
    if len(costs) == 0 or len(index) == 0:
        return
    ties = index.search_with_ties(costs, case.k, filter=kept, method=setting.method)
    assert_same_range(ties, index.search_with_ties(costs, case.k, **given_as))
    radius = float(np.median(index.search(costs[0], len(index)).distances))
    within = index.range_search(costs, radius, filter=kept, method=setting.method)
    assert_same_range(within, index.range_search(costs, radius, **given_as))
    assert list(islice(index.iterate(costs[0], filter=kept), 40)) == list(
        islice(index.iterate(costs[0], **given_as), 40)
    )
    query = index.ids[:1]
    assert_same(
        index.search_by_id(query, case.k, filter=kept),
        index.search_by_id(query, case.k, **given_as),
    )


CHANGES: dict[str, Callable[[Index, np.random.Generator], None]] = {
    "add": lambda index, rng: index.add(codes(rng, 40)),
    "add to gaps": lambda index, rng: index.add(
        codes(rng, 20), index.ids.max(initial=0) + 1 + 3 * np.arange(20)
    ),
    "remove": lambda index, rng: removed_some(index, rng),
    "replace": lambda index, rng: index.replace(codes(rng, len(index.ids[:30])), index.ids[:30]),
    "merge": lambda index, rng: index.merge(extra(index, rng)),
    "compact": lambda index, _: index.compact(),
    "build": lambda index, _: index.build(),
    "reset": lambda index, _: index.reset(),
}


def codes(rng: np.random.Generator, n: int) -> NDArray[np.uint8]:
    return rng.integers(0, 256, (n, 2), dtype=np.uint8)


def extra(index: Index, rng: np.random.Generator) -> Index:
    other = Index(16)
    other.add(codes(rng, 10), index.ids.max(initial=0) + 1 + np.arange(10))
    return other


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=8), SHARES, SEEDS)
def test_a_filter_is_never_stale(changes: list[str], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = Index(16)
    index._policy.segment_rows, index._policy.tail_rows = 100, 50
    index.add(codes(rng, 500))
    given_as = argument(rng, np.arange(700), share)
    kept = index.filter(**given_as)
    costs = np.random.default_rng(1).standard_normal((16, 2))
    for change in changes:
        assert_same(index.search(costs, 30, filter=kept), index.search(costs, 30, **given_as))
        CHANGES[change](index, rng)
        assert_same(index.search(costs, 30, filter=kept), index.search(costs, 30, **given_as))


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from("&|~"), SHARES), max_size=5), SHARES, SEEDS)
def test_combined_filters_are_combined_sets(
    steps: list[tuple[str, float]], share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    everything = np.concatenate([np.arange(1000), [5000, 2**40]])
    index = Index(16)
    index.add(codes(rng, len(everything)), everything)
    costs = np.zeros((16, 2))

    def drawn(share: float) -> tuple[Filter, set[int]]:
        given_as = argument(rng, everything, share)
        named = set(named_by(given_as).tolist()) & set(everything.tolist())
        allowed = named if "allow" in given_as else set(everything.tolist()) - named
        return Filter(**given_as), allowed

    combined, expected = drawn(share)
    for operator, other_share in steps:
        other, other_ids = drawn(other_share)
        if operator == "&":
            combined, expected = combined & other, expected & other_ids
        elif operator == "|":
            combined, expected = combined | other, expected | other_ids
        else:
            combined, expected = ~combined, set(everything.tolist()) - expected
        found = index.search(costs, len(everything), filter=combined).ids
        assert found[found >= 0].tolist() == sorted(expected)


def test_small_filters_are_combined_as_small_sets() -> None:
    # Sets of few and of large ids are kept as ids, others as flags.
    everything = [0, 1, 2, 30, 31]
    index = Index(8)
    index.add(np.zeros((5, 1), np.uint8), everything)
    subsets = [list(chosen) for n in range(6) for chosen in combinations(everything, n)]
    drawn = [(Filter(allow=chosen), set(chosen)) for chosen in subsets]
    drawn += [(Filter(deny=chosen), set(everything) - set(chosen)) for chosen in subsets]
    for (first, first_ids), (second, second_ids) in product(drawn, drawn):
        for combined, expected in (
            (first & second, first_ids & second_ids),
            (first | second, first_ids | second_ids),
        ):
            found = index.search(np.zeros((8, 2)), 5, filter=combined).ids
            assert found[found >= 0].tolist() == sorted(expected)


def random_index(n: int = 40_000) -> tuple[Index, NDArray[np.float64]]:
    rng = np.random.default_rng(2)
    index = Index(64)
    index.add(rng.integers(0, 256, (n, 8), dtype=np.uint8))
    return index, rng.standard_normal((64, 2))


def looked_at(index: Index, costs: NDArray[np.float64], kept: Filter) -> dict[str, int]:
    stats = index.search(costs, 3, filter=kept, stats=True, method="scan").stats
    assert stats is not None
    return {"scored": int(stats.rows_scored_directly), "scanned": int(stats.rows_scanned)}


def test_few_ids_are_scored_directly() -> None:
    index, costs = random_index()
    kept = index.filter(allow=np.arange(0, 40_000, 400))
    assert looked_at(index, costs, kept) == {"scored": 100, "scanned": 0}


def test_more_ids_are_scanned_without_the_rows_between_them() -> None:
    index, costs = random_index()
    kept = index.filter(allow=np.arange(0, 40_000, 20))
    rows = looked_at(index, costs, kept)
    assert rows["scanned"] <= 2000 + 32
    assert rows["scored"] <= 2000 + 32


def test_many_ids_are_a_mask_over_all_rows() -> None:
    index, costs = random_index()
    kept = index.filter(allow=np.arange(0, 40_000, 2))
    assert looked_at(index, costs, kept)["scanned"] == 40_000


def test_rows_of_segments_without_allowed_ones_are_not_read() -> None:
    rng = np.random.default_rng(3)
    index = Index(64)
    index._policy.segment_rows, index._policy.tail_rows = 1000, 500
    for _ in range(10):
        index.add(rng.integers(0, 256, (1000, 8), dtype=np.uint8))
    kept = index.filter(allow=np.arange(9000, 10_000))
    assert looked_at(index, rng.standard_normal((64, 2)), kept)["scanned"] <= 1000


def test_a_filter_works_with_any_index() -> None:
    first, costs = random_index(2000)
    second = Index(64)
    second.add(first.codes_of(np.arange(100)), ids=np.arange(50, 150))
    kept = Filter(allow=np.arange(40, 60))
    for _ in range(2):
        for index in (first, second):
            allowed = index.search(costs, 30, allow=np.arange(40, 60))
            assert_same(index.search(costs, 30, filter=kept), allowed)


def test_threads_search_with_a_filter_while_the_index_changes() -> None:
    rng = np.random.default_rng(4)
    index = Index(16)
    index._policy.segment_rows, index._policy.tail_rows = 200, 100
    index.add(codes(rng, 1000))
    kept = index.filter(allow=np.arange(0, 100_000, 2))
    costs = rng.standard_normal((16, 2))
    failures: list[object] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            found = index.search(costs, 20, filter=kept, threads=1).ids
            if (found % 2).any() or len(set(found.tolist())) < 20:
                failures.append(found)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        index.add(codes(rng, 30))
        index.remove(rng.choice(index.ids, 25, replace=False))
    done.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_filter_does_not_keep_an_old_state_alive() -> None:
    index, costs = random_index(2000)
    kept = index.filter(deny=[1, 2])
    index.search(costs, 1, filter=kept)
    with_mask = kept.nbytes
    segment = weakref.ref(next(index._state.parts()).segment)
    index.reset()
    gc.collect()
    assert segment() is None
    assert kept.nbytes < with_mask


def test_the_memory_of_a_filter_counts_ids_and_what_was_derived() -> None:
    index, costs = random_index()
    few = index.filter(allow=np.arange(0, 40_000, 400))
    assert few.nbytes == 100 * 8
    index.search(costs, 1, filter=few)
    assert few.nbytes == 100 * 8 + 128 * 8 + 100 * 8  # blocks of 32 codes, and their ids
    half = index.filter(allow=np.arange(0, 40_000, 2))
    assert half.nbytes == 39_999  # flags are smaller than 20,000 ids
    index.search(costs, 1, filter=half)
    assert half.nbytes == 39_999 + 40_000 // 8
    del index
    gc.collect()
    assert half.nbytes == 39_999


def test_later_changes_of_the_array_do_not_change_the_filter() -> None:
    index, _ = random_index(100)
    for array in (np.array([3, 40]), np.arange(10) == 3, np.arange(10) >= 3):
        kept = index.filter(allow=array)
        array[:] = 0
        assert index.search(np.zeros((64, 2)), 1, filter=kept).ids.tolist() == [3]


def test_a_pickled_filter_names_the_same_ids() -> None:
    index, costs = random_index(200)
    kept = index.filter(deny=[5, 7]) & index.filter(allow=np.arange(200) % 2 == 1)
    index.search(costs, 1, filter=kept)
    copy = pickle.loads(pickle.dumps(kept))
    assert_same(index.search(costs, 100, filter=copy), index.search(costs, 100, filter=kept))


def test_the_summary_counts_the_ids() -> None:
    assert repr(Filter(allow=[3, 3, 2**40])) == "<bitweigh.Filter: 2 ids>"
    assert repr(~Filter(allow=[True, False, True])) == "<bitweigh.Filter: all but 2 ids>"


@pytest.mark.parametrize("n", [3, 5000])
@pytest.mark.parametrize("name", ["allow", "deny"])
def test_numbers_that_no_id_can_be_are_ignored(n: int, name: str) -> None:
    index, costs = random_index(50)
    for strange in (np.full(n, -5), np.full(n, 2**64 - 1, np.uint64), np.arange(-n, 1)):
        known = strange[(strange == 0) & (strange < 1)].astype(np.int64)
        expected = index.search(costs, 60, **{name: known})
        assert_same(index.search(costs, 60, **{name: strange}), expected)
        assert_same(index.search(costs, 60, filter=Filter(**{name: strange})), expected)
        both = Filter(**{name: strange}) & Filter(allow=np.ones(10, np.bool_))
        assert_same(
            index.search(costs, 60, filter=both),
            index.search(costs, 60, filter=Filter(**{name: known}) & Filter(allow=range(10))),
        )


def test_vectors_are_filtered_whichever_way_they_are_searched() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((300, 16))
    allow = np.arange(0, 300, 3)
    for rerank in (None, "float32"):
        index = bitweigh.VectorIndex(n_bits=16, hasher="lsh", rerank=rerank).fit(vectors)
        index.add(vectors)
        index.remove(range(10))
        kept = index.filter(allow=allow)
        found = index.search(vectors[:3], 150, filter=kept)
        assert_same(found, index.search(vectors[:3], 150, allow=allow))
        radius = float(found.distances[0, 50])
        within = index.range_search(vectors[:3], radius, filter=kept)
        assert_same_range(within, index.range_search(vectors[:3], radius, allow=allow))
        assert len(within.ids)
        assert not (within.ids % 3).any()


def test_embeddings_are_filtered() -> None:
    rng = np.random.default_rng(6)
    embeddings = BinaryEmbeddings(16)
    embeddings.add(codes(rng, 100))
    query = rng.standard_normal(16)
    kept = embeddings.filter(deny=range(50))
    found = embeddings.search(query, 60, filter=kept)
    expected = embeddings.search(query, 60, deny=range(50))
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_an_explanation_of_a_filtered_search_has_what_that_search_finds() -> None:
    rng = np.random.default_rng(0)
    index = Index(64)
    index.add(rng.integers(0, 256, (500, 8), dtype=np.uint8))
    query = rng.standard_normal((64, 2))
    kept = index.filter(allow=np.arange(0, 500, 7))
    explained = index.explain(query, 5, filter=kept)
    found = index.search(query, 5, filter=kept)
    np.testing.assert_array_equal(explained.found.ids, found.ids)
    np.testing.assert_array_equal(explained.found.distances, found.distances)
    counters = explained.counters
    assert counters["rows_scanned"] + counters["rows_scored_directly"] < 500
    assert "found" not in explained.as_dict()
    assert explained.as_dict()["segments"][0]["rows"] == 500
