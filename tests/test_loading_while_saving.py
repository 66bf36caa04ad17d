"""Loads during saves: one of the saved indexes, never a mixture, never a false alarm."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from storage_cases import codes_by_id, small_index

import bitweigh
from bitweigh._storage import index_files


@pytest.mark.parametrize("mapped", [False, True])
def test_a_load_starts_anew_when_a_save_comes_in_between(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = index_files.content_from
    saves = [small_index(seed=2), small_index(seed=3)]

    def save_then_make(stored: Any, read: Any, folder: Path) -> Any:
        if saves:
            saves.pop().save(folder)
        return make(stored, read, folder)

    small_index(seed=1).save(tmp_path)
    monkeypatch.setattr(index_files, "content_from", save_then_make)
    assert codes_by_id(bitweigh.load(tmp_path, mmap=mapped)) == codes_by_id(small_index(seed=2))


def test_a_load_gives_up_where_saves_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = index_files.content_from
    seeds = iter(range(1000))

    def save_then_make(stored: Any, read: Any, folder: Path) -> Any:
        small_index(seed=next(seeds)).save(folder)
        return make(stored, read, folder)

    small_index(seed=1000).save(tmp_path)
    monkeypatch.setattr(index_files, "content_from", save_then_make)
    with pytest.raises(OSError, match="faster than it can be read"):
        bitweigh.load(tmp_path)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_load_starts_anew_when_an_equal_index_was_saved_after_another(
    mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, calls = index_files.load_array, []

    def save_then_read(folder: Path, file: Any, **facts: Any) -> object:
        calls.append(folder)
        if len(calls) == 1:
            # The file is missing, but by then the manifest is the old one again.
            small_index(seed=2).save(folder)
            try:
                return read(folder, file, **facts)
            finally:
                small_index(seed=1).save(folder)
        return read(folder, file, **facts)

    small_index(seed=1).save(tmp_path)
    monkeypatch.setattr(index_files, "load_array", save_then_read)
    assert codes_by_id(bitweigh.load(tmp_path, mmap=mapped)) == codes_by_id(small_index(seed=1))
    assert len(calls) > 1


def test_the_last_attempt_to_load_keeps_saves_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, seeds, savers = index_files.content_from, iter(range(1000)), []

    def save_then_make(stored: Any, read: Any, folder: Path) -> Any:
        saver = threading.Thread(target=small_index(seed=next(seeds)).save, args=(folder,))
        saver.start()
        saver.join(0.05 if len(savers) == 9 else 30)
        savers.append(saver)
        return make(stored, read, folder)

    small_index(seed=1000).save(tmp_path)
    monkeypatch.setattr(index_files, "content_from", save_then_make)
    assert codes_by_id(bitweigh.load(tmp_path)) == codes_by_id(small_index(seed=8))
    savers[-1].join(30)
    assert len(savers) == 10
    monkeypatch.undo()
    assert codes_by_id(bitweigh.load(tmp_path)) == codes_by_id(small_index(seed=9))
