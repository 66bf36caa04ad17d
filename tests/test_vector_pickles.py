"""Pickled vector indexes: mapped ones as the path of their folder, those without vectors whole."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import VectorIndex

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((400, 12)).astype(np.float32)
QUERIES = RNG.standard_normal((5, 12)).astype(np.float32)


def filled(**options: Any) -> VectorIndex:
    index = VectorIndex(**{"n_bits": 10, "hasher": "lsh", **options}).fit(DATA)
    index.add(DATA)
    return index


def same_answers(index: VectorIndex, other: VectorIndex) -> bool:
    found, expected = other.search(QUERIES, 9), index.search(QUERIES, 9)
    return (
        found.ids.tobytes() == expected.ids.tobytes()
        and found.distances.tobytes() == expected.distances.tobytes()
    )


def mapped(folder: Path, **options: Any) -> VectorIndex:
    filled(**options).save(folder)
    return VectorIndex.load(folder, mmap=True)


@pytest.mark.parametrize("rerank", [None, "float16"])
def test_a_mapped_index_is_pickled_as_the_place_of_its_folder(rerank: Any, tmp_path: Path) -> None:
    index = mapped(tmp_path / "index", rerank=rerank)
    raw = pickle.dumps(index)
    assert len(raw) < 1000
    assert str(tmp_path / "index").encode() in raw
    other = pickle.loads(raw)
    assert same_answers(index, other)
    assert len(pickle.dumps(other)) < 1000


def test_a_derived_class_is_pickled_as_itself(tmp_path: Path) -> None:
    filled(rerank="float32").save(tmp_path)
    for index in (Derived.load(tmp_path, mmap=True), copy.copy(Derived().fit(DATA))):
        assert type(pickle.loads(pickle.dumps(index))) is Derived


class Derived(VectorIndex):
    """Of a user."""


def test_a_folder_that_was_saved_to_since_is_not_taken_for_the_one_that_was_pickled(
    tmp_path: Path,
) -> None:
    index = mapped(tmp_path, rerank="float32")
    raw = pickle.dumps(index)
    other = filled(rerank="float32")
    other.remove([3])
    other.save(tmp_path)
    with pytest.raises(ValueError, match="has another index than when this one was pickled"):
        pickle.loads(raw)
    with pytest.raises(TypeError, match="save it to one, and load that with mmap=True"):
        pickle.dumps(index)


def test_the_same_saved_again_is_the_same_folder(tmp_path: Path) -> None:
    index = mapped(tmp_path, rerank="float32")
    raw = pickle.dumps(index)
    index.save(tmp_path)
    assert same_answers(index, pickle.loads(raw))


@pytest.mark.parametrize("change", ["never mapped", "added", "removed", "read"])
def test_vectors_that_are_not_those_of_a_folder_are_not_pickled(
    change: str, tmp_path: Path
) -> None:
    index = filled(rerank="float16")
    if change != "never mapped":
        index.save(tmp_path)
        index = VectorIndex.load(tmp_path, mmap=change != "read")
    if change == "added":
        index.add(DATA[:1])
    if change == "removed":
        index.remove([3])
    with pytest.raises(TypeError, match="a VectorIndex that keeps vectors can be pickled"):
        pickle.dumps(index)


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))]
)
def test_an_index_without_vectors_is_pickled_and_copied_whole(make: Any) -> None:
    index = filled(metric="cosine", weigher="wh")
    other = make(index)
    assert same_answers(index, other)
    other.remove([3])
    assert 3 in index
    assert repr(make(VectorIndex())) == repr(VectorIndex())


def test_a_copy_can_be_changed_while_the_original_is(tmp_path: Path) -> None:
    index = mapped(tmp_path)
    for other in (copy.copy(index), copy.copy(filled())):
        with index._writing:
            adding = threading.Thread(target=other.add, args=(DATA[:1],), daemon=True)
            adding.start()
            adding.join(30)
            assert not adding.is_alive()
        assert len(other) == 401


def test_a_save_while_an_index_is_mapped_leaves_it_without_a_folder_to_be_pickled_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitweigh._vectors import files

    filled(rerank="float32").save(tmp_path)
    load = files.load

    def load_before_a_save(*arguments: Any) -> Any:
        loaded = load(*arguments)
        filled(rerank="float32", seed=1).save(tmp_path)
        return loaded

    monkeypatch.setattr(files, "load", load_before_a_save)
    index = VectorIndex.load(tmp_path, mmap=True)
    monkeypatch.undo()
    with pytest.raises(TypeError, match="only while it is the same as in a folder"):
        pickle.dumps(index)


@pytest.mark.parametrize("rerank", [None, "float32"])
def test_a_pickle_still_builds_bands_only_when_asked(rerank: Any, tmp_path: Path) -> None:
    filled(rerank=rerank).save(tmp_path)
    index = VectorIndex.load(tmp_path, mmap=True, build="manual")
    if rerank is None:
        index.remove([0])  # not the same as in the folder: pickled whole
    other = pickle.loads(pickle.dumps(index))
    assert other._options["build"] == other.index._policy.build == "manual"


def test_building_bands_is_a_change_that_no_copy_shares(tmp_path: Path) -> None:
    filled(rerank=None, bands=2).save(tmp_path)
    index = VectorIndex.load(tmp_path, mmap=True)
    shared = copy.copy(index)
    index.build()
    assert index.memory().directories > 0
    assert shared.memory().directories == 0
    assert pickle.loads(pickle.dumps(index)).memory().directories > 0
