"""Streaming builds that end early: killed at any moment, without disk space, with another source.

The same call continues, does nothing twice that was finished, and makes the same files.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import LONG
from lean_cases import check_lean, contents
from numpy.typing import NDArray

from bitweigh._disk.writing import write_file
from bitweigh._streaming import build, files, journal
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.runs import Run
from bitweigh._streaming.sources import FileSource, IteratorSource, PieceSource

ROWS = 100_000
KILLS = 20 if LONG else 5
BUILD = """
import sys
from pathlib import Path
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.runs import Run
from bitweigh._streaming.sources import FileSource

print("ready", flush=True)
build_lean(FileSource([sys.argv[1]]), Path(sys.argv[2]), 64, bands=2, band_bits=14,
           threads=int(sys.argv[3]), max_rows_at_once=4000)
"""


def make_codes(folder: Path, n: int = ROWS) -> NDArray[np.uint8]:
    codes = np.random.default_rng(0).integers(0, 256, (n, 8), np.uint8)
    codes[:, :3] &= 0x11  # so that keys repeat
    np.save(folder / "codes.npy", codes)
    return codes


def start_build(folder: Path, work: Path, threads: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILD, str(folder / "codes.npy"), str(work), str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == "ready\n"
    return process


def built_here(folder: Path, work: Path, **options: Any) -> Any:
    options = {"bands": 2, "band_bits": 14, "threads": 2, "max_rows_at_once": 4000} | options
    return build_lean(FileSource([folder / "codes.npy"]), work, 64, **options)


def finished_parts(work: Path) -> dict[str, list[str]]:
    """Return the numbers of the finished parts of each stage."""
    path = work / "journal.json"
    facts = json.loads(path.read_text()) if path.exists() else {}
    return {name: sorted(facts[name]) for name in facts if name.startswith(("pieces", "ranges"))}


@pytest.mark.timeout(900)
def test_a_build_killed_at_random_moments_and_resumed_makes_the_same_files(tmp_path: Path) -> None:
    codes = make_codes(tmp_path)
    process = start_build(tmp_path, tmp_path / "whole", 2)
    began = time.perf_counter()
    assert process.wait() == 0
    seconds = time.perf_counter() - began
    expected = contents(tmp_path / "whole")
    work = tmp_path / "killed"
    moments = random.Random(0)
    killed_inside = 0
    for number in range(KILLS):
        threads = number % 3 + 1
        process = start_build(tmp_path, work, threads)
        try:
            process.wait(moments.uniform(0, seconds / 4))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed_inside += 1
        if process.returncode == 0:
            # Finished: begin again with the next kill.
            assert contents(work) == expected
            work = tmp_path / f"killed-{number}"
    assert killed_inside > 0
    check_lean(built_here(tmp_path, work, threads=2), codes)
    assert contents(work) == expected


@pytest.mark.parametrize("stage", ["pieces", "ranges of band 0", "ranges of band 1"])
def test_a_resumed_build_does_no_finished_part_again(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, stage, 2)
    work = tmp_path / "work"
    with pytest.raises(RuntimeError, match="the end"):
        built_here(tmp_path, work, threads=1)
    monkeypatch.undo()
    before = finished_parts(work)
    assert len(before[stage]) == 2

    done: list[tuple[str, int]] = []
    record_part = build.Journal.record_part

    def noting(self: Any, name: str, number: int, fact: Any) -> None:
        done.append((name, number))
        record_part(self, name, number, fact)

    monkeypatch.setattr(build.Journal, "record_part", noting)
    check_lean(built_here(tmp_path, work, threads=3), codes)
    assert len(set(done)) == len(done)
    assert not {(name, int(number)) for name in before for number in before[name]} & set(done)


def the_end() -> None:
    raise RuntimeError("the end")


def end_in(
    monkeypatch: pytest.MonkeyPatch, stage: str, after: int, end: Callable[[], None] = the_end
) -> None:
    """Let a build end after it has recorded some parts of a stage."""
    record_part = build.Journal.record_part

    def failing(self: Any, name: str, number: int, fact: Any) -> None:
        if name == stage and len(self.finished(stage)) == after:
            end()
        record_part(self, name, number, fact)

    monkeypatch.setattr(build.Journal, "record_part", failing)


def test_nothing_is_recorded_before_its_files_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_codes(tmp_path, 20_000)
    unsynced: set[int] = set()
    pwrite, fsync, record = os.pwrite, os.fsync, journal.Journal._write
    records = 0

    def writing(file: int, data: Any, offset: int) -> int:
        unsynced.add(os.fstat(file).st_ino)
        return pwrite(file, data, offset)

    def syncing(file: int) -> None:
        unsynced.discard(os.fstat(file).st_ino)
        fsync(file)

    def recording(self: Any, facts: dict[str, Any]) -> None:
        nonlocal records
        records += 1
        assert not unsynced
        record(self, facts)

    monkeypatch.setattr(os, "pwrite", writing)
    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(journal.Journal, "_write", recording)
    built_here(tmp_path, tmp_path / "work", threads=1)
    # 5 pieces, and at least as many ranges of each of the two bands.
    assert records > 15


@pytest.mark.parametrize("band", [0, 1])
def test_runs_that_were_merged_but_not_deleted_are_deleted_by_a_resume(
    tmp_path: Path, band: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    remove = Run.remove

    def failing(run: Run) -> None:
        if run.path.name == f"run-{band}-000001":
            the_end()
        remove(run)

    monkeypatch.setattr(Run, "remove", failing)
    with pytest.raises(RuntimeError, match="the end"):
        built_here(tmp_path, tmp_path / "work")
    monkeypatch.undo()
    check_lean(built_here(tmp_path, tmp_path / "work"), codes)
    assert not list((tmp_path / "work").glob("run-*"))


def test_a_finished_build_is_returned_without_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_codes(tmp_path, 5000)
    built = built_here(tmp_path, tmp_path / "work")
    monkeypatch.setattr(build, "do_parts", None)
    assert built_here(tmp_path, tmp_path / "work") == built


def test_without_room_on_the_disk_the_error_says_so_and_the_build_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 30_000)
    work = tmp_path / "work"
    pwrite = os.pwrite
    for room in (100_000, 300_000, 300_000, 300_000):
        left = room

        def limited(file: int, data: Any, offset: int) -> int:
            nonlocal left
            if left <= 0:
                raise OSError(28, "No space left on device")
            count = pwrite(file, data[:left], offset)
            left -= count
            return count

        monkeypatch.setattr(files.os, "pwrite", limited)
        before = sum(map(len, finished_parts(work).values()))
        with pytest.raises(OSError, match=r"no room for the build in .*what is finished is kept"):
            built_here(tmp_path, work)
        monkeypatch.setattr(files.os, "pwrite", pwrite)
        assert sum(map(len, finished_parts(work).values())) >= before
        assert not list(work.glob("*.tmp"))
    assert finished_parts(work)["pieces"]
    check_lean(built_here(tmp_path, work), codes)


def test_without_room_for_the_journal_the_build_continues_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 30_000)
    work = tmp_path / "work"
    writes = 0

    def failing(path: Path, data: Any) -> None:
        nonlocal writes
        writes += 1
        if writes > 3:
            raise OSError(28, "No space left on device")
        write_file(path, data)

    monkeypatch.setattr(journal, "write_file", failing)
    with pytest.raises(OSError, match=r"no room for the build in .* finished 2 pieces;"):
        built_here(tmp_path, work)
    monkeypatch.undo()
    assert len(finished_parts(work)["pieces"]) == 2
    check_lean(built_here(tmp_path, work), codes)


def test_a_file_too_large_for_the_limit_of_the_system_is_reported_like_a_full_disk(
    tmp_path: Path,
) -> None:
    make_codes(tmp_path, 30_000)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limit[1]))
    try:
        with pytest.raises(OSError, match="no room for the build"):
            built_here(tmp_path, tmp_path / "work")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    built_here(tmp_path, tmp_path / "work")


def test_a_source_that_has_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, "pieces", 2)
    with pytest.raises(RuntimeError, match="the end"):
        built_here(tmp_path, tmp_path / "work")
    monkeypatch.undo()
    np.save(tmp_path / "codes.npy", codes[::-1])
    with pytest.raises(ValueError, match="the source has changed since the build in"):
        built_here(tmp_path, tmp_path / "work")


def test_pieces_that_load_other_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, "pieces", 2)
    with pytest.raises(RuntimeError, match="the end"):
        build_lean(PieceSource(lambda _: codes, [20_000]), tmp_path / "w", 64, max_rows_at_once=999)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="the source has changed"):
        build_lean(PieceSource(lambda _: codes[::-1], [20_000]), tmp_path / "w", 64)


def test_other_options_than_those_of_the_unfinished_build_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_codes(tmp_path, 20_000)
    end_in(monkeypatch, "pieces", 2)
    with pytest.raises(RuntimeError, match="the end"):
        built_here(tmp_path, tmp_path / "work")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="unfinished build with band_bits=14, got 13"):
        built_here(tmp_path, tmp_path / "work", band_bits=13)


def test_less_memory_and_other_threads_are_accepted_by_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, "ranges of band 0", 1)
    with pytest.raises(RuntimeError, match="the end"):
        built_here(tmp_path, tmp_path / "work", build_memory=1 << 30)
    monkeypatch.undo()
    built = built_here(tmp_path, tmp_path / "work", build_memory=1 << 28, threads=5)
    check_lean(built, codes)


def test_a_build_from_an_iterator_cannot_be_resumed_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, "pieces", 2)
    with pytest.raises(RuntimeError, match="the end"):
        build_lean(IteratorSource([codes]), tmp_path / "w", 64, max_rows_at_once=999)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="a build from an iterator or an array cannot be resumed"):
        build_lean(IteratorSource([codes]), tmp_path / "w", 64)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    make_codes(tmp_path, 100)
    with pytest.raises(FileExistsError, match="not the folder of a build"):
        built_here(tmp_path, tmp_path)
    assert (tmp_path / "codes.npy").exists()


@pytest.mark.parametrize("stage", ["pieces", "ranges of band 0", "ranges of band 1"])
def test_ctrl_c_ends_a_build_which_can_then_be_resumed(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = make_codes(tmp_path, 20_000)
    end_in(monkeypatch, stage, 1, lambda: signal.raise_signal(signal.SIGINT))
    # In a job in the background the signal would be ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            built_here(tmp_path, tmp_path / "work")
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    check_lean(built_here(tmp_path, tmp_path / "work"), codes)
