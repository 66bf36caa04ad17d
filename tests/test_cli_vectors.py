"""The commands on vectors, and the files that rows and ids come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_cases import done, run

import bitweigh
from bitweigh.vector_index import VectorIndex

VECTORS = np.random.default_rng(5).standard_normal((200, 16)).astype(np.float32)


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an index of vectors."""
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", VECTORS)
    done(
        "build",
        "vectors.npy",
        "--hasher",
        "lsh",
        "--bits",
        "64",
        "--rerank",
        "float32",
        "-o",
        "near",
    )
    return tmp_path / "near"


@pytest.mark.usefixtures("near")
def test_vectors_find_themselves() -> None:
    done("search", "near", "vectors.npy", "-k", "1", "-o", "found.npy")
    assert np.array_equal(np.load("found.npy")[:, 0], np.arange(200))


def test_vectors_are_built_with_the_options_given(near: Path) -> None:
    told = json.loads(done("info", near, "--json"))
    assert (told["holds"], told["rows"], told["n_bits"]) == ("vectors", 200, 64)
    assert (told["n_features"], told["rerank"]) == (16, "float32")
    assert told["hasher"].startswith("LSH")


def test_vectors_are_added_and_removed(near: Path) -> None:
    np.save("more.npy", 2 * VECTORS[:3])
    told = done("add", near, "more.npy", "--ids", "-", "--replace", stdin="0\n700\n701")
    assert told.endswith("added 2 vectors, replaced 1; it has 202\n")
    assert done("remove", near, "5").endswith("removed 1 vector; it has 201\n")
    index = VectorIndex.load(near)
    assert np.array_equal(index.vectors_of([0, 701]), 2 * VECTORS[[0, 2]])
    assert 5 not in index


def test_vectors_are_verified(near: Path) -> None:
    assert "200 vectors, nothing is damaged" in done("verify", near)
    (stored,) = near.glob("vectors-*.npy")
    raw = stored.read_bytes()
    stored.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    result = run("verify", near)
    assert result.exit_code == 1
    assert "the checksum does not match" in result.stderr


@pytest.mark.usefixtures("near")
def test_auto_tells_what_it_measured_and_what_it_took() -> None:
    np.save("more.npy", np.random.default_rng(6).standard_normal((600, 16)))
    result = run("build", "more.npy", "--hasher", "auto", "--bits", "16", "-o", "auto")
    assert result.exit_code == 0
    head, best, *_ = result.stderr.splitlines()
    assert head.split()[:3] == ["hasher", "bits", "bytes"]
    assert f"as codes of 16 bits by {VectorIndex.load('auto').hasher}, in" in result.stdout
    assert best.startswith(str(VectorIndex.load("auto").hasher))
    again = run("build", "more.npy", "--hasher", "auto", "--bits", "16", "-o", "two", "--json")
    told = json.loads(again.stdout)
    assert {one["n_bits"] for one in told["trials"]} == {16}
    assert told["trials"][0]["hasher"] == str(VectorIndex.load("two").hasher)
    with pytest.warns(UserWarning, match="needs 500 vectors"):
        few = run("build", "vectors.npy", "--hasher", "auto", "-o", "few", "--json")
    assert "trials" not in json.loads(few.stdout)


@pytest.mark.usefixtures("near")
def test_vectors_come_from_columns_of_parquet() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"x": VECTORS[:, 0], "y": VECTORS[:, 1], "key": np.arange(200) + 7}
    pq.write_table(pa.table(table), "rows.parquet")
    columns = ("--column", "x", "--column", "y", "--id-column", "key")
    done("build", "rows.parquet", *columns, "--hasher", "lsh", "--bits", "8", "-o", "two")
    index = VectorIndex.load("two")
    assert index.n_features == 2
    assert index.ids.tolist() == list(range(7, 207))


CODES = np.random.default_rng(1).integers(0, 256, (40, 4), dtype=np.uint8)


def write(name: str) -> None:
    """Write the codes to a file, in the format of its ending."""
    ending = Path(name).suffix
    if ending == ".npz":
        np.savez(name, hashes=CODES)
    elif ending == ".hdf5":
        with pytest.importorskip("h5py").File(name, "w") as file:
            file["hashes"] = CODES
    elif ending == ".u8bin":
        Path(name).write_bytes(np.array(CODES.shape, np.uint32).tobytes() + CODES.tobytes())
    elif ending == ".bvecs":
        widths = np.full((40, 1), 4, np.uint32).view(np.uint8)
        np.hstack([widths, CODES]).tofile(name)
    else:
        np.save(name, CODES)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows.npy", ()),
        ("rows.npz", ()),
        ("rows.hdf5", ("--member", "hashes")),
        ("rows.u8bin", ()),
        ("rows.bvecs", ()),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_codes_are_read_from_files_of_arrays(
    name: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(name)
    done("build", name, "--codes", *options, "-o", "index")
    assert np.array_equal(bitweigh.load("index").codes_of(np.arange(40)), CODES)


def test_fvecs_are_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    widths = np.full((200, 1), 16, np.uint32).view(np.float32)
    np.hstack([widths, VECTORS]).tofile("rows.fvecs")
    done("build", "rows.fvecs", "--hasher", "lsh", "--bits", "8", "-o", "index")
    assert VectorIndex.load("index").n_features == 16


def test_a_folder_of_parquet_is_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    for part in range(2):
        binary = [code.tobytes() for code in CODES[part::2]]
        pq.write_table(pa.table({"code": binary}), f"parts/{part}.parquet")
    done("build", "parts", "--codes", "-o", "index")
    codes = bitweigh.load("index").codes_of(np.arange(40))
    assert np.array_equal(codes, np.concatenate([CODES[::2], CODES[1::2]]))


def test_ids_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    (tmp_path / "ids.bin").write_bytes(bytes([255, 254, 0, 1]))
    out = tmp_path / "index"
    result = run(
        "build", tmp_path / "codes.npy", "--codes", "--ids", tmp_path / "ids.bin", "-o", out
    )
    assert "ids.bin: expected text with one id per line" in result.stderr
