"""`bitweigh merge`, `compact` and `export`, and what `build` says about bands and memory."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import done, plain, run, shell

import bitweigh
from bitweigh._cli import change, folders
from bitweigh._cli.options import parse_bytes

CODES = np.random.default_rng(1).integers(0, 256, (300, 4), dtype=np.uint8)
VECTORS = np.random.default_rng(5).standard_normal((200, 16)).astype(np.float32)
LSH = ("--hasher", "lsh", "--bits", "32")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with codes 0 to 299 in `index` and 100 to 104 in `more`."""
    monkeypatch.chdir(tmp_path)
    np.save("codes.npy", CODES)
    np.save("vectors.npy", VECTORS)
    np.save("few.npy", CODES[:5] ^ 255)
    np.save("ids.npy", np.arange(298, 303))
    done("build", "codes.npy", "--codes", "-o", "index")
    done("build", "few.npy", "--codes", "--ids", "ids.npy", "-o", "more")
    return tmp_path


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    (line,) = plain(result.stderr).splitlines()
    return line


def codes_of(folder: str) -> dict[int, bytes]:
    index = bitweigh.load(folder)
    return {int(each): index.codes_of([each])[0].tobytes() for each in index.ids}


def test_merge_refuses_ids_that_are_there_and_changes_nothing() -> None:
    assert "index already has the id 298; --replace" in refused("merge", "index", "more")
    assert len(bitweigh.load("index")) == 300


def test_merge_replaces_rows_if_told_to() -> None:
    expected = codes_of("index") | codes_of("more")
    told = done("merge", "index", "more", "--replace")
    assert told == "index: added 3 codes, replaced 2; it has 303\n"
    assert codes_of("index") == expected
    assert len(bitweigh.load("more")) == 5


def test_merge_takes_many_rows_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_BYTES_AT_ONCE", 256)
    expected = codes_of("more") | codes_of("index")
    facts = json.loads(done("merge", "more", "index", "--replace", "--json"))
    assert facts == {"folder": "more", "added": 298, "replaced": 2, "rows": 303}
    assert codes_of("more") == expected


def test_merge_adds_vectors_that_are_kept() -> None:
    np.save("others.npy", VECTORS[:3] * 2)
    np.save("ids.npy", [500, 501, 502])
    done("build", "vectors.npy", *LSH, "--rerank", "float32", "-o", "near")
    done("build", "others.npy", *LSH, "--rerank", "float32", "--ids", "ids.npy", "-o", "others")
    done("merge", "near", "others")
    near = bitweigh.VectorIndex.load("near")
    assert len(near) == 203
    assert np.array_equal(near.vectors_of([500, 502]), VECTORS[[0, 2]] * 2)
    assert near.search(VECTORS[1] * 2, 1).ids[0] == 501


def test_merge_refuses_what_does_not_fit() -> None:
    np.save("wide.npy", np.tile(CODES, (1, 2)))
    np.save("narrow.npy", VECTORS[:, :8])
    done("build", "wide.npy", "--codes", "-o", "wide")
    done("build", "vectors.npy", *LSH, "--rerank", "float32", "-o", "near")
    done("build", "vectors.npy", *LSH, "-o", "hashed")
    done("build", "narrow.npy", *LSH, "--rerank", "float32", "-o", "narrow")
    done("build", "vectors.npy", *LSH, "--rerank", "float16", "--metric", "cosine", "-o", "cosine")
    assert "wide has codes of 64 bits, big, index has codes of 32" in refused(
        "merge", "index", "wide"
    )
    assert "near has vectors, index has codes" in refused("merge", "index", "near")
    assert "hashed keeps no vectors to merge" in refused("merge", "near", "hashed")
    assert "narrow has vectors of 8 numbers" in refused("merge", "near", "narrow")
    assert "cosine has vectors of 16 numbers, cosine" in refused("merge", "near", "cosine")
    assert "is the same folder" in refused("merge", "index", "./index")
    assert "nowhere: there is no such folder" in refused("merge", "index", "nowhere")


