"""Codes and vectors from every kind of table, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import frames

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CODES = np.random.default_rng(1).integers(0, 256, (9, 3), dtype=np.uint8)
CODES[4] = 0  # trailing zero bytes of binary values must not be stripped
VECTORS = np.random.default_rng(2).standard_normal((9, 4))
IDS = np.arange(9) * 10


def arrow_table(**columns: Any) -> Any:
    return pa.table({"id": IDS, **columns})


def as_source(kind: str, table: Any, folder: Path) -> Any:
    """Convert the rows to another kind of table."""
    if kind == "pandas":
        pytest.importorskip("pandas")
        return table.to_pandas()
    if kind == "polars":
        return pytest.importorskip("polars").from_arrow(table)
    if kind == "dict":
        return {name: table.column(name).to_pylist() for name in table.column_names}
    if kind == "file":
        pq.write_table(table, folder / "rows.parquet", row_group_size=4)
        return folder / "rows.parquet"
    if kind == "folder":
        pq.write_table(table.slice(0, 5), folder / "part-0.parquet")
        pq.write_table(table.slice(5), folder / "part-1.parquet")
        return str(folder)
    return table


KINDS = ["pandas", "polars", "arrow", "dict", "file", "folder"]


STORED = ["binary", "large", "fixed", "list", "fixed list"]


# Lists of Python integers, as in a dict, do not have the type uint8.
@pytest.mark.parametrize(
    ("kind", "stored"),
    [(a, b) for a in KINDS for b in STORED if a != "dict" or "list" not in b],
)
def test_codes_come_back_from_every_table(kind: str, stored: str, tmp_path: Path) -> None:
    types = {
        "binary": pa.binary(),
        "large": pa.large_binary(),
        "fixed": pa.binary(3),
        "list": pa.list_(pa.uint8()),
        "fixed list": pa.list_(pa.uint8(), 3),
    }
    values = CODES.tolist() if "list" in stored else [code.tobytes() for code in CODES]
    source = as_source(kind, arrow_table(code=pa.array(values, types[stored])), tmp_path)
    codes, ids = frames.codes_and_ids(source, id_column="id", n_bits=24)
    assert codes.dtype == np.uint8
    assert np.array_equal(codes, CODES)
    assert np.array_equal(ids, IDS)


DTYPES = [np.float16, np.float32, np.float64, np.int8]


# Not every version of polars has float16.
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(a, b) for a in KINDS for b in DTYPES if a != "dict" and (a, b) != ("polars", np.float16)],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_vectors_come_back_in_their_dtype(
    kind: str, dtype: type[np.generic], fixed: bool, tmp_path: Path
) -> None:
    vectors = VECTORS.astype(dtype)
    stored = pa.list_(pa.from_numpy_dtype(dtype), 4 if fixed else -1)
    source = as_source(kind, arrow_table(vector=pa.array(list(vectors), stored)), tmp_path)
    found, ids = frames.vectors_and_ids(source, id_column="id")
    assert found.dtype == dtype
    assert np.array_equal(found, vectors)
    assert np.array_equal(ids, IDS)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_come_from_columns_of_numbers(kind: str, tmp_path: Path) -> None:
    source = as_source(kind, arrow_table(x=VECTORS[:, 0], y=VECTORS[:, 1]), tmp_path)
    found, ids = frames.vectors_and_ids(source, ["y", "x"])
    assert np.array_equal(found, VECTORS[:, [1, 0]])
    assert ids is None


def test_arrays_in_a_dict_need_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    codes, ids = frames.codes_and_ids({"code": CODES, "id": IDS}, id_column="id")
    assert np.array_equal(codes, CODES)
    assert np.array_equal(ids, IDS)


def test_lists_of_bytes_in_a_dict_keep_zeros_at_their_end() -> None:
    codes, _ = frames.codes_and_ids({"code": [b"\x01\x00", b"\x00\x00"]})
    assert codes.tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_at_most_as_many_rows_as_asked_for(kind: str, tmp_path: Path) -> None:
    values = pa.array([code.tobytes() for code in CODES])
    source = as_source(kind, arrow_table(code=values), tmp_path)
    batches = list(frames.code_batches(source, id_column="id", batch_rows=2))
    assert max(len(codes) for codes, _ in batches) == 2
    assert np.array_equal(np.concatenate([codes for codes, _ in batches]), CODES)
    assert np.array_equal(np.concatenate([ids for _, ids in batches]), IDS)  # type: ignore[misc]


def test_a_sliced_table_gives_its_own_rows() -> None:
    binary = pa.array([code.tobytes() for code in CODES])
    lists = pa.array(list(VECTORS), pa.list_(pa.float64(), 4))
    table = arrow_table(code=binary, vector=lists).slice(3, 4)
    assert np.array_equal(frames.codes_and_ids(table)[0], CODES[3:7])
    assert np.array_equal(frames.vectors_and_ids(table)[0], VECTORS[3:7])


def test_nan_in_pandas_is_a_number_and_no_null() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": [1.0, np.nan]})
    found, _ = frames.vectors_and_ids(table, ["x"])
    assert np.isnan(found[1, 0])


BINARY = pa.array([b"ab", b"cd", b"ef"])
REFUSED: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    (
        "null code",
        lambda: frames.codes_and_ids(pa.table({"code": pa.array([b"ab", None])})),
        ValueError,
        "the Table: column 'code' has a null in row 1: fill or drop such rows",
    ),
    (
        "null in a later batch",
        lambda: list(
            frames.code_batches(pa.table({"code": pa.array([b"a"] * 5 + [None])}), batch_rows=2)
        ),
        ValueError,
        "the Table: column 'code' has a null in row 5: fill or drop such rows",
    ),
    (
        "null inside a vector",
        lambda: frames.vectors_and_ids(pa.table({"vector": [[1.0, 2.0], [3.0, None]]})),
        ValueError,
        "the Table: column 'vector' has a null in the list of row 1: fill or drop such rows",
    ),
    (
        "null id",
        lambda: frames.codes_and_ids(pa.table({"code": BINARY, "id": [1, None, 3]}), "code", "id"),
        ValueError,
        "the Table: column 'id' has a null in row 1: fill or drop such rows",
    ),
    (
        "ragged vectors",
        lambda: frames.vectors_and_ids(pa.table({"vector": [[1.0], [2.0], [3.0, 4.0]]})),
        ValueError,
        "the Table: column 'vector' must have the same number of values in each row: row 2 has "
        "2, those before it 1",
    ),
    (
        "ragged between batches",
        lambda: list(
            frames.vector_batches(pa.table({"vector": [[1.0], [2.0, 3.0]]}), batch_rows=1)
        ),
        ValueError,
        "the Table: column 'vector' must have the same number of values in each row: row 1 has "
        "2, those before it 1",
    ),
    (
        "ragged lists in a dict",
        lambda: frames.vectors_and_ids({"vector": [[1.0], [2.0, 3.0]]}),
        ValueError,
        "the dict: column 'vector' must have the same number of values in each row: row 1 has "
        "2, those before it 1",
    ),
    (
        "ragged codes",
        lambda: frames.codes_and_ids(pa.table({"code": [b"ab", b"c"]})),
        ValueError,
        "the Table: column 'code' must have the same number of bytes in each row: row 1 has 1, "
        "those before it 2",
    ),
    (
        "codes without bytes",
        lambda: frames.codes_and_ids(pa.table({"code": [b"", b""]})),
        ValueError,
        "the Table: column 'code' has no bytes in its rows",
    ),
    (
        "codes of another length",
        lambda: frames.codes_and_ids(pa.table({"code": BINARY}), n_bits=24),
        ValueError,
        "the Table: column 'code' must have shape (n, 3) for n_bits=24, got (3, 2): codes of 9 to "
        "16 bits, so n_bits must be one of these",
    ),
    (
        "unused bits set",
        lambda: frames.codes_and_ids({"code": np.full((1, 2), 255, np.uint8)}, n_bits=12),
        ValueError,
        "the dict: column 'code'[0] has unused bits set: bits 12 to 15 of the last byte must be 0 "
        "with bitorder='big'",
    ),
    (
        "codes of floats",
        lambda: frames.codes_and_ids(pa.table({"code": [[1.0], [2.0]]})),
        TypeError,
        "the Table: column 'code' must be binary or lists of uint8 (packed bits, as np.packbits "
        "returns them), got list<item: double>",
    ),
    (
        "codes of strings",
        lambda: frames.codes_and_ids(pa.table({"code": ["a"]})),
        TypeError,
        "the Table: column 'code' must be binary or lists of uint8 (packed bits, as np.packbits "
        "returns them), got string",
    ),
    (
        "bytes of NumPy",
        lambda: frames.codes_and_ids({"code": np.array([b"a\0", b"b\0"])}),
        TypeError,
        "the dict: column 'code' is |S2, which drops zeros at the end: give a list of bytes, or "
        "an array of uint8",
    ),
    (
        "vectors of strings",
        lambda: frames.vectors_and_ids(pa.table({"vector": [["a"]]})),
        TypeError,
        "the Table: column 'vector' must be lists of numbers, got list<item: string>",
    ),
    (
        "a string among columns of numbers",
        lambda: frames.vectors_and_ids(pa.table({"x": [1.0], "y": ["a"]}), ["x", "y"]),
        TypeError,
        "the Table: column 'y' must be numbers, got string",
    ),
    (
        "ids of floats",
        lambda: frames.codes_and_ids(pa.table({"code": [b"a"], "id": [1.0]}), "code", "id"),
        TypeError,
        "the Table: column 'id' must be integers, got float64",
    ),
    (
        "missing column",
        lambda: frames.codes_and_ids(pa.table({"a": [1], "b": [2]})),
        ValueError,
        "the Table: has no column 'code', only 'a', 'b': name the right one",
    ),
    (
        "no columns",
        lambda: frames.vectors_and_ids(pa.table({"a": [1]}), []),
        ValueError,
        "column must name at least one column, got none",
    ),
    (
        "no rows",
        lambda: frames.vectors_and_ids({"vector": np.empty((0, 3))}),
        ValueError,
        "the dict: has no rows",
    ),
    (
        "columns of different lengths",
        lambda: frames.codes_and_ids({"code": CODES, "id": [1]}, "code", "id"),
        ValueError,
        "the dict: the columns have different lengths: {'code': 9, 'id': 1}",
    ),
    (
        "two columns of one name",
        lambda: frames.codes_and_ids(pa.table([[b"a"], [b"b"]], names=["code", "code"])),
        ValueError,
        "the Table: has 2 columns 'code': rename all but one",
    ),
    (
        "codes that are lists of bytes",
        lambda: frames.codes_and_ids({"code": [[b"a", b"b"]]}),
        TypeError,
        "the dict: column 'code' must be binary or lists of uint8 (packed bits, as np.packbits "
        "returns them), got list<item: binary>",
    ),
    (
        "large integers beside floats",
        lambda: frames.vectors_and_ids({"x": [1, 2**53 + 1], "y": [0.5, 0.5]}, ["x", "y"]),
        ValueError,
        "the dict: column 'x' has 9007199254740993 in row 1, which float64, the dtype of all the "
        "columns together, cannot hold: leave the column out, or make the others integers",
    ),
    (
        "large integers among floats",
        lambda: frames.vectors_and_ids({"vector": [[0.5, 2**53 + 1]]}),
        ValueError,
        "the dict: column 'vector' has 9007199254740993, which float64 cannot hold, among floats: "
        "give integers only, or an array",
    ),
    (
        "something else",
        lambda: frames.codes_and_ids(7),
        TypeError,
        "source must be a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a dict of "
        "arrays, or the path of a parquet file or folder, got int",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED]
)
def test_what_is_wrong_is_named(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_a_null_in_a_file_is_named_by_its_row_in_that_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"code": [b"a"] * 3}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"code": [b"a", b"b", None]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: column 'code' has a null in row 2"):
        frames.codes_and_ids(tmp_path)


def test_a_missing_value_of_pandas_is_a_null() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"code": [b"a", b"b"], "id": pandas.array([1, None], dtype="Int64")})
    with pytest.raises(ValueError, match="column 'id' has a null in row 1"):
        frames.codes_and_ids(table, id_column="id")


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_text("no table")
    with pytest.raises(ValueError, match=r"rows\.parquet: not a complete parquet file"):
        frames.codes_and_ids(tmp_path / "rows.parquet")


def test_a_folder_without_parquet_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the folder has no \*\.parquet files"):
        frames.codes_and_ids(tmp_path)


def test_a_record_batch_is_a_source() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [5, 6, 7], "code": [b"ab", b"cd", b"ef"]})
    codes, ids = frames.codes_and_ids(batch, id_column="id")
    assert codes.tolist() == [[97, 98], [99, 100], [101, 102]]
    assert ids is not None
    assert ids.tolist() == [5, 6, 7]
    assert [len(part) for part, _ in frames.code_batches(batch, batch_rows=2)] == [2, 1]


def test_two_columns_of_one_name_in_pandas_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[b"a", b"b"]], columns=["code", "code"])
    with pytest.raises(ValueError, match="the DataFrame: has 2 columns 'code': rename all but one"):
        frames.codes_and_ids(table)


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_rows_are_counted_over_all_batches(batch_rows: int) -> None:
    ids = {"code": np.zeros((7, 1), np.uint8), "id": [0, 1, 2, 3, 4, -5, 6]}
    with pytest.raises(ValueError, match=r"'id'\[5\] = -5"):
        list(frames.code_batches(ids, id_column="id", batch_rows=batch_rows))
    stray = pa.table({"code": [b"\0"] * 4 + [b"\1"] + [b"\0"] * 2})
    with pytest.raises(ValueError, match=r"'code'\[4\] has unused bits set"):
        list(frames.code_batches(stray, n_bits=7, batch_rows=batch_rows))
    large = {"id": np.array([0, 1, 2**63], np.uint64), "code": np.zeros((3, 1), np.uint8)}
    with pytest.raises(ValueError, match=r"'id'\[2\] = 9223372036854775808"):
        list(frames.code_batches(large, id_column="id", batch_rows=batch_rows))


def test_integers_that_float64_holds_may_stand_beside_floats() -> None:
    vectors, _ = frames.vectors_and_ids({"x": [2**53, -(2**60)], "y": [0.5, 1.5]}, ["x", "y"])
    assert vectors.tolist() == [[2.0**53, 0.5], [-(2.0**60), 1.5]]


def test_files_of_integers_and_of_floats_are_not_rounded_into_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [2**53 + 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="integers that float64, the dtype of all rows together"):
        frames.vectors_and_ids(tmp_path, "x")
    apart = [part.tolist() for part, _ in frames.vector_batches(tmp_path, "x")]
    assert apart == [[[2**53 + 1]], [[0.5]]]
