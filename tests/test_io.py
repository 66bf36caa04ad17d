"""bitweigh.io: choice by ending, npy, npz, HDF5 and parquet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_cases import some_rows, write_vecs

from bitweigh import io


def test_an_unknown_ending(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in one of \.fvecs .*\.parquet"):
        io.read(tmp_path / "rows.csv")


@pytest.mark.parametrize("ending", ["fvecs", "bvecs", "fbin", "npy", "npz"])
def test_a_file_that_is_not_there(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"none.{ending}: no such file"):
        io.read(tmp_path / f"none.{ending}")
    (tmp_path / f"folder.{ending}").mkdir()
    with pytest.raises(ValueError, match="expected a file"):
        io.read(tmp_path / f"folder.{ending}")


def test_the_ending_may_be_in_capitals(tmp_path: Path) -> None:
    file = write_vecs(tmp_path / "a.fvecs", some_rows(3, 2))
    assert io.read(str(file.rename(tmp_path / "A.FVECS"))).shape == (3, 2)


@pytest.mark.parametrize(
    "argument", [{"member": "train"}, {"columns": ["a"]}], ids=["member", "columns"]
)
def test_arguments_of_other_formats_are_refused(tmp_path: Path, argument: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(argument))}= is for"):
        io.read(write_vecs(tmp_path / "a.fvecs", some_rows(3, 2)), **argument)
    np.save(tmp_path / "a.npy", some_rows(3, 2))
    with pytest.raises(ValueError, match="verify= is for"):
        io.read(tmp_path / "a.npy", verify=True)


def test_npy_is_mapped(tmp_path: Path) -> None:
    rows = some_rows(9, 4).astype(np.uint8)
    np.save(tmp_path / "a.npy", rows)
    read = io.read(tmp_path / "a.npy", max_rows=5)
    assert isinstance(read, np.memmap)
    assert np.array_equal(read, rows[:5])
    content = (tmp_path / "a.npy").read_bytes()
    for size in range(1, len(content), 5):
        (tmp_path / "cut.npy").write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"cut\.npy: truncated"):
            io.read(tmp_path / "cut.npy")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((0, 4)), r"is empty: shape \(0, 4\)"),
        (np.zeros((4, 0)), r"is empty: shape \(4, 0\)"),
        (np.array(5.0), r"is empty: shape \(\)"),
        (np.array(["a", "b"]), "must hold numbers"),
        (np.zeros(3, dtype=complex), "must hold numbers"),
        (np.array([{}, {}]), "cannot be read|not an npy"),
    ],
    ids=["no rows", "no dimensions", "scalar", "text", "complex", "pickled"],
)
def test_arrays_that_are_no_rows(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", array, allow_pickle=True)
    for ending in ("npy", "npz"):
        with pytest.raises(ValueError, match=message) as caught:
            io.read(tmp_path / f"a.{ending}")
        assert f"a.{ending}" in str(caught.value)


def test_npz_members(tmp_path: Path) -> None:
    rows = some_rows(9, 4)
    np.savez_compressed(tmp_path / "one.npz", rows=rows)
    assert np.array_equal(io.read(tmp_path / "one.npz", max_rows=3), rows[:3])
    file = tmp_path / "two.npz"
    np.savez(file, vectors=rows, labels=np.arange(9))
    assert np.array_equal(io.read(file, member="labels"), np.arange(9))
    with pytest.raises(ValueError, match=r"which array\?.*'vectors', 'labels'"):
        io.read(file)
    with pytest.raises(ValueError, match="has no array 'rows'"):
        io.read(file, member="rows")
    (tmp_path / "cut.npz").write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"cut\.npz: truncated"):
        io.read(tmp_path / "cut.npz", member="vectors")


def test_a_broken_npz_member(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez_compressed(file, rows=some_rows(200, 40))
    content = bytearray(file.read_bytes())
    content[300:400] = bytes(100)
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npz: .*cannot be read"):
        io.read(file)


@pytest.mark.parametrize(("ending", "package"), [("hdf5", "h5py"), ("parquet", "pyarrow")])
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / f"a.{ending}").write_bytes(b"anything")
    with pytest.raises(ImportError, match=rf'{package}: pip install "bitweigh\[io\]"$'):
        io.read(tmp_path / f"a.{ending}")


def write_hdf5(file: Path, **parts: np.ndarray) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(file, "w") as opened:
        opened.attrs["distance"] = "euclidean"
        opened.attrs["dimension"] = 4
        for name, part in parts.items():
            opened[name] = part
    return file


def test_hdf5_in_the_layout_of_ann_benchmarks(tmp_path: Path) -> None:
    train, test = some_rows(9, 4).astype(np.float32), some_rows(2, 4).astype(np.float32)
    near, far = np.array([[1, 2], [0, 8]], dtype=np.int32), np.ones((2, 2), dtype=np.float32)
    file = write_hdf5(tmp_path / "a.hdf5", train=train, test=test, neighbors=near, distances=far)
    held = io.read_ann_benchmarks(file)
    assert np.array_equal(held.train, train)
    assert np.array_equal(held.test, test)
    assert held.neighbours is not None
    assert np.array_equal(held.neighbours, near)
    assert held.distances is not None
    assert np.array_equal(held.distances, far)
    assert dict(held.attributes) == {"distance": "euclidean", "dimension": 4}
    assert np.array_equal(io.read(file, max_rows=3), train[:3])
    assert np.array_equal(io.read(file, member="neighbors"), near)
    part = io.read_ann_benchmarks(file, max_rows=5)
    assert len(part.train) == 5
    assert part.neighbours is None
    assert part.distances is None


def test_hostile_hdf5(tmp_path: Path) -> None:
    rows = some_rows(9, 4)
    file = write_hdf5(tmp_path / "a.h5", train=rows, test=rows[:, :3], empty=rows[:0])
    with pytest.raises(ValueError, match=r"train and test must be .*\(9, 4\) and \(9, 3\)"):
        io.read_ann_benchmarks(file)
    with pytest.raises(ValueError, match="has no array 'base'; it has"):
        io.read(file, member="base")
    with pytest.raises(ValueError, match="'empty' is empty"):
        io.read(file, member="empty")
    content = file.read_bytes()
    for size in (3, 100, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.h5").write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"cut\.h5: "):
            io.read(tmp_path / "cut.h5")
    write_hdf5(tmp_path / "b.h5", train=rows, test=rows, neighbors=np.zeros((3, 2), dtype=int))
    with pytest.raises(ValueError, match=r"neighbors must be \(9, k\), got \(3, 2\)"):
        io.read_ann_benchmarks(tmp_path / "b.h5")


def write_parquet(file: Path, columns: dict[str, Any], row_group: int = 4) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table(columns), file, row_group_size=row_group
    )
    return file


@pytest.mark.parametrize("kind", ["fixed", "list", "large", "columns"])
def test_parquet(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = some_rows(9, 3).astype(np.float32)
    if kind == "columns":
        columns = {name: rows[:, i] for i, name in enumerate("abc")}
    else:
        types = {"fixed": (3,), "list": (), "large": ()}
        make = pyarrow.large_list if kind == "large" else pyarrow.list_
        vectors = pyarrow.array(rows.tolist(), make(pyarrow.float32(), *types[kind]))
        columns = {"word": [str(i) for i in range(9)], "vector": vectors}
    file = write_parquet(tmp_path / "a.parquet", columns)
    for max_rows in (None, 1, 4, 7, 9, 100):
        read = io.read(file, max_rows=max_rows)
        assert read.dtype == np.float32
        assert np.array_equal(read, rows[:max_rows])
    if kind == "columns":
        assert np.array_equal(io.read(file, columns=["c", "a"]), rows[:, [2, 0]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"v": [[1, 2], [3]]}, "lists of one length"),
        ({"v": [[1, 2]] * 4 + [[3]]}, "different lengths|one length"),
        ({"v": [[], []]}, "lists of one length|lists of numbers"),
        ({"v": [[1, None], [2, 3]]}, "has nulls"),
        ({"v": [[1, 2], None]}, "has nulls"),
        ({"v": [["a"], ["b"]]}, "lists of numbers"),
        ({"a": [1.5, None], "b": [1, 2]}, "has nulls"),
        ({"a": [1.5, 2.5], "b": ["x", "y"]}, "column 'b' is string: choose with columns="),
        ({"a": np.zeros(0)}, "has no rows"),
    ],
)
def test_hostile_parquet_columns(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    file = write_parquet(tmp_path / "a.parquet", columns)
    with pytest.raises(ValueError, match=message) as caught:
        io.read(file)
    assert str(file) in str(caught.value)


def test_hostile_parquet_files(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet", {"a": [1.5, 2.5]})
    with pytest.raises(ValueError, match=r"has no columns \['z'\]; it has \['a'\]"):
        io.read(file, columns=["z"])
    content = file.read_bytes()
    for size in (3, 50, len(content) - 1):
        (tmp_path / "cut.parquet").write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"cut\.parquet: "):
            io.read(tmp_path / "cut.parquet")


def test_nothing_that_could_download_is_imported() -> None:
    for path in Path(io.__file__).parent.glob("*.py"):
        for word in ("urllib", "requests", "http", "socket", "ftplib", "subprocess"):
            assert f"import {word}" not in path.read_text(), path
