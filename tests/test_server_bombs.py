"""Small bodies that would be huge once decoded, and files that lead elsewhere: all are refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server_cases import ARROW, PARQUET, TAR, Api, arrow_stream, check_problem, small_api, unharmed

from bitweigh.server import jobs, parquet_process

ITEMS = "codes/items"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with small_api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(autouse=True)
def _unharmed(api: Api) -> Iterator[None]:
    """After each test, what was there before is still there."""
    yield
    unharmed(api)


def arrow(**columns: Any) -> pa.RecordBatch:
    given = {"id": pa.array([1, 2]), "code": pa.array([b"\1\0", b"\2\0"]), **columns}
    return pa.record_batch({name: column for name, column in given.items() if column is not None})


def repeated(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def nulls_in_lists(rows: int, count: int) -> Any:
    offsets = pa.array(np.linspace(0, count, rows + 1).astype(np.int64), pa.int64())
    return pa.LargeListArray.from_arrays(offsets, _nulls(count))


def long_nulls(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"id": _nulls(rows), "code": _nulls(rows)})


def _nulls(rows: int) -> Any:
    """As pa.nulls, which allocates."""
    return pa.Array.from_buffers(pa.null(), rows, [None])


def views(rows: int) -> pa.RecordBatch:
    """Many views of one long text."""
    text = pa.array(["x" * 1_000_000] + ["y"] * (rows - 1)).cast(pa.string_view())
    return arrow(id=pa.array(range(rows)), code=pa.array([b"\1\0"] * rows), t=text)


STREAMS: list[tuple[str, Any, int, str]] = [
    ("garbage", lambda: b"garbage" * 100, 400, "not an Arrow stream"),
    ("nothing", lambda: b"", 400, "not an Arrow stream"),
    ("cut off", lambda: arrow_stream(arrow())[:-40], 400, "not an Arrow stream"),
    ("flipped", lambda: arrow_stream(arrow()).replace(b"\2\0\0\0", b"\xff\xff\xff\x7f"), 400, ""),
    ("an id is null", lambda: arrow_stream(arrow(id=pa.array([1, None]))), 422, "row 1: id"),
    ("a code is null", lambda: arrow_stream(arrow(code=pa.array([b"\1\0", None]))), 422, "row 1"),
    ("ids are texts", lambda: arrow_stream(arrow(id=pa.array(["1", "2"]))), 422, "integers"),
    ("ids are floats", lambda: arrow_stream(arrow(id=pa.array([1.0, 2.0]))), 422, "integers"),
    ("ids are negative", lambda: arrow_stream(arrow(id=pa.array([1, -2]))), 422, "row 1: id"),
    ("ids are too large", lambda: arrow_stream(arrow(id=pa.array([1, 2**63], pa.uint64()))), 422, "row 1"),
    ("ids are there twice", lambda: arrow_stream(arrow(id=pa.array([1, 1]))), 422, "twice"),
    ("no ids", lambda: arrow_stream(arrow(id=None)), 422, "'id' or 'key'"),
    ("no codes", lambda: arrow_stream(arrow(code=None)), 422, "'vector' or 'code'"),
    ("codes are numbers", lambda: arrow_stream(arrow(code=pa.array([1, 2]))), 422, "lists or binary"),
    ("codes are short", lambda: arrow_stream(arrow(code=pa.array([b"\1\0", b"\1"]))), 422, "row 1"),
    ("codes are texts", lambda: arrow_stream(arrow(code=pa.array([["a"], ["b"]]))), 422, "numbers"),
    ("keys are numbers", lambda: arrow_stream(arrow(id=None, key=pa.array([1, 2]))), 422, "strings"),
    ("payload is binary", lambda: arrow_stream(arrow(b=pa.array([b"x", b"y"]))), 422, "JSON"),
    ("payload has U+0000", lambda: arrow_stream(arrow(t=pa.array(["\0", "y"]))), 422, "U+0000"),
    (
        "two columns of a name",
        lambda: arrow_stream(
            pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array([b"\1\0"])], ["id", "id", "code"])
        ),
        422,
        "same name",
    ),
    (
        "zeros that expand to gigabytes",
        lambda: arrow_stream(
            arrow(z=pa.array([b"\0" * 100_000_000] * 2, pa.large_binary())), compression="zstd"
        ),
        413,
        "without compression",
    ),
    ("a length that is a lie", lambda: lying_stream(1 << 50), 413, "without compression"),
    ("rows without bytes", lambda: arrow_stream(long_nulls(2**40), allow_64bit=True), 413, "at most 100000 items"),
    ("lists of nothing", lambda: arrow_stream(arrow(n=nulls_in_lists(2, 2**40)), allow_64bit=True), 413, "fewer values"),
    (
        "bits in lists",
        lambda: arrow_stream(
            arrow(n=pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(20_000_000, bool)), 10_000_000))
        ),
        413,
        "fewer values",
    ),
    (
        "a long text for each row",
        lambda: arrow_stream(
            arrow(id=pa.array(range(5000)), code=pa.array([b"\1\0"] * 5000), t=repeated("x" * 1_000_000, 5000))
        ),
        413,
        "once decoded",
    ),
    ("views of a text", lambda: arrow_stream(views(10)), 422, "string_view"),
    (
        "runs",
        lambda: arrow_stream(arrow(r=pa.RunEndEncodedArray.from_arrays([2], ["x"]))),
        422,
        "run_end_encoded",
    ),
]  # fmt: skip


def lying_stream(length: int) -> bytes:
    """A compressed stream one of whose buffers says that it is longer than it is."""
    column = pa.array([b"\0" * 4000] * 2)
    body = arrow_stream(arrow(z=column), compression="zstd")
    true = (8000).to_bytes(8, "little")
    assert body.count(true) == 1
    return body.replace(true, length.to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("make", "status", "reason"), [one[1:] for one in STREAMS], ids=[one[0] for one in STREAMS]
)
def test_a_hostile_arrow_stream_is_refused_before_it_is_decoded(
    api: Api, make: Any, status: int, reason: str
) -> None:
    begin = time.monotonic()
    check_problem(api.ask("PUT", ITEMS, content=make(), headers=ARROW), status, reason)
    assert time.monotonic() - begin < 20


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def texts_in_a_dictionary() -> bytes:
    """200,000 rows of the same four million letters, in half a megabyte."""
    rows = 200_000
    columns = {
        "id": np.arange(rows),
        "code": [b"\1\0"] * rows,
        "t": repeated("x" * 4_000_000, rows),
    }
    return parquet(columns, store_schema=False, compression="zstd")


FILES: list[tuple[str, Any, str]] = [
    ("garbage", lambda: b"PAR1" + b"garbage" * 100 + b"PAR1", "not a parquet file"),
    ("nothing", lambda: b"", "not a parquet file"),
    ("cut off", lambda: parquet({"id": [1], "code": [b"\1\0"]})[:-20], "not a parquet file"),
    ("texts in a dictionary", texts_in_a_dictionary, "decoding needs more than"),
    ("one huge row", lambda: parquet({"id": [1], "t": ["x" * (65 << 20)]}), "a row has"),
    ("no columns", lambda: parquet({"x": [1]}), "'id' or 'key'"),
    ("ids are texts", lambda: parquet({"id": ["a"], "code": [b"\1\0"]}), "integers"),
]


@pytest.mark.parametrize(
    ("make", "reason"), [one[1:] for one in FILES], ids=[one[0] for one in FILES]
)
def test_a_hostile_parquet_file_ends_its_import_only(api: Api, make: Any, reason: str) -> None:
    job = api.import_rows("codes", make())
    assert job["state"] == "failed"
    assert reason in job["detail"]
    assert job["written"] == 0


def test_a_process_that_is_killed_while_it_reads_ends_its_import_only(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_process, "__file__", "/no/such/script.py")
    job = api.import_rows("codes", parquet({"id": [1], "code": [b"\1\0"]}))
    assert job["state"] == "failed"
    assert "not a parquet file that can be read" in job["detail"]


def test_imports_that_wait_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = []
    monkeypatch.setattr(jobs, "_MAX_WAITING", 2)
    with api.service.jobs._one:
        for _ in range(2):
            answer = api.done("POST", "codes/import", content=b"x", headers=PARQUET)
            waiting.append(answer["id"])
        answer = api.ask("POST", "codes/import", content=b"x", headers=PARQUET)
        check_problem(answer, 429, "imports are waiting")
        assert int(answer.headers["retry-after"]) > 0
    for job in waiting:
        assert api.ended(job)["state"] == "failed"


def test_an_import_of_another_type_is_refused(api: Api) -> None:
    answer = api.ask("POST", "codes/import", {})
    check_problem(answer, 415, "application/vnd.apache.parquet")
    answer = api.ask("POST", "codes/import?colour=red", content=b"x", headers=PARQUET)
    check_problem(answer, 422, "not 'colour'")


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(
    name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info


def huge_header() -> bytes:
    """A header of names that is longer than any name."""
    return member("x", 1 << 20, tarfile.XHDTYPE).tobuf() + b"0" * (1 << 20)


def sparse() -> bytes:
    """A file of 1 TB that is all hole."""
    headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(1 << 40),
    }
    info = member("record.sqlite")
    info.pax_headers = headers
    return tar_of((info, b""))


TARS: list[tuple[str, Any, str]] = [
    ("garbage", lambda: b"garbage" * 1000, "not a snapshot"),
    ("nothing", lambda: b"", "not a snapshot"),
    ("a way out", lambda: tar_of((member("../escaped", 1), b"x")), "outside"),
    ("an absolute name", lambda: tar_of((member("/tmp/escaped", 1), b"x")), "no record"),
    ("a link", lambda: tar_of((member("record.sqlite", kind=tarfile.SYMTYPE, link="/etc/passwd"), b"")), "neither a file"),
    ("a hard link", lambda: tar_of((member("record.sqlite", kind=tarfile.LNKTYPE, link="keys.json"), b"")), "neither a file"),
    ("a device", lambda: tar_of((member("record.sqlite", kind=tarfile.CHRTYPE), b"")), "neither a file"),
    ("a fifo", lambda: tar_of((member("record.sqlite", kind=tarfile.FIFOTYPE), b"")), "neither a file"),
    ("an old sparse file", lambda: member("record.sqlite", kind=tarfile.GNUTYPE_SPARSE).tobuf() + bytes(1024), "neither a file"),
    ("a sparse file", sparse, "sparse"),
    ("a huge header", huge_header, "neither a file"),
    ("more than there is", lambda: member("record.sqlite", 1 << 40).tobuf(tarfile.GNU_FORMAT) + bytes(1024), "cut off"),
    ("compressed", lambda: gzip.compress(tar_of((member("record.sqlite", 1 << 20), bytes(1 << 20)))), "not a snapshot"),
    ("not a record", lambda: tar_of((member("record.sqlite", 8192), b"x" * 8192)), "not a database"),
    ("an empty record", lambda: tar_of((member("record.sqlite"), b"")), "no such table"),
    ("a folder as the record", lambda: tar_of((member("record.sqlite", kind=tarfile.DIRTYPE), b"")), "no record"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "reason"), [one[1:] for one in TARS], ids=[one[0] for one in TARS]
)
def test_a_hostile_tar_file_replaces_nothing(api: Api, make: Any, reason: str) -> None:
    for name in ("codes", "new"):
        answer = api.ask("POST", f"{name}/restore", content=make(), headers=TAR)
        check_problem(answer, 422, reason)
    folder = api.service.store.folder
    assert not (folder / "collections" / "escaped").exists()
    assert api.ask("GET", "new").status_code == 404