def test_compact_gives_back_the_space_of_removed_rows() -> None:
    rest = {key: code for key, code in codes_of("index").items() if key >= 200}
    done("remove", "index", *map(str, range(200)))
    told = done("compact", "index")
    assert told.startswith("index: compacted 100 codes, ")
    assert codes_of("index") == rest
    assert bitweigh.load("index").memory().removed == 0


def test_compact_gives_back_the_space_of_removed_vectors() -> None:
    done("build", "vectors.npy", *LSH, "--rerank", "float32", "-o", "near")
    done("remove", "near", *map(str, range(150)))
    facts = json.loads(done("compact", "near", "--json"))
    assert facts["rows"] == 50
    assert np.array_equal(bitweigh.VectorIndex.load("near").vectors_of([150]), VECTORS[150:151])


@pytest.mark.parametrize("command", ["merge", "compact"])
def test_the_folder_is_locked_from_loading_to_saving(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, locked = threading.Event(), []
    load = folders.load

    def load_slowly(path: Path, **options: Any) -> bitweigh.Index:
        index = load(path, **options)
        if path == Path("index") and not loaded.is_set():
            loaded.set()
            other.join(0.3)
            locked.append(other.is_alive())
        return index

    def remove_too() -> None:
        loaded.wait(30)
        change.remove_command(Path("index"), [0, 1])

    other = threading.Thread(target=remove_too)
    monkeypatch.setattr(folders, "load", load_slowly)
    other.start()
    done(command, "index", *(["more", "--replace"] if command == "merge" else []))
    other.join(30)
    assert locked == [True]
    assert len(bitweigh.load("index")) == (301 if command == "merge" else 298)


def test_a_damaged_index_is_not_merged_or_exported() -> None:
    stored = next(Path("more").glob("codes-*.npy"))
    raw = stored.read_bytes()
    stored.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert "the checksum does not match" in refused("merge", "index", "more", "--replace")
    assert "the checksum does not match" in refused("export", "more", "-o", "out.npz")
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("rows", [7, 1 << 18])
@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_an_exported_index_can_be_built_again(
    ending: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("bitweigh._cli.folders._ROWS_AT_ONCE", rows)
    done("merge", "index", "more", "--replace")
    told = done("export", "index", "-o", f"all.{ending}")
    assert told.startswith(f"all.{ending}: 303 codes of index, in ")
    ids = ("--id-column", "id") if ending == "parquet" else ("--ids", "all.npz")
    member = () if ending == "parquet" else ("--member", "codes")
    done("build", f"all.{ending}", "--codes", *ids, *member, "-o", "again")
    assert codes_of("again") == codes_of("index")


@pytest.mark.parametrize("ending", ["npy", "npz", "parquet"])
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_exported_vectors_are_those_that_were_kept(
    ending: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("bitweigh._cli.folders._ROWS_AT_ONCE", 64)
    done("build", "vectors.npy", *LSH, "--rerank", precision, "-o", "near")
    facts = json.loads(done("export", "near", "-o", f"all.{ending}", "--json"))
    assert (facts["holds"], facts["rows"]) == ("vectors", 200)
    member = ("--member", "vectors") if ending == "npz" else ()
    done("build", f"all.{ending}", *member, *LSH, "--rerank", precision, "-o", "again")
    expected = VECTORS.astype(precision)
    assert np.array_equal(bitweigh.VectorIndex.load("again").vectors_of(range(200)), expected)


def test_codes_of_vectors_are_exported_if_told_to_or_if_they_are_all_there_is() -> None:
    done("build", "vectors.npy", *LSH, "--rerank", "float32", "-o", "near")
    done("build", "vectors.npy", *LSH, "-o", "hashed")
    done("export", "near", "--codes", "-o", "near.npy")
    done("export", "hashed", "-o", "hashed.npy")
    expected = bitweigh.VectorIndex.load("near").index.codes_of(range(200))
    assert np.array_equal(np.load("near.npy"), expected)
    assert np.array_equal(np.load("hashed.npy"), expected)


def test_an_npy_file_is_refused_where_ids_would_be_lost() -> None:
    done("remove", "index", "0")
    line = refused("export", "index", "-o", "all.npy")
    assert "all.npy: an npy file has no room for ids" in line
    assert "write .npz or .parquet" in line
    assert not Path("all.npy").exists()


def test_an_export_that_cannot_be_done_is_told_in_one_line() -> None:
    done("remove", "more", "--ids", "ids.npy")
    assert "all.csv: the name must end in one of .npy .npz .parquet" in refused(
        "export", "index", "-o", "all.csv"
    )
    assert "more is empty: there is nothing to export" in refused("export", "more", "-o", "a.npz")
    assert "a.npz: there is no folder no: create it first" in refused(
        "export", "index", "-o", "no/a.npz"
    )
    Path("dir.npz").mkdir()
    assert "dir.npz is a folder; name a file" in refused("export", "index", "-o", "dir.npz")


def test_build_takes_the_number_and_the_width_of_bands() -> None:
    done("build", "codes.npy", "--codes", "-o", "many", "--bands", "4", "--band-bits", "6")
    index = bitweigh.load("many")
    (segment,) = index.explain(np.ones((32, 2)), 1, method="probe").segments
    assert segment.bands == 4
    limited = bitweigh.Index(32, bands=4, band_bits=6)
    limited.add(CODES)
    limited.build()
    assert index.memory() == limited.memory()


def test_build_keeps_to_a_memory_limit_and_stores_it() -> None:
    bands = ("--codes", "--bands", "4")
    done("build", "codes.npy", *bands, "-o", "small", "--memory-limit", "4KiB")
    done("build", "codes.npy", *bands, "-o", "large")
    assert bitweigh.load("small").memory().total <= 4096 < bitweigh.load("large").memory().total
    done("add", "small", "few.npy")
    assert bitweigh.load("small").memory().total <= 4096


@pytest.mark.parametrize("kind", [("codes.npy", "--codes"), ("vectors.npy", *LSH)])
def test_more_bands_than_bits_are_refused(kind: tuple[str, ...]) -> None:
    line = refused("build", *kind, "-o", "new", "--bands", "33")
    assert "'--bands': expected at most 32, one for each bit of a code, got 33" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("800", 800),
        ("800B", 800),
        ("2K", 2048),
        ("2KiB", 2048),
        ("2kB", 2000),
        ("1.5M", 1_572_864),
        ("3 GB", 3_000_000_000),
        ("4gib", 4 << 30),
        ("1T", 1 << 40),
    ],
)
def test_sizes_have_the_usual_suffixes(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5.2M", "4X", "4iB", "nan", "1e9"])
def test_other_sizes_are_refused(text: str) -> None:
    line = refused("build", "codes.npy", "--codes", "-o", "new", f"--memory-limit={text}")
    assert f"'--memory-limit': expected bytes, such as 800M, 4G or 4GiB, got {text!r}" in line


@pytest.mark.parametrize("ending", ["npy", "npz", "parquet"])
@pytest.mark.parametrize("blocks", [1, 560])
def test_a_full_disk_leaves_no_export_and_is_told_in_one_line(
    ending: str, blocks: int, here: Path
) -> None:
    pytest.importorskip("pyarrow")
    np.save("many.npy", np.random.default_rng(0).integers(0, 256, (9000, 64), dtype=np.uint8))
    done("build", "many.npy", "--codes", "-o", "many")
    # In a separate process, which would also complain about leftovers on stderr.
    script = f"(ulimit -f {blocks}; trap '' XFSZ; bitweigh export many -o all.{ending})"
    result = shell(script, here)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: all.{ending}: File too large; make room there")
    assert not list(here.glob("*.part"))
    assert not Path(f"all.{ending}").exists()
