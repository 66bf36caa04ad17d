"""VectorIndex finds what its parts find separately, and reranks by true distance."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from vector_cases import DATA, QUERIES, fitted_index, random_rows, same_bytes

import bitweigh
from bitweigh.hashers import ITQ, LSH, Sign
from bitweigh.hashers import _vectors as vectors
from bitweigh.hashers._vectors import unit_rows
from bitweigh.vector_index import VectorIndex
from bitweigh.weighers import Asym, InnerProduct, Wh


def brute_force(
    stored: np.ndarray, ids: np.ndarray, queries: np.ndarray, k: int, metric: str
) -> bitweigh.SearchResult:
    """Return the answer by definition: every distance computed separately, sorted with ids."""
    vectors64 = stored.astype(np.float64)
    distances, found = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
    for number, query in enumerate(queries.astype(np.float64)):
        if metric == "cosine":
            unit = unit_rows(query[np.newaxis])[0]
            lengths = np.sqrt(np.array([(row**2).sum() for row in vectors64]))
            values = np.clip(
                1 - np.array([(row * unit).sum() for row in vectors64]) / lengths, 0, 2
            )
        else:
            values = np.sqrt(np.array([((row - query) ** 2).sum() for row in vectors64]))
        order = np.lexsort((ids, values))[:k]
        distances[number, : len(order)], found[number, : len(order)] = values[order], ids[order]
    return bitweigh.SearchResult(distances, found)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("weigher", ["asym", "wh", "inner_product"])
@pytest.mark.parametrize("hasher", ["itq", "lsh", "sign"])
def test_it_finds_what_index_hasher_and_weigher_find_by_hand(
    hasher: Any, weigher: Any, metric: Any
) -> None:
    learned, queries = DATA, QUERIES.astype(np.float64)
    if metric == "cosine":
        learned = unit_rows(DATA.astype(np.float64)).astype(np.float32)
        queries = unit_rows(queries)
    fitted_hasher = {"itq": ITQ(10, seed=3), "lsh": LSH(10, seed=3), "sign": Sign(seed=3)}[hasher]
    fitted_hasher.fit(learned)
    projected = fitted_hasher.project(learned)
    if weigher == "wh":
        costs = Wh(seed=3).fit(projected, fitted_hasher.thresholds_, vectors=learned)
    else:
        costs = {"asym": Asym(), "inner_product": InnerProduct()}[weigher]
        costs.fit(projected, fitted_hasher.thresholds_)
    expected = bitweigh.Index(fitted_hasher.n_bits_)
    added = DATA if metric == "euclidean" else unit_rows(DATA.astype(np.float64))
    expected.add(fitted_hasher.transform(added))
    bits = None if hasher == "sign" else 10
    index = VectorIndex(n_bits=bits, hasher=hasher, weigher=weigher, metric=metric, seed=3)
    index.fit(DATA).add(DATA)
    query_costs = costs.costs(fitted_hasher.project(queries))
    assert same_bytes(index.search(QUERIES, 7), expected.search(query_costs, 7))
    radii = expected.search(query_costs, 20).distances[:, -1]
    assert same_bytes(index.range_search(QUERIES, radii), expected.range_search(query_costs, radii))


def test_objects_are_taken_for_hasher_and_weigher_and_left_as_they_are() -> None:
    hasher, weigher = LSH(13, bitorder="little"), Asym("lower_bound")
    index = VectorIndex(hasher=hasher, weigher=weigher).fit(DATA)
    index.add(DATA)
    assert (index.index.n_bits, index.index.bitorder) == (13, "little")
    assert not hasattr(hasher, "n_bits_")
    assert not hasattr(weigher, "n_bits_")
    assert type(index.weigher) is Asym
    np.testing.assert_array_equal(index.index.codes_of([5]), index.hasher.transform(DATA[5:6]))


@pytest.mark.parametrize("rerank", [None, "float16"])
def test_one_vector_in_gives_one_answer_out(rerank: Any) -> None:
    index = fitted_index(rerank=rerank)
    many, one = index.search(QUERIES, 4), index.search(QUERIES[3], 4)
    assert one.ids.shape == (4,)
    assert same_bytes((many.distances[3], many.ids[3]), one)
    assert index.search(np.empty((0, 12)), 4).ids.shape == (0, 4)
    assert index.range_search(np.empty((0, 12)), 4.0).lims.tolist() == [0]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("rerank", ["float16", "float32"])
def test_reranking_all_is_brute_force(rerank: Any, metric: Any) -> None:
    index = fitted_index(rerank=rerank, metric=metric)
    kept = DATA if metric == "euclidean" else unit_rows(DATA.astype(np.float64))
    kept = kept.astype(rerank)
    np.testing.assert_array_equal(index.vectors_of(range(600)), kept)
    found = index.search(QUERIES, 25, rerank_from=600)
    assert same_bytes(found, brute_force(kept, np.arange(600), QUERIES, 25, metric))


@given(
    st.integers(1, 40), st.integers(1, 45), st.integers(0, 50), st.integers(0, 2**32 - 1), st.data()
)
@settings(max_examples=60)
def test_reranking_ranks_the_nearest_codes_by_true_distance(
    n: int, k: int, more: int, seed: int, data: st.DataObject
) -> None:
    """Few distinct vectors, so that distances tie; ids in any order."""
    rng = np.random.default_rng(seed)
    own = rng.integers(-2, 3, (n, 3)).astype(np.float32)
    ids = rng.permutation(1000)[:n]
    queries = rng.integers(-2, 3, (2, 3)).astype(np.float32)
    index = VectorIndex(n_bits=4, hasher="lsh", rerank="float32", seed=1).fit(random_rows(50, 3))
    for piece in np.array_split(np.arange(n), data.draw(st.integers(1, 5))):
        index.add(own[piece], ids[piece])
    found = index.search(queries, k, rerank_from=k + more)
    costs = index.weigher.costs(index.hasher.project(queries))
    for number, near in enumerate(index.index.search(costs, k + more).ids):
        places = np.flatnonzero(np.isin(ids, near))
        one = slice(number, number + 1)
        expected = brute_force(own[places], ids[places], queries[one], k, "euclidean")
        assert same_bytes((found.distances[one], found.ids[one]), expected)


def test_ten_candidates_for_each_neighbour_are_ranked_by_default() -> None:
    index = fitted_index(rerank="float32")
    assert same_bytes(index.search(QUERIES, 12), index.search(QUERIES, 12, rerank_from=120))
    assert same_bytes(index.search(QUERIES, 3), index.search(QUERIES, 3, rerank_from=100))


def test_a_reranked_answer_does_not_depend_on_the_batch() -> None:
    index = fitted_index(rerank="float32", metric="cosine")
    many = random_rows(100, seed=4)
    found = index.search(many, 5)
    for number in (0, 57, 99):
        one = index.search(many[number], 5, threads=1)
        assert same_bytes((found.distances[number], found.ids[number]), one)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_streaming_equals_one_batch(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted_index(rerank="float32", metric=metric)
    asked = whole.weigher.costs(whole.hasher.project(_stored_as(QUERIES, metric)))
    radii = np.diagonal(whole.index.search(asked, 9).distances)
    expected = whole.search(QUERIES, 8), whole.range_search(QUERIES, radii)
    pieces = VectorIndex(n_bits=10, hasher="lsh", rerank="float32", metric=metric).fit(DATA)
    monkeypatch.setattr(vectors, "BLOCK_VALUES", 12 * 7)
    pieces.add(DATA[:31])
    pieces.add(DATA[31:])
    np.testing.assert_array_equal(
        pieces.index.codes_of(range(600)), whole.hasher.transform(_stored_as(DATA, metric))
    )
    assert same_bytes(pieces.vectors_of(range(600)), _stored_as(DATA, metric).astype(np.float32))
    found = pieces.search(QUERIES, 8), pieces.range_search(QUERIES, radii)
    assert len(found[1].ids)
    assert same_bytes(found[0], expected[0])
    assert same_bytes(found[1], expected[1])


def _stored_as(given_rows: np.ndarray, metric: str) -> np.ndarray:
    exact = given_rows.astype(np.float64)
    return unit_rows(exact) if metric == "cosine" else exact


def test_removed_and_replaced_vectors_are_neither_found_nor_given() -> None:
    index = fitted_index(rerank="float32")
    assert index.search(DATA[5], 1).ids[0] == 5
    assert index.remove([5, 6]) == 2
    assert index.remove([5, 7], on_missing="ignore") == 1
    index.add(DATA[100:102], ids=[8, 5], on_duplicate="replace")
    np.testing.assert_array_equal(index.vectors_of([5, 8, 9]), DATA[[101, 100, 9]])
    with pytest.raises(KeyError, match="6"):
        index.vectors_of([9, 6])
    with pytest.raises(KeyError, match="7"):
        index.remove([7])
    assert index.search(DATA[101], 2, rerank_from=600).ids.tolist() == [5, 101]
    assert len(index) == 598
    assert index.contains([5, 6]).tolist() == [True, False]
    assert 5 in index
    assert 6 not in index
    assert index.ids[:6].tolist() == [0, 1, 2, 3, 4, 5]
    before = index.search(QUERIES, 20, rerank_from=600)
    index.compact()
    assert index._state is not None
    assert index._state.vectors is not None
    assert index._state.vectors.n_rows == 598
    assert same_bytes(index.search(QUERIES, 20, rerank_from=600), before)


def test_filters_hold_for_candidates_too() -> None:
    index = fitted_index(rerank="float32")
    assert index.search(DATA[5], 1, deny=[5]).ids[0] != 5
    assert index.search(DATA[5], 3, allow=[9, 7]).ids.tolist() in ([7, 9, -1], [9, 7, -1])
    assert index.search(DATA[5], 3, allow=[9, 7]).distances[2] == np.inf


def test_more_neighbours_than_vectors_are_padded() -> None:
    for rerank in (None, "float32"):
        index = VectorIndex(n_bits=10, hasher="lsh", rerank=rerank).fit(DATA)  # type: ignore[arg-type]
        assert index.search(QUERIES, 2).ids.tolist() == [[-1, -1]] * 9
        index.add(DATA[:1])
        assert index.search(QUERIES[0], 2).ids.tolist() == [0, -1]


def test_the_length_of_a_vector_means_nothing_to_the_cosine() -> None:
    index = fitted_index(metric="cosine", rerank="float16")
    found = index.search(QUERIES, 5)
    for scale in (1e-300, 1e300):
        # Their squares underflow or overflow.
        other = index.search(QUERIES.astype(np.float64) * scale, 5)
        np.testing.assert_array_equal(other.ids, found.ids)
    index.add(DATA[:1].astype(np.float64) * 1e200, ids=[1000])
    assert index.search(DATA[0], 2).ids.tolist() == [0, 1000]


def test_what_is_not_fitted_says_so() -> None:
    index = VectorIndex()
    assert len(index) == 0
    assert 3 not in index
    assert "not fitted" in repr(index)
    for call in (
        lambda: index.add(DATA),
        lambda: index.search(QUERIES, 1),
        lambda: index.range_search(QUERIES, 1),
        lambda: index.remove([1]),
        lambda: index.save("nowhere"),
        lambda: index.vectors_of([1]),
        lambda: index.ids,
    ):
        with pytest.raises(NotFittedError, match="VectorIndex is not fitted yet: call fit first"):
            call()


def test_fit_needs_an_empty_index() -> None:
    index = fitted_index()
    with pytest.raises(ValueError, match="fit needs an empty index, but this one has 600 vectors"):
        index.fit(DATA)
    index.remove(index.ids)
    assert index.fit(DATA) is index


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"hasher": "pca"},
            "hasher must be 'itq', 'lsh', 'sign', 'scalar', 'levels', 'auto' or a hasher, got "
            "'pca'",
        ),
        (
            {"weigher": LSH(3)},
            "weigher must be 'asym', 'wh', 'inner_product', 'decoded' or a weigher, got LSH",
        ),
        ({"metric": "dot"}, "metric must be 'euclidean' or 'cosine' or 'inner_product', got 'dot'"),
        ({"rerank": "int8"}, "rerank must be 'float16' or 'float32', got 'int8'"),
        ({"n_bits": 0}, "n_bits must be from 1 to 8192"),
        ({"seed": -1}, "seed must be from 0"),
        ({"band_bits": 0}, "band_bits must be from 1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        VectorIndex(**options)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda index: index.add(DATA[:, :5]), "X has 5 features, but VectorIndex is expecting 12"),
        (lambda index: index.add(DATA[:2], ids=[1]), r"ids must have shape \(2,\), one for each"),
        (lambda index: index.add(DATA[:2], ids=[900, 3]), r"ids\[1\] = 3 is in use"),
        (lambda index: index.add(DATA[:2], ids=[900, 900]), "ids must be distinct"),
        (lambda index: index.add(DATA[:2], on_duplicate="skip"), "on_duplicate must be 'error'"),
        (lambda index: index.add(np.zeros((2, 12))), r"must have no zero vectors.* got X\[0\]"),
        (lambda index: index.search(np.zeros(12), 1), r"must have no zero vectors.* got Q\[0\]"),
        (lambda index: index.search(np.full(12, np.nan), 1), r"got NaN at Q\[0, 0\]"),
        (lambda index: index.search(np.ones(5), 1), "Q has 5 features"),
        (lambda index: index.search(QUERIES, 0), "k must be from 1"),
        (lambda index: index.search(QUERIES, 5, rerank_from=4), "rerank_from must be from 5"),
        (lambda index: index.range_search(QUERIES, [1.0, 2.0]), "radius must be a number"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_changes(change: Any, match: str) -> None:
    index = fitted_index(metric="cosine", rerank="float16")
    before = index.search(QUERIES, 5)
    with pytest.raises(ValueError, match=match):
        change(index)
    assert len(index) == 600
    assert same_bytes(index.search(QUERIES, 5), before)


def test_a_row_that_is_not_finite_is_named_and_none_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "BLOCK_VALUES", 12 * 10)
    index = fitted_index(rerank="float16")
    bad = DATA.copy()
    bad[321, 4] = np.inf
    with pytest.raises(ValueError, match=r"got infinity at X\[321, 4\]"):
        index.add(bad)
    bad[321, 4] = 70_000.0
    with pytest.raises(ValueError, match=r"X must fit in float16, up to 65504.0, see X\[321\]"):
        index.add(bad)
    assert len(index) == 600
    index.add(DATA[:3])
    np.testing.assert_array_equal(index.vectors_of([600, 602]), DATA[[0, 2]].astype(np.float16))


def test_without_vectors_there_are_no_candidates() -> None:
    index = fitted_index()
    with pytest.raises(ValueError, match="rerank_from needs an index that keeps vectors"):
        index.search(QUERIES, 3, rerank_from=30)
    with pytest.raises(ValueError, match="created with rerank="):
        index.vectors_of([1])


def test_a_bar_is_shown_to_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    index = VectorIndex(n_bits=10, hasher="lsh").fit(DATA, progress=True)
    index.add(DATA, progress=True)
    found = index.search(QUERIES, 3, progress=True)
    assert same_bytes(found, index.search(QUERIES, 3))
    shown = capsys.readouterr()
    assert shown.out == ""


def test_without_rich_a_bar_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"pip install 'bitweigh\[cli\]'"):
        VectorIndex(n_bits=10).fit(DATA, progress=True)
