"""Copies of an index and of derived classes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bitweigh

CODES = np.arange(50, dtype=np.uint8).reshape(-1, 1)


class Named(bitweigh.Index):
    """A derived index with another constructor and an extra attribute."""

    def __init__(self, name: str) -> None:
        super().__init__(8, bands=2)
        self.notes = [name]


def pickled(index: Named) -> Named:
    made: Named = pickle.loads(pickle.dumps(index))
    return made


@pytest.mark.parametrize(
    "copied",
    [Named.copy, copy.copy, copy.deepcopy, pickled],
    ids=["copy", "shallow", "deep", "pickle"],
)
def test_a_copy_of_a_derived_class_is_one_of_that_class(copied: Callable[[Named], Named]) -> None:
    index = Named("fruit")
    index.add(CODES)
    other = copied(index)
    assert type(other) is Named
    assert other.notes == ["fruit"]
    assert (other.notes is index.notes) == (copied in (Named.copy, copy.copy))
    assert other._writing is not index._writing
    assert other._policy is not index._policy
    other.add(CODES[:3])
    other.build()
    assert (len(index), len(other)) == (50, 53)
    assert other.memory().directories > 0
    assert index.memory().directories == 0


def test_a_mapped_index_of_a_derived_class_stays_mapped_when_pickled(tmp_path: Path) -> None:
    plain = bitweigh.Index(8)
    plain.add(CODES)
    plain.save(tmp_path / "index")
    index = Named.load(tmp_path / "index", mmap=True)
    assert type(index) is Named
    index.notes = ["fruit"]
    assert len(pickle.dumps(index)) < 500
    other = pickled(index)
    assert type(other) is Named
    assert (other.notes, len(other)) == (["fruit"], 50)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_pickle_still_builds_bands_only_when_asked(mapped: bool, tmp_path: Path) -> None:
    index = bitweigh.Index(8, build="manual")
    index.add(CODES)
    if mapped:
        index.save(tmp_path / "index")
        index = bitweigh.Index.load(tmp_path / "index", mmap=True, build="manual")
    other = pickled(index)
    other._policy.tail_rows = other._policy.banded_rows = 1
    other.add(CODES)
    assert other.memory().directories == 0


def test_a_deep_copy_of_what_holds_an_index_twice_holds_one_copy_twice() -> None:
    index = Named("fruit")
    one, two = copy.deepcopy([index, index])
    assert one is two
    assert one is not index
