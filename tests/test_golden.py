"""Folders and files written by version 0.1.0 load and give the same answers to the last bit.

All numbers in them have few digits, so that no sum is rounded and the answers are the same on every
machine. Only `Wh` uses logarithms, whose last bit depends on the C library.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh import hashers, weighers
from bitweigh.embeddings import BinaryEmbeddings

GOLDEN = Path(__file__).parent / "golden" / "answers-1"
VECTORS = [
    GOLDEN / "vectors",
    GOLDEN / "vectors-rerank",
    GOLDEN / "vectors-cosine",
    *sorted((GOLDEN.parent / "vectors-2").iterdir()),
]
RESCORED = sorted((GOLDEN.parent / "embeddings-1").iterdir())
HASHERS = ["itq", "lsh", "lsh-little", "sign"]
WEIGHERS = ["asym", "asym-lower", "inner-product", "wh"]


def expected_in(folder: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return expected


def expected_of(name: str) -> dict[str, Any]:
    return expected_in(GOLDEN / name)


def named(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"


def assert_same(distances: object, ids: object, expected: dict[str, Any]) -> None:
    assert np.asarray(distances).astype("<f8").tobytes().hex() == expected["distances"]
    assert np.asarray(ids).tolist() == expected["ids"]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("method", ["auto", "scan", "probe"])
def test_an_index_gives_the_same_answers(mmap: bool, method: Any) -> None:
    expected = expected_of("answers")
    index = bitweigh.load(GOLDEN / "answers" / "index", mmap=mmap)
    index.verify()
    costs = np.array(expected["costs"])
    assert_same(*index.search(costs, expected["k"], method=method), expected["search"])
    lims, distances, ids = index.range_search(costs, expected["radius"], method=method)
    assert lims.tolist() == expected["range_search"]["lims"]
    assert_same(distances, ids, expected["range_search"])


@pytest.mark.parametrize("mmap", [False, True])
def test_embeddings_give_the_same_answers(mmap: bool) -> None:
    expected = expected_of("embeddings")
    embeddings = BinaryEmbeddings.load(GOLDEN / "embeddings" / "index", mmap=mmap)
    assert embeddings.dim == expected["dim"]
    assert embeddings.ids.tolist() == expected["ids"]
    assert embeddings.index.codes_of(embeddings.ids).tobytes().hex() == expected["codes"]
    queries = np.array(expected["queries"])
    assert_same(*embeddings.search(queries, expected["k"]), expected["search"])
    assert_same(*embeddings.search(queries, expected["k"], signed=True), expected["signed"])


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("folder", RESCORED, ids=named)
def test_rescored_embeddings_give_the_same_answers(folder: Path, mmap: bool) -> None:
    expected = expected_in(folder)
    embeddings = bitweigh.load(folder / "index", mmap=mmap)
    assert isinstance(embeddings, BinaryEmbeddings)
    embeddings.verify()
    assert embeddings.rescore == expected["rescore"]
    assert embeddings.ids.tolist() == expected["ids"]
    assert embeddings.codes_of(embeddings.ids).tobytes().hex() == expected["codes"]
    kept = embeddings.vectors_of(embeddings.ids).astype("<f4")
    assert kept.tobytes().hex() == expected["vectors"]
    queries = np.array(expected["queries"])
    found = embeddings.search(queries, expected["k"], rescore_from=expected["rescore_from"])
    assert_same(*found, expected["search"])


def check_vectors(index: bitweigh.VectorIndex, expected: dict[str, Any]) -> None:
    assert (index.metric, index.rerank) == (expected["metric"], expected["rerank"])
    assert index.index.n_bits == expected["n_bits"]
    assert index.ids.tolist() == expected["ids"]
    assert index.index.codes_of(index.ids).tobytes().hex() == expected["codes"]
    if index.rerank is not None:
        vectors = index.vectors_of(index.ids)
        assert vectors.dtype == index.rerank
        assert vectors.astype("<f4").tobytes().hex() == expected["vectors"]
    queries = np.array(expected["queries"])
    assert_same(*index.search(queries, expected["k"]), expected["search"])


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("folder", VECTORS, ids=named)
def test_a_vector_index_gives_the_same_answers(folder: Path, mmap: bool) -> None:
    index = bitweigh.VectorIndex.load(folder / "index", mmap=mmap)
    check_vectors(index, expected_in(folder))
    index.index.verify()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("folder", VECTORS, ids=named)
def test_a_vector_index_saved_over_its_old_folder_gives_the_same_answers(
    folder: Path, mmap: bool, tmp_path: Path
) -> None:
    expected = expected_in(folder)
    shutil.copytree(folder / "index", tmp_path / "index")
    index = bitweigh.VectorIndex.load(tmp_path / "index", mmap=mmap)
    index.save(tmp_path / "index")
    check_vectors(index, expected)
    check_vectors(bitweigh.VectorIndex.load(tmp_path / "index"), expected)
    index.add(np.ones((1, index.n_features)))
    assert index.ids[-1] == expected["next_id"]


@pytest.mark.parametrize("name", HASHERS)
def test_a_hasher_makes_the_same_codes(name: str) -> None:
    expected, queries = expected_of("estimators")[name], expected_of("estimators")["queries"]
    hasher = hashers.load(GOLDEN / "estimators" / f"{name}.npz")
    assert type(hasher).__name__ == expected["class"]
    assert hasher.get_params() == expected["params"]
    assert hasher.project(queries).astype("<f8").tobytes().hex() == expected["project"]
    assert hasher.transform(queries).tobytes().hex() == expected["transform"]


@pytest.mark.parametrize("name", WEIGHERS)
def test_a_weigher_makes_the_same_costs(name: str) -> None:
    every = expected_of("estimators")
    weigher = weighers.load(GOLDEN / "estimators" / f"{name}.npz")
    assert type(weigher).__name__ == every[name]["class"]
    assert weigher.get_params() == every[name]["params"]
    hasher = hashers.load(GOLDEN / "estimators" / "itq.npz")
    costs = weigher.costs(hasher.project(every["queries"]))
    expected = np.frombuffer(bytes.fromhex(every[name]["costs"]), "<f8").reshape(costs.shape)
    if name == "wh":
        np.testing.assert_allclose(costs, expected, rtol=1e-12)
    else:
        assert costs.tobytes() == expected.tobytes()
