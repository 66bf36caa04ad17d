"""Builds on disk that are ended at any step, and continued by the same call."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from storage_cases import StoppedError, Stopping

import bitweigh
from bitweigh._storage import folder
from bitweigh._streaming import batches, build, journal, plain
from bitweigh.typing import RowLayout

CODES = np.random.default_rng(3).integers(0, 256, (3000, 5), dtype=np.uint8) & 0x37


LAYOUTS: list[RowLayout] = ["plain", "lean"]


def small_build(source: Path, index: Path, layout: RowLayout) -> bitweigh.Index:
    return bitweigh.Index.from_batches(source, index, band_bits=8, layout=layout, threads=1)


def contents(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in index.iterdir()}


def small_codes(path: Path) -> Path:
    np.save(path / "all.npy", CODES)
    return path / "all.npy"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_build_ended_before_any_of_its_steps_is_continued_by_the_same_call(
    tmp_path: Path, layout: RowLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    source = small_codes(tmp_path)
    small_build(source, tmp_path / "whole", layout)
    stopping = Stopping(monkeypatch, clean=False)
    ended = 0
    for steps in range(200):
        index = tmp_path / f"index-{steps}"
        stopping.steps_left = steps
        try:
            small_build(source, index, layout)
        except StoppedError:
            ended += 1
            stopping.steps_left = 10**6
            assert len(small_build(source, index, layout)) == len(CODES)
        assert contents(index) == contents(tmp_path / "whole")
        assert not index.with_name(f"{index.name}.building").exists()
        if ended == steps:  # this one was not ended
            break
    # At the least, the files of the build, those of the index and its manifest.
    assert ended > {"plain": 6, "lean": 15}[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_build_ended_while_its_files_are_deleted_is_continued_by_the_same_call(
    tmp_path: Path, layout: RowLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    end = mock.Mock(side_effect=RuntimeError("the end"))
    monkeypatch.setattr(batches.shutil, "rmtree", end)
    with pytest.raises(RuntimeError, match="the end"):
        small_build(source, index, layout)
    monkeypatch.undo()
    assert (tmp_path / "index.building").exists()
    assert len(small_build(source, index, layout)) == len(CODES)
    assert not (tmp_path / "index.building").exists()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_index_saved_where_a_build_was_to_publish_its_own_is_left_alone(
    tmp_path: Path, layout: RowLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    end = mock.Mock(side_effect=RuntimeError("the end"))
    monkeypatch.setattr(batches, f"publish_{layout}", end)
    with pytest.raises(RuntimeError, match="the end"):
        small_build(source, index, layout)
    monkeypatch.undo()
    other = bitweigh.Index(8)
    other.add(np.zeros((3, 1), np.uint8))
    other.save(index)
    with pytest.raises(FileExistsError, match="must not exist or be empty"):
        small_build(source, index, layout)
    assert len(bitweigh.Index.load(index)) == 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_room_for_the_index_its_build_is_kept(
    tmp_path: Path, layout: RowLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(folder, "write_synced", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=r"no room for the build in .* all of it is built"):
        small_build(source, index, layout)
    monkeypatch.undo()
    # Nothing is done again.
    monkeypatch.setattr(build, "do_parts", None)
    monkeypatch.setattr(plain, "do_parts", None)
    assert len(small_build(source, index, layout)) == len(CODES)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_room_for_anything_nothing_is_finished_and_the_error_says_so(
    tmp_path: Path, layout: RowLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(journal, "write_file", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=r"no room for the build in .*: nothing is finished"):
        small_build(small_codes(tmp_path), tmp_path / "index", layout)
