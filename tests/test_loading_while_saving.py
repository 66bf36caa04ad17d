"""Loads beside saves: one of the indexes that were saved, never a mixture, never a false alarm."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from test_storage import held, small_index

import bitweigh


@pytest.mark.parametrize("mapped", [False, True])
def test_a_load_starts_anew_when_a_save_comes_in_between(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["bitweigh._storage.load"]
    read = module.read_manifest
    saves = [small_index(seed=2), small_index(seed=3)]

    def read_then_save(folder: Path) -> object:
        manifest = read(folder)
        if saves:
            saves.pop().save(folder)
        return manifest

    small_index(seed=1).save(tmp_path)
    monkeypatch.setattr(module, "read_manifest", read_then_save)
    assert held(bitweigh.load(tmp_path, mmap=mapped)) == held(small_index(seed=2))


def test_a_load_gives_up_where_saves_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["bitweigh._storage.load"]
    read = module.read_manifest
    seeds = iter(range(1000))

    def read_then_save(folder: Path) -> object:
        manifest = read(folder)
        small_index(seed=next(seeds)).save(folder)
        return manifest

    small_index(seed=1000).save(tmp_path)
    monkeypatch.setattr(module, "read_manifest", read_then_save)
    with pytest.raises(OSError, match="faster than it can be read"):
        bitweigh.load(tmp_path)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_load_starts_anew_when_an_equal_index_was_saved_after_another(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["bitweigh._storage.load"]
    name = "map_array" if mapped else "read_array"
    read, calls = getattr(module, name), []

    def save_then_read(folder: Path, *facts: object) -> object:
        calls.append(folder)
        if len(calls) == 1:
            # The file is missing, and the manifest is equal again when that is noticed.
            small_index(seed=2).save(folder)
            try:
                return read(folder, *facts)
            finally:
                small_index(seed=1).save(folder)
        return read(folder, *facts)

    small_index(seed=1).save(tmp_path)
    monkeypatch.setattr(module, name, save_then_read)
    assert held(bitweigh.load(tmp_path, mmap=mapped)) == held(small_index(seed=1))
    assert len(calls) > 1


def test_the_last_attempt_to_load_keeps_saves_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["bitweigh._storage.load"]
    read, seeds, savers = module.read_manifest, iter(range(1000)), []

    def read_then_save(folder: Path) -> object:
        manifest = read(folder)
        saver = threading.Thread(target=small_index(seed=next(seeds)).save, args=(folder,))
        saver.start()
        saver.join(0.05 if len(savers) == 9 else 30)
        savers.append(saver)
        return manifest

    small_index(seed=1000).save(tmp_path)
    monkeypatch.setattr(module, "read_manifest", read_then_save)
    assert held(bitweigh.load(tmp_path)) == held(small_index(seed=8))
    savers[-1].join(30)
    assert len(savers) == 10
    monkeypatch.undo()
    assert held(bitweigh.load(tmp_path)) == held(small_index(seed=9))
