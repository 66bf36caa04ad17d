"""Arrays of other libraries: accepted if they expose their memory, else refused by type name."""

from __future__ import annotations

import array
import sys
import types
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitweigh

CODES = np.arange(40, dtype=np.uint8).reshape(-1, 1)


class OnlyDLPack:
    """Like a tensor that does not know NumPy."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values

    def __dlpack__(self, **options: object) -> object:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


class OnlyArray:
    """Like a tensor that converts itself."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        return self._values


class ElsewhereDLPack(OnlyDLPack):
    """Like a tensor on a GPU."""

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("the data are on another device")


class ElsewhereArray:
    """Like CuPy's arrays, which are not copied to the host implicitly."""

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyArray, memoryview])
def test_codes_costs_and_ids_of_other_libraries_are_taken(wrap: Any) -> None:
    index = bitweigh.Index(8)
    index.add(wrap(CODES), wrap(np.arange(40) + 100))
    costs = bitweigh.costs.hamming(np.array([7], dtype=np.uint8), 8)
    assert index.search(wrap(costs), 1).ids[0] == 107
    assert index.codes_of(wrap(np.array([103])))[0, 0] == 3


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyArray, memoryview])
def test_vectors_and_embeddings_of_other_libraries_are_taken(wrap: Any) -> None:
    vectors = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
    index = bitweigh.VectorIndex(n_bits=16, rerank="float32").fit(wrap(vectors))
    index.add(wrap(vectors))
    assert index.search(wrap(vectors[:2]), 1).ids.tolist() == [[0], [1]]
    embeddings = bitweigh.BinaryEmbeddings(16)
    embeddings.add(wrap(np.packbits(vectors > 0, axis=1)))
    assert embeddings.search(wrap(vectors[:2]), 1).ids.shape == (2, 1)


def test_ids_in_an_array_of_the_standard_library_are_taken() -> None:
    index = bitweigh.Index(8)
    index.add(CODES[:2], array.array("q", [5, 9]))
    assert index.ids.tolist() == [5, 9]


@pytest.mark.parametrize("there", [ElsewhereDLPack(CODES), ElsewhereArray()])
def test_what_is_not_in_memory_is_refused_by_name(there: object) -> None:
    with pytest.raises(TypeError, match="codes must be in this machine's memory, got Elsewhere"):
        bitweigh.Index(8).add(there)  # type: ignore[arg-type]


@pytest.mark.parametrize("objects", [np.array([[1]], dtype=object), [[None]], [[{}]]])
def test_objects_are_refused_by_name(objects: object) -> None:
    with pytest.raises(TypeError, match="codes must be an array of numbers"):
        bitweigh.Index(8).add(objects)  # type: ignore[arg-type]


def test_lists_are_taken_while_another_thread_imports_masked_arrays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))
    index = bitweigh.Index(8)
    index.add(np.array([[1]], np.uint8), [7])
    assert index.contains([7]).all()


def test_masked_arrays_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="ids must be a plain array, got a masked array"):
        bitweigh.Index(8).add(CODES[:2], np.ma.array([1, 2], mask=[False, True]))
