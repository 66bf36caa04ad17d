"""Tables that the command line writes: written completely or not at all."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_cases import plain, run
from interrupted_everywhere import interrupted_everywhere

import bitweigh
from bitweigh._cli.writers import open_writer

FORMATS = ["csv", "jsonl", "parquet", "npy", "npz"]
RNG = np.random.default_rng(0)
FOUND = bitweigh.SearchResult(RNG.random((500, 10)), RNG.integers(0, 2**60, (500, 10)))


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_leaves_no_file_and_names_the_one_that_could_not_be_written(
    ending: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    index = bitweigh.Index(8)
    index.add(np.arange(200, dtype=np.uint8).reshape(-1, 1))
    index.save(tmp_path / "index")
    np.save(tmp_path / "queries.npy", np.arange(200, dtype=np.uint8).reshape(-1, 1))
    out = tmp_path / f"found.{ending}"
    before = sorted(tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        result = run(
            "search",
            tmp_path / "index",
            tmp_path / "queries.npy",
            "--hamming",
            "-k",
            100,
            "-o",
            out,
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1
    error = plain(result.stderr)
    assert (
        error
        == f"error: {out}: File too large; make room there, or name another place with --out\n"
    )
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ending", FORMATS)
def test_ctrl_c_at_any_moment_leaves_the_old_table_or_the_new_one(
    ending: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / f"found.{ending}"

    def write(_: None) -> None:
        with open_writer(str(out), "csv") as writer:
            writer.write(bitweigh.SearchResult(FOUND.distances[:2], FOUND.ids[:2]))

    write(None)
    new = out.read_bytes()

    def check(_: None) -> None:
        assert [one.name for one in tmp_path.iterdir()] == [out.name]
        assert out.read_bytes() in (b"old", new)

    assert interrupted_everywhere(lambda: out.write_bytes(b"old") and None, write, check) > 20


def test_what_went_wrong_first_is_told_though_the_disk_is_full_too(tmp_path: Path) -> None:
    def write() -> None:
        with open_writer(str(tmp_path / "found.csv"), "csv") as writer:
            writer.write(FOUND)  # still in memory
            raise KeyError("first")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(KeyError, match="first"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_users_beside_the_table_stays(tmp_path: Path) -> None:
    own = tmp_path / "found.csv.part"
    own.write_text("mine")
    with open_writer(str(tmp_path / "found.csv"), "csv") as writer:
        writer.write(FOUND)
    assert own.read_text() == "mine"


def test_a_table_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "table.csv", tmp_path / "found.csv"
    target.write_text("old")
    link.symlink_to(target)
    with open_writer(str(link), "csv") as writer:
        writer.write(FOUND)
    assert link.is_symlink()
    assert target.read_text().startswith("query,rank,id,distance\n")
    assert [one.name for one in target.parent.iterdir()] == ["table.csv"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "found.jsonl"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with open_writer(str(pipe), "csv") as writer:
        writer.write(FOUND)
    reader.join()
    assert pipe.is_fifo()
    assert len(read[0].splitlines()) == 5000


def test_a_name_as_long_as_names_may_be_will_do(tmp_path: Path) -> None:
    out = tmp_path / ("a" * 251 + ".csv")
    with open_writer(str(out), "csv") as writer:
        writer.write(FOUND)
    assert out.is_file()
