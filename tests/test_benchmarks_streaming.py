"""The experiments with streaming builds, with few rows: kills, full disks, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.streaming import full_disk, kills, memory
from benchmarks.streaming.builds import Build, digests, write_codes
from effort import LONG

ROWS = 100_000
AT_ONCE = 5000
PARTS = ROWS // AT_ONCE
pytestmark = pytest.mark.xdist_group("streaming")


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streaming") / "codes"
    write_codes(folder, ROWS)
    return folder


@pytest.mark.timeout(600)
def test_an_index_whose_build_was_killed_has_the_same_files(codes: Path, tmp_path: Path) -> None:
    attempts = list(kills.kill_builds(codes, tmp_path, 20 if LONG else 4, rows_at_once=AT_ONCE))
    killed = [attempt for attempt in attempts if attempt.same_files is None]
    assert len(killed) >= (20 if LONG else 4)
    assert attempts[-1].same_files
    assert all(attempt.same_files is not False for attempt in attempts)
    assert all(attempt.again == 0 for attempt in attempts)
    assert sum(attempt.finished for attempt in attempts) >= 3 * PARTS
    assert not list(tmp_path.iterdir())


def check_full_disk(attempts: list[full_disk.Attempt]) -> None:
    assert attempts[-1].same_files
    assert [attempt.lost for attempt in attempts] == [0] * len(attempts)
    assert [attempt.again for attempt in attempts] == [0] * len(attempts)
    for attempt in attempts[:-1]:
        assert "no room for the" in attempt.error or attempt.error == ""


@pytest.mark.skipif(not full_disk.can_mount(), reason="only root can mount a disk")
def test_a_full_disk_ends_a_build_which_then_continues(codes: Path, tmp_path: Path) -> None:
    try:
        attempts = list(full_disk.fill_disk(codes, tmp_path, ROWS, rows_at_once=AT_ONCE))
    except full_disk.CannotMountError as error:
        pytest.skip(str(error))
    check_full_disk(attempts)
    failed = {attempt.ended for attempt in attempts if attempt.error}
    assert failed == {"sorting", "band 0", "band 1", "publishing"}


def test_a_limit_on_the_size_of_files_ends_a_build_which_then_continues(
    codes: Path, tmp_path: Path
) -> None:
    attempts = list(full_disk.limit_files(codes, tmp_path, ROWS, rows_at_once=AT_ONCE))
    check_full_disk(attempts)
    assert [attempt.ended for attempt in attempts] == ["sorting", "band 0", "finished"]
    assert attempts[-1].kept == PARTS


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_and_disk_of_builds_are_measured(codes: Path, tmp_path: Path) -> None:
    found = list(memory.measure_memory(codes, tmp_path, [1 << 27], threads=1))
    assert [use.source for use in found] == ["files", "iterator"]
    for use in found:
        # An interpreter with NumPy takes 10 MB at least; 24 bytes a row are sorted.
        assert 10**7 + 24 * ROWS < use.peak <= memory.MAX_SHARE * use.build_memory
        assert use.samples > 1
        assert 18 * ROWS < use.index_bytes <= use.peak_disk < 60 * ROWS


def test_other_files_and_parts_done_again_are_noticed(codes: Path, tmp_path: Path) -> None:
    build = Build(codes, tmp_path / "index", rows_at_once=AT_ONCE)
    build.run("--end-after", "rows")
    finished: set[Any] = build.finished()
    assert finished == {("pieces", number) for number in range(PARTS)}
    assert build.stage() == "band 0"
    assert build.again(finished) == PARTS
    build.run()
    assert build.again(finished) == 0
    expected = digests(build.index)
    path = next(build.index.glob("codes-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert digests(build.index) != expected
