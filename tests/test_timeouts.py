"""The argument `timeout` of searches: an answer that is right, or `DeadlineError`."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import Case, Setting, assert_same, cases, settings_to_run
from effort import examples
from hypothesis import given, settings

import bitweigh
from bitweigh import _core
from bitweigh.embeddings import quantize

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (300_000, 8), dtype=np.uint8)
COSTS = RNG.standard_normal((40, 64, 2))
VECTORS = RNG.standard_normal((20_000, 32)).astype(np.float32)


def index_of(codes: np.ndarray[Any, Any] = CODES, build: bool = True) -> bitweigh.Index:
    index = bitweigh.Index(64, build="auto" if build else "manual")
    index.add(codes)
    return index


@pytest.fixture(scope="module")
def index() -> bitweigh.Index:
    return index_of()


@pytest.fixture(scope="module")
def vectors() -> bitweigh.VectorIndex:
    found = bitweigh.VectorIndex(n_bits=32, hasher="lsh", rerank="float32").fit(VECTORS[:1000])
    found.add(VECTORS, ids=RNG.permutation(len(VECTORS)))
    return found


@pytest.fixture(scope="module")
def many() -> bitweigh.VectorIndex:
    """Return an index of so many vectors that sorting all of them takes a while."""
    found = bitweigh.VectorIndex(n_bits=4, hasher="lsh", rerank="float16").fit(VECTORS[:100, :4])
    found.add(np.resize(VECTORS, (700_000, 4)))
    return found


@pytest.fixture(scope="module")
def embeddings() -> bitweigh.BinaryEmbeddings:
    found = bitweigh.BinaryEmbeddings(dim=32)
    found.add(quantize(VECTORS))
    return found


Search = Callable[..., tuple[Any, ...]]


@pytest.fixture
def searches(
    index: bitweigh.Index, vectors: bitweigh.VectorIndex, embeddings: bitweigh.BinaryEmbeddings
) -> dict[str, Search]:
    """Return every kind of search as a function of the timeout."""
    flags = RNG.random(len(CODES)) < 0.5
    many_ids = RNG.permutation(len(CODES))
    wide = RNG.standard_normal((300, 64, 2)).astype(np.float32)
    return {
        "one query": lambda **options: index.search(COSTS[0], 10, **options),
        "a batch": lambda **options: index.search(COSTS, 10, **options),
        "a batch of float32": lambda **options: index.search(wide, 3, **options),
        "two threads": lambda **options: index.search(COSTS, 10, threads=2, **options),
        "a scan": lambda **options: index.search(COSTS, 10, method="scan", **options),
        "bands": lambda **options: index.search(COSTS[:4], 10, method="probe", **options),
        "many neighbours": lambda **options: index.search(COSTS[0], 100_000, **options),
        "by two threads": lambda **options: index.search(COSTS[0], 100_000, threads=2, **options),
        "more than there are": lambda **options: index.search(COSTS[0], 400_000, **options),
        "allowed ids": lambda **options: index.search(COSTS, 10, allow=many_ids, **options),
        "denied flags": lambda **options: index.search(COSTS, 10, deny=flags, **options),
        "ties": lambda **options: index.search_with_ties(COSTS, 10, **options),
        "a radius": lambda **options: index.range_search(COSTS, -40.0, **options),
        "every row": lambda **options: index.range_search(COSTS[0], 1e9, **options),
        "every row, two threads": lambda **options: index.range_search(
            COSTS[0], 1e9, threads=2, **options
        ),
        "every row by bands": lambda **options: index.range_search(
            COSTS[0], 1e9, method="probe", **options
        ),
        "explained": lambda **options: index.explain(COSTS[0], 100_000, **options).found,
        "by id": lambda **options: index.search_by_id(many_ids[:200], 5, **options),
        "reranked": lambda **options: vectors.search(VECTORS[:300], 5, **options),
        "reranked from many": lambda **options: vectors.search(
            VECTORS[:3], 5, rerank_from=15_000, **options
        ),
        "within a distance": lambda **options: vectors.range_search(VECTORS[:5], 5.0, **options),
        "no vector is allowed": lambda **options: vectors.range_search(
            VECTORS[0], 5.0, allow=[], **options
        ),
        "within, by codes": lambda **options: vectors.range_search(
            VECTORS[:5], 9.0, by="codes", **options
        ),
        "embeddings": lambda **options: embeddings.search(VECTORS[:300], 5, **options),
    }


def same(answer: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return all(map(np.array_equal, answer, expected))


def test_a_search_that_has_the_time_answers_as_without_a_timeout(
    searches: dict[str, Search],
) -> None:
    for name, search in searches.items():
        expected = search()
        for timeout in (1000, 1000.0, np.float32(1000), math.inf, 10**400):
            assert same(search(timeout=timeout), expected), name


def test_a_search_with_no_time_raises(searches: dict[str, Search]) -> None:
    for name, search in searches.items():
        with pytest.raises(bitweigh.DeadlineError):
            raise AssertionError(f"{name}: {search(timeout=0)}")


@given(cases(), settings_to_run())
@settings(max_examples=examples(150), deadline=None)
def test_a_timeout_that_suffices_changes_no_answer(case: Case, setting: Setting) -> None:
    index = setting.index(case)
    options: Any = {"threads": setting.threads, "method": setting.method}
    assert_same(index.search(case.costs, case.k, timeout=1000, **options), case.reference())
    radius = float(np.median(case.reference().distances)) if case.costs.size else 0.0
    within = index.range_search(case.costs, radius, timeout=1000, **options)
    assert same(within, index.range_search(case.costs, radius, **options))


def test_random_deadlines_give_the_right_answer_or_an_error(searches: dict[str, Search]) -> None:
    rng = np.random.default_rng(1)
    raised = 0
    for name, search in searches.items():
        expected = search()
        began = time.perf_counter()
        search(timeout=1000)
        took = time.perf_counter() - began
        for timeout in rng.uniform(0, 1.2 * took, 6):
            try:
                assert same(search(timeout=timeout), expected), name
            except bitweigh.DeadlineError:
                raised += 1
    assert raised > len(searches)


def test_deadlines_hold_on_threads_other_than_the_main_one(index: bitweigh.Index) -> None:
    expected = index.search(COSTS, 10)
    began = time.perf_counter()
    index.search(COSTS, 10, threads=1)
    took = time.perf_counter() - began

    def outcome(timeout: float) -> bool:
        assert threading.current_thread() is not threading.main_thread()
        try:
            assert same(index.search(COSTS, 10, threads=1, timeout=timeout), expected)
        except bitweigh.DeadlineError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(outcome, [*np.linspace(0, took, 10), 1000]))
    assert not outcomes[0]
    assert outcomes[-1]


def test_an_index_can_be_searched_after_a_deadline(searches: dict[str, Search]) -> None:
    search = searches["every row by bands"]
    expected = search()
    for timeout in (0, 1e-4, 1e-3):
        with pytest.raises(bitweigh.DeadlineError):
            search(timeout=timeout)
        assert same(search(), expected)


def test_a_deadline_holds_while_vectors_within_a_radius_are_sorted(
    many: bitweigh.VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = VECTORS[0, :4]
    expected = many.range_search(query, np.inf)
    assert same(many.range_search(query, np.inf, timeout=1000), expected)
    sort = _core.sort_found

    def late(distances: Any, ids: Any, ends: Any, deadline: Any) -> None:
        while True:  # until the time is over
            try:
                deadline.check()
            except bitweigh.DeadlineError:
                break
        sort(distances, ids, ends, deadline)
        raise AssertionError("sorted after the deadline")

    monkeypatch.setattr(_core, "sort_found", late)
    with pytest.raises(bitweigh.DeadlineError) as caught:
        many.range_search(query, np.inf, timeout=0.2)
    assert caught.value.seconds_late < 0.05


def test_no_queries_need_no_time(index: bitweigh.Index) -> None:
    assert index.search(np.empty((0, 64, 2)), 3, timeout=0).ids.shape == (0, 3)
    assert len(index.range_search(np.empty((0, 64, 2)), 1, timeout=0).ids) == 0


def test_a_deadline_belongs_to_one_call(index: bitweigh.Index) -> None:
    with pytest.raises(bitweigh.DeadlineError):
        index.search(COSTS, 10, timeout=0)
    index.search(COSTS[0], 10, timeout=1000)
    assert index.search(COSTS, 10).ids.shape == (40, 10)


@pytest.mark.parametrize("timeout", [True, np.True_, "1", [1.0], 1j, np.ones(2)])
def test_a_timeout_that_is_not_a_number_is_a_type_error(
    index: bitweigh.Index,
    vectors: bitweigh.VectorIndex,
    embeddings: bitweigh.BinaryEmbeddings,
    timeout: Any,
) -> None:
    message = "timeout must be a number of seconds or None, got"
    with pytest.raises(TypeError, match=message):
        index.search(COSTS, 1, timeout=timeout)
    with pytest.raises(TypeError, match=message):
        vectors.search(VECTORS[0], 1, timeout=timeout)
    with pytest.raises(TypeError, match=message):
        embeddings.search(VECTORS[0], 1, timeout=timeout)


@pytest.mark.parametrize("timeout", [-1, -1e-9, math.nan, -math.inf, np.float32(-2)])
def test_a_timeout_below_zero_is_a_value_error(index: bitweigh.Index, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be at least 0 seconds, got"):
        index.range_search(COSTS, 1.0, timeout=timeout)


def test_the_error_is_a_timeout_error_that_can_be_pickled(index: bitweigh.Index) -> None:
    with pytest.raises(TimeoutError, match="the search took longer than timeout=0 seconds") as info:
        index.search(COSTS, 10, timeout=0)
    error = info.value
    assert isinstance(error, bitweigh.DeadlineError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.timeout, again.seconds_late) == (0.0, error.seconds_late)
    assert error.seconds_late >= 0
    assert str(again) == str(error)


def test_a_deadline_counts_from_its_beginning() -> None:
    deadline = _core.Deadline(0.02)
    deadline.check()
    time.sleep(0.03)
    with pytest.raises(bitweigh.DeadlineError):
        deadline.check()
