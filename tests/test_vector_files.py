"""Vector indexes on disk: the same afterwards, old or new whatever stops a save, damage named."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh._vectors import files, manifest
from bitweigh.hashers import LSH
from bitweigh.vector_index import VectorIndex
from bitweigh.weighers import Asym

RNG = np.random.default_rng(5)
DATA = RNG.standard_normal((300, 8)).astype(np.float32)
QUERIES = RNG.standard_normal((6, 8)).astype(np.float32)


def old_index() -> VectorIndex:
    index = VectorIndex(n_bits=9, hasher="lsh", rerank="float16", band_bits=3).fit(DATA)
    index.add(DATA[:200], ids=range(400, 200, -1))
    return index


def changed(index: VectorIndex) -> None:
    index.remove(range(380, 390), on_missing="ignore")
    index.add(DATA[200:250], ids=range(340, 390), on_duplicate="replace")


def other_index() -> VectorIndex:
    index = VectorIndex(n_bits=7, hasher="sign", weigher="wh", metric="cosine").fit(DATA)
    index.add(DATA[:50])
    return index


def content(index: VectorIndex) -> tuple[Any, ...]:
    """Everything that can be asked."""
    found = index.search(QUERIES, 12)
    kept = b"" if index.rerank is None else index.vectors_of(index.ids).tobytes()
    facts = (repr(index), repr(index.hasher), repr(index.weigher), index.rerank, index.metric)
    return (*facts, index.ids.tobytes(), kept, found.ids.tobytes(), found.distances.tobytes())


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("make", [old_index, other_index])
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
    assert loaded._options == {"bands": 2, "band_bits": 3, "memory_limit": 10**9}
    loaded.fit(DATA)
    assert repr(loaded) == repr(index)


@pytest.mark.parametrize("mmap", [False, True])
def test_an_empty_index_that_keeps_vectors_can_be_saved(mmap: bool, tmp_path: Path) -> None:
    VectorIndex(n_bits=9, hasher="lsh", rerank="float32").fit(DATA).save(tmp_path)
    loaded = VectorIndex.load(tmp_path, mmap=mmap)
    loaded.add(DATA)
    np.testing.assert_array_equal(loaded.vectors_of([7]), DATA[7:8])


def test_only_vectors_that_are_left_are_saved(tmp_path: Path) -> None:
    index = old_index()
    changed(index)
    index.save(tmp_path)
    (path,) = tmp_path.glob("vectors-*.npy")
    assert np.load(path).shape == (len(index), 8)
    (path,) = tmp_path.glob("ids-*.npy")
    np.testing.assert_array_equal(np.load(path), index.ids)


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    index = old_index()
    index.save(tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.glob("*-*")}
    assert len(before) == 4
    index.save(tmp_path)
    assert {path: path.stat().st_ino for path in tmp_path.glob("*-*")} == before


def test_a_mapped_index_outlives_the_folder_it_came_from(tmp_path: Path) -> None:
    index = old_index()
    index.save(tmp_path)
    mapped = VectorIndex.load(tmp_path, mmap=True)
    other_index().save(tmp_path)
    assert content(mapped) == content(index)
    mapped.save(tmp_path)
    assert content(VectorIndex.load(tmp_path)) == content(index)


class StoppedError(Exception):
    pass


class Stopping:
    """Stops a save before one of its steps, or right after the codes are replaced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clean: bool) -> None:
        self.steps_left = 10**6
        self._write, self._save = files.write_synced, bitweigh.Index.save
        monkeypatch.setattr(files, "write_synced", self.write)
        monkeypatch.setattr(bitweigh.Index, "save", lambda *own: self.save(*own))
        if not clean:  # as if the machine had stopped
            monkeypatch.setattr(files, "_clean", lambda *_: None)
            monkeypatch.setattr(files, "_undo", lambda *_: None)

    def step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise StoppedError

    def write(self, *own: Any) -> Path:
        self.step()
        return self._write(*own)

    def save(self, *own: Any) -> None:
        self.step()
        self._save(*own)
        self.step()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("new", ["changed", "other"])
def test_wherever_a_save_stops_the_folder_has_the_old_index_or_the_new(
    new: str, clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = old_index()
    before = content(index)
    index.save(tmp_path / "start")
    if new == "changed":
        changed(index)
    else:
        index = other_index()
    after = content(index)
    assert after != before
    stopping = Stopping(monkeypatch, clean)
    seen = []
    for steps in range(30):
        folder = tmp_path / str(steps)
        shutil.copytree(tmp_path / "start", folder)
        stopping.steps_left = steps
        stopped = False
        try:
            index.save(folder)
        except StoppedError:
            stopped = True
        stopping.steps_left = 10**6
        seen += [content(VectorIndex.load(folder, mmap=mmap)) for mmap in (False, True)]
        index.save(folder)
        assert content(VectorIndex.load(folder)) == after
        if not stopped:
            break
    assert steps >= 5
    assert set(seen) == {before, after}
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)


