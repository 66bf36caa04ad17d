"""Vector indexes on disk: loaded unchanged, old or new after a stopped save, damage named."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from storage_cases import (
    DATA,
    StoppedError,
    Stopping,
    changed,
    content,
    old_vectors,
    other_vectors,
    stopped_at_every_step,
)

import bitweigh
from bitweigh._disk import folders
from bitweigh._storage import attachments, index_files, vector_files
from bitweigh._storage import folder as files
from bitweigh._storage.manifest import MANIFEST
from bitweigh.hashers import LSH
from bitweigh.vector_index import VectorIndex
from bitweigh.weighers import Asym


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("make", [old_vectors, other_vectors])
def test_a_loaded_index_is_the_one_that_was_saved(
    make: Callable[[], VectorIndex], mmap: bool, tmp_path: Path
) -> None:
    index = make()
    changed(index)
    index.save(tmp_path / "a" / "b")
    loaded = VectorIndex.load(tmp_path / "a" / "b", mmap=mmap)
    assert content(loaded) == content(index)
    for own in (index, loaded):
        own.add(DATA[250:])
        own.remove([341, 380])
    assert content(loaded) == content(index)
    loaded.save(str(tmp_path / "a" / "b"))
    assert content(VectorIndex.load(str(tmp_path / "a" / "b"), mmap=mmap)) == content(index)
    loaded.compact()
    assert content(loaded) == content(index)


def test_options_and_seed_are_kept(tmp_path: Path) -> None:
    index = VectorIndex(n_bits=9, hasher="lsh", seed=7, bands=2, band_bits=3, memory_limit=10**9)
    index.fit(DATA).save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert loaded._seed == 7
    assert loaded._options == {
        "bands": 2,
        "band_bits": 3,
        "memory_limit": 10**9,
        "build": "auto",
    }
    loaded.fit(DATA)
    assert repr(loaded) == repr(index)


@pytest.mark.parametrize("mmap", [False, True])
def test_an_empty_index_that_keeps_vectors_can_be_saved(mmap: bool, tmp_path: Path) -> None:
    VectorIndex(n_bits=9, hasher="lsh", rerank="float32").fit(DATA).save(tmp_path)
    loaded = VectorIndex.load(tmp_path, mmap=mmap)
    loaded.add(DATA)
    np.testing.assert_array_equal(loaded.vectors_of([7]), DATA[7:8])


def test_only_vectors_that_are_left_are_saved(tmp_path: Path) -> None:
    index = old_vectors()
    changed(index)
    index.save(tmp_path)
    (path,) = tmp_path.glob("vectors-*.npy")
    assert np.load(path).shape == (len(index), 8)
    (path,) = tmp_path.glob("vector_ids-*.npy")
    np.testing.assert_array_equal(np.load(path), index.ids)


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    index = old_vectors()
    index.save(tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.glob("*-*")}
    assert len(before) == 7  # three arrays of codes, hasher, weigher, vectors and their ids
    index.save(tmp_path)
    assert {path: path.stat().st_ino for path in tmp_path.glob("*-*")} == before


def test_a_mapped_index_outlives_the_folder_it_came_from(tmp_path: Path) -> None:
    index = old_vectors()
    index.save(tmp_path)
    mapped = VectorIndex.load(tmp_path, mmap=True)
    other_vectors().save(tmp_path)
    assert content(mapped) == content(index)
    mapped.save(tmp_path)
    assert content(VectorIndex.load(tmp_path)) == content(index)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("new", ["changed", "other"])
def test_wherever_a_save_stops_the_folder_has_the_old_index_or_the_new(
    new: str, clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = old_vectors()
    before = content(index)
    index.save(tmp_path / "start")
    if new == "changed":
        changed(index)
    else:
        index = other_vectors()
    after = content(index)
    assert after != before
    seen = []
    start = tmp_path / "start"
    for folder in stopped_at_every_step(index.save, start, tmp_path, monkeypatch, clean=clean):
        seen += [content(VectorIndex.load(folder, mmap=mmap)) for mmap in (False, True)]
        index.save(folder)
        assert content(VectorIndex.load(folder)) == after
    assert len(seen) > 24
    assert set(seen) == {before, after}
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)


@pytest.mark.parametrize("steps", range(16))  # seven files and the manifest
def test_a_first_save_that_stops_leaves_no_index(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = Stopping(monkeypatch, clean=steps % 2 == 0)
    stopping.steps_left = steps
    with pytest.raises(StoppedError):
        old_vectors().save(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        VectorIndex.load(tmp_path / "a" / "b")
    assert (tmp_path / "a").exists() == (steps % 2 == 1 and steps > 0)
    stopping.steps_left = 10**6
    old_vectors().save(tmp_path / "a" / "b")
    assert content(VectorIndex.load(tmp_path / "a" / "b")) == content(old_vectors())


def test_a_vector_replaced_by_one_with_the_same_code_is_saved_at_once(tmp_path: Path) -> None:
    index = VectorIndex(n_bits=2, hasher="lsh", rerank="float32").fit(DATA)
    index.add(DATA[:1])
    index.save(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    index.add(DATA[:1] * np.float32(1.001), ids=[0], on_duplicate="replace")
    index.save(tmp_path)
    after = {path.name for path in tmp_path.iterdir()}
    assert [name.partition("-")[0] for name in after - before] == ["vectors"]
    assert content(VectorIndex.load(tmp_path)) == content(index)


def test_bands_that_a_search_builds_during_a_save_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = old_vectors()
    write = files.write_synced

    def write_and_build(*own: Any) -> Path:
        index.index.build()
        return write(*own)

    monkeypatch.setattr(files, "write_synced", write_and_build)
    index.save(tmp_path)
    assert content(VectorIndex.load(tmp_path)) == content(index)


@pytest.mark.parametrize("mmap", [False, True])
def test_loading_while_another_saves_gives_one_of_both(
    mmap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_vectors().save(tmp_path)
    make, saved = index_files.content_from, []

    def save_then_make(*arguments: Any) -> Any:
        if not saved:
            saved.append(True)
            other_vectors().save(tmp_path)
        return make(*arguments)

    monkeypatch.setattr(index_files, "content_from", save_then_make)
    assert content(VectorIndex.load(tmp_path, mmap=mmap)) == content(other_vectors())


def test_the_codes_of_a_mapped_index_are_pickled_as_the_place_where_they_are(
    tmp_path: Path,
) -> None:
    old_vectors().save(tmp_path)
    mapped = VectorIndex.load(tmp_path, mmap=True).index
    assert len(pickle.dumps(mapped)) < 1000
    again = pickle.loads(pickle.dumps(mapped))
    np.testing.assert_array_equal(again.codes_of(again.ids), mapped.codes_of(mapped.ids))
    pickled = pickle.dumps(mapped)
    other_vectors().save(tmp_path)
    with pytest.raises(ValueError, match="has another index"):
        pickle.loads(pickled)
    assert len(pickle.loads(pickle.dumps(mapped))) == 200


def test_a_checksum_tells_one_saved_index_from_another(tmp_path: Path) -> None:
    old_vectors().save(tmp_path)
    before = vector_files.checksum_of(tmp_path)
    old_vectors().save(tmp_path)
    assert vector_files.checksum_of(tmp_path) == before
    other_vectors().save(tmp_path)
    assert vector_files.checksum_of(tmp_path) != before


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "notes.txt").write_text("mine")
    yield tmp_path
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_folders_of_others_are_not_written_to(foreign: Path) -> None:
    with pytest.raises(FileExistsError, match=r"holds no vector index, but 'notes\.txt'"):
        old_vectors().save(foreign)
    with pytest.raises(FileExistsError, match="is a file"):
        old_vectors().save(foreign / "notes.txt")
    (foreign / MANIFEST).write_text("{}")
    with pytest.raises(FileExistsError, match=r"manifest\.json is not that of a vector index"):
        old_vectors().save(foreign)
    assert names(foreign) == {"notes.txt", MANIFEST}


def test_an_index_of_codes_is_not_taken_for_one_of_vectors(tmp_path: Path) -> None:
    old_vectors().index.save(tmp_path)
    with pytest.raises(FileExistsError, match="holds an index, not a vector index"):
        old_vectors().save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"not a vector index: bitweigh\.load reads it"):
        VectorIndex.load(tmp_path)
    assert len(bitweigh.load(tmp_path)) == 200


def test_an_index_of_vectors_is_not_taken_for_one_of_codes(tmp_path: Path) -> None:
    old_vectors().save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match="holds a vector index, not an index"):
        old_vectors().index.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_hasher_of_your_own_kind_is_not_saved(tmp_path: Path) -> None:
    class Derived(LSH):
        pass

    index = VectorIndex(hasher=Derived(9), weigher=Asym()).fit(DATA)
    with pytest.raises(TypeError, match="can be saved, got Derived"):
        index.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("clean", [True, False])
def test_first_saves_stopped_anywhere_refuse_no_later_one(
    clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = Stopping(monkeypatch, clean)
    # The first is stopped early, before and after its manifest is written; then another.
    for first, second in itertools.product((3, 14, 15), (0, 2, 5, 7)):
        folder = tmp_path / f"{first}-{second}"
        stopped = 0
        for index, steps in ((old_vectors(), first), (other_vectors(), second)):
            stopping.steps_left = steps
            try:
                index.save(folder)
            except StoppedError:
                stopped += 1
                assert folder.exists() == (not clean)
                with pytest.raises(FileNotFoundError):
                    VectorIndex.load(folder)
        assert stopped == 2
        stopping.steps_left = 10**6
        old_vectors().save(folder)
        assert content(VectorIndex.load(folder)) == content(old_vectors())


def test_a_first_save_that_cannot_sync_its_new_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        monkeypatch.undo()
        raise OSError(5, f"Input/output error in {folder}")

    monkeypatch.setattr(folders, "sync_folder", fail)
    with pytest.raises(OSError, match="Input/output"):
        old_vectors().save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    old_vectors().save(tmp_path / "new")
    assert content(VectorIndex.load(tmp_path / "new")) == content(old_vectors())


def test_a_failed_save_leaves_the_old_files_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_vectors().save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    write = files.write_synced

    def write_until_full(folder: Path, name: str, data: Any) -> Path:
        if name == MANIFEST:
            raise OSError(28, "No space left on device")
        return write(folder, name, data)

    monkeypatch.setattr(files, "write_synced", write_until_full)
    with pytest.raises(OSError, match="No space left"):
        other_vectors().save(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_loading_while_two_are_saved_in_turns_gives_one_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_vectors().save(tmp_path)
    read, reads = attachments.read_attachments, []

    def save_then_read(*arguments: Any) -> Any:
        # The files are gone, but by then the manifest is the old one again.
        reads.append(True)
        if len(reads) > 1:
            return read(*arguments)
        other_vectors().save(tmp_path)
        try:
            return read(*arguments)
        finally:
            old_vectors().save(tmp_path)

    monkeypatch.setattr(attachments, "read_attachments", save_then_read)
    assert content(VectorIndex.load(tmp_path)) == content(old_vectors())
    assert len(reads) == 2
