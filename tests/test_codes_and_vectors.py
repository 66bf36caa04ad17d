"""What `VectorIndex` and `BinaryEmbeddings` do alike: each test runs for both."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vector_cases import same_bytes

import bitweigh
from bitweigh import BinaryEmbeddings, VectorIndex

X = np.random.default_rng(0).standard_normal((200, 12))
QUERY = np.random.default_rng(1).standard_normal(12)


class DerivedIndex(VectorIndex):
    """Of a user, with another `__init__`."""

    def __init__(self, label: str) -> None:
        super().__init__(n_bits=12, hasher="lsh", rerank="float32", bands=2)
        self.label = label


class DerivedEmbeddings(BinaryEmbeddings):
    """Of a user, with another `__init__`."""

    def __init__(self, label: str) -> None:
        super().__init__(12, rescore="float32", bands=2)
        self.label = label


def of_kind(kind: str) -> Any:
    """Return an index with vectors, that a user has derived from one of the two classes."""
    index: Any = DerivedEmbeddings("mine")
    if kind == "VectorIndex":
        index = DerivedIndex("mine").fit(X)
    index.add(X)
    return index


@pytest.fixture(params=["VectorIndex", "BinaryEmbeddings"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def index(kind: str) -> Any:
    return of_kind(kind)


@pytest.fixture
def mapped(index: Any, tmp_path: Path) -> Any:
    index.compact()
    index.build()  # so that another one has nothing to do
    index.save(tmp_path)
    return type(index).load(tmp_path, mmap=True)


def from_argument(index: Any, number: int | None) -> dict[str, Any]:
    return {"rerank_from" if isinstance(index, VectorIndex) else "rescore_from": number}


def test_a_derived_class_is_loaded_without_its_init(mapped: Any, index: Any) -> None:
    assert type(mapped) is type(index)
    assert same_bytes(mapped.search(QUERY, 5), index.search(QUERY, 5))


def test_added_attributes_survive_pickles_and_copies(mapped: Any) -> None:
    mapped.label = ["mine"]
    again = pickle.loads(pickle.dumps(mapped))
    assert type(again) is type(mapped)
    assert again.label == ["mine"]
    assert mapped.copy().label is mapped.label
    deep = copy.deepcopy(mapped)
    assert deep.label == ["mine"]
    assert deep.label is not mapped.label


def test_what_changes_nothing_leaves_a_mapped_index_that_can_be_pickled(mapped: Any) -> None:
    mapped.build()
    assert mapped.remove([]) == 0
    assert mapped.remove([999], on_missing="ignore") == 0
    mapped.add(X[:0])
    assert len(pickle.dumps(mapped)) < 1000


def test_a_copy_of_a_changed_mapped_index_still_checks_the_files(
    mapped: Any, tmp_path: Path
) -> None:
    mapped.remove([0])
    copied = mapped.copy()
    copied.verify()
    (path,) = tmp_path.glob("vectors-*.npy")
    raw = bytearray(path.read_bytes())
    raw[-4] ^= 1
    path.write_bytes(raw)
    for each in (mapped, copied):
        with pytest.raises(bitweigh.CorruptFileError, match="vectors"):
            each.verify()


def test_neighbours_by_id_need_no_candidate_more_than_asked_for(index: Any) -> None:
    found = index.search_by_id(7, k=5, **from_argument(index, 5))
    vector = index.vectors_of([7])[0].astype(np.float64)
    expected = index.search(vector, 5, deny=[7], **from_argument(index, 5))
    assert same_bytes(found, expected)
    (name,) = from_argument(index, None)
    with pytest.raises(ValueError, match=f"{name} must be from 5 to"):
        index.search_by_id(7, k=5, **from_argument(index, 4))


def test_a_k_without_queries_to_build_by_is_refused(index: Any) -> None:
    with pytest.raises(ValueError, match="k goes with sample_queries"):
        index.build(k=5)


@pytest.mark.parametrize("method", ["iterate", "explain"])
def test_errors_about_a_query_name_the_argument_at_the_call(index: Any, method: str) -> None:
    def call(query: np.ndarray) -> object:
        arguments = (query,) if method == "iterate" else (query, 3)
        return getattr(index, method)(*arguments)

    name = "q" if isinstance(index, VectorIndex) else "query"
    bad = QUERY.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match=rf"^{name} must be finite, got nan at {name}\[3\]$"):
        call(bad)
    with pytest.raises(ValueError, match=rf"^{name} must be one query"):
        call(X[:2])
    with pytest.raises(ValueError, match=rf"^{name} (has|must have) .*11"):
        call(QUERY[:11])


def test_an_error_about_a_row_says_sample_only_in_fit(kind: str) -> None:
    bad = X.copy()
    bad[3, 2] = np.nan
    index = of_kind(kind)
    with pytest.raises(ValueError, match=r"got NaN at \w+\[3, 2\]$"):
        index.add(bad)
    with pytest.raises(ValueError, match=r"got NaN at X\[3, 2\] of the rows used$"):
        VectorIndex(n_bits=8, hasher="lsh").fit(bad)


def test_without_vectors_neighbours_by_id_are_those_of_the_codes() -> None:
    index = VectorIndex(n_bits=12, hasher="lsh").fit(X)
    index.add(X)
    assert same_bytes(index.search_by_id([3, 4], 5), index.index.search_by_id([3, 4], 5))
    with pytest.raises(ValueError, match="rerank_from needs an index that keeps vectors"):
        index.search_by_id(3, 5, rerank_from=9)


def test_embeddings_take_queries_of_float16() -> None:
    embeddings = BinaryEmbeddings(12, rescore="float16")
    embeddings.add(X.astype(np.float16))
    half = QUERY.astype(np.float16)
    assert same_bytes(embeddings.search(half, 5), embeddings.search(half.astype(np.float64), 5))


def test_a_limit_error_has_the_numbers(index: Any) -> None:
    everything = np.inf if isinstance(index, VectorIndex) else -np.inf
    for by in ("vectors", "codes"):
        with pytest.raises(bitweigh.LimitError) as caught:
            index.range_search(X[:3], everything, by=by, limit=7)
        assert (caught.value.query, caught.value.limit) == (0, 7)
