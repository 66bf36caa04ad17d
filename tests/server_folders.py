"""Folders of a server for tests: with changes after a checkpoint, as kills leave them, on disks."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.server.stored import stored_in
from benchmarks.server.writing import COLLECTION
from benchmarks.streaming.full_disk import CannotMountError, can_mount, mounted

from bitweigh.server import Settings
from bitweigh.server.changes import Item, Remove, Upsert
from bitweigh.server.definition import Definition
from bitweigh.server.store import Store

PATH = f"/v1/collections/{COLLECTION}"
# Nothing is saved or built but on request.
BY_HAND = Settings(checkpoint_seconds=1e9, checkpoint_changes=10**9, build_seconds=1e9)
READ_ONLY = Settings(read_only=True)
SERVE = [sys.executable, "-m", "bitweigh", "serve"]


def items(first: int, count: int, seed: int = 0) -> Upsert:
    """Return items from an id on; the seed is their version, too."""
    codes = np.random.default_rng(seed).integers(0, 256, (count, 8), dtype=np.uint8)
    return Upsert(
        [
            Item(first + row, None, code.tobytes(), f'{{"version": {seed}}}')
            for row, code in enumerate(codes)
        ]
    )


def filled_store(folder: Path) -> Store:
    """Return a store with a checkpoint and changes after it."""
    store = Store(folder, BY_HAND)
    collection, _ = store.create(COLLECTION, Definition(kind="codes", n_bits=64))
    collection.written(items(0, 300))
    collection.checkpoint()
    collection.written(items(250, 100, 1))
    collection.written(Remove(range(20)))
    return store


def make_killed(folder: Path) -> Path:
    """Make a folder as a killed server leaves it: a checkpoint, and changes in SQLite's log."""
    store = filled_store(folder / "open")
    shutil.copytree(folder / "open", folder / "killed")
    store.close()
    assert (collection_folder(folder / "killed") / "record.sqlite-wal").stat().st_size
    return folder / "killed"


def collection_folder(data: Path) -> Path:
    """Return the folder of the collection."""
    return data / "collections" / COLLECTION


def check_whole(store: Store) -> None:
    """Check that a store has all changes of `filled_store`."""
    found = stored_in(store)
    assert found.wrong == []
    assert set(found.codes) == set(range(20, 350))
    assert [found.items[id_][1] for id_ in (20, 249, 250, 349)] == [0, 0, 1, 1]


@contextlib.contextmanager
def disk_of(folder: Path, size: int) -> Iterator[None]:
    """Mount a disk for the time of a block; skip the test where that cannot be done."""
    if not can_mount():
        pytest.skip("only root can mount a disk")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(mounted(folder, size))
        except CannotMountError as error:
            pytest.skip(f"no disk can be mounted: {error}")
        yield
