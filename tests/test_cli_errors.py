"""Common mistakes at the command line: one line on stderr that says what to do."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_cases import done, plain, run

import bitweigh

CODES = np.random.default_rng(1).integers(0, 256, (300, 4), dtype=np.uint8)
VECTORS = np.random.default_rng(2).standard_normal((200, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Valid and invalid files and indexes; no test changes them."""
    folder = tmp_path_factory.mktemp("wrong")
    arrays = {
        "codes": CODES,
        "bits": np.unpackbits(CODES, axis=1),
        "bools": np.unpackbits(CODES, axis=1).astype(bool),
        "floats": VECTORS,
        "narrow": VECTORS[:, :7],
        "nan": np.where(np.arange(16) == 3, np.nan, VECTORS),
        "wide": np.tile(CODES, (1, 2)),
        "ids": np.arange(300),
        "few": np.arange(10),
        "twice": np.arange(300) // 2,
        "negative": np.arange(300) - 1,
        "weights": np.ones(31),
        "costs": np.full((2, 32, 2), np.nan),
        "cube": np.ones((2, 32, 2)),
        "objects": np.array(["a", "b"]),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "empty.npy").touch()
    np.save(folder / "norows.npy", CODES[:0])
    (folder / "words.txt").write_text("1\ntwo\n")
    (folder / "notes.npy").write_text("no array")
    (folder / "none").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("mine")
    np.savez(folder / "both.npz", a=CODES, b=CODES)
    index = bitweigh.Index(n_bits=32)
    index.add(CODES)
    index.save(folder / "index")
    shutil.copytree(folder / "index", folder / "damaged")
    stored = next((folder / "damaged").glob("codes-*.npy"))
    raw = stored.read_bytes()
    stored.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    done("build", folder / "floats.npy", "--bits", "16", "-o", folder / "near")
    return folder