@pytest.mark.parametrize("steps", range(6))
def test_a_first_save_that_stops_leaves_no_index(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = Stopping(monkeypatch, clean=steps % 2 == 0)
    stopping.steps_left = steps
    with pytest.raises(StoppedError):
        old_index().save(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        VectorIndex.load(tmp_path / "a" / "b")
    assert (tmp_path / "a").exists() == (steps % 2 == 1 and steps > 0)
    stopping.steps_left = 10**6
    old_index().save(tmp_path / "a" / "b")
    assert content(VectorIndex.load(tmp_path / "a" / "b")) == content(old_index())


def test_a_vector_replaced_by_one_with_the_same_code_is_saved_at_once(tmp_path: Path) -> None:
    index = VectorIndex(n_bits=2, hasher="lsh", rerank="float32").fit(DATA)
    index.add(DATA[:1])
    index.save(tmp_path)
    before = (tmp_path / "index" / "manifest.json").read_bytes()
    index.add(DATA[:1] * np.float32(1.001), ids=[0], on_duplicate="replace")
    index.save(tmp_path)
    assert (tmp_path / "index" / "manifest.json").read_bytes() == before
    assert content(VectorIndex.load(tmp_path)) == content(index)


def test_bands_that_a_search_builds_during_a_save_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = old_index()
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
    old_index().save(tmp_path)
    read, saved = files.read, []

    def read_then_save(folder: Path) -> Any:
        found = read(folder)
        if not saved:
            saved.append(True)
            other_index().save(tmp_path)
        return found

    monkeypatch.setattr(files, "read", read_then_save)
    assert content(VectorIndex.load(tmp_path, mmap=mmap)) == content(other_index())


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "notes.txt").write_text("mine")
    yield tmp_path
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_folders_of_others_are_not_written_to(foreign: Path) -> None:
    with pytest.raises(FileExistsError, match=r"holds no vector index, but 'notes\.txt'"):
        old_index().save(foreign)
    with pytest.raises(FileExistsError, match="is a file"):
        old_index().save(foreign / "notes.txt")
    (foreign / manifest.NAME).write_text("{}")
    with pytest.raises(FileExistsError, match=r"vectors\.json is not that of a vector index"):
        old_index().save(foreign)
    assert names(foreign) == {"notes.txt", manifest.NAME}


def test_an_index_of_codes_is_not_taken_for_one_of_vectors(tmp_path: Path) -> None:
    old_index().index.save(tmp_path)
    with pytest.raises(FileExistsError, match="holds no vector index"):
        old_index().save(tmp_path)
    with pytest.raises(FileNotFoundError):
        VectorIndex.load(tmp_path)


def test_a_hasher_of_your_own_kind_is_not_saved(tmp_path: Path) -> None:
    class Own(LSH):
        pass

    index = VectorIndex(hasher=Own(9), weigher=Asym()).fit(DATA)
    with pytest.raises(TypeError, match="can be saved, got Own"):
        index.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("clean", [True, False])
def test_first_saves_stopped_anywhere_refuse_no_later_one(
    clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = Stopping(monkeypatch, clean)
    # The first is stopped before and after it has saved codes; then another, at every step.
    for first, second in itertools.product((4, 5, 6), range(6)):
        folder = tmp_path / f"{first}-{second}"
        stopped = 0
        for index, steps in ((old_index(), first), (other_index(), second)):
            stopping.steps_left = steps
            try:
                index.save(folder)
            except StoppedError:
                stopped += 1
                assert folder.exists() == (not clean)
                with pytest.raises(FileNotFoundError):
                    VectorIndex.load(folder)
        assert stopped == (2 if second < 5 else 1)
        stopping.steps_left = 10**6
        old_index().save(folder)
        assert content(VectorIndex.load(folder)) == content(old_index())


def test_a_first_save_that_cannot_sync_its_new_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_module = sys.modules["bitweigh._storage.save"]

    def fail(folder: Path) -> None:
        monkeypatch.undo()
        raise OSError(5, f"Input/output error in {folder}")

    monkeypatch.setattr(save_module, "_sync_folder", fail)
    with pytest.raises(OSError, match="Input/output"):
        old_index().save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    old_index().save(tmp_path / "new")
    assert content(VectorIndex.load(tmp_path / "new")) == content(old_index())


def test_a_failed_save_leaves_the_old_files_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_index().save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bitweigh.Index, "save", full)
    with pytest.raises(OSError, match="No space left"):
        other_index().save(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_loading_while_two_are_saved_in_turns_gives_one_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_index().save(tmp_path)
    load_index, loads = files.load_index, []

    def save_then_load(folder: Path, **how: Any) -> Any:
        # The codes are those of the other one, and its description has come and gone.
        loads.append(folder)
        if len(loads) > 1:
            return load_index(folder, **how)
        other_index().save(tmp_path)
        found = load_index(folder, **how)
        old_index().save(tmp_path)
        return found

    monkeypatch.setattr(files, "load_index", save_then_load)
    assert content(VectorIndex.load(tmp_path)) == content(old_index())
    assert len(loads) == 2
