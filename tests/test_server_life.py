"""The folder of a server: what a start finds in it, what becomes of damage, of cut-off changes."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.server.stored import read_stored, stored_in
from benchmarks.server.writing import COLLECTION
from server_folders import (
    BY_HAND,
    SERVE,
    check_whole,
    collection_folder,
    filled_store,
    items,
    make_killed,
)

from bitweigh.errors import CorruptFileError
from bitweigh.server.changes import Item, Remove, Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition
from bitweigh.server.problems import Problem
from bitweigh.server.snapshots import restore, snapshot_path, take_snapshot
from bitweigh.server.store import Store


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_killed(tmp_path_factory.mktemp("killed"))


@pytest.fixture
def data(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed, tmp_path / "data")
    return tmp_path / "data"


def damage(path: Path, kind: str) -> None:
    if kind == "missing":
        path.unlink()
        return
    content = bytearray(path.read_bytes())
    if kind == "flipped":
        content[len(content) // 2] ^= 1
    else:
        del content[len(content) // 2 :]
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["missing", "flipped", "cut"])
def test_a_damaged_checkpoint_is_made_again_from_the_record(
    data: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    index = collection_folder(data) / "index"
    names = sorted(path.name for path in index.iterdir())
    assert len(names) >= 2
    for name in names:
        work = data.with_name(f"damaged {name}")
        shutil.copytree(data, work)
        damage(collection_folder(work) / "index" / name, kind)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            store = Store(work, BY_HAND)
        check_whole(store)
        assert "rebuilding from the record" in caplog.text
        store.close()
        found = read_stored(work, data.with_name("copy"))
        assert found.wrong == []
        assert found.replayed == 0


def test_a_checkpoint_that_is_newer_than_the_record_is_not_used(data: Path) -> None:
    store = Store(data, BY_HAND)
    store[COLLECTION].checkpoint()
    newer = data.with_name("newer")
    shutil.copytree(collection_folder(data) / "index", newer)
    store.close()
    record = collection_folder(data) / "record.sqlite"
    connection = sqlite3.connect(record)
    connection.execute("DELETE FROM items WHERE seq > 1")
    connection.execute("UPDATE facts SET value = 1 WHERE name = 'seq'")
    connection.commit()
    connection.close()
    store = Store(data, BY_HAND)
    found = stored_in(store)
    store.close()
    assert found.wrong == []
    assert found.seq == 1


@pytest.mark.parametrize("kind", ["no database", "damaged page", "missing", "no record"])
def test_a_damaged_record_keeps_the_server_from_starting_and_is_named(
    data: Path, kind: str
) -> None:
    Store(data, BY_HAND).close()
    record = collection_folder(data) / "record.sqlite"
    if kind == "missing":
        record.unlink()
    elif kind == "no record":
        record.unlink()
        connection = sqlite3.connect(record)
        connection.execute("CREATE TABLE other(id)")
        connection.close()
    else:
        content = bytearray(record.read_bytes())
        start = 0 if kind == "no database" else 2 * 4096
        content[start : start + 2000] = bytes(range(250)) * 8
        record.write_bytes(content)
    before = record.read_bytes() if record.exists() else b""
    with pytest.raises(CorruptFileError, match=r"record\.sqlite"):
        Store(data, BY_HAND)
    assert (record.read_bytes() if record.exists() else b"") == before
    if kind == "damaged page":
        done = subprocess.run(
            [*SERVE, str(data), "--port", "0"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert f"error: {record}: " in done.stderr


class Failing:
    """Stands for `Contents.add`: fails some times, then waits until it may work."""

    def __init__(self, collection: Collection, failures: int) -> None:
        self._add = collection.contents.add
        self.failures = failures
        self.go_on = threading.Event()

    def __call__(self, *arguments: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("out of luck")
        assert self.go_on.wait(30)
        self._add(*arguments)


def wait_until_unavailable(collection: Collection) -> None:
    deadline = time.monotonic() + 30
    while collection.ready:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    with pytest.raises(Problem, match="is being rebuilt") as caught:
        collection.searchable()
    assert caught.value.status == 503


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    store = filled_store(tmp_path / "opened")
    yield store
    store.close()


def test_a_change_that_the_index_cannot_take_stops_searches_until_it_is_rebuilt(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = opened[COLLECTION]
    failing = Failing(collection, 1)
    monkeypatch.setattr(collection.contents, "add", failing)
    writing = threading.Thread(target=collection.written, args=(items(100, 10, 7),))
    writing.start()
    wait_until_unavailable(collection)
    with pytest.raises(Problem, match="is being rebuilt"), collection.pinned():
        pass
    # No checkpoint is made of half a change.
    before = collection.checkpoint_seq
    assert collection.checkpoint() == before
    failing.go_on.set()
    writing.join()
    assert collection.ready
    found = stored_in(opened)
    assert found.wrong == []
    assert found.items[105][1] == 7


def test_an_index_that_cannot_be_rebuilt_at_once_is_rebuilt_later(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = opened[COLLECTION]
    failing = Failing(collection, 3)
    failing.go_on.set()
    monkeypatch.setattr(collection.contents, "add", failing)
    # On the disk, so acknowledged; searches wait.
    assert collection.written(items(100, 10, 7)).n_items == 10
    assert not collection.ready
    with pytest.raises(Problem, match="is being rebuilt"):
        collection.searchable()
    with pytest.raises(RuntimeError, match="out of luck"):
        collection.mend()
    collection.mend()
    found = stored_in(opened)
    assert found.wrong == []
    assert found.items[105][1] == 7


KINDS = [
    Definition(kind="embeddings", dim=16),
    Definition(kind="embeddings", dim=16, rescore="float16"),
    Definition(kind="vectors", dim=16, n_bits=16, fit_after=50),
    Definition(kind="vectors", dim=16, n_bits=32, hasher="lsh", rerank="float32", fit_after=50),
]


@pytest.mark.parametrize("definition", KINDS, ids=["bits", "rescored", "vectors", "reranked"])
@pytest.mark.parametrize("saved_at", [None, 2, 5])
def test_every_kind_of_collection_is_the_same_after_a_kill(
    definition: Definition, saved_at: int | None, tmp_path: Path
) -> None:
    chance = np.random.default_rng(7)
    store = Store(tmp_path / "data", BY_HAND)
    collection, _ = store.create("made", definition)
    for step in range(7):
        ids = chance.choice(200, 60, replace=False).tolist()
        vectors = chance.normal(size=(60, 16)).astype("<f4")
        values = [collection.contents.value_of_row(row, is_code=False) for row in vectors]
        rows = zip(ids, values, strict=True)
        collection.written(Upsert([Item(id_, None, value, None) for id_, value in rows]))
        collection.written(Remove(chance.choice(200, 30, replace=False).tolist()))
        if step == saved_at:
            collection.checkpoint()
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    queries = chance.normal(size=(5, 16)).astype(np.float32)
    expected = answers_of(collection, queries)
    store.close()
    again = Store(tmp_path / "killed", BY_HAND)
    found = answers_of(again["made"], queries)
    again.close()
    assert found[0] == expected[0]
    if definition.kind == "embeddings" or saved_at is not None:
        # Without a checkpoint, what was learned is learned again, from other vectors.
        assert found[1] == expected[1]


def answers_of(collection: Collection, queries: Any) -> tuple[list[int], list[list[int]]]:
    """Return the ids of index and record, which must be the same, and those that are found."""
    with collection.pinned() as (reader, view):
        ids = [row.id for row in reader.page(-1, 10**9)]
        assert view.codes is not None
        assert sorted(view.codes.ids.tolist()) == ids
        options = {"timeout": 10.0, "threads": 1, "filter": None}
        found = collection.contents.by_vectors(view.index, view.codes, queries, 9, options)
        return ids, found.ids.tolist()


def test_a_fit_by_hand_is_kept_through_a_kill(tmp_path: Path) -> None:
    store = Store(tmp_path / "data", BY_HAND)
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype("<f4")
    definition = Definition(kind="vectors", dim=8, n_bits=8)
    collection, _ = store.create("vectors", definition)
    collection.written(
        Upsert([Item(id_, None, row.tobytes(), None) for id_, row in enumerate(vectors)])
    )
    assert not collection.fitted
    assert collection.fit() == 40
    query = collection.searchable().index.search(vectors[:3], 5)
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    store.close()
    again = Store(tmp_path / "killed", BY_HAND)
    assert again["vectors"].fitted
    found = again["vectors"].searchable().index.search(vectors[:3], 5)
    assert found.ids.tolist() == query.ids.tolist()
    again.close()


def test_vectors_that_cannot_be_fitted_are_still_acknowledged(tmp_path: Path) -> None:
    store = Store(tmp_path / "data", BY_HAND)
    definition = Definition(kind="vectors", dim=8, n_bits=16, hasher="itq", fit_after=2)
    collection, _ = store.create("vectors", definition)
    same = np.ones(8, "<f4").tobytes()
    written = collection.written(Upsert([Item(id_, None, same, None) for id_ in range(3)]))
    assert written.n_items == 3
    assert collection.count() == 3
    store.close()


def test_a_state_from_before_a_fit_stays_unfitted(tmp_path: Path) -> None:
    store = Store(tmp_path / "data", BY_HAND)
    definition = Definition(kind="vectors", dim=8, n_bits=16, hasher="lsh", fit_after=3)
    collection, _ = store.create("vectors", definition)
    with collection.pinned() as (_reader, before):
        vector = np.ones(8, "<f4").tobytes()
        collection.written(Upsert([Item(id_, None, vector, None) for id_ in range(3)]))
        assert collection.searchable().codes is not None
        with pytest.raises(Problem, match="no fitted hasher yet"):
            collection.searchable(before)
    store.close()


def test_a_collection_that_is_deleted_while_it_is_saved_leaves_nothing_behind(
    opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = opened[COLLECTION]
    begun, go_on = threading.Event(), threading.Event()
    kind = type(collection._index)
    real = kind.save

    def slow(self: Any, *arguments: Any, **options: Any) -> None:
        begun.set()
        assert go_on.wait(30)
        real(self, *arguments, **options)

    monkeypatch.setattr(kind, "save", slow)
    collection.written(items(500, 10))
    saving = threading.Thread(target=collection.checkpoint)
    saving.start()
    assert begun.wait(30)
    deleting = threading.Thread(target=opened.delete, args=(COLLECTION,))
    deleting.start()
    time.sleep(0.05)
    go_on.set()
    saving.join(30)
    deleting.join(30)
    assert not saving.is_alive()
    assert not deleting.is_alive()
    made, _ = opened.create(COLLECTION, Definition(kind="codes", n_bits=64))
    assert not (made.folder / "index").exists()
    assert made.count() == 0
    with pytest.raises(Problem, match="is being closed"):
        collection.written(items(0, 1))
    with pytest.raises(Problem, match="is being closed"), collection.pinned():
        pass


def test_a_restore_that_is_cut_off_leaves_the_old_collection_or_the_new(
    opened: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    collection = opened[COLLECTION]
    name = take_snapshot(opened, collection)["name"]
    collection.written(items(1000, 5))
    tar = snapshot_path(opened, COLLECTION, name)
    rename = Path.rename
    states: list[Path] = []

    def watched(self: Path, target: Path) -> Path:
        for when in range(2):
            states.append(tmp_path / f"state {len(states)}")
            shutil.copytree(opened.folder, states[-1])
            if when == 0:
                done = rename(self, target)
        return done

    monkeypatch.setattr(Path, "rename", watched)
    restore(opened, COLLECTION, tar)
    monkeypatch.undo()
    assert len(states) == 4
    sizes = []
    for state in states:
        found = read_stored(state, tmp_path / "copy")
        assert found.wrong == []
        sizes.append(len(found.codes))
    assert sizes == [335, 335, 335, 330]


def test_a_damaged_snapshot_does_not_take_the_place_of_a_collection(
    opened: Store, tmp_path: Path
) -> None:
    tar = snapshot_path(opened, COLLECTION, take_snapshot(opened, opened[COLLECTION])["name"])
    whole = bytearray(tar.read_bytes())
    place = whole.index(b"SQLite format 3\0") + 2 * 4096
    whole[place : place + 2000] = bytes(range(250)) * 8
    (tmp_path / "damaged.tar").write_bytes(whole)
    with pytest.raises((CorruptFileError, Problem)):
        restore(opened, COLLECTION, tmp_path / "damaged.tar")
    check_whole(opened)


def test_what_a_killed_server_left_half_done_is_tidied_up(data: Path) -> None:
    for name in ("import-x.parquet", "restore-x.tar"):
        (data / name).write_bytes(b"half")
    for name in ("collections/.creating-x", "collections/.deleting-x", "snapshots/c/.taking-x"):
        (data / name).mkdir(parents=True)
    store = Store(data, BY_HAND)
    check_whole(store)
    store.close()
    left = [str(path) for path in data.rglob("*") if "-x" in path.name]
    assert left == []
