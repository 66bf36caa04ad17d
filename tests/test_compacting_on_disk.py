"""compact() of mapped lean indexes: the same answers, bounded memory, and files that go away."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import assert_same

import bitweigh
from bitweigh._disk.owned import OwnedFolder
from bitweigh._index.state import State
from bitweigh._streaming.sources import BATCH_ROWS
from bitweigh._streaming.stored_rows import StoredRows

N_BITS = 40
COSTS = np.random.default_rng(4).standard_normal((10, N_BITS, 2))


def some_codes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, N_BITS // 8), dtype=np.uint8)


def lean(tmp_path: Path, name: str, codes: np.ndarray, ids: np.ndarray) -> bitweigh.Index:
    batches = zip(np.array_split(codes, 3), np.array_split(ids, 3), strict=True)
    return bitweigh.Index.from_batches(batches, tmp_path / name, layout="lean")


def assert_has(index: bitweigh.Index, codes: np.ndarray, ids: np.ndarray) -> None:
    """Check all that an index has against the definition."""
    order = np.argsort(ids)
    assert np.array_equal(index.ids, ids[order])
    assert np.array_equal(index.codes_of(ids[order]), codes[order])
    for method in ("auto", "probe", "scan"):
        for costs, found in zip(COSTS, index.search(COSTS, 7, method=method).ids, strict=True):
            expected = bitweigh.reference.search(codes, costs, 7, ids=ids)
            assert np.array_equal(found, expected.ids)
            assert_same(index.search(costs, 7, method=method), expected)


@pytest.mark.parametrize("n", [1, 33, BATCH_ROWS + 1])
def test_merged_lean_segments_become_one_with_the_same_rows(tmp_path: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    codes, ids = some_codes(2 * n + 5, n), rng.permutation(5 * n + 50)[: 2 * n + 5]
    index = lean(tmp_path, "a", codes[:n], ids[:n])
    index.merge(lean(tmp_path, "b", codes[n:], ids[n:]))
    assert [part.segment.lean_order for part in index._state.segments] == ["big", "big"]
    assert_has(index, codes, ids)
    index.compact()
    (part,) = index._state.segments
    assert part.segment.lean_order == "big"
    assert index._state.tail is None
    assert_has(index, codes, ids)


def test_removed_rows_are_gone_and_added_ones_are_there(tmp_path: Path) -> None:
    n = 2 * BATCH_ROWS + 77
    codes, ids = some_codes(n, 1), np.random.default_rng(2).permutation(9 * n)[:n]
    index = lean(tmp_path, "a", codes, ids)
    index.remove(ids[10_000:50_000])
    more = some_codes(3000, 3)
    index.add(more[:2000])
    index.add(more[2000:])
    index.replace(more[:5], ids[:5])
    next_id = index._state.next_id
    index.compact()
    assert index.memory().removed == 0
    assert len(list(index._state.parts())) == 1
    kept = np.concatenate([more[:5], codes[5:10_000], codes[50_000:], more])
    kept_ids = np.concatenate([ids[:10_000], ids[50_000:], ids.max() + 1 + np.arange(3000)])
    assert_has(index, kept, kept_ids)
    assert index._state.next_id == next_id


def test_all_rows_may_be_removed(tmp_path: Path) -> None:
    index = lean(tmp_path, "a", some_codes(50, 0), np.arange(50))
    index.remove(index.ids)
    index.compact()
    assert len(index) == 0


def test_a_compact_index_is_left_as_it_is(tmp_path: Path) -> None:
    index = lean(tmp_path, "a", some_codes(50, 0), np.arange(50))
    before = index._state
    index.compact()
    assert index._state is before
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def test_files_are_beside_the_index_until_nothing_uses_them(tmp_path: Path) -> None:
    index = lean(tmp_path, "a", some_codes(5000, 0), np.arange(5000))
    index.remove([3])
    index.compact()
    (folder,) = tmp_path.glob("a.compacting-*")
    assert {path.name for path in folder.iterdir()} == {"index"}
    copy = index.copy()
    del index
    gc.collect()
    assert folder.exists()
    assert len(copy) == 4999
    del copy
    gc.collect()
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert len(bitweigh.Index.load(tmp_path / "a")) == 5000


@pytest.mark.parametrize("target", ["a", "other"])
def test_a_save_links_the_new_files(tmp_path: Path, target: str) -> None:
    codes = some_codes(5000, 0)
    index = lean(tmp_path, "a", codes, np.arange(5000))
    index.remove([3])
    index.compact()
    (folder,) = tmp_path.glob("a.compacting-*/index")
    new = {path.name: path.stat().st_ino for path in folder.glob("*.npy")}
    index.save(tmp_path / target)
    saved = {path.name: path.stat().st_ino for path in (tmp_path / target).glob("*.npy")}
    assert saved == new
    del index
    gc.collect()
    assert not folder.exists()
    loaded = bitweigh.Index.load(tmp_path / target)
    loaded.verify()
    assert_has(loaded, np.delete(codes, 3, axis=0), np.delete(np.arange(5000), 3))


def test_a_save_copies_where_files_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = lean(tmp_path, "a", some_codes(500, 0), np.arange(500))
    index.remove([3])
    index.compact()

    def refuse(*_: object) -> None:
        raise OSError(18, "another disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    index.save(tmp_path / "other")
    monkeypatch.undo()
    bitweigh.Index.load(tmp_path / "other").verify()


def test_a_compacted_index_that_was_not_saved_is_pickled_whole(tmp_path: Path) -> None:
    import pickle

    codes = some_codes(500, 0)
    index = lean(tmp_path, "a", codes, np.arange(500))
    index.remove([0])
    index.compact()
    data = pickle.dumps(index)
    del index
    gc.collect()
    assert_has(pickle.loads(data), codes[1:], np.arange(1, 500))


def test_a_failed_build_leaves_the_index_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = lean(tmp_path, "a", some_codes(500, 0), np.arange(500))
    index.remove([3])
    before = index._state
    with pytest.raises(ValueError, match="build_memory must be from 134217728"):
        index.compact(build_memory=1000)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bitweigh._streaming.batches.build_lean", full)
    with pytest.raises(OSError, match="No space left"):
        index.compact()
    assert index._state is before
    assert {path.name for path in tmp_path.iterdir()} == {"a"}


def test_removals_and_additions_meanwhile_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = some_codes(5000, 0)
    index = lean(tmp_path, "a", codes, np.arange(5000))
    index.remove(np.arange(10))
    from bitweigh._streaming import batches

    real = batches.build_lean

    def slow(*arguments: object, **options: object) -> object:
        index.remove(np.arange(40, 80))
        index.add(codes[:2], ids=[9000, 9001])
        monkeypatch.undo()
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("bitweigh._streaming.batches.build_lean", slow)
    index.compact()
    kept = np.r_[10:40, 80:5000]
    assert_has(index, np.concatenate([codes[kept], codes[:2]]), np.r_[kept, 9000, 9001])


def test_folders_of_killed_processes_are_removed_and_those_of_others_are_not(
    tmp_path: Path,
) -> None:
    script = """
