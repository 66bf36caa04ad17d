"""The vectors that an index stores: by id, in files, with threads and forks, beyond memory."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_cases import DATA, fitted_index, same_bytes

from bitweigh._vectors.store import MAX_FILES, Vectors
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.hashers import LSH
from bitweigh.vector_index import VectorIndex


def test_a_memory_map_is_never_read_at_once(tmp_path: Path) -> None:
    n, d, limit = 100_000, 64, 20 * 2**20
    path = tmp_path / "vectors.npy"
    writable = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    writable[:] = np.random.default_rng(2).standard_normal((n, d), dtype=np.float32)
    index = VectorIndex(hasher=LSH(32, max_fit_rows=2000), metric="cosine", rerank="float32")
    mapped = np.load(path, mmap_mode="r")
    assert mapped.nbytes > limit
    index.fit(mapped)
    tracemalloc.start()
    try:
        index.add(mapped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit
    assert index.search(mapped[99_999], 1).ids[0] == 99_999


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6), st.booleans()), max_size=25))
@settings(max_examples=60)
def test_a_store_keeps_the_last_vector_of_each_id(changes: list[tuple[int, int, bool]]) -> None:
    store = Vectors.empty("float32", 2)
    expected: dict[int, float] = {}
    for number, (first, count, backwards) in enumerate(changes):
        ids = np.arange(first, first + count, dtype=np.int64)[:: -1 if backwards else 1]
        values = number * 100.0 + np.arange(count)
        older, before = store, dict(expected)
        writer = store.writer()
        writer.write(np.full((count, 2), -1.0))  # begun and given up
        writer = store.writer()
        writer.write(np.stack([values, values], axis=1))
        store = writer.finish(ids.copy())
        expected.update(zip(ids.tolist(), values.tolist(), strict=True))
        for version, values_of in ((store, expected), (older, before)):
            known = np.array(sorted(values_of), dtype=np.int64)
            assert version.of(known)[:, 1].tolist() == [values_of[id_] for id_ in known.tolist()]
    with pytest.raises(KeyError, match="99"):
        store.of(np.array([99]))
    known = np.array(sorted(expected)[::2], dtype=np.int64)
    assert store.only(known).n_rows == len(known)
    assert same_bytes(store.only(known).of(known), store.of(known))


def test_a_search_sees_one_state_while_others_replace_vectors() -> None:
    """A code must never be ranked by an earlier or later vector of its id."""
    index = VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(DATA)
    index.add(np.ones((40, 12)))
    wrong: list[Any] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            distances = index.search(np.zeros(12), 40).distances
            if len(set(distances.tolist())) != 1:
                wrong.append(distances)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(2, 60):
        index.add(np.full((40, 12), float(number)), ids=range(40), on_duplicate="replace")
        if number % 20 == 0:
            index.compact()
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_adds_vectors_without_touching_those_of_its_parent() -> None:
    index = fitted_index(rerank="float32")
    child_added, parent_added = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        index.add(DATA[:50] + 7)
        os.write(child_added[1], b".")
        os.read(parent_added[0], 1)
        fine = np.array_equal(index.vectors_of([3, 600]), np.stack([DATA[3], DATA[0] + 7]))
        os._exit(0 if fine else 1)
    os.read(child_added[0], 1)
    index.add(DATA[:50])
    os.write(parent_added[1], b".")
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(index.vectors_of(range(600, 650)), DATA[:50])
    for end in (*child_added, *parent_added):
        os.close(end)


def test_what_others_hold_of_an_index_does_not_change() -> None:
    index = fitted_index(rerank="float32")
    before = index.index
    index.add(DATA[:3])
    index.remove([5])
    assert len(before) == 600
    assert 5 in before
    assert len(index.index) == 602


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Allow only 40 more file descriptors than are open."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as file:
        resource.setrlimit(resource.RLIMIT_NOFILE, (file.fileno() + 40, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def an_index(kind: str) -> Any:
    """Return an index with vectors in two files."""
    index: Any = BinaryEmbeddings(4, rescore="float32")
    if kind == "VectorIndex":
        index = VectorIndex(n_bits=4, hasher="lsh", rerank="float32").fit(np.eye(4))
    index.add(np.ones((50, 4)))
    index = index.copy()
    index.add(np.zeros((50, 4)))
    return index


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("kind", ["VectorIndex", "BinaryEmbeddings"])
def test_any_number_of_copies_share_the_files(kind: str) -> None:
    index = an_index(kind)
    copies = [index.copy() for _ in range(100)]
    assert copies[-1].vectors_of([70]).tolist() == [[0.0] * 4]


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("kind", ["VectorIndex", "BinaryEmbeddings"])
def test_a_copy_of_a_copy_has_few_files_however_often(kind: str) -> None:
    index = an_index(kind)
    for number in range(100):
        index = index.copy()
        index.add(np.full((1, 4), float(number)))
    assert len(index._state.vectors.arrays) <= MAX_FILES + 1
    assert index.vectors_of(range(100, 200))[:, 0].tolist() == list(range(100))
    assert index.vectors_of([0, 99]).tolist() == [[1.0] * 4, [0.0] * 4]
