"""Index.from_batches: an index built on disk answers as one built in memory does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import assert_same

import bitweigh
from bitweigh._index import row_layout
from bitweigh._index.bands import BandOptions
from bitweigh._index.row_layout import LEAN_ROWS, choose_row_layout
from bitweigh._streaming import batches as building
from bitweigh._streaming import plain
from bitweigh._streaming.files import write_whole
from bitweigh.typing import RowLayout

N, N_BITS = 60_000, 40


def codes() -> np.ndarray:
    rng = np.random.default_rng(3)
    centres = rng.integers(0, 256, (300, N_BITS // 8), dtype=np.uint8)
    noise = rng.integers(0, 256, (N, N_BITS // 8), dtype=np.uint8) & (
        rng.integers(0, 256, (N, N_BITS // 8), dtype=np.uint8) & 0x11
    )
    return centres[rng.integers(0, 300, N)] ^ noise


def in_memory(ids: np.ndarray | None = None) -> bitweigh.Index:
    index = bitweigh.Index(N_BITS)
    index.add(codes(), ids)
    return index


COSTS = np.random.default_rng(4).standard_normal((20, N_BITS, 2))


def assert_equal_indexes(index: bitweigh.Index, other: bitweigh.Index) -> None:
    assert len(index) == len(other)
    for method in ("auto", "scan"):
        assert_same(index.search(COSTS, 10, method=method), other.search(COSTS, 10))
    assert np.array_equal(index.codes_of(other.ids[::997]), other.codes_of(other.ids[::997]))


@pytest.mark.parametrize("layout", ["plain", "lean"])
@pytest.mark.parametrize("kind", ["file", "files", "batches", "array"])
def test_codes_from_anywhere_are_indexed(tmp_path: Path, kind: str, layout: RowLayout) -> None:
    rows = codes()
    source: object = rows
    if kind == "file":
        np.save(tmp_path / "all.npy", rows)
        source = tmp_path / "all.npy"
    elif kind == "files":
        for number, piece in enumerate(np.array_split(rows, 3)):
            np.save(tmp_path / f"{number}.npy", piece)
        source = [tmp_path / f"{number}.npy" for number in range(3)]
    elif kind == "batches":
        source = iter(np.array_split(rows, 7))
    index = bitweigh.Index.from_batches(source, tmp_path / "index", layout=layout)  # type: ignore[arg-type]
    assert index.memory().layouts == (layout,)
    assert_equal_indexes(index, in_memory())
    assert {path.name for path in tmp_path.iterdir()} - {"index"} <= {
        "all.npy",
        "0.npy",
        "1.npy",
        "2.npy",
    }
    bitweigh.Index.load(tmp_path / "index").verify()


@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_ids_of_ones_own_are_kept_and_the_next_follows_them(
    tmp_path: Path, layout: RowLayout
) -> None:
    ids = np.random.default_rng(5).permutation(10 * N)[:N]
    batches = zip(np.array_split(codes(), 4), np.array_split(ids, 4), strict=True)
    index = bitweigh.Index.from_batches(batches, tmp_path / "index", layout=layout)
    assert_equal_indexes(index, in_memory(ids))
    index.add(codes()[:1])
    assert index.ids[-1] == ids.max() + 1


@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_such_an_index_is_changed_and_saved_like_any_other(
    tmp_path: Path, layout: RowLayout
) -> None:
    index = bitweigh.Index.from_batches(codes(), tmp_path / "index", layout=layout)
    other = in_memory()
    for each in (index, other):
        each.remove([0, 5, N - 1])
        each.add(codes()[:3], [5, 2 * N, 3 * N])
    assert_equal_indexes(index, other)
    index.save(tmp_path / "index")
    assert_equal_indexes(bitweigh.Index.load(tmp_path / "index"), other)


def test_a_lean_row_takes_few_bytes(tmp_path: Path) -> None:
    index = bitweigh.Index.from_batches(codes(), tmp_path / "index", band_bits=8, layout="lean")
    memory = index.memory()
    assert (memory.total - memory.directories) / N == pytest.approx(4 + 4 + 4 + 4, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bands": 3, "layout": "lean"}, "lean rows have 1 to 2 bands"),
        ({"bands": 0, "layout": "lean"}, "lean rows have 1 to 2 bands"),
        ({"memory_limit": 9, "layout": "lean"}, "memory_limit leaves no room"),
        ({"n_bits": 65, "layout": "lean"}, "at most 64 bits"),
        ({"layout": "wide"}, "layout must be 'plain' or 'lean', got 'wide'"),
        ({"n_bits": 65}, "must have shape"),
        ({"ids": "ids.npy"}, "ids is for files"),
        ({"n_bits": 33}, "unused bits set|must have shape"),
        ({"build_memory": 10}, "build_memory must be from"),
        ({"bitorder": "middle"}, "bitorder must be"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bitweigh.Index.from_batches(codes(), tmp_path / "index", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_source_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the source has no rows: give n_bits"):
        bitweigh.Index.from_batches(np.zeros((0, 8), np.uint8), tmp_path / "index")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="must not exist or be empty"):
        bitweigh.Index.from_batches(codes(), tmp_path, layout="lean")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_a_killed_build_is_resumed_and_gives_the_same_files(
    tmp_path: Path, layout: RowLayout
) -> None:
    np.save(tmp_path / "all.npy", codes())
    program = (
        "import bitweigh, sys; "
        "bitweigh.Index.from_batches("
        "sys.argv[2], sys.argv[3], layout=sys.argv[1], build_memory=2**27)"
    )
    command = [sys.executable, "-c", program, layout, str(tmp_path / "all.npy")]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    killed = subprocess.Popen([*command, str(tmp_path / "killed")])
    work = tmp_path / "killed.building"
    while killed.poll() is None and not (work / "journal.json").exists():
        pass
    if killed.poll() is None:
        os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    index = (
        bitweigh.Index.from_batches(tmp_path / "all.npy", tmp_path / "killed", layout=layout)
        if not (tmp_path / "killed" / "manifest.json").exists()
        else bitweigh.Index.load(tmp_path / "killed")
    )
    assert len(index) == N
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {path.name for path in (tmp_path / "killed").iterdir()} == names
    for name in names:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("rows", "n_bits", "options", "expected"),
    [
        (LEAN_ROWS - 1, 64, {}, ("plain", "rows", 0)),
        (LEAN_ROWS, 64, {}, ("lean", "rows", 2)),
        (None, 64, {}, ("lean", "rows", 2)),
        (LEAN_ROWS, 65, {}, ("plain", "bits", 0)),
        (LEAN_ROWS, 1, {}, ("lean", "rows", 1)),
        (LEAN_ROWS, 64, {"bands": 1}, ("lean", "rows", 1)),
        (LEAN_ROWS, 64, {"bands": 3}, ("plain", "bands", 0)),
        (LEAN_ROWS, 64, {"memory_limit": 0}, ("plain", "bands", 0)),
        # Plain rows with two bands take 28 bytes and 8 MB of directories, lean ones 20 and those.
        (10**6, 64, {"memory_limit": 30 * 10**6}, ("plain", "rows", 0)),
        (10**6, 64, {"memory_limit": 27 * 10**6}, ("lean", "memory_limit", 2)),
        (10**6, 64, {"memory_limit": 15 * 10**6}, ("lean", "memory_limit", 1)),
        (10**6, 64, {"memory_limit": 9 * 10**6}, ("plain", "memory_limit", 0)),
        (10**9, 64, {"memory_limit": 9 * 10**9}, ("plain", "memory_limit", 0)),
        (10**9, 64, {"memory_limit": 12 * 10**9}, ("lean", "rows", 1)),
    ],
)
def test_the_layout_depends_on_rows_bits_and_options(
    rows: int | None, n_bits: int, options: dict[str, int], expected: tuple[str, str, int]
) -> None:
    assert choose_row_layout(rows, n_bits, BandOptions(**options), None) == expected


def test_a_memory_limit_is_kept_by_lean_rows(tmp_path: Path) -> None:
    for limit in (1_100_000, 600_000):
        folder = tmp_path / str(limit)
        index = bitweigh.Index.from_batches(codes(), folder, memory_limit=limit)
        assert index.memory().layouts == ("lean",)
        assert index.memory().total <= limit
        assert_equal_indexes(index, in_memory())


@pytest.mark.parametrize("rows", [1, 32, 99, 100, 101, 1000])
@pytest.mark.parametrize("own_ids", [False, True])
def test_an_iterator_is_copied_until_the_layout_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, own_ids: bool
) -> None:
    monkeypatch.setattr(row_layout, "LEAN_ROWS", 100)
    monkeypatch.setattr(building, "LEAN_ROWS", 100)
    ids = np.random.default_rng(1).permutation(rows) + 7
    batches: object = (
        zip(np.array_split(codes()[:rows], 5), np.array_split(ids, 5), strict=True)
        if own_ids
        else iter(np.array_split(codes()[:rows], 5))
    )
    index = bitweigh.Index.from_batches(batches, tmp_path / "index")  # type: ignore[arg-type]
    assert index.memory().layouts == ("lean" if rows >= 100 else "plain",)
    other = bitweigh.Index(N_BITS)
    other.add(codes()[:rows], ids if own_ids else None)
    assert_same(index.search(COSTS, 10), other.search(COSTS, 10))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_explain_and_memory_say_the_layout_and_why_also_after_saving_again(
    tmp_path: Path, layout: RowLayout
) -> None:
    index = bitweigh.Index.from_batches(codes(), tmp_path / "index", layout=layout)
    index.remove([3])
    index.save(tmp_path / "again")
    for each in (index, bitweigh.Index.load(tmp_path / "again")):
        explained = each.explain(COSTS[0], 1)
        (facts,) = explained.segments
        assert (facts.layout, facts.layout_reason) == (layout, f"layout={layout!r}")
        assert f"{layout} rows (layout={layout!r})" in str(explained)
        assert each.memory().layouts == (layout,)
    (facts,) = in_memory().explain(COSTS[0], 1).segments
    assert (facts.layout, facts.layout_reason) == ("plain", "")


@pytest.mark.parametrize("n_bits", [1, 7, 63, 65, 200, 2049, 8192])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_codes_of_any_width_are_indexed(
    tmp_path: Path, n_bits: int, bitorder: bitweigh.typing.BitOrder
) -> None:
    rng = np.random.default_rng(n_bits)
    bits = rng.integers(0, 2, (333, n_bits), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder=bitorder)
    index = bitweigh.Index.from_batches(
        packed, tmp_path / "index", n_bits=n_bits, bitorder=bitorder, bands=0
    )
    costs = rng.standard_normal((3, n_bits, 2))
    assert_same(
        index.search(costs, 5), bitweigh.reference.search(packed, costs, 5, bitorder=bitorder)
    )


def small_segments(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(plain, "_segment_rows", lambda *_: rows)


@pytest.mark.parametrize("kind", ["counted", "ascending", "any"])
def test_plain_rows_in_many_segments_give_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    small_segments(monkeypatch, 7777)
    np.save(tmp_path / "all.npy", codes())
    ids = (
        np.arange(N) * 3 if kind == "ascending" else np.random.default_rng(5).permutation(9 * N)[:N]
    )
    np.save(tmp_path / "ids.npy", ids)
    given = None if kind == "counted" else tmp_path / "ids.npy"
    index = bitweigh.Index.from_batches(tmp_path / "all.npy", tmp_path / "index", ids=given)
    assert index.memory().layouts == ("plain",) * 8
    assert_equal_indexes(index, in_memory(None if kind == "counted" else ids))
    bitweigh.Index.load(tmp_path / "index").verify()


def test_the_last_id_of_a_segment_may_not_be_the_first_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch, 7777)
    ids = np.arange(N)
    ids[7777:] -= 1
    with pytest.raises(ValueError, match="but 7776 is the id of two rows"):
        bitweigh.Index.from_batches([(codes(), ids)], tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", ["plain", "lean"])
@pytest.mark.parametrize("first", [0, 7776, N - 1])
def test_an_id_that_occurs_twice_is_refused_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: RowLayout, first: int
) -> None:
    small_segments(monkeypatch, 7777)
    np.save(tmp_path / "all.npy", codes())
    ids = np.arange(N)[::-1].copy()
    ids[first] = ids[first - 1]
    np.save(tmp_path / "ids.npy", ids)
    with pytest.raises(ValueError, match=f"but {ids[first]} is the id of two rows"):
        bitweigh.Index.from_batches(
            tmp_path / "all.npy", tmp_path / "index", ids=tmp_path / "ids.npy", layout=layout
        )
    assert {path.name for path in tmp_path.iterdir()} == {"all.npy", "ids.npy"}


def test_finished_segments_are_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch, 20_000)
    np.save(tmp_path / "all.npy", codes())
    source, path = tmp_path / "all.npy", tmp_path / "index"
    written = []

    def write(path: Path, parts: object) -> None:
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(path.name)
        write_whole(path, parts)  # type: ignore[arg-type]

    monkeypatch.setattr(plain, "write_whole", write)
    with pytest.raises(OSError, match="finished 2 segments; what is finished is kept"):
        bitweigh.Index.from_batches(source, path, bands=0)
    with pytest.raises(ValueError, match="unfinished build with bands=None, got 2"):
        bitweigh.Index.from_batches(source, path, bands=2, memory_limit=0)
    with pytest.raises(ValueError, match="unfinished build with layout=None, got lean"):
        bitweigh.Index.from_batches(source, path, bands=0, layout="lean")
    with pytest.raises(ValueError, match="cannot be resumed"):
        bitweigh.Index.from_batches(codes(), path, bands=0)
    read = []
    monkeypatch.setattr(
        plain, "write_whole", lambda path, parts: (read.append(path.name), write_whole(path, parts))
    )
    index = bitweigh.Index.from_batches(source, path, bands=0)
    assert len(read) == 1
    assert_equal_indexes(index, in_memory())
    assert {path.name for path in tmp_path.iterdir()} == {"all.npy", "index"}


def test_a_resumed_build_keeps_its_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "all.npy", codes())
    source, path = tmp_path / "all.npy", tmp_path / "index"
    monkeypatch.setattr(plain, "write_whole", _fail)
    with pytest.raises(RuntimeError):
        bitweigh.Index.from_batches(source, path)
    monkeypatch.undo()
    monkeypatch.setattr(row_layout, "LEAN_ROWS", 100)
    assert bitweigh.Index.from_batches(source, path).memory().layouts == ("plain",)


def _fail(*_: object) -> None:
    raise RuntimeError("the end")


def test_too_little_build_memory_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    long = np.zeros((10, 256), np.uint8)
    with pytest.raises(ValueError, match=r"build_memory must be at least \d{9} for segments of"):
        bitweigh.Index.from_batches(long, tmp_path / "index", build_memory=2**27)
    assert list(tmp_path.iterdir()) == []


def test_segments_have_as_many_rows_as_build_memory_has_room_for(tmp_path: Path) -> None:
    wide = np.zeros((60_000, 128), np.uint8)
    small = bitweigh.Index.from_batches(wide, tmp_path / "a", build_memory=2**28)
    large = bitweigh.Index.from_batches(wide, tmp_path / "b", build_memory=2**30)
    rows = [part.rows for part in small.explain(np.zeros((1024, 2)), 1).segments]
    assert len(rows) > 1
    assert max(rows) - min(rows) < len(rows)
    assert len(large.memory().layouts) == 1


HASHED = np.random.default_rng(6).standard_normal((1500, 12)).astype(np.float32)


@pytest.mark.parametrize("layout", ["plain", "lean"])
@pytest.mark.parametrize("kind", ["npy", "fvecs", "parquet", "batches", "array"])
def test_vectors_go_through_a_hasher(tmp_path: Path, kind: str, layout: RowLayout) -> None:
    hasher = bitweigh.hashers.LSH(37, bitorder="little").fit(HASHED)
    source: object = HASHED
    columns: dict[str, str] = {}
    ids = np.arange(1500)
    if kind == "npy":
        np.save(tmp_path / "v.npy", HASHED)
        source = tmp_path / "v.npy"
    elif kind == "fvecs":
        widths = np.full((1500, 1), 12, np.uint32).view(np.float32)
        np.hstack([widths, HASHED]).tofile(tmp_path / "v.fvecs")
        source = tmp_path / "v.fvecs"
    elif kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        ids = ids[::-1] * 2
        table = pa.table({"v": list(HASHED), "key": ids})
        pq.write_table(table, tmp_path / "v.parquet", row_group_size=400)
        source, columns = tmp_path / "v.parquet", {"column": "v", "id_column": "key"}
    elif kind == "batches":
        source = iter(np.array_split(HASHED, 4))
    index = bitweigh.Index.from_batches(
        source,  # type: ignore[arg-type]
        tmp_path / "index",
        hasher=hasher,
        layout=layout,
        **columns,
    )
    assert (index.n_bits, index.bitorder) == (37, "little")
    assert np.array_equal(index.codes_of(ids), hasher.transform(HASHED))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hasher": "lsh"}, TypeError, "hasher must be one of bitweigh.hashers, got str"),
        ({"hasher": bitweigh.hashers.LSH(8)}, ValueError, "not fitted"),
        ({"hasher": bitweigh.hashers.LSH(8).fit(HASHED), "n_bits": 9}, ValueError, "must be 8"),
        (
            {"hasher": bitweigh.hashers.LSH(8).fit(HASHED), "bitorder": "little"},
            ValueError,
            "bitorder must be 'big'",
        ),
        ({}, TypeError, "uint8"),
    ],
)
def test_vectors_need_a_hasher_that_fits(
    tmp_path: Path, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bitweigh.Index.from_batches(HASHED, tmp_path / "index", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
