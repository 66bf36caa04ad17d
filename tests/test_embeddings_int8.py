"""Embeddings kept as int8: where the range of each dimension comes from, and what is outside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from embedding_cases import rescored, scales_by_hand, scores_by_hand, some_embeddings

from bitweigh.embeddings import BinaryEmbeddings

X = some_embeddings(300)
QUERIES = some_embeddings(5, seed=1)


def test_calibration_fixes_the_range_of_int8_and_larger_values_are_clipped() -> None:
    ranges = np.stack([np.full(3, -1.0), np.full(3, 0.5)])
    embeddings = BinaryEmbeddings(3, rescore="int8", calibration=ranges)
    embeddings.add(np.array([[1.0, -0.5, 1.5], [-1.5, 0.0, 0.25]]))
    kept = embeddings.vectors_of([0, 1]) * 127
    assert np.allclose(kept, [[127, -64, 127], [-127, 0, 32]])
    assert kept.dtype == np.float32


def test_too_few_embeddings_for_a_scale_are_kept_in_float32() -> None:
    embeddings = BinaryEmbeddings(24, rescore="int8")
    embeddings.add(X[:60])
    embeddings.add(X[60:99])
    assert embeddings.vectors_of(range(99)).tobytes() == X[:99].tobytes()
    expected = scores_by_hand(X[:99], QUERIES[0], "float32", np.ones(24))
    found = embeddings.search(QUERIES[0], 99)
    assert found.scores.tobytes() == expected[found.ids].tobytes()


@pytest.mark.parametrize("first", [np.zeros((1, 24)), X[:1] * 1e-6, X[:1]])
def test_a_poor_first_add_does_not_spoil_int8(first: np.ndarray) -> None:
    embeddings = BinaryEmbeddings(24, rescore="int8")
    embeddings.add(first)
    embeddings.add(X)
    scales = scales_by_hand(X)
    assert np.abs(embeddings.vectors_of(range(1, 301)) - X).max() <= scales.max() / 2 * 1.001
    assert embeddings._state.vectors is not None
    assert embeddings._state.vectors.dtype == np.int8


def test_zeros_are_no_calibration_however_many() -> None:
    embeddings = rescored(np.zeros((150, 24)))
    embeddings.add(X[:1])
    assert np.allclose(embeddings.vectors_of([150]), X[:1], atol=0.005)


@pytest.mark.parametrize("sizes", [(40, 50), (40, 260), (260, 40)])
def test_merging_collections_too_small_for_int8_is_like_adding(sizes: tuple[int, int]) -> None:
    left, right = rescored(X[: sizes[0]]), BinaryEmbeddings(24, rescore="int8")
    right.add(X[sizes[0] : sum(sizes)], ids=range(sizes[0], sum(sizes)))
    left.merge(right)
    found = left.range_search(QUERIES[0], -np.inf)
    near = np.argsort(found.ids)
    expected = X[: sum(sizes)].astype(np.float64) @ QUERIES[0]
    assert found.ids[near].tolist() == list(range(sum(sizes)))
    assert np.allclose(found.scores[near], expected, atol=0.1)  # a few are clipped


def test_an_add_far_outside_the_ranges_of_int8_warns() -> None:
    embeddings = rescored(X)
    embeddings.add(X * 1.5)
    with pytest.warns(UserWarning, match=r"\d+ % of the values are .* pass calibration=") as caught:
        embeddings.add(X * 100)
    assert caught[0].filename == __file__
    assert len(embeddings) == 900


def test_a_warning_that_is_an_error_adds_nothing() -> None:
    embeddings = rescored(X)
    with pytest.raises(UserWarning, match="clipped"):  # warnings are errors in tests
        embeddings.add(X * 100)
    assert len(embeddings) == 300
    embeddings.verify()


def test_resetting_forgets_ranges_that_were_not_given() -> None:
    given = BinaryEmbeddings(24, rescore="int8", calibration=X)
    taken = rescored(X)
    for embeddings in (given, taken):
        embeddings.reset()
    with pytest.warns(UserWarning, match="clipped"):
        given.add(X * 100)
    taken.add(X * 100)
    assert np.allclose(taken.vectors_of([5]), X[5] * 100, atol=1)


@pytest.mark.parametrize("n", [1, 200])
def test_int8_refuses_numbers_that_float32_cannot_hold(n: int) -> None:
    large = np.full((n, 24), 1e39)
    with pytest.raises(ValueError, match="embeddings must fit in float32"):
        rescored(large)
    with pytest.raises(ValueError, match="calibration must fit in float32"):
        BinaryEmbeddings(24, rescore="int8", calibration=large)


def test_scales_come_from_all_embeddings_that_there_are_by_then() -> None:
    embeddings = BinaryEmbeddings(24, rescore="int8")
    embeddings.add(X[:60] * 50)
    embeddings.add(X[60:])
    first = X[:60] * 50
    assert np.abs(embeddings.vectors_of(range(60)) - first).max() <= np.abs(first).max() / 253


def test_resetting_keeps_the_ranges_of_a_folder(tmp_path: Path) -> None:
    BinaryEmbeddings(24, rescore="int8", calibration=X).save(tmp_path)
    loaded = BinaryEmbeddings.load(tmp_path)
    loaded.reset()
    with pytest.warns(UserWarning, match="clipped"):
        loaded.add(X * 100)
