"""Precision, recall, Euclidean truth and times, each compared with a plain definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitweigh import evaluation

SEEDS = st.integers(0, 2**32 - 1)


def top_by_definition(rows: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    wide, own = rows.astype(np.float64), queries.astype(np.float64)
    distances = np.array([((wide - query) ** 2).sum(axis=1) for query in own])
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


@given(SEEDS, st.integers(1, 60), st.integers(1, 5), st.booleans())
def test_the_euclidean_top_is_that_of_the_definition(seed: int, n: int, d: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, d)).astype(np.float32) if ties else rng.standard_normal((n, d))
    queries = rows[rng.integers(0, n, 4)] if ties else rng.standard_normal((4, d))
    k = int(rng.integers(1, n + 1))
    found = evaluation.euclidean_top(rows, queries, k)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, top_by_definition(rows, queries, k))


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_blocks_and_cancelling_digits_change_nothing(offset: float, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal((9000, 7)) + offset).astype(dtype)
    queries = (rng.standard_normal((600, 7)) + offset).astype(dtype)
    found = evaluation.euclidean_top(rows, queries, 20)
    np.testing.assert_array_equal(found, top_by_definition(rows, queries, 20))


def test_bytes_are_vectors_too() -> None:
    rows = np.random.default_rng(2).integers(0, 256, (500, 8)).astype(np.uint8)
    found = evaluation.euclidean_top(rows, rows[:9], 5)
    np.testing.assert_array_equal(found, top_by_definition(rows, rows[:9], 5))


@given(SEEDS)
def test_precision_by_labels_counts_equal_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, own = rng.integers(0, 3, 20), rng.integers(0, 3, 5)
    found = np.array([rng.permutation(20)[:6] for _ in range(5)])
    expected = np.mean([[labels[i] == own[q] for i in found[q]] for q in range(5)])
    assert evaluation.precision_at_k(found, (own, labels)) == pytest.approx(expected)


@given(SEEDS)
def test_precision_and_recall_by_ids_count_shared_ids(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = np.array([rng.permutation(20)[:6] for _ in range(5)])
    truth = np.array([rng.permutation(20)[:8] for _ in range(5)])
    shared = [len(set(a) & set(b)) for a, b in zip(found.tolist(), truth.tolist(), strict=True)]
    assert evaluation.precision_at_k(found, truth) == pytest.approx(np.mean(shared) / 6)
    assert evaluation.recall_at_k(found, truth) == pytest.approx(np.mean(shared) / 8)


def test_recall_by_labels_is_out_of_all_rows_with_the_label() -> None:
    assert evaluation.recall_at_k([[0, 1], [2, 3]], (["a", "b"], ["a", "b", "a", "b"])) == 0.5
    assert evaluation.recall_at_k([[0, 2]], (["a"], ["a", "b", "a", "a", "a"])) == 0.5


def test_padding_is_never_right() -> None:
    assert evaluation.precision_at_k([[0, -1, -1, -1]], ([1], [1])) == 0.25
    assert evaluation.precision_at_k([[0, -1]], [[0, -1]]) == 0.5
    assert evaluation.recall_at_k([[0, -1]], [[0, -1]]) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: evaluation.precision_at_k([[1, 1]], [[1]]),
            ValueError,
            r"\[0\] has the id 1 twice",
        ),
        (lambda: evaluation.precision_at_k([[0.5]], [[1]]), TypeError, "must be integers"),
        (lambda: evaluation.precision_at_k([1], [[1]]), ValueError, r"shape \(nq, k\)"),
        (lambda: evaluation.precision_at_k([[1]], [[1], [2]]), ValueError, "1 rows, got 2"),
        (lambda: evaluation.precision_at_k([[3]], ([1], [1, 2])), ValueError, "has id 3"),
        (
            lambda: evaluation.precision_at_k([[0]], ([1, 2], [1])),
            ValueError,
            "truth must be labels",
        ),
        (lambda: evaluation.precision_at_k(np.empty((0, 3), int), [[1]]), ValueError, "empty"),
        (lambda: evaluation.recall_at_k([[0]], ([5], [1])), ValueError, "query 0 has none"),
        (
            lambda: evaluation.euclidean_top(np.ones((2, 3)), np.ones((1, 2)), 1),
            ValueError,
            "shapes",
        ),
        (
            lambda: evaluation.euclidean_top(np.ones((2, 3)), np.ones((1, 3)), 3),
            ValueError,
            "k must",
        ),
        (lambda: evaluation.euclidean_top([["a"]], [["a"]], 1), TypeError, "real numbers"),
        (lambda: evaluation.euclidean_top([[np.nan]], [[1.0]], 1), ValueError, "X must be finite"),
        (lambda: evaluation.euclidean_top([[1.0]], [[1e200]], 1), ValueError, "queries must be"),
        (lambda: evaluation.speed_up(1.0, 0.0), ValueError, "positive"),
        (lambda: evaluation.time_queries(abs, []), ValueError, "empty"),
        (lambda: evaluation.time_queries(abs, [1], rounds=0), ValueError, "rounds must"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_speed_up_is_the_ratio_to_the_base() -> None:
    assert evaluation.speed_up(6.0, 2.0) == 3.0
    assert np.asarray(evaluation.speed_up([6.0, 8.0], [2.0, 16.0])).tolist() == [3.0, 0.5]


def test_times_are_taken_after_the_warm_up_one_query_at_a_time() -> None:
    calls: list[int] = []
    timing = evaluation.time_queries(calls.append, np.arange(3), warm_up=4, rounds=2)
    assert calls == [0, 1, 2, 0, 0, 1, 2, 0, 1, 2]
    assert timing.n == 6
    assert 0 < timing.best <= timing.p10 <= timing.median <= timing.p90
    assert timing.best <= timing.mean
