"""What a folder holds whose server is gone: opened by this process, in a copy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bitweigh
from benchmarks.server.writing import COLLECTION, N_BITS, Name
from bitweigh import reference
from bitweigh.server.settings import Settings
from bitweigh.server.store import Store

__all__ = ["Stored", "read_stored", "stored_in"]

# The store of a check must not save or build anything by itself.
_QUIET = Settings(checkpoint_seconds=1e9, checkpoint_changes=10**9, build_seconds=1e9)


class Stored(NamedTuple):
    """A collection as a start finds it."""

    items: dict[Name, tuple[bytes, int]]
    """Code and version by key, or by id."""
    codes: dict[int, bytes]
    """Codes by id."""
    seq: int
    replayed: int
    """Items that were applied after the checkpoint."""
    wrong: list[str]
    """Where index and record do not agree."""


def read_stored(folder: Path, scratch: Path) -> Stored:
    """Open a copy of a folder, and compare its index with its record."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch)
    store = Store(scratch, _QUIET)
    try:
        return stored_in(store)
    finally:
        store.close()
        shutil.rmtree(scratch)


def stored_in(store: Store) -> Stored:
    """What the collection of a store holds."""
    collection = store[COLLECTION]
    items: dict[Name, tuple[bytes, int]] = {}
    codes: dict[int, bytes] = {}
    with collection.pinned() as (reader, view):
        for row in reader.page(-1, 10**9):
            assert row.value is not None
            version = json.loads(row.payload or "{}").get("version", 0)
            items[row.id if row.key is None else row.key] = (row.value, version)
            codes[row.id] = row.value
        assert view.codes is not None
        wrong = _differences(view.codes, codes)
        return Stored(items, codes, view.seq, collection.replayed, wrong)


def _differences(index: bitweigh.Index, codes: dict[int, bytes]) -> list[str]:
    wrong = []
    ids = np.sort(index.ids)
    if ids.tolist() != sorted(codes):
        wrong.append("the index has other ids than the record")
        return wrong
    index.verify()
    packed = np.frombuffer(b"".join(codes[id_] for id_ in ids.tolist()), np.uint8)
    packed = packed.reshape(-1, N_BITS // 8)
    if not np.array_equal(index.codes_of(ids), packed):
        wrong.append("the index has other codes than the record")
    for seed in range(3):
        costs = np.random.default_rng(seed).random((N_BITS, 2))
        found = index.search(costs, 10)
        expected = reference.search(packed, costs, 10, ids=ids)
        if found.ids.tolist() != expected.ids.tolist():
            wrong.append("a search does not find what the reference finds")
    return wrong
