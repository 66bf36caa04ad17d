"""A save may remove or replace only files that are bitweigh's by name and header."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from storage_cases import index_of, vectors_of

import bitweigh
from bitweigh._storage.manifest import MANIFEST
from bitweigh.vector_index import VectorIndex

SUM = "0123456789abcdef" * 2


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "array"),
    [
        (f"embeddings-{SUM}.npy", np.zeros(9, np.uint8)),  # no kind of ours
        (f"codes-{SUM}.npy", np.zeros((3, 3), np.uint8)),  # another number of axes
        (f"ids-{SUM}.npy", np.zeros(9, np.float32)),  # another dtype
        (f"removed-{SUM}.npy", np.asfortranarray(np.zeros((3, 3), np.uint32))),
    ],
)
def test_arrays_of_others_are_left_alone_whatever_their_names(
    name: str, array: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / name, array)
    with pytest.raises(FileExistsError, match=f"holds no index, but '{name}'"):
        index_of(3).save(tmp_path)
    assert names(tmp_path) == {name}
    with pytest.raises(FileExistsError, match=f"holds no vector index, but '{name}'"):
        vectors_of(3).save(tmp_path)
    # They may be beside an index.
    (tmp_path / name).rename(tmp_path.parent / name)
    index_of(3).save(tmp_path)
    (tmp_path.parent / name).rename(tmp_path / name)
    index_of(4).save(tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / name), array)
    assert len(bitweigh.load(tmp_path)) == 4


def test_an_array_that_is_cut_off_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / f"codes-{SUM}.npy"
    np.save(path, np.zeros(9, np.uint8))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileExistsError, match="holds no index, but"):
        index_of(3).save(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "my-bitweigh-index-demo", "start_url": "/"}',
        '{"description": "see \\"format\\": \\"bitweigh-index\\""}',
        '["bitweigh-index"]',
        "bitweigh-vectors",
    ],
)
def test_descriptions_of_others_are_not_replaced_whatever_they_mention(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / MANIFEST).write_text(text)
    for index in (index_of(3), vectors_of(3)):
        with pytest.raises(FileExistsError, match=r"manifest\.json is not that of an? .*index"):
            index.save(tmp_path)
    assert (tmp_path / MANIFEST).read_text() == text
    assert names(tmp_path) == {MANIFEST}


def test_a_manifest_in_another_layout_is_still_ours(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"version": 7, "format": "bitweigh-index"}')
    index_of(3).save(tmp_path)
    assert len(bitweigh.load(tmp_path)) == 3


def test_a_damaged_manifest_that_begins_as_ours_is_replaced(tmp_path: Path) -> None:
    index_of(3).save(tmp_path)
    raw = (tmp_path / MANIFEST).read_bytes()
    (tmp_path / MANIFEST).write_bytes(raw[:100])
    index_of(4).save(tmp_path)
    assert len(bitweigh.load(tmp_path)) == 4
    assert len(names(tmp_path)) == 4  # and the files of the damaged one are gone


def test_an_unfinished_manifest_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    index_of(3).save(tmp_path)
    (tmp_path / "manifest.json.tmp").write_text("mine")
    with pytest.raises(FileExistsError, match=r"manifest\.json\.tmp is not what a save"):
        index_of(4).save(tmp_path)
    assert (tmp_path / "manifest.json.tmp").read_text() == "mine"


@pytest.mark.parametrize("left", [b"", b"\x93NUM", b"\0" * 200, "whole"])
def test_what_a_killed_save_leaves_is_in_nobodys_way(left: bytes | str, tmp_path: Path) -> None:
    index_of(9).save(tmp_path / "whole")
    (codes,) = (tmp_path / "whole").glob("codes-*")
    folder = tmp_path / "index"
    folder.mkdir()
    if isinstance(left, str):
        os.link(codes, folder / codes.name)
    else:
        (folder / f"{codes.name}.tmp").write_bytes(left)
    (folder / "manifest.json.tmp").write_bytes(b'{\n "form')
    index_of(3).save(folder)
    assert len(bitweigh.load(folder)) == 3
    assert len(names(folder)) == 4


def test_a_failed_save_leaves_files_that_an_index_it_cannot_read_may_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_of(3).save(tmp_path)
    (tmp_path / MANIFEST).write_text('{"version": 7, "format": "bitweigh-index"}')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        index_of(3).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["hasher", "weigher"])
def test_archives_of_others_are_left_alone_by_a_vector_index(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}-{SUM}.npz"
    np.savez(path, weights=np.zeros(3))
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="holds no vector index, but"):
        vectors_of(3).save(tmp_path)
    path.rename(tmp_path.parent / path.name)
    vectors_of(3).save(tmp_path)
    (tmp_path.parent / path.name).rename(path)
    vectors_of(4).save(tmp_path)
    assert path.read_bytes() == before
    assert len(VectorIndex.load(tmp_path)) == 4
