"""Index.from_batches: an index built on disk answers as one built in memory does."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from cases import assert_same
from storage_cases import StoppedError, Stopping

import bitweigh
from bitweigh._storage import folder
from bitweigh._streaming import batches, build, journal

N, N_BITS = 60_000, 40


def codes() -> np.ndarray:
    rng = np.random.default_rng(3)
    centres = rng.integers(0, 256, (300, N_BITS // 8), dtype=np.uint8)
    noise = rng.integers(0, 256, (N, N_BITS // 8), dtype=np.uint8) & (
        rng.integers(0, 256, (N, N_BITS // 8), dtype=np.uint8) & 0x11
    )
    return centres[rng.integers(0, 300, N)] ^ noise


def in_memory(ids: np.ndarray | None = None) -> bitweigh.Index:
    index = bitweigh.Index(N_BITS)
    index.add(codes(), ids)
    return index


COSTS = np.random.default_rng(4).standard_normal((20, N_BITS, 2))


def assert_equal_indexes(index: bitweigh.Index, other: bitweigh.Index) -> None:
    assert len(index) == len(other)
    for method in ("auto", "scan"):
        assert_same(index.search(COSTS, 10, method=method), other.search(COSTS, 10))
    assert np.array_equal(index.codes_of(other.ids[::997]), other.codes_of(other.ids[::997]))


@pytest.mark.parametrize("kind", ["file", "files", "batches", "array"])
def test_codes_from_anywhere_are_indexed(tmp_path: Path, kind: str) -> None:
    rows = codes()
    source: object = rows
    if kind == "file":
        np.save(tmp_path / "all.npy", rows)
        source = tmp_path / "all.npy"
    elif kind == "files":
        for number, piece in enumerate(np.array_split(rows, 3)):
            np.save(tmp_path / f"{number}.npy", piece)
        source = [tmp_path / f"{number}.npy" for number in range(3)]
    elif kind == "batches":
        source = iter(np.array_split(rows, 7))
    index = bitweigh.Index.from_batches(source, tmp_path / "index")  # type: ignore[arg-type]
    assert_equal_indexes(index, in_memory())
    assert {path.name for path in tmp_path.iterdir()} - {"index"} <= {
        "all.npy",
        "0.npy",
        "1.npy",
        "2.npy",
    }
    bitweigh.Index.load(tmp_path / "index").verify()


def test_ids_of_ones_own_are_kept_and_the_next_follows_them(tmp_path: Path) -> None:
    ids = np.random.default_rng(5).permutation(10 * N)[:N]
    batches = zip(np.array_split(codes(), 4), np.array_split(ids, 4), strict=True)
    index = bitweigh.Index.from_batches(batches, tmp_path / "index")
    assert_equal_indexes(index, in_memory(ids))
    index.add(codes()[:1])
    assert index.ids[-1] == ids.max() + 1


def test_such_an_index_is_changed_and_saved_like_any_other(tmp_path: Path) -> None:
    index = bitweigh.Index.from_batches(codes(), tmp_path / "index")
    other = in_memory()
    for each in (index, other):
        each.remove([0, 5, N - 1])
        each.add(codes()[:3], [5, 2 * N, 3 * N])
    assert_equal_indexes(index, other)
    index.save(tmp_path / "index")
    assert_equal_indexes(bitweigh.Index.load(tmp_path / "index"), other)


def test_a_row_takes_few_bytes(tmp_path: Path) -> None:
    index = bitweigh.Index.from_batches(codes(), tmp_path / "index", band_bits=8)
    memory = index.memory()
    assert (memory.total - memory.directories) / N == pytest.approx(4 + 4 + 4 + 4, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bands": 3}, "bands must be 1 or 2"),
        ({"n_bits": 65}, "at most 64 bits"),
        ({"n_bits": 33}, "unused bits set|must have shape"),
        ({"build_memory": 10}, "build_memory must be from"),
        ({"bitorder": "middle"}, "bitorder must be"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bitweigh.Index.from_batches(codes(), tmp_path / "index", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "index").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="must not exist or be empty"):
        bitweigh.Index.from_batches(codes(), tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_killed_build_is_resumed_and_gives_the_same_files(tmp_path: Path) -> None:
    np.save(tmp_path / "all.npy", codes())
    program = (
        "import bitweigh, sys; "
        "bitweigh.Index.from_batches(sys.argv[1], sys.argv[2], build_memory=2**27)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "all.npy")]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    killed = subprocess.Popen([*command, str(tmp_path / "killed")])
    work = tmp_path / "killed.building"
    while killed.poll() is None and not (work / "journal.json").exists():
        pass
    if killed.poll() is None:
        os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    index = (
        bitweigh.Index.from_batches(tmp_path / "all.npy", tmp_path / "killed")
        if not (tmp_path / "killed" / "manifest.json").exists()
        else bitweigh.Index.load(tmp_path / "killed")
    )
    assert len(index) == N
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {path.name for path in (tmp_path / "killed").iterdir()} == names
    for name in names:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


SMALL = 3000


def small_build(source: Path, index: Path) -> bitweigh.Index:
    return bitweigh.Index.from_batches(source, index, band_bits=8, threads=1)


def contents(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in index.iterdir()}


def small_codes(path: Path) -> Path:
    np.save(path / "all.npy", codes()[:SMALL])
    return path / "all.npy"


def test_a_build_ended_before_any_of_its_steps_is_continued_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    source = small_codes(tmp_path)
    small_build(source, tmp_path / "whole")
    stopping = Stopping(monkeypatch, clean=False)
    ended = 0
    for steps in range(200):
        index = tmp_path / f"index-{steps}"
        stopping.steps_left = steps
        try:
            small_build(source, index)
        except StoppedError:
            ended += 1
            stopping.steps_left = 10**6
            assert len(small_build(source, index)) == SMALL
        assert contents(index) == contents(tmp_path / "whole")
        assert not index.with_name(f"{index.name}.building").exists()
        if ended == steps:  # this one was not ended
            break
    # Two runs, seven files of the build, five of the index, and the manifest, to say the least.
    assert ended > 15


def test_a_build_ended_while_its_files_are_deleted_is_continued_by_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    end = mock.Mock(side_effect=RuntimeError("the end"))
    monkeypatch.setattr(batches.shutil, "rmtree", end)
    with pytest.raises(RuntimeError, match="the end"):
        small_build(source, index)
    monkeypatch.undo()
    assert (tmp_path / "index.building").exists()
    assert len(small_build(source, index)) == SMALL
    assert not (tmp_path / "index.building").exists()


def test_an_index_saved_where_a_build_was_to_publish_its_own_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    monkeypatch.setattr(batches, "publish", mock.Mock(side_effect=RuntimeError("the end")))
    with pytest.raises(RuntimeError, match="the end"):
        small_build(source, index)
    monkeypatch.undo()
    other = bitweigh.Index(8)
    other.add(np.zeros((3, 1), np.uint8))
    other.save(index)
    with pytest.raises(FileExistsError, match="must not exist or be empty"):
        small_build(source, index)
    assert len(bitweigh.Index.load(index)) == 3


def test_without_room_for_the_index_its_build_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, index = small_codes(tmp_path), tmp_path / "index"
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(folder, "write_synced", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=r"no room for the index in .* all of it is built"):
        small_build(source, index)
    monkeypatch.undo()
    monkeypatch.setattr(build, "do_parts", None)  # nothing is done again
    assert len(small_build(source, index)) == SMALL


def test_without_room_for_anything_nothing_is_finished_and_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(journal, "write_file", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=r"no room for the build in .*: nothing is finished"):
        small_build(small_codes(tmp_path), tmp_path / "index")