NEW = ("--codes", "-o", "new")
WRONG: list[tuple[str, tuple[str, ...], int, str]] = [
    # build
    ("no such file", ("build", "nothing.npy", *NEW), 1, "nothing.npy: no such file"),
    ("unknown ending", ("build", "words.txt", *NEW), 1, "words.txt: the name must end in one of"),
    ("not an npy file", ("build", "notes.npy", *NEW), 1, "notes.npy: truncated, or not an npy"),
    ("an empty file", ("build", "empty.npy", *NEW), 1, "empty.npy: the file is empty"),
    ("no rows", ("build", "norows.npy", *NEW), 1, "norows.npy: the array is empty: shape (0, 4)"),
    ("no numbers", ("build", "objects.npy", *NEW), 1, "objects.npy: the array must hold numbers"),
    (
        "which array",
        ("build", "both.npz", *NEW),
        1,
        "which array? give --member; it has ['a', 'b']",
    ),
    (
        "wrong bits",
        ("build", "codes.npy", *NEW, "--bits", "64"),
        1,
        "these have 4; 25 to 32 bits would fit",
    ),
    (
        "unused bits",
        ("build", "codes.npy", *NEW, "--bits", "30"),
        1,
        "codes.npy: codes[0] has unused bits set",
    ),
    ("no bits", ("build", "codes.npy", *NEW, "--bits", "0"), 2, "Invalid value for '--bits'"),
    (
        "negative bits",
        ("build", "codes.npy", *NEW, "--bits", "-3"),
        2,
        "Invalid value for '--bits'",
    ),
    (
        "bits of a word",
        ("build", "codes.npy", *NEW, "--bits", "x"),
        2,
        "Invalid value for '--bits'",
    ),
    ("unpacked bits", ("build", "bits.npy", *NEW), 1, "pack them with np.packbits(bits, axis=1)"),
    (
        "unpacked, told",
        ("build", "bits.npy", *NEW, "--bits", "32"),
        1,
        "pack bits with np.packbits",
    ),
    (
        "booleans",
        ("build", "bools.npy", *NEW),
        1,
        "got bool of shape (300, 32); pack bits with np.",
    ),
    (
        "float codes",
        ("build", "floats.npy", *NEW),
        1,
        "vectors need an index built without --codes",
    ),
    ("codes untold", ("build", "codes.npy", "-o", "new"), 1, "give --codes or --hasher itq"),
    ("mixed kinds", ("build", "codes.npy", *NEW, "--hasher", "itq"), 2, "are for vectors, not for"),
    ("unknown hasher", ("build", "floats.npy", "-o", "new", "--hasher", "md5"), 2, "'itq', 'lsh'"),
    ("no folder", ("build", "codes.npy", "--codes"), 2, "Missing option '--out'"),
    ("onto a file", ("build", "codes.npy", "--codes", "-o", "words.txt"), 1, "give another name"),
    ("onto an index", ("build", "codes.npy", "--codes", "-o", "index"), 1, "--overwrite replaces"),
    (
        "onto other files",
        ("build", "codes.npy", "--codes", "-o", "other", "--overwrite"),
        1,
        "the folder holds no index, but 'notes.txt'",
    ),
    (
        "too few ids",
        ("build", "codes.npy", *NEW, "--ids", "few.npy"),
        1,
        "expected 300 ids, one for",
    ),
    ("ids twice", ("build", "codes.npy", *NEW, "--ids", "twice.npy"), 1, "0 is the id of two rows"),
    (
        "negative ids",
        ("build", "codes.npy", *NEW, "--ids", "negative.npy"),
        1,
        "must not be negative",
    ),
    (
        "ids of words",
        ("build", "codes.npy", *NEW, "--ids", "words.txt"),
        1,
        "words.txt, line 2: expect",
    ),
    ("float ids", ("build", "codes.npy", *NEW, "--ids", "weights.npy"), 1, "must be integers"),
    ("no ids", ("build", "codes.npy", *NEW, "--ids", "no.txt"), 1, "no.txt: No such file"),
    ("npy has no columns", ("build", "codes.npy", *NEW, "--column", "c"), 1, "are for parquet"),
    (
        "NaN",
        ("build", "nan.npy", "--bits", "8", "-o", "new"),
        1,
        "nan.npy: X must be finite, got NaN at X[",
    ),
    ("too many bits", ("build", "floats.npy", "--bits", "99", "-o", "new"), 1, "99"),
    # what all take
    ("no such index", ("info", "nowhere"), 1, "nowhere: there is no such folder; `bitweigh build"),
    ("a file, no index", ("info", "codes.npy"), 1, "codes.npy is a file; an index is a folder"),
    ("an empty folder", ("info", "none"), 1, "none: there is no index in this folder; `bitweigh"),
    ("another folder", ("verify", "other"), 1, "other: there is no index in this folder"),
    (
        "a damaged index",
        ("verify", "damaged"),
        1,
        "restore the folder from a backup, or build the index again",
    ),
    ("unknown command", ("serch", "index"), 2, "Did you mean 'search'"),
    ("unknown option before", ("--verbose", "info", "index"), 2, "--verbose"),
    ("unknown option", ("info", "index", "--verbose"), 2, "--verbose"),
    # add and remove
    (
        "codes in use",
        ("add", "index", "codes.npy", "--ids", "ids.npy"),
        1,
        "index already has the id 0; --replace",
    ),
    (
        "longer codes",
        ("add", "index", "wide.npy"),
        1,
        "wide.npy: codes of 32 bits have 4 bytes, these have 8",
    ),
    ("fewer features", ("add", "near", "narrow.npy"), 1, "narrow.npy: "),
    (
        "vectors as codes",
        ("add", "index", "floats.npy"),
        1,
        "floats.npy: codes must be uint8 of shape (n, n_bytes)",
    ),
    ("unknown id", ("remove", "index", "5000"), 1, "index has no id 5000; nothing was removed."),
    ("nothing to remove", ("remove", "index"), 2, "give ids to remove, or --ids FILE"),
    ("a word as id", ("remove", "index", "x"), 2, "Invalid value for 'ID'"),
    # search
    ("k = 0", ("search", "index", "codes.npy", "-k", "0"), 2, "Invalid value for '-k'"),
    ("no threads", ("search", "index", "codes.npy", "--threads", "0"), 2, "value for '--threads'"),
    (
        "longer queries",
        ("search", "index", "wide.npy"),
        1,
        "wide.npy: codes of 32 bits have 4 bytes, these have 8",
    ),
    ("wrong features", ("search", "near", "narrow.npy"), 1, "narrow.npy: "),
    (
        "wrong costs",
        ("search", "index", "floats.npy"),
        1,
        "floats.npy: float queries have one number for each of the 32 bits",
    ),
    ("NaN costs", ("search", "index", "costs.npy"), 1, "is nan, every cost must be finite"),
    (
        "few weights",
        ("search", "index", "codes.npy", "--weights", "weights.npy"),
        1,
        "the 32 bits, got 31",
    ),
    (
        "weights by query",
        ("search", "index", "codes.npy", "--weights", "cube.npy"),
        1,
        "weights that differ by query go into QUERIES, with --costs",
    ),
    (
        "two ways",
        ("search", "index", "codes.npy", "--costs", "--hamming"),
        2,
        "give one of --costs",
    ),
    (
        "two filters",
        ("search", "index", "codes.npy", "--allow", "ids.npy", "--deny", "few.npy"),
        2,
        "give --allow or --deny, not both",
    ),
    (
        "hamming of vectors",
        ("search", "near", "floats.npy", "--hamming"),
        2,
        "are for indexes of codes",
    ),
    (
        "unknown suffix",
        ("search", "index", "codes.npy", "-o", "a.xml"),
        1,
        "must end in one of .parq",
    ),
    (
        "no such folder",
        ("search", "index", "codes.npy", "-o", "no/a.csv"),
        1,
        "there is no folder no",
    ),
    ("no queries", ("search", "index"), 2, "give QUERIES, a file or - for stdin, or --id"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "says"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG]
)
def test_a_mistake_is_told_in_one_line(
    arguments: tuple[str, ...],
    code: int,
    says: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    lines = plain(result.stderr).splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert says in lines[0]
    assert result.stdout == ""
    assert sorted(files.rglob("*")) == before


PARQUET: list[tuple[str, tuple[str, ...], str]] = [
    (
        "missing column",
        ("--codes",),
        "has no column 'code', only 'v', 'w', 'h', 'i': name the right",
    ),
    ("ragged", ("--column", "v"), "must have the same number of values in each row: row 1 has 1"),
    (
        "null",
        ("--codes", "--column", "h"),
        "column 'h' has a null in row 1: fill or drop such rows",
    ),
    ("strings", ("--column", "w"), "column 'w' must be numbers, got string"),
    ("codes of lists", ("--codes", "--column", "v"), "column 'v' must"),
    ("two columns", ("--codes", "--column", "v", "--column", "w"), "give --column once"),
    ("ids twice over", ("--id-column", "i", "--ids", "few.npy"), "give one of them"),
]


@pytest.mark.parametrize(
    ("options", "says"), [one[1:] for one in PARQUET], ids=[one[0] for one in PARQUET]
)
def test_a_mistake_in_parquet_is_told_in_one_line(
    options: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"v": [[1.0, 2.0], [3.0]], "w": ["a", "b"], "h": [b"a", None], "i": [1, 2]}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    result = run("build", tmp_path / "rows.parquet", *options, "-o", tmp_path / "new")
    assert result.exit_code == 1
    (line,) = plain(result.stderr).splitlines()
    assert line.startswith("error: ")
    assert says in line


@pytest.mark.parametrize(
    ("package", "ending"), [("pyarrow", "parquet"), ("h5py", "hdf5")], ids=["parquet", "hdf5"]
)
def test_a_missing_package_is_told_with_how_to_install_it(
    package: str, ending: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / f"rows.{ending}").write_text("anything")
    result = run("build", tmp_path / f"rows.{ending}", "--codes", "-o", tmp_path / "new")
    assert result.exit_code == 1
    (line,) = plain(result.stderr).splitlines()
    assert package in line
    assert "pip install" in line


def test_answers_to_parquet_say_what_they_need(
    files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / "found.parquet"
    result = run("search", files / "index", files / "codes.npy", "-o", out)
    assert result.exit_code == 1
    assert "parquet needs pyarrow: pip install 'bitweigh[frames]'" in plain(result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_fails_halfway_leaves_no_file(
    files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    costs = np.zeros((300, 32, 2))
    costs[299] = np.nan
    np.save(tmp_path / "costs.npy", costs)
    monkeypatch.chdir(tmp_path)
    result = run("search", files / "index", "costs.npy", "-o", "found.csv")
    assert result.exit_code == 1
    assert "costs.npy, rows from 256 on: costs[43, 0, 0] is nan" in plain(result.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["costs.npy"]
