"""Streaming builds: the files are those of the definition, whatever the source and the pieces."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lean_cases import check_lean, contents
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._streaming import build
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.ids import check_distinct_ids
from bitweigh._streaming.sources import FileSource, IteratorSource, PieceSource, as_source
from bitweigh.hashers import LSH

Array = NDArray[Any]
ZEROS = np.zeros((3, 1), np.uint8)


def random_codes(rng: np.random.Generator, n: int, n_bits: int, bitorder: Any = "big") -> Array:
    """Return codes whose bits are 1 with different probabilities, so that keys repeat."""
    bits = rng.random((n, n_bits)) < rng.random(n_bits) ** 2
    return np.packbits(bits, axis=1, bitorder=bitorder)


def in_pieces(codes: Array, ids: Array | None, size: int) -> PieceSource:
    rows = [len(codes[i : i + size]) for i in range(0, len(codes), size)]

    def load(number: int) -> Any:
        part = slice(number * size, number * size + size)
        return codes[part] if ids is None else (codes[part], ids[part])

    return PieceSource(load, rows, has_ids=ids is not None)


@st.composite
def layouts(draw: st.DrawFn, n_bits: int) -> list[list[int]]:
    order = draw(st.permutations(range(n_bits)))
    bands = []
    for _ in range(draw(st.integers(1, 4))):
        width = draw(st.integers(1, 14))
        bands.append(sorted(order[:width]))
        order = order[width:]
    return [band for band in bands if band]


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_the_files_are_those_of_the_definition(data: st.DataObject) -> None:
    n_bits = data.draw(st.integers(1, 64))
    n = data.draw(st.sampled_from([1, 2, 31, 32, 33, 64, 100, 257, 1000]))
    bitorder = data.draw(st.sampled_from(["big", "little"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = random_codes(rng, n, n_bits, bitorder)
    max_id = data.draw(st.sampled_from([None, n, 2**32, 2**33, 2**62]))
    ids = None if max_id is None else np.unique(rng.integers(0, max_id, 2 * n))[:n]
    if ids is not None:
        codes = codes[: len(ids)]
        rng.shuffle(ids)
    size = data.draw(st.sampled_from([1, 7, 32, 100, 2000]))
    source: Any = in_pieces(codes, ids, size)
    if data.draw(st.booleans()):
        source = IteratorSource(list(source.read(0, source.rows)))
    # Not synced: that takes most of the time, and changes no file.
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):
        built = build_lean(
            source,
            Path(folder) / "work",
            n_bits,
            bitorder=bitorder,
            layout=data.draw(layouts(n_bits)),
            threads=data.draw(st.integers(1, 4)),
            max_rows_at_once=data.draw(st.sampled_from([n // 20 + 1, n // 3 + 1, 32, 10_000])),
        )
        check_lean(built, codes, ids)


def test_the_files_do_not_depend_on_pieces_threads_memory_or_the_kind_of_source(
    tmp_path: Path,
) -> None:
    codes = random_codes(np.random.default_rng(1), 5000, 64)
    np.save(tmp_path / "codes.npy", codes)
    sources: dict[str, Callable[[], Any]] = {
        "file": lambda: FileSource([tmp_path / "codes.npy"]),
        "pieces": lambda: in_pieces(codes, None, 777),
        "iterator": lambda: IteratorSource(iter([codes[:10], codes[10:]])),
    }
    expected = None
    for name, make in sources.items():
        for rows, threads, memory in ((300, 1, 1 << 30), (1000, 3, 1 << 28), (None, 2, 1 << 31)):
            folder = tmp_path / f"{name}-{rows}"
            build_lean(
                make(),
                folder,
                64,
                band_bits=9,
                bands=2,
                threads=threads,
                build_memory=memory,
                max_rows_at_once=rows,
            )
            expected = expected or contents(folder)
            assert contents(folder) == expected


def test_many_rows_of_one_key_are_cut_and_not_sorted_at_once(tmp_path: Path) -> None:
    codes = np.zeros((1000, 8), np.uint8)
    codes[::7, 7] = np.arange(143)
    built = build_lean(
        in_pieces(codes, None, 90),
        tmp_path,
        64,
        layout=[range(16), range(20, 36)],
        max_rows_at_once=50,
    )
    check_lean(built, codes)


def test_rows_whose_keys_differ_in_few_bits_are_cut_between_any_two_keys(tmp_path: Path) -> None:
    # Runs have the places of 2^12 keys alone: those in between are looked for among the rows.
    rng = np.random.default_rng(4)
    codes = np.zeros((1000, 8), np.uint8)
    codes[:, 0] = rng.integers(0, 16, 1000) << 4  # the lowest four bits of the key
    codes[:, 7] = rng.integers(0, 256, 1000)
    source = in_pieces(codes, None, 90)
    built = build_lean(source, tmp_path, 64, layout=[range(16)], max_rows_at_once=150)
    check_lean(built, codes)


def test_rows_whose_keys_agree_in_the_lowest_bits_are_sorted_by_the_others(tmp_path: Path) -> None:
    codes = np.zeros((1000, 8), np.uint8)
    codes[:, 1] = np.random.default_rng(5).integers(0, 256, 1000)
    built = build_lean(in_pieces(codes, None, 300), tmp_path, 64, layout=[range(16)])
    check_lean(built, codes)


def test_the_default_layout_has_keys_of_at_most_24_bits_and_no_directory_larger_than_the_rows(
    tmp_path: Path,
) -> None:
    codes = random_codes(np.random.default_rng(2), 4096, 64)
    built = build_lean(in_pieces(codes, None, 4096), tmp_path, 64)
    assert [len(band.bits) for band in built.bands] == [8] * 8
    check_lean(built, codes)


def test_keys_longer_than_usual_are_built(tmp_path: Path) -> None:
    n_key_bits = 26
    codes = random_codes(np.random.default_rng(2), 100, 30)
    built = build_lean(in_pieces(codes, None, 100), tmp_path, 30, layout=[range(n_key_bits)])
    starts = np.load(built.bands[0].starts.path)
    built.bands[0].starts.path.unlink()  # 256 MiB
    bits = np.unpackbits(codes, axis=1, count=30)
    keys = np.sort(bits[:, :n_key_bits].astype(np.int64) @ (1 << np.arange(n_key_bits)))
    np.testing.assert_array_equal(starts, np.searchsorted(keys, np.arange(2**n_key_bits + 1)))


def test_no_run_is_left_after_a_build(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(3), 500, 40)
    build_lean(in_pieces(codes, None, 100), tmp_path, 40, layout=[range(9), range(9, 20)])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "journal.json",
        "band0-blocks.npy",
        "band0-starts.npy",
        "band0-ids.npy",
        "band1-blocks.npy",
        "band1-starts.npy",
        "band1-rows.npy",
    }


def test_bvecs_files_are_read_as_codes(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(4), 300, 64)
    for i, part in enumerate((codes[:100], codes[100:])):
        lengths = np.full((len(part), 1), 8, "<i4").view(np.uint8)
        (tmp_path / f"{i}.bvecs").write_bytes(np.hstack([lengths, part]).tobytes())
    source = FileSource([tmp_path / "0.bvecs", tmp_path / "1.bvecs"])
    check_lean(build_lean(source, tmp_path / "w", 64, max_rows_at_once=70), codes)


def test_parquet_files_are_read_one_row_group_at_a_time_with_their_ids(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(5)
    codes, ids = random_codes(rng, 300, 64), rng.permutation(10_000)[:300]
    for i, part in enumerate((slice(0, 120), slice(120, 300))):
        table = pa.table({"code": [code.tobytes() for code in codes[part]], "id": ids[part]})
        parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=50)
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    built = build_lean(FileSource(paths, id_column="id"), tmp_path / "w", 64, max_rows_at_once=80)
    check_lean(built, codes, ids)


def test_ids_come_from_files_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    codes, ids = random_codes(rng, 300, 20), rng.permutation(300) + 2**40
    np.save(tmp_path / "codes.npy", codes)
    np.save(tmp_path / "a.npy", ids[:7])
    np.save(tmp_path / "b.npy", ids[7:])
    source = FileSource([tmp_path / "codes.npy"], ids=[tmp_path / "a.npy", tmp_path / "b.npy"])
    check_lean(build_lean(source, tmp_path / "w", 20, max_rows_at_once=70), codes, ids)


def test_a_source_is_a_path_a_folder_paths_an_array_or_batches(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(6), 90, 20)
    folder = tmp_path / "codes"
    folder.mkdir()
    paths = [folder / f"{i}.npy" for i in range(3)]
    for path, part in zip(paths, np.split(codes, 3), strict=True):
        np.save(path, part)
    (folder / "notes.txt").write_text("not codes")
    np.save(tmp_path / "all.npy", codes)
    given_as = (tmp_path / "all.npy", str(folder), paths, codes, iter(np.split(codes, 3)))
    for number, source in enumerate(given_as):
        check_lean(build_lean(as_source(source), tmp_path / str(number), 20), codes)


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (7, {}, TypeError, "must be a path, paths, an array or an iterable of arrays, got int"),
        ([ZEROS], {"id_column": "id"}, ValueError, "id_column is for files"),
        ("codes.txt", {}, ValueError, "names of files must end in"),
        (".", {}, ValueError, "has no files that end in"),
        ("missing.npy", {}, FileNotFoundError, "missing.npy"),
    ],
)
def test_wrong_sources_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Any,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        as_source(source, **options)


def test_progress_counts_each_row_once_for_each_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: dict[str, float] = {}

    class Bar(build.ProgressBar):
        def __init__(self, description: str, total: float | None = None, **_: Any) -> None:
            self.description = description
            counted[description] = 0
            assert total == 1000

        def advance(self, count: float) -> None:
            counted[self.description] += count

    monkeypatch.setattr(build, "ProgressBar", Bar)
    codes = random_codes(np.random.default_rng(6), 1000, 20)
    build_lean(in_pieces(codes, None, 90), tmp_path, 20, layout=[[1], [2]], max_rows_at_once=99)
    assert counted == {"sorting": 1000, "merging": 1000}


def test_vectors_are_hashed_on_the_way(tmp_path: Path) -> None:
    vectors = np.random.default_rng(7).standard_normal((500, 10)).astype(np.float32)
    hasher = LSH(n_bits=32).fit(vectors)
    np.save(tmp_path / "v.npy", vectors)
    codes = hasher.transform(vectors)
    built = build_lean(FileSource([tmp_path / "v.npy"], hasher=hasher), tmp_path / "a", 32)
    check_lean(built, codes)
    built = build_lean(IteratorSource([vectors[:9], vectors[9:]], hasher), tmp_path / "b", 32)
    check_lean(built, codes)


def test_a_batch_whose_memory_the_iterator_uses_again_is_copied(tmp_path: Path) -> None:
    codes = random_codes(np.random.default_rng(8), 400, 64)

    def batches() -> Iterator[Array]:
        buffer = np.empty((100, 8), np.uint8)
        for start in range(0, 400, 100):
            buffer[:] = codes[start : start + 100]
            yield buffer

    check_lean(build_lean(IteratorSource(batches()), tmp_path, 64, max_rows_at_once=60), codes)


@pytest.mark.parametrize(
    ("batches", "error", "message"),
    [
        (
            [np.zeros((3, 1), np.uint8), np.array([[0], [1]], np.uint8)],
            ValueError,
            r"codes\[4\] has unused bits",
        ),
        ([np.zeros((3, 2), np.uint8)], ValueError, r"shape \(n, 1\)"),
        ([np.zeros((3, 1), np.int8)], TypeError, "uint8"),
        ([], ValueError, "no rows"),
        ([(ZEROS, [1, 2])], ValueError, "expected 3 ids"),
        ([(ZEROS, [1, 2, -2])], ValueError, r"ids\[2\] = -2"),
        ([(ZEROS, [1, 2, 1])], ValueError, "1 is the id of two rows"),
        ([(ZEROS, [2**40, 2, 2**40])], ValueError, f"{2**40} is the id"),
        ([(ZEROS[:1], [5])] * 2, ValueError, "5 is the id of two rows"),
        (
            [np.zeros((3, 1), np.uint8), (np.zeros((1, 1), np.uint8), [1])],
            ValueError,
            "all batches have ids or none",
        ),
    ],
)
def test_wrong_rows_are_refused(
    tmp_path: Path, batches: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_lean(IteratorSource(batches), tmp_path / "w", 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bits": 65}, "n_bits must be from 1 to 64"),
        ({"layout": [[3, 2]]}, "ascending"),
        ({"layout": [[1], [1]]}, "no bit in two bands"),
        ({"layout": []}, "at least one band"),
        ({"build_memory": 1000}, "build_memory must be from"),
        ({"bands": 9}, "bands must be from 1 to 8"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    source = in_pieces(np.zeros((3, 1), np.uint8), None, 3)
    with pytest.raises(ValueError, match=message):
        build_lean(source, tmp_path / "w", **({"n_bits": 8} | options))


def test_an_id_of_two_pieces_that_ascend_each_is_found(tmp_path: Path) -> None:
    source = in_pieces(np.zeros((4, 1), np.uint8), np.array([1, 2, 2, 3]), 2)
    with pytest.raises(ValueError, match="2 is the id of two rows"):
        build_lean(source, tmp_path / "w", 8, max_rows_at_once=2)


@pytest.mark.parametrize(("max_id", "dtype"), [(2**32 - 1, "<u4"), (2**32, "<i8")])
def test_ids_take_32_bits_if_all_fit(tmp_path: Path, max_id: int, dtype: str) -> None:
    codes, ids = np.arange(4, dtype=np.uint8)[:, None], np.array([7, max_id, 3, 9])
    built = build_lean(in_pieces(codes, ids, 2), tmp_path, 8, max_rows_at_once=2)
    assert built.bands[0].numbers.dtype == dtype
    check_lean(built, codes, ids)


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize("max_bytes", [1 << 20, 1 << 30])
def test_a_repeated_id_among_many_is_found_in_little_memory_and_in_much(
    tmp_path: Path, dtype: type, max_bytes: int
) -> None:
    ids = np.arange(200_000, dtype=dtype) * dtype(2**14)
    path, last = tmp_path / "ids.npy", int(ids[-1])
    np.save(path, ids)
    check_distinct_ids(path, last, tmp_path, max_bytes, _core.Stop())
    ids[3] = last
    np.save(path, ids)
    with pytest.raises(ValueError, match=f"{last} is the id of two rows"):
        check_distinct_ids(path, last, tmp_path, max_bytes, _core.Stop())
    assert [file.name for file in tmp_path.iterdir()] == ["ids.npy"]


def test_pieces_of_a_source_that_do_not_fit_into_build_memory_are_refused(tmp_path: Path) -> None:
    source = PieceSource(lambda _: np.zeros((10**7, 8), np.uint8), [10**7])
    with pytest.raises(
        ValueError, match=r"build_memory must be at least [0-9]+ for pieces of 10000000"
    ):
        build_lean(source, tmp_path / "w", 64, build_memory=128 << 20)


MEMORY_SCRIPT = """
import sys, threading
from pathlib import Path
import numpy as np
from bitweigh._streaming import build
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.sources import PieceSource

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

peak, ended = 0, threading.Event()
def sample():
    global peak
    while not ended.wait(0.005):
        peak = max(peak, anonymous())

def load(number):
    rng = np.random.default_rng(number)
    codes = rng.integers(0, 256, (100_000, 8), np.uint8)
    if kind == "counted":
        return codes
    return codes, (number * 100_000 + rng.permutation(100_000)) << (20 if kind == "wide" else 0)

folder, memory, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sampler = threading.Thread(target=sample)
sampler.start()
source = PieceSource(load, [100_000] * 60, has_ids=kind != "counted")
build_lean(source, folder, 64, band_bits=20, build_memory=memory, threads=2)
ended.set()
sampler.join()
print(peak)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kind", ["counted", "narrow", "wide"])
def test_memory_stays_within_build_memory(tmp_path: Path, kind: str) -> None:
    # 6 million rows: to sort them at once would take 144 MB with counted ids, else 192 MB.
    limit = 128 << 20
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, str(tmp_path), str(limit), kind],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= 1.1 * limit
