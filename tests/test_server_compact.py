"""Removed items leave the index of a collection, while it is searched and written."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from server_folders import BY_HAND

from bitweigh.server.changes import Item, Remove, Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition
from bitweigh.server.store import Store

KINDS: dict[str, dict[str, Any]] = {
    "codes": {"kind": "codes", "n_bits": 64},
    "embeddings": {"kind": "embeddings", "dim": 16},
    "rescored": {"kind": "embeddings", "dim": 16, "rescore": "float32"},
    "reranked": {
        "kind": "vectors",
        "dim": 16,
        "n_bits": 16,
        "hasher": "lsh",
        "rerank": "float32",
        "fit_after": 200,
    },
}
SMALL = replace(BY_HAND, compact_rows=50)


def written(collection: Collection, ids: range, seed: int = 0) -> None:
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(len(ids), 16)).astype(np.float32)
    rows = vectors.view(np.uint8)[:, : collection.contents.n_bytes]
    collection.written(
        Upsert([Item(id_, None, row.tobytes(), None) for id_, row in zip(ids, rows, strict=True)])
    )


def removed_rows(collection: Collection) -> int:
    return collection._removed_rows(collection._index)


def found_in(collection: Collection) -> list[tuple[int, bytes]]:
    """The ids that searches see, and their codes."""
    codes = collection.searchable().codes
    assert codes is not None
    ids = np.sort(codes.ids)
    return [(int(id_), code.tobytes()) for id_, code in zip(ids, codes.codes_of(ids), strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_many_removed_rows_are_dropped_and_answers_stay(tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path, SMALL)
    collection, _ = store.create("c", Definition(**KINDS[kind]))
    written(collection, range(600))
    collection.written(Remove(range(49)))
    assert not collection.compact()  # fewer than compact_rows
    collection.written(Remove(range(49, 60)))
    assert not collection.compact()  # a tenth of all
    collection.written(Remove(range(60, 160)))
    collection.checkpoint()
    before = found_in(collection)
    assert removed_rows(collection) == 160
    assert collection.compact()
    assert removed_rows(collection) == 0
    assert collection.view().index is not collection._index
    assert collection._removed_rows(collection.view().index) == 0
    assert found_in(collection) == before
    assert not collection.compact()
    # The checkpoint follows, though no item has changed.
    assert collection.must_save
    collection.checkpoint()
    store.close()
    store = Store(tmp_path, SMALL)
    assert store["c"].replayed == 0
    assert removed_rows(store["c"]) == 0
    assert found_in(store["c"]) == before
    store.close()


def test_vectors_that_were_never_fitted_are_not_compacted(tmp_path: Path) -> None:
    store = Store(tmp_path, replace(SMALL, compact_rows=1))
    collection, _ = store.create("c", Definition(**KINDS["reranked"]))
    written(collection, range(100))
    collection.written(Remove(range(90)))
    assert not collection.compact()
    store.close()


def test_the_server_compacts_by_itself(tmp_path: Path) -> None:
    store = Store(tmp_path, replace(SMALL, build_seconds=0.02))
    collection, _ = store.create("c", Definition(**KINDS["codes"]))
    written(collection, range(300))
    collection.written(Remove(range(200)))
    end = time.monotonic() + 30
    while removed_rows(collection) or collection.must_save:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert [id_ for id_, _ in found_in(collection)] == list(range(200, 300))
    assert store.failures == 0
    store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_that_is_written_while_an_index_is_compacted(
    tmp_path: Path, kind: str
) -> None:
    store = Store(tmp_path, replace(SMALL, compact_rows=1))
    collection, _ = store.create("c", Definition(**KINDS[kind]))
    written(collection, range(2_000))
    ended = threading.Event()
    compacted = []

    def compacting() -> None:
        while not ended.is_set():
            compacted.append(collection.compact())
            collection.checkpoint()

    thread = threading.Thread(target=compacting)
    thread.start()
    try:
        for step in range(20):
            collection.written(Remove(range(100 * step, 100 * step + 90)))
            written(collection, range(2_000 + 20 * step, 2_020 + 20 * step), seed=step)
            written(collection, range(100 * step + 90, 100 * step + 95), seed=100 + step)
    finally:
        ended.set()
        thread.join()
    assert any(compacted)
    found = found_in(collection)
    kept = [100 * step + rest for step in range(20) for rest in range(90, 100)]
    assert [id_ for id_, _ in found] == kept + list(range(2_000, 2_400))
    # As an index has them that is made from the record alone.
    collection.writer.do(lambda: collection._rebuild(fit=False))
    assert found_in(collection) == found
    store.close()
