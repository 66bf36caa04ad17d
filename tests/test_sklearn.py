"""The scikit-learn estimator: scikit-learn's checks and conventions, and exact answers."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import bitweigh
import bitweigh.sklearn
from bitweigh.hashers import ITQ, LSH, Sign
from bitweigh.sklearn import WeightedHashNeighbors
from bitweigh.weighers import Asym, Wh

# scikit-learn's checks that cannot pass, by name, each with the reason. None.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}
# Checks that skip themselves: this one compares array libraries if SCIPY_ARRAY_API is set.
SKIPPED_CHECKS = {"check_array_api_input"}


def vectors(n: int, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 1.0).astype(np.float32)


def all_distances(fitted: WeightedHashNeighbors, queries: np.ndarray) -> np.ndarray:
    """Return the reference distance of every fitted row to every query."""
    costs = fitted.weigher_.costs(fitted.hasher_.project(queries))
    codes = fitted.index_.codes_of(fitted.index_.ids)
    return bitweigh.reference.distances(codes, costs, bitorder=fitted.hasher_.bitorder)


def nearest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows


ESTIMATORS = [
    WeightedHashNeighbors(hasher="lsh", n_bits=20),
    WeightedHashNeighbors(n_bits=9, weigher="wh"),
    WeightedHashNeighbors(hasher="sign", weigher="inner_product"),
    WeightedHashNeighbors(hasher=Sign(threshold="median"), weigher=Asym("lower_bound")),
    WeightedHashNeighbors(hasher=LSH(33, bitorder="little", seed=3), weigher=Wh(n_neighbours=2)),
]


@pytest.mark.parametrize(
    "estimator",
    [
        WeightedHashNeighbors(),
        WeightedHashNeighbors(hasher="sign", weigher="inner_product"),
        WeightedHashNeighbors(hasher=LSH(12), weigher=Asym("lower_bound"), n_jobs=2),
        WeightedHashNeighbors(hasher=LSH(12), rerank="float32"),
    ],
    ids=repr,
)
def test_scikit_learns_own_checks_pass(estimator: WeightedHashNeighbors) -> None:
    results = check_estimator(
        estimator, expected_failed_checks=EXPECTED_FAILED_CHECKS, on_skip=None
    )
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= SKIPPED_CHECKS
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILED_CHECKS)
    assert len(results) > 40


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_kneighbors_are_the_nearest_by_the_definition(estimator: WeightedHashNeighbors) -> None:
    fitted = clone(estimator).fit(vectors(400))
    queries = vectors(30, seed=1)
    distances, rows = fitted.kneighbors(queries, n_neighbors=11)
    expected, expected_rows = nearest(all_distances(fitted, queries), 11)
    assert np.array_equal(rows, expected_rows)
    assert np.array_equal(distances, expected)
    assert (distances.dtype, rows.dtype) == (np.float64, np.int64)
    assert np.array_equal(fitted.kneighbors(queries, 11, return_distance=False), rows)
    assert fitted.kneighbors(queries)[1].shape == (30, 5)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_without_queries_no_row_is_its_own_neighbour(estimator: WeightedHashNeighbors) -> None:
    rows = np.concatenate([vectors(150), np.tile(vectors(1), (12, 1))])
    fitted = clone(estimator).fit(rows)
    all_pairs = all_distances(fitted, rows)
    np.fill_diagonal(all_pairs, np.inf)
    expected, expected_rows = nearest(all_pairs, 4)
    distances, found = fitted.kneighbors(n_neighbors=4)
    assert np.array_equal(found, expected_rows)
    assert np.array_equal(distances, expected)


def test_rows_that_are_not_among_their_own_nearest_lose_none_of_them() -> None:
    # So skewed that many values are nearer to the mean of the other bit than to that of theirs.
    rows = np.random.default_rng(0).exponential(size=(150, 12)) ** 3 - 0.2
    fitted = WeightedHashNeighbors(hasher="sign").fit(rows)
    found = fitted.kneighbors(rows, n_neighbors=5, return_distance=False)
    assert 0 < (found != np.arange(150)[:, np.newaxis]).all(axis=1).sum() < 150
    all_pairs = all_distances(fitted, rows)
    np.fill_diagonal(all_pairs, np.inf)
    assert np.array_equal(fitted.kneighbors(n_neighbors=4)[1], nearest(all_pairs, 4)[1])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_radius_neighbours_include_the_radius_itself(estimator: WeightedHashNeighbors) -> None:
    fitted = clone(estimator).fit(vectors(200))
    queries = vectors(10, seed=2)
    by_definition = all_distances(fitted, queries)
    radius = float(np.sort(by_definition[0])[6])  # the distance of a row
    distances, rows = fitted.radius_neighbors(queries, radius, sort_results=True)
    for own, found, all_own in zip(distances, rows, by_definition, strict=True):
        within = np.flatnonzero(all_own <= radius)
        expected = within[np.argsort(all_own[within], kind="stable")]
        assert found.tolist() == expected.tolist()
        assert np.array_equal(own, all_own[expected])
    assert len(rows[0]) >= 7


def test_radius_neighbours_without_queries_leave_each_row_out() -> None:
    rows = np.tile(vectors(4), (3, 1))
    fitted = WeightedHashNeighbors(hasher="lsh", n_bits=20, radius=1e9).fit(rows)
    distances, found = fitted.radius_neighbors()
    for row, own in enumerate(found):
        assert sorted(own) == [other for other in range(12) if other != row]
    assert [len(own) for own in distances] == [11] * 12
    only = fitted.radius_neighbors(return_distance=False)
    assert [own.tolist() for own in only] == [own.tolist() for own in found]
    assert [len(own) for own in fitted.radius_neighbors(rows, return_distance=False)] == [12] * 12


def test_radius_neighbours_are_in_arrays_like_scikit_learns() -> None:
    rows = vectors(30)
    own = WeightedHashNeighbors(radius=-1.0).fit(rows).radius_neighbors(rows[:2])
    theirs = NearestNeighbors(radius=0.0).fit(rows).radius_neighbors(rows[:2] + 1)
    for mine, other in zip(own, theirs, strict=True):
        assert mine.shape == other.shape == (2,)
        assert mine.dtype == other.dtype == object
        assert mine[0].dtype == other[0].dtype
        assert mine[0].shape == other[0].shape == (0,)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_with_rerank_neighbours_and_distances_are_those_of_scikit_learn(metric: Any) -> None:
    rows, queries = vectors(90), vectors(7, seed=1)  # fewer rows than the candidates for k = 9
    own = WeightedHashNeighbors(9, metric=metric, rerank="float32").fit(rows)
    theirs = NearestNeighbors(n_neighbors=9, metric=metric, algorithm="brute").fit(rows)
    for asked in (queries, None):
        distances, found = own.kneighbors(asked)
        expected_distances, expected = theirs.kneighbors(asked)
        assert np.array_equal(found, expected)
        np.testing.assert_allclose(distances, expected_distances, rtol=1e-4, atol=1e-6)
    radius = float(np.median(own.kneighbors(queries)[0]))
    within = own.radius_neighbors(queries, radius, return_distance=False)
    expected = theirs.radius_neighbors(queries, radius * (1 + 1e-6), return_distance=False)
    assert [sorted(one) for one in within] == [sorted(one) for one in expected]
    assert sum(map(len, within)) > 20


@pytest.mark.parametrize("rerank", [None, "float16"])
@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))]
)
def test_what_was_fitted_can_be_copied_and_pickled(rerank: Any, make: Any) -> None:
    rows = vectors(60)
    fitted = WeightedHashNeighbors(rerank=rerank).fit(rows)
    again = make(fitted)
    for one, other in zip(fitted.kneighbors(), again.kneighbors(), strict=True):
        assert np.array_equal(one, other)
    fitted.fit(vectors(30, 5))
    assert again.kneighbors(rows)[1].shape == (60, 5)


def test_the_defaults_are_those_of_a_vector_index() -> None:
    estimator = inspect.signature(WeightedHashNeighbors).parameters
    index = inspect.signature(bitweigh.VectorIndex).parameters
    for name in ("n_bits", "hasher", "weigher", "metric", "rerank"):
        assert estimator[name].default == index[name].default


def test_more_neighbours_than_rows_are_refused_as_by_scikit_learn() -> None:
    rows = vectors(6)
    own, theirs = WeightedHashNeighbors().fit(rows), NearestNeighbors().fit(rows)
    for queries, n_neighbors in ((rows[:2], 7), (None, 6)):
        messages = []
        for estimator in (own, theirs):
            with pytest.raises(ValueError, match="Expected n_neighbors") as caught:
                estimator.kneighbors(queries, n_neighbors)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    assert own.kneighbors(rows[:2], 6)[1].shape == (2, 6)
    assert own.kneighbors(None, 5)[1].shape == (6, 5)


@pytest.mark.parametrize(
    ("n_neighbors", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)]
)
def test_numbers_of_neighbours_that_make_no_sense_are_refused(
    n_neighbors: Any, error: type[Exception]
) -> None:
    rows = vectors(10)
    with pytest.raises(error, match="n_neighbors"):
        WeightedHashNeighbors().fit(rows).kneighbors(rows, n_neighbors)
    with pytest.raises(error, match="n_neighbors"):
        WeightedHashNeighbors(n_neighbors=n_neighbors).fit(rows)


def test_the_graph_has_ones_or_distances_where_there_are_neighbours() -> None:
    rows = vectors(60)
    fitted = WeightedHashNeighbors(n_neighbors=4).fit(rows)
    distances, found = fitted.kneighbors(rows[:7])
    for mode, values in (("connectivity", np.ones_like(distances)), ("distance", distances)):
        graph = fitted.kneighbors_graph(rows[:7], mode=mode)
        assert isinstance(graph, csr_matrix)
        assert graph.shape == (7, 60)
        expected = np.zeros((7, 60))
        np.put_along_axis(expected, found, values, axis=1)
        assert np.array_equal(graph.toarray(), expected)
    assert not fitted.kneighbors_graph().diagonal().any()
    with pytest.raises(ValueError, match="mode must be 'connectivity' or 'distance', got 'both'"):
        fitted.kneighbors_graph(rows, mode="both")


def test_the_graph_of_transform_has_one_neighbour_more_as_scikit_learns() -> None:
    rows = vectors(40)
    own = WeightedHashNeighbors(n_neighbors=3).fit_transform(rows)
    theirs = KNeighborsTransformer(n_neighbors=3).fit_transform(rows)
    assert own.shape == theirs.shape == (40, 40)
    assert np.array_equal(np.diff(own.indptr), np.diff(theirs.indptr))
    names = WeightedHashNeighbors().fit(rows).get_feature_names_out()
    assert names[-1] == "weightedhashneighbors39"
    assert len(names) == 40


def test_it_can_stand_before_a_classifier_of_precomputed_distances() -> None:
    images, labels = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    pipeline = make_pipeline(
        WeightedHashNeighbors(n_neighbors=5),
        KNeighborsClassifier(n_neighbors=5, metric="precomputed"),
    ).fit(images[train], labels[train])
    predicted = pipeline.predict(images[test])
    rows = pipeline[0].kneighbors(images[test], return_distance=False)
    votes = [np.bincount(labels[train][own], minlength=10).argmax() for own in rows]
    assert np.array_equal(predicted, votes)
    assert np.mean(predicted == labels[test]) > 0.9


def test_negative_distances_are_refused_as_precomputed_ones() -> None:
    rows = vectors(50)
    pipeline = make_pipeline(
        WeightedHashNeighbors(weigher="inner_product"),
        KNeighborsClassifier(n_neighbors=2, metric="precomputed"),
    )
    with pytest.raises(ValueError, match="Negative values"):
        pipeline.fit(rows, np.arange(50) % 2)


@pytest.mark.parametrize("weigher", ["asym", "wh"])
def test_distances_of_the_other_weighers_are_never_negative(weigher: Any) -> None:
    rows = vectors(100)
    assert WeightedHashNeighbors(weigher=weigher).fit_transform(rows).data.min() >= 0


def test_the_inner_product_is_that_of_the_projections_with_the_bits() -> None:
    rows = vectors(50)
    fitted = WeightedHashNeighbors(hasher=Sign(threshold="median"), weigher="inner_product").fit(
        rows
    )
    distances, found = fitted.kneighbors(rows[:3])
    centred = rows.astype(np.float64) - np.median(rows.astype(np.float64), axis=0)
    products = centred[:3] @ (centred > 0).T
    np.testing.assert_allclose(-distances, np.take_along_axis(products, found, axis=1))


def test_many_queries_are_searched_for_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = vectors(70)
    fitted = WeightedHashNeighbors(hasher="lsh", n_bits=20, radius=1e9).fit(rows)
    whole = [*fitted.kneighbors(), *fitted.kneighbors(rows), *fitted.radius_neighbors()]
    monkeypatch.setattr("bitweigh.hashers._vectors.BLOCK_VALUES", 20 * 16)
    parts = [*fitted.kneighbors(), *fitted.kneighbors(rows), *fitted.radius_neighbors()]
    for one, other in zip(whole, parts, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_jobs_are_threads_that_change_nothing() -> None:
    rows = vectors(300)
    asked = []
    fitted = WeightedHashNeighbors().fit(rows)
    for n_jobs in (None, 1, 2, -1):
        fitted.set_params(n_jobs=n_jobs)
        asked.append(fitted._threads())
        assert np.array_equal(
            fitted.kneighbors()[1], WeightedHashNeighbors().fit(rows).kneighbors()[1]
        )
    assert asked[:3] == [1, 1, 2]
    assert asked[3] >= 1


def test_the_random_state_draws_the_hasher() -> None:
    rows = vectors(50)

    def projection(random_state: Any) -> np.ndarray:
        estimator = WeightedHashNeighbors(hasher="lsh", random_state=random_state)
        return estimator.fit(rows).hasher_.projection_

    assert np.array_equal(projection(5), LSH(128, seed=5).fit(rows).projection_)
    assert not np.array_equal(projection(5), projection(6))
    state = np.random.RandomState(1)
    assert not np.array_equal(projection(state), projection(state))


def test_wh_looks_for_neighbours_among_the_vectors_themselves() -> None:
    rows = vectors(200)
    fitted = WeightedHashNeighbors(n_bits=9, hasher="lsh", weigher="wh", random_state=3).fit(rows)
    expected = Wh(seed=3).fit(LSH(9, seed=3).fit(rows).project(rows), vectors=rows)
    assert np.array_equal(fitted.weigher_.sigmas_, expected.sigmas_)


def test_parameters_of_a_hasher_can_be_searched_over() -> None:
    estimator = WeightedHashNeighbors(hasher=ITQ(4), weigher=Asym())
    estimator.set_params(hasher__n_bits=8, weigher__variant="lower_bound")
    fitted = estimator.fit(vectors(60))
    assert fitted.hasher_.n_bits_ == 8
    assert fitted.weigher_.variant == "lower_bound"
    assert not hasattr(estimator.hasher, "n_bits_")


def test_wrong_parameters_are_refused_by_fit() -> None:
    rows = vectors(20)
    for parameters, message in (
        (
            {"hasher": "md5"},
            "hasher must be 'itq', 'lsh', 'sign', 'scalar', 'levels', 'auto' or a hasher, got "
            "'md5'",
        ),
        (
            {"weigher": "bm25"},
            "weigher must be 'asym', 'wh', 'inner_product', 'decoded' or a weigher, got 'bm25'",
        ),
        ({"n_bits": 64}, "ITQ has at most one bit per feature, got n_bits=64"),
        ({"n_bits": 9, "hasher": LSH(8)}, r"n_bits=9 contradicts LSH\(n_bits=8\)"),
        ({"metric": "dot"}, "metric must be 'euclidean' or 'cosine' or 'inner_product', got 'dot'"),
        ({"rerank": "int8"}, "rerank must be 'float16' or 'float32', got 'int8'"),
    ):
        with pytest.raises(ValueError, match=message):
            WeightedHashNeighbors(**parameters).fit(rows)


def test_searching_before_fitting_is_refused() -> None:
    for name in ("kneighbors", "radius_neighbors", "kneighbors_graph", "transform"):
        with pytest.raises(NotFittedError):
            getattr(WeightedHashNeighbors(), name)(vectors(3))


def test_sorting_needs_distances_as_it_does_in_scikit_learn() -> None:
    fitted = WeightedHashNeighbors().fit(vectors(10))
    with pytest.raises(ValueError, match="return_distance must be True if sort_results is True"):
        fitted.radius_neighbors(return_distance=False, sort_results=True)


def test_without_scikit_learn_importing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    spec = importlib.util.spec_from_file_location("second_copy", bitweigh.sklearn.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"pip install 'bitweigh\[sklearn\]'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.parametrize("queries", [None, vectors(7, seed=1)])
def test_the_graph_within_a_radius_has_the_neighbours_within_it(queries: Any) -> None:
    data = vectors(80)
    neighbours = WeightedHashNeighbors(random_state=0).fit(data)
    neighbours.radius = float(np.median(neighbours.kneighbors(data, 9)[0]))
    distances, rows = neighbours.radius_neighbors(queries)
    graph = neighbours.radius_neighbors_graph(queries, mode="distance", sort_results=True)
    ones = neighbours.radius_neighbors_graph(queries)
    assert graph.shape == ones.shape == (len(rows), len(data))
    assert graph.nnz == sum(map(len, rows)) > 0
    assert (ones.data == 1).all()
    for query, (near, found) in enumerate(zip(distances, rows, strict=True)):
        np.testing.assert_array_equal(graph[query].indices, found)
        np.testing.assert_array_equal(graph[query].data, near)
        np.testing.assert_array_equal(ones[query].indices, found)


def test_a_wrong_mode_of_a_graph_is_refused_before_searching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    neighbours = WeightedHashNeighbors().fit(vectors(30))
    monkeypatch.setattr(neighbours, "_vectors", None)
    for graph in (neighbours.kneighbors_graph, neighbours.radius_neighbors_graph):
        with pytest.raises(ValueError, match="mode must be 'connectivity' or 'distance'"):
            graph(mode="both")
    with pytest.raises(ValueError, match="mode must be 'distance' if sort_results"):
        neighbours.radius_neighbors_graph(sort_results=True)
