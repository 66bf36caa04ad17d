"""bitweigh.io: the readers of vecs and bin files, on valid and on hostile files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_cases import BIN_DTYPES, DTYPES, real_data, some_rows, write_bin, write_vecs

from bitweigh import io

VECS = sorted(DTYPES)
BINS = sorted(BIN_DTYPES)


@pytest.mark.parametrize("ending", VECS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (31, 3), (33, 128)])
def test_vecs_come_back_as_written(tmp_path: Path, ending: str, shape: tuple[int, int]) -> None:
    rows = some_rows(*shape)
    read = io.read(write_vecs(tmp_path / f"a.{ending}", rows), verify=True)
    assert read.dtype == DTYPES[ending]
    assert read.shape == shape
    assert np.array_equal(read, rows)


@pytest.mark.parametrize("ending", VECS)
def test_vecs_are_a_read_only_view_of_the_mapped_file(tmp_path: Path, ending: str) -> None:
    read = io.read(write_vecs(tmp_path / f"a.{ending}", some_rows(5, 3)))
    assert isinstance(read, np.memmap)
    assert not read.flags.owndata
    assert read.strides == (4 + 3 * read.itemsize, read.itemsize)
    with pytest.raises(ValueError, match="read-only"):
        read[0, 0] = 1


@pytest.mark.parametrize("ending", [*VECS, *BINS])
def test_max_rows_takes_the_first(tmp_path: Path, ending: str) -> None:
    rows = some_rows(9, 4)
    file = (write_vecs if ending in VECS else write_bin)(tmp_path / f"a.{ending}", rows)
    for max_rows in (1, 4, 9, 1000):
        assert np.array_equal(io.read(file, max_rows=max_rows), rows[:max_rows])
    with pytest.raises(ValueError, match="max_rows must be from 1"):
        io.read(file, max_rows=0)
    with pytest.raises(TypeError, match="max_rows must be an integer"):
        io.read(file, max_rows=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", BINS)
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (33, 128)])
def test_bins_come_back_as_written(tmp_path: Path, ending: str, shape: tuple[int, int]) -> None:
    rows = some_rows(*shape)
    read = io.read(write_bin(tmp_path / f"a.{ending}", rows))
    assert isinstance(read, np.memmap)
    assert read.dtype == BIN_DTYPES[ending]
    assert np.array_equal(read, rows)


@pytest.mark.parametrize("ending", VECS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x02\x00", "truncated: 2 bytes"),
        (np.int32(0).tobytes(), "must be positive, got d=0"),
        (np.int32(-128).tobytes() + bytes(128), "must be positive, got d=-128"),
        (np.int32(2**31 - 1).tobytes() + bytes(64), "truncated.*d=2147483647"),
        (np.int32(3).tobytes(), "0 whole rows and 4 bytes more"),
    ],
)
def test_hostile_vecs(tmp_path: Path, ending: str, content: bytes, message: str) -> None:
    file = tmp_path / f"bad.{ending}"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        io.read(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("ending", VECS)
def test_every_truncation_of_vecs_is_seen(tmp_path: Path, ending: str) -> None:
    file = write_vecs(tmp_path / f"a.{ending}", some_rows(3, 5))
    content = file.read_bytes()
    row_bytes = len(content) // 3
    for size in range(1, len(content)):
        file.write_bytes(content[:size])
        if size % row_bytes == 0:
            assert len(io.read(file)) == size // row_bytes
        else:
            with pytest.raises(ValueError, match="truncated"):
                io.read(file)


@pytest.mark.parametrize("wrong", [1, 4, 6, -1, 0, 2**31 - 1])
@pytest.mark.parametrize("row", [1, 500, 2999])
def test_mixed_dimensions_are_seen(tmp_path: Path, row: int, wrong: int) -> None:
    file = write_vecs(tmp_path / "a.bvecs", some_rows(3000, 5))
    content = bytearray(file.read_bytes())
    content[9 * row : 9 * row + 4] = np.int32(wrong).tobytes()
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"row 0 has d=5, row {row} has d={wrong}"):
        io.read_bvecs(file, verify=True)
    if row == 2999:  # the last row is always checked
        with pytest.raises(ValueError, match="mixed dimensions"):
            io.read_bvecs(file)
        with pytest.raises(ValueError, match="mixed dimensions"):
            io.read_bvecs(file, max_rows=10)


def test_many_wrong_rows_are_seen_without_verify(tmp_path: Path) -> None:
    """An ivecs file of d = 1 read as if it were d = 3: each second row is off."""
    file = tmp_path / "a.ivecs"
    file.write_bytes(np.array([3, 9, 9, 9, 1, 1, 9, 9] * 50 + [3, 9, 9, 9], "<i4").tobytes())
    with pytest.raises(ValueError, match="mixed dimensions"):
        io.read_ivecs(file)


@pytest.mark.parametrize("ending", BINS)
@pytest.mark.parametrize(
    ("header", "n_bytes", "message"),
    [
        ((0, 4), 0, "n=0 and d=4"),
        ((4, 0), 0, "n=4 and d=0"),
        ((2**32 - 1, 2**32 - 1), 64, "truncated: n=4294967295"),
        ((3, 4), 11, "truncated"),
        ((3, 4), 49, "too long"),
    ],
)
def test_hostile_bins(
    tmp_path: Path, ending: str, header: tuple[int, int], n_bytes: int, message: str
) -> None:
    file = tmp_path / f"bad.{ending}"
    file.write_bytes(np.array(header, dtype="<u4").tobytes() + bytes(n_bytes))
    with pytest.raises(ValueError, match=message) as caught:
        io.read(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("ending", BINS)
@pytest.mark.parametrize(("content", "message"), [(b"", "is empty"), (b"\x01" * 7, "truncated")])
def test_bins_without_a_header(tmp_path: Path, ending: str, content: bytes, message: str) -> None:
    file = tmp_path / f"bad.{ending}"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        io.read(file)


@given(
    content=st.binary(max_size=200),
    ending=st.sampled_from([*VECS, *BINS, "npy", "npz"]),
    start=st.sampled_from([b"", b"\x01\0\0\0", b"\x03\0\0\0\x02\0\0\0", b"\x93NUMPY\x01\0", b"PK"]),
)
def test_no_content_gives_anything_but_rows_or_a_value_error(
    content: bytes, ending: str, start: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"any.{ending}"
        file.write_bytes(start + content)
        message = str(file)
        try:
            assert io.read(file).size > 0
        except ValueError as error:
            message = str(error)
    assert str(file) in message


def test_the_genuine_siftsmall_files() -> None:
    folder = real_data("siftsmall_query.fvecs")
    queries = io.read(folder / "siftsmall_query.fvecs", verify=True)
    assert queries.shape == (100, 128)
    assert queries.dtype == np.float32
    assert np.array_equal(queries, np.clip(queries.round(), 0, 255))
    truth = io.read(folder / "siftsmall_groundtruth.ivecs", verify=True)
    assert truth.shape == (100, 100)
    assert truth.dtype == np.int32
    assert 0 <= truth.min() <= truth.max() < 10_000
    assert all(len(set(row.tolist())) == 100 for row in truth)