import os, sys, time
from pathlib import Path
from bitweigh._disk.owned import OwnedFolder
folder = OwnedFolder(Path(sys.argv[1]), "x.compacting")
(folder.path / "file").touch()
print(folder.path, flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        others = Path(process.stdout.readline().strip())
        mine = OwnedFolder(tmp_path, "x.compacting")
        assert others.exists()
        process.kill()
    second = OwnedFolder(tmp_path, "x.compacting")
    assert not others.exists()
    assert mine.path.exists()
    mine.remove()
    second.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_remove_its_parents_folder(tmp_path: Path) -> None:
    folder = OwnedFolder(tmp_path, "x")
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    folder.remove()
    assert not folder.path.exists()


def test_ids_in_both_indexes_are_refused_or_replaced_by_a_merge(tmp_path: Path) -> None:
    codes = some_codes(300, 0)
    index = lean(tmp_path, "a", codes[:100], np.arange(100))
    other = lean(tmp_path, "b", codes[100:], np.arange(60, 260))
    other.remove([60, 61])
    before = index._state
    with pytest.raises(ValueError, match=r"ids must be new, but ids\[\d+\] = \d+ is in use"):
        index.merge(other)
    assert index._state is before
    index.merge(other, on_duplicate="replace")
    assert_has(index, np.concatenate([codes[:62], codes[102:]]), np.arange(260))
    index.compact()
    assert_has(index, np.concatenate([codes[:62], codes[102:]]), np.arange(260))


def test_adding_never_copies_lean_rows_into_memory(tmp_path: Path) -> None:
    index = lean(tmp_path, "a", some_codes(2000, 0), np.arange(2000))
    index.add(some_codes(50_000, 1))
    assert [part.segment.lean_order for part in index._state.segments] == ["big", None]


def test_rows_are_read_from_any_row_to_any_other(tmp_path: Path) -> None:
    n = BATCH_ROWS + 500
    index = lean(tmp_path, "a", some_codes(n, 0), np.arange(n))
    index.remove(np.arange(0, n, 3))
    some_rows = index._state.segments[0].segment.ids_of(np.arange(100, 300, dtype=np.uint32))
    index.remove(some_rows, on_missing="ignore")
    index.add(some_codes(10, 1))
    source = StoredRows(index._state)
    assert source.rows == len(index)
    ids = np.concatenate([batch[1] for batch in source.read(0, source.rows)])
    assert np.array_equal(np.sort(ids), index.ids)
    for first, last in [(0, 1), (7, 8), (20_000, 21_990), (source.rows - 11, source.rows)]:
        batches = list(source.read(first, last))
        assert np.array_equal(np.concatenate([batch[1] for batch in batches]), ids[first:last])
        codes = np.concatenate([batch[0] for batch in batches])
        assert np.array_equal(codes, index.codes_of(ids[first:last]))


def test_a_sample_is_from_all_of_the_rows(tmp_path: Path) -> None:
    n = 200_000
    index = lean(tmp_path, "a", some_codes(n, 0), np.arange(n))
    sample = np.concatenate([codes for codes, _ in StoredRows(index._state).sample(20_000)])
    assert 10_000 < len(sample) <= 20_000
    # Rows are sorted: the first ones alone would all have the same value of some bits.
    share = np.unpackbits(sample, axis=1).mean(axis=0)
    assert share.min() > 0.3
    assert share.max() < 0.7
    assert StoredRows(State()).rows == 0


MEMORY_SCRIPT = """
import sys, threading
from pathlib import Path
import numpy as np
import bitweigh

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

peak, ended = 0, threading.Event()
def sample():
    global peak
    while not ended.wait(0.005):
        peak = max(peak, anonymous())

folder = Path(sys.argv[1])
index = bitweigh.Index.load(folder / "a", mmap=True)
index.merge(bitweigh.Index.load(folder / "b", mmap=True))
sampler = threading.Thread(target=sample)
sampler.start()
index.compact(build_memory=128 << 20, threads=2)
index.save(folder / "c")
ended.set()
sampler.join()
assert len(index) == 6_000_000
print(peak)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_stays_within_build_memory(tmp_path: Path) -> None:
    # All codes and ids together would take 96 MB, and a plain segment of them 168 MB more.
    for number, name in enumerate("ab"):
        rng = np.random.default_rng(number)
        pieces = (
            (rng.integers(0, 256, (300_000, 8), np.uint8), first + np.arange(300_000))
            for first in range(number * 3_000_000, (number + 1) * 3_000_000, 300_000)
        )
        bitweigh.Index.from_batches(pieces, tmp_path / name, layout="lean")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= 1.1 * (128 << 20)
