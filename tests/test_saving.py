"""What a save may and may not touch: other files, other indexes, locks, new folders."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from storage_cases import make_index, sealed

import bitweigh
from bitweigh import hashers
from bitweigh._disk import folders
from bitweigh._disk.folders import locked_folder
from bitweigh._storage import folder as folder_module
from bitweigh._storage.manifest import MANIFEST


def small() -> bitweigh.Index:
    index = bitweigh.Index(8)
    index.add(np.zeros((3, 1), dtype=np.uint8))
    return index


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("later", [False, True])
def test_a_failed_save_removes_what_it_wrote_and_nothing_else(
    later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_index().save(tmp_path)
    manifest = tmp_path / MANIFEST
    if later:
        # This version cannot know which files a format that it does not read needs.
        raw = manifest.read_bytes().replace(b'"version": 1', b'"version": 2')
        manifest.write_bytes(sealed(raw))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_synced = folder_module.write_synced

    def write_until_full(folder: Path, name: str, data: Iterable[memoryview]) -> Path:
        if name == MANIFEST:
            raise OSError(28, "No space left on device")
        return write_synced(folder, name, data)

    monkeypatch.setattr(folder_module, "write_synced", write_until_full)
    with pytest.raises(OSError, match="No space left"):
        small().save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_save_fails_at_once_where_the_old_manifest_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_index().save(tmp_path)
    before = names(tmp_path)

    def fail(folder: Path) -> None:
        raise OSError(5, f"Input/output error in {folder}")

    monkeypatch.setattr(folder_module, "read_manifest", fail)
    with pytest.raises(OSError, match="Input/output"):
        small().save(tmp_path)
    assert names(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_save_does_not_wait_for_a_child_forked_during_the_last_one(tmp_path: Path) -> None:
    with locked_folder(tmp_path):
        child = os.fork()
        if child == 0:
            time.sleep(5)
            os._exit(0)
    start = time.monotonic()
    with locked_folder(tmp_path):
        took = time.monotonic() - start
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert took < 3


def test_a_manifest_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"name": "a browser extension"}')
    with pytest.raises(FileExistsError, match=r"manifest\.json is not that of an index"):
        small().save(tmp_path)
    assert "browser" in (tmp_path / MANIFEST).read_text()


def test_every_new_folder_is_synced_in_the_one_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(folders, "sync_folder", synced.append)
    small().save(tmp_path / "a" / "b")
    assert set(synced) == {tmp_path, tmp_path / "a"}


def vector_index() -> bitweigh.VectorIndex:
    vectors = np.random.default_rng(0).standard_normal((60, 8))
    index = bitweigh.VectorIndex(n_bits=8).fit(vectors)
    index.add(vectors)
    return index


def test_a_vector_index_does_not_replace_an_index_that_is_not_its_own(tmp_path: Path) -> None:
    small().save(tmp_path / "index")
    with pytest.raises(FileExistsError, match="no vector index, but 'index'"):
        vector_index().save(tmp_path)
    assert len(bitweigh.load(tmp_path / "index")) == 3


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_vector_index_saved_again_repairs_its_hasher(damage: str, tmp_path: Path) -> None:
    index = vector_index()
    index.save(tmp_path / "vectors")
    path = next((tmp_path / "vectors").glob("hasher-*.npz"))
    raw = path.read_bytes()
    path.write_bytes(b"" if damage == "cut" else raw[:300] + bytes([raw[300] ^ 1]) + raw[301:])
    index.save(tmp_path / "vectors")
    assert len(bitweigh.VectorIndex.load(tmp_path / "vectors")) == 60


def test_loading_the_folder_of_a_vector_index_says_which_function_reads_it(tmp_path: Path) -> None:
    vector_index().save(tmp_path / "vectors")
    with pytest.raises(FileNotFoundError, match=r"a vector index, .*: bitweigh\.load reads it"):
        bitweigh.Index.load(tmp_path / "vectors")
    assert isinstance(bitweigh.load(tmp_path / "vectors"), bitweigh.VectorIndex)


def test_two_threads_that_save_one_hasher_leave_a_whole_file(tmp_path: Path) -> None:
    hasher = vector_index().hasher
    path = tmp_path / "hasher.npz"
    hasher.save(path)

    def save_and_load(_: int) -> int:
        hasher.save(path)
        return hashers.load(path).n_bits_

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(save_and_load, range(200))) == {8}
    assert names(tmp_path) == {"hasher.npz"}
