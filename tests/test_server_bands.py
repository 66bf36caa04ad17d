"""Bands of a collection: the server builds them, saves them, and decides again after a start."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from server_folders import BY_HAND, items

from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition
from bitweigh.server.store import Store

SMALL = replace(BY_HAND, build_rows=100)
BANDED = Definition(kind="codes", n_bits=64, bands=2)


def rows_with_bands(collection: Collection) -> int:
    codes = collection.searchable().codes
    assert codes is not None
    return sum(len(part) for part in codes._state.parts() if part.segment.bands)


def test_bands_are_saved_though_no_item_has_changed_since_the_checkpoint(tmp_path: Path) -> None:
    store = Store(tmp_path, SMALL)
    collection, _ = store.create("c", BANDED)
    collection.written(items(0, 500))
    collection.checkpoint()
    assert collection.build()
    assert rows_with_bands(collection) == 500
    store.close()
    store = Store(tmp_path, SMALL)
    assert rows_with_bands(store["c"]) == 500
    assert not store["c"].build()
    store.close()


def test_a_start_decides_about_rows_that_were_saved_without_bands(tmp_path: Path) -> None:
    store = Store(tmp_path, SMALL)
    collection, _ = store.create("c", BANDED)
    collection.written(items(0, 500))
    store.close()
    store = Store(tmp_path, SMALL)
    collection = store["c"]
    assert collection.replayed == 0
    assert rows_with_bands(collection) == 0
    assert collection.build()
    assert rows_with_bands(collection) == 500
    assert not collection.build()
    store.close()


def test_rows_that_bands_do_not_help_are_not_saved_again(tmp_path: Path) -> None:
    store = Store(tmp_path, SMALL)
    collection, _ = store.create("c", Definition(kind="codes", n_bits=64))
    collection.written(items(0, 500))
    collection.checkpoint()
    assert collection.build()
    assert rows_with_bands(collection) == 0
    assert not collection.must_save
    store.close()


def test_the_server_builds_bands_of_what_it_finds_at_its_start(tmp_path: Path) -> None:
    store = Store(tmp_path, SMALL)
    collection, _ = store.create("c", BANDED)
    collection.written(items(0, 500))
    store.close()
    store = Store(tmp_path, replace(SMALL, build_seconds=0.02))
    collection = store["c"]
    end = time.monotonic() + 30
    while not rows_with_bands(collection) or collection.must_save:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert store.failures == 0
    store.close()
