"""The adapter for ann-benchmarks, run as its runner runs it, on files in its layout."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from bitweigh import ann_benchmarks
from bitweigh.ann_benchmarks import Bitweigh, BitweighHamming

K = 10
PAGE = Path(__file__).parent.parent / "docs" / "ann-benchmarks.md"


def distance_rows(metric: str, train: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the runner's distances of one query: Euclidean, 1 - cosine, or share of bits."""
    if metric == "hamming":
        return np.mean(train != query, axis=1)
    rows, query64 = train.astype(np.float64), query.astype(np.float64)
    if metric == "euclidean":
        return np.linalg.norm(rows - query64, axis=1)
    return 1.0 - rows @ query64 / (np.linalg.norm(rows, axis=1) * np.linalg.norm(query64))


def vectors(metric: str, n: int, nq: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    mixing = rng.standard_normal((8, 40))
    rows = rng.standard_normal((n + nq, 8)) @ mixing + 0.1 * rng.standard_normal((n + nq, 40))
    # Lengths that do not matter to angles, and do to distances.
    rows *= rng.uniform(0.5, 2.0, (n + nq, 1)) if metric == "angular" else 1.0
    typed = rows > 0 if metric == "hamming" else rows.astype(np.float32)
    return typed[:n], typed[n:]


def write_file(path: Path, metric: str, n: int = 3000, nq: int = 30) -> Path:
    """Write a file in the layout of ann-benchmarks."""
    train, test = vectors(metric, n, nq)
    distances = np.stack([distance_rows(metric, train, query) for query in test])
    order = np.argsort(distances, axis=1, kind="stable")[:, :100]
    with h5py.File(path, "w") as file:
        file.attrs["type"] = "dense"
        file.attrs["distance"] = metric
        file.attrs["dimension"] = train.shape[1]
        file.attrs["point_type"] = "bit" if metric == "hamming" else "float"
        file["train"], file["test"] = train, test
        file["neighbors"] = order.astype(np.int32)
        file["distances"] = np.take_along_axis(distances, order, axis=1).astype(np.float32)
    return path


def run(
    path: Path, algorithm: Any, query_arguments: list[list[Any]], batch: bool
) -> list[tuple[float, dict[str, Any]]]:
    """Do what the runner does: fit, then run all queries for each group of query arguments.

    Returns the recall as the runner counts it, by distances, and the attributes that it stores.
    """
    with h5py.File(path) as file:
        train, test = np.array(file["train"]), np.array(file["test"])
        metric, farthest = file.attrs["distance"], file["distances"][:, K - 1]
    before = algorithm.get_memory_usage()
    algorithm.fit(train)
    assert algorithm.get_memory_usage() > before
    done = []
    for arguments in query_arguments or [[]]:
        if arguments:
            algorithm.set_query_arguments(*arguments)
        if batch:
            algorithm.batch_query(test, K)
            results = algorithm.get_batch_results()
        else:
            results = [algorithm.query(query, K) for query in test]
        hits = 0
        for query, found, limit in zip(test, results, farthest, strict=True):
            assert len(found) == len(set(found)) == K
            distances = [distance_rows(metric, train[[row]], query)[0] for row in found]
            hits += np.count_nonzero(np.array(distances) <= limit + 1e-3)
        attributes = {"name": str(algorithm), **algorithm.get_additional()}
        done.append((hits / (K * len(test)), attributes))
    algorithm.done()
    return done


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("metric", ["angular", "euclidean"])
def test_float_sets_are_found_better_the_more_is_reranked(
    tmp_path: Path, metric: str, batch: bool
) -> None:
    path = write_file(tmp_path / "set.hdf5", metric)
    results = run(path, Bitweigh(metric, 32), [[1], [4], [20]], batch)
    recalls = [recall for recall, _ in results]
    assert 0.3 < recalls[0] < recalls[1] < recalls[2]
    assert recalls[2] > 0.97
    assert [attributes["rerank"] for _, attributes in results] == [1, 4, 20]
    assert results[2][1]["name"] == f"bitweigh(metric={metric}, n_bits=32, hasher=auto, rerank=20)"


@pytest.mark.parametrize("batch", [False, True])
def test_hamming_sets_are_found_exactly(tmp_path: Path, batch: bool) -> None:
    path = write_file(tmp_path / "set.hdf5", "hamming")
    [(recall, attributes)] = run(path, BitweighHamming("hamming"), [], batch)
    assert recall == 1.0
    assert attributes == {"name": "bitweigh(metric=hamming)", "n_bits": 40}


def test_what_is_run_can_be_stored_as_attributes_of_a_file(tmp_path: Path) -> None:
    train, _ = vectors("euclidean", 100, 1)
    algorithm = Bitweigh("euclidean", 16)
    algorithm.fit(train)
    with h5py.File(tmp_path / "results.hdf5", "w") as file:
        for name, value in algorithm.get_additional().items():
            file.attrs[name] = value


def test_reranking_gives_the_nearest_of_the_candidates_first() -> None:
    train, test = vectors("euclidean", 500, 5)
    algorithm = Bitweigh("euclidean", 24)
    algorithm.fit(train)
    algorithm.set_query_arguments(500)
    for query in test:
        expected = np.argsort(distance_rows("euclidean", train, query), kind="stable")[:7]
        assert algorithm.query(query, 7).tolist() == expected.tolist()


def test_batches_are_answered_as_single_queries_are() -> None:
    train, test = vectors("angular", 400, 9)
    algorithm = Bitweigh("angular", 48, "lsh")
    algorithm.fit(train)
    algorithm.set_query_arguments(3)
    algorithm.batch_query(test, 6)
    for query, found in zip(test, algorithm.get_batch_results(), strict=True):
        assert algorithm.query(query, 6).tolist() == found.tolist()


@pytest.mark.parametrize("rerank", [1, 5])
def test_there_is_no_padding_where_there_are_fewer_rows_than_wanted(rerank: int) -> None:
    train, test = vectors("euclidean", 4, 1)
    algorithm = Bitweigh("euclidean", 16)
    algorithm.fit(train)
    algorithm.set_query_arguments(rerank)
    assert sorted(algorithm.query(test[0], 9)) == [0, 1, 2, 3]
    bits = BitweighHamming()
    bits.fit(train > 0)
    assert sorted(bits.query(test[0] > 0, 9)) == [0, 1, 2, 3]


def test_a_row_without_length_has_an_angle_of_its_own() -> None:
    train, test = vectors("angular", 50, 1)
    train[3] = 0.0
    algorithm = Bitweigh("angular", 16)
    algorithm.fit(train)
    assert len(algorithm.query(test[0], 50)) == 50


@pytest.mark.parametrize(("n_bits", "name"), [(40, "ITQ"), (41, "LSH")])
def test_auto_takes_itq_where_it_has_enough_dimensions(n_bits: int, name: str) -> None:
    train, _ = vectors("euclidean", 100, 1)
    algorithm = Bitweigh("euclidean", n_bits)
    algorithm.fit(train)
    assert algorithm._index is not None
    assert type(algorithm._index.hasher).__name__ == name


def test_bits_may_come_as_numbers_but_only_as_zeros_and_ones() -> None:
    train, test = vectors("hamming", 200, 1)
    algorithm = BitweighHamming()
    algorithm.fit(train.astype(np.uint8))
    wanted = algorithm.query(test[0], 5).tolist()
    assert algorithm.query(test[0].astype(np.int64), 5).tolist() == wanted
    with pytest.raises(ValueError, match=r"0 or 1, got 0 to 255; .*np\.unpackbits"):
        algorithm.fit(np.array([[0, 255]], np.uint8))
    with pytest.raises(TypeError, match="must be unpacked bits, bool"):
        algorithm.fit(np.zeros((2, 3)))


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="metric must be 'angular' or 'euclidean', got 'jaccard'"):
        Bitweigh("jaccard", 64)
    with pytest.raises(ValueError, match="metric must be 'hamming', got 'euclidean'"):
        BitweighHamming("euclidean")
    with pytest.raises(ValueError, match="rerank must be from 1"):
        Bitweigh("angular", 64).set_query_arguments(0)
    with pytest.raises(ValueError, match="has no data: call fit first"):
        Bitweigh("angular", 64).query(np.zeros(3), 1)


def test_the_runners_base_class_is_taken_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bitweigh.__mro__[-2].__name__ == "_Algorithm"
    base = type("BaseANN", (), {})
    for name in ("ann_benchmarks", "ann_benchmarks.algorithms", "ann_benchmarks.algorithms.base"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = types.ModuleType("ann_benchmarks.algorithms.base.module")
    module.BaseANN = base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec = importlib.util.spec_from_file_location("second_copy", ann_benchmarks.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    assert issubclass(copy.Bitweigh, base)
    assert issubclass(copy.BitweighHamming, base)


def test_the_constructors_of_the_page_exist() -> None:
    named = re.findall(r"constructor: (\w+)", PAGE.read_text())
    assert sorted(named) == sorted(ann_benchmarks.__all__)
