"""Indexes on disk: golden files, what a save writes and leaves alone, what a load needs and finds.

Damage is the business of test_hostile_files.py, interrupted saves that of test_save_faults.py.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import runpy
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_hostile_files import repaired, sealed, write

import bitweigh
from bitweigh._storage.content import header_of
from bitweigh._storage.manifest import MANIFEST, VERSION

ROOT = Path(__file__).parent.parent
GOLDEN = sorted((ROOT / "tests" / "golden").glob("format-*/*/expected.json"))
BANDED = ROOT / "tests" / "golden" / "format-1" / "banded" / "index"
HEADER = 128
COSTS = np.random.default_rng(0).standard_normal((20, 2))


def small_index(n: int = 40, seed: int = 0) -> bitweigh.Index:
    """Codes of 20 bits, in one part."""
    index = bitweigh.Index(20)
    bits = np.random.default_rng(seed).random((n, 20)) < 0.5
    index.add(np.packbits(bits, axis=1))
    return index


def facts(folder: Path) -> dict[str, tuple[int, int]]:
    """By file: whether it is still the same one, and when it was written."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}


def held(index: bitweigh.Index) -> dict[str, str]:
    ids = index.ids
    codes = index.codes_of(ids)
    return {str(one): bytes(code).hex() for one, code in zip(ids.tolist(), codes, strict=True)}


def test_there_are_golden_indexes_of_this_format() -> None:
    assert {path.parent.name for path in GOLDEN if path.parts[-3] == f"format-{VERSION}"} == {
        "banded",
        "empty",
        "plain",
    }


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_a_golden_index_holds_what_was_put_into_it(path: Path, mapped: bool) -> None:
    expected = json.loads(path.read_text())
    index = bitweigh.load(path.parent / "index", mmap=mapped)
    index.verify()
    assert (index.n_bits, index.bitorder) == (expected["n_bits"], expected["bitorder"])
    assert held(index) == expected["codes"]
    options = index._policy.band_options
    for name in ("bands", "band_bits", "memory_limit"):
        assert getattr(options, name) == expected["options"].get(name)
    index.add(np.zeros((1, (index.n_bits + 7) // 8), dtype=np.uint8))
    assert index.ids[-1] == expected["next_id"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_the_reader_in_the_docs_reads_a_golden_index(path: Path) -> None:
    page = (ROOT / "docs" / "file-format.md").read_text()
    reader: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "file-format.md", "exec"), reader)
    reader["check_files"](path.parent / "index")
    found = {
        str(one): code.hex() for one, code in reader["read_codes"](path.parent / "index").items()
    }
    assert found == json.loads(path.read_text())["codes"]


def test_the_golden_indexes_are_written_again_byte_by_byte(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "tools" / "write_golden.py"))["write"](tmp_path)

    def content(folder: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for path in folder.rglob("*.*"):
            name = path.relative_to(folder).as_posix()
            found[name] = path.read_bytes()
            if path.name == MANIFEST:
                manifest = json.loads(path.read_bytes())
                # They change with the version of the package.
                del manifest["writer"], manifest["checksum"]
                found[name] = json.dumps(manifest)
        return found

    assert content(tmp_path) == content(ROOT / "tests" / "golden" / f"format-{VERSION}")


@pytest.mark.parametrize("path", sorted(BANDED.glob("*.npy")), ids=lambda path: path.name[:-37])
def test_a_file_has_the_bytes_that_numpy_writes(path: Path) -> None:
    array = np.load(path, mmap_mode="r")
    saved = io.BytesIO()
    np.save(saved, array)
    assert path.read_bytes() == saved.getvalue()
    assert path.stat().st_size == HEADER + array.nbytes


def test_saving_again_writes_only_what_is_new(tmp_path: Path) -> None:
    index = bitweigh.load(BANDED)
    index.save(tmp_path / "index")
    before = facts(tmp_path / "index")
    assert set(before) == {path.name for path in BANDED.iterdir()}
    index.remove([0])
    index.save(tmp_path / "index")
    after = facts(tmp_path / "index")
    changed = {name for name in after if after[name] != before.get(name)}
    assert {name.partition("-")[0] for name in changed} == {MANIFEST, "removed"}
    assert len(changed) == 2
    assert len(after) == len(before)


def test_a_mapped_index_is_saved_to_another_folder_as_it_was(tmp_path: Path) -> None:
    bitweigh.load(BANDED, mmap=True).save(tmp_path / "index")
    for path in BANDED.glob("*.npy"):
        assert (tmp_path / "index" / path.name).read_bytes() == path.read_bytes()


def test_saving_over_another_index_removes_its_files_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(BANDED, folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "codes.npy").write_bytes(b"mine too")
    # Left by a save that was killed.
    (folder / f"codes-{'0' * 32}.npy.tmp").write_bytes(header_of("|u1", (96,)) + b"half")
    index = small_index()
    index.save(folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    names = {path.name for path in folder.iterdir()}
    assert names == {MANIFEST, "notes.txt", "codes.npy", *manifest["files"]}
    assert held(bitweigh.load(folder)) == held(index)


def test_a_folder_with_other_files_and_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds no index, but 'notes\.txt'"):
        small_index().save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is a file, not the folder of an index"):
        small_index().save(path)
    assert path.read_text() == "mine"


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    index = small_index()
    index.save(str(tmp_path / "a" / "b"))
    assert held(bitweigh.load(str(tmp_path / "a" / "b"))) == held(index)


def test_a_save_waits_for_another_one_to_the_same_folder(tmp_path: Path) -> None:
    small_index(seed=1).save(tmp_path)
    before = facts(tmp_path)
    saving = threading.Thread(target=small_index(seed=2).save, args=(tmp_path,))
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        saving.start()
        saving.join(0.2)
        assert saving.is_alive()
        assert facts(tmp_path) == before
    finally:
        os.close(directory)
    saving.join(30)
    assert held(bitweigh.load(tmp_path)) == held(small_index(seed=2))


@pytest.mark.parametrize("mapped", [False, True])
def test_an_index_without_codes_is_saved_with_its_options(mapped: bool, tmp_path: Path) -> None:
    index = bitweigh.Index(33, bitorder="little", bands=4, band_bits=7, memory_limit=12345)
    index.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
    loaded = bitweigh.load(tmp_path, mmap=mapped)
    assert (len(loaded), loaded.n_bits, loaded.bitorder) == (0, 33, "little")
    assert loaded._policy.band_options == index._policy.band_options
    loaded.verify()


def test_an_index_goes_on_counting_ids_after_a_load(tmp_path: Path) -> None:
    index = small_index(3)
    index.add(np.zeros((1, 3), dtype=np.uint8), ids=[2**63 - 2])
    index.remove([2, 2**63 - 2])
    index.save(tmp_path)
    loaded = bitweigh.load(tmp_path)
    loaded.add(np.zeros((1, 3), dtype=np.uint8))
    assert loaded.ids.tolist() == [0, 1, 2**63 - 1]
    loaded.save(tmp_path)
    with pytest.raises(ValueError, match="no 1 are left after the largest id"):
        bitweigh.load(tmp_path).add(np.zeros((1, 3), dtype=np.uint8))


@pytest.mark.parametrize("made", [False, True])
def test_loading_from_a_folder_without_an_index_says_so(made: bool, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    if made:
        folder.mkdir()
    with pytest.raises(FileNotFoundError, match=r"manifest\.json"):
        bitweigh.load(folder)


def test_loading_and_using_an_index_writes_nothing_to_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(BANDED, folder)
    # For whoever is not root the folder is read-only.
    for path in folder.iterdir():
        path.chmod(0o400)
    folder.chmod(0o500)
    before = facts(folder), folder.stat().st_mtime_ns
    try:
        for mapped in (False, True):
            index = bitweigh.load(folder, mmap=mapped)
            index.search(COSTS, 3, method="probe")
            index.verify()
            index.remove(index.ids[:3])
            index.add(np.zeros((50, 3), dtype=np.uint8))
            index.compact()
        assert (facts(folder), folder.stat().st_mtime_ns) == before
    finally:
        folder.chmod(0o700)


def test_a_mapped_index_keeps_its_answers_when_another_is_saved_over_it(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    shutil.copytree(BANDED, folder)
    old = bitweigh.load(folder, mmap=True)
    expected = held(old), old.search(COSTS, 9).ids.tolist()
    small_index().save(folder)
    assert (held(old), old.search(COSTS, 9).ids.tolist()) == expected
    old.verify()
    assert held(bitweigh.load(folder, mmap=True)) == held(small_index())


Change = Callable[[NDArray[Any]], object]


def swap_first(array: NDArray[Any]) -> None:
    array[..., [0, 1]] = array[..., [1, 0]]


def flip_lowest(array: NDArray[Any]) -> None:
    array ^= 1


def put(value: int, place: int = 0) -> Change:
    def change(array: NDArray[Any]) -> None:
        assert array.flat[place] != value
        array.flat[place] = value

    return change


# What was done: the part (the tail is -1), the array, the change, what must be said.
DAMAGE: dict[str, tuple[int, str, Change, str]] = {
    "lookup out of order": (0, "by_id", swap_first, "part 1: .* lookup is not in order"),
    "lookup of the tail out of order": (-1, "by_id", swap_first, "part 0: .* not in order"),
    "lookup beyond the rows": (1, "by_id", put(33), "part 2: the id lookup names a row that"),
    "an id twice in a part": (
        1, "ids", lambda ids: put(int(ids[5]), 4)(ids), "part 2: ids are not distinct"),
    "an id negative": (0, "ids", put(-1), "part 1: an id is negative"),
    "an unused bit set": (1, "codes", put(255, 64), "part 2: a code has unused bits set"),
    "padding not zero": (1, "codes", put(1, 96 + 1), "part 2: the last block is not padded"),
    "a key starts elsewhere": (0, "starts", put(7), "part 1: band 0 is not in the order"),
    "rows of a band swapped": (0, "band_rows", swap_first, "part 1: band 1 is not in the order"),
    "other codes in a band": (0, "band_codes", flip_lowest, "part 1: band 1 has other codes"),
    "a replaced code there again": (0, "removed", lambda masks: masks.fill(0), "the same id"),
}  # fmt: skip


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", DAMAGE)
def test_verify_finds_what_does_not_fit_though_checksums_match(
    name: str, mapped: bool, tmp_path: Path
) -> None:
    number, kind, change, message = DAMAGE[name]
    files = {path.name: path.read_bytes() for path in BANDED.iterdir()}
    manifest = json.loads(files[MANIFEST])
    part = manifest["tail"] if number < 0 else manifest["segments"][number]
    facts_of_file = manifest["files"][part[kind]]
    array = np.frombuffer(files[part[kind]], facts_of_file["dtype"], offset=HEADER).copy()
    change(array.reshape(facts_of_file["shape"]))
    files[part[kind]] = files[part[kind]][:HEADER] + array.tobytes()
    write(tmp_path / "index", repaired(files))
    index = bitweigh.load(tmp_path / "index", mmap=mapped)
    with pytest.raises(bitweigh.CorruptFileError, match=message):
        index.verify()


def test_verify_finds_a_next_id_that_is_in_use(tmp_path: Path) -> None:
    files = {path.name: path.read_bytes() for path in BANDED.iterdir()}
    next_id = json.loads(files[MANIFEST])["next_id"]
    smaller = files[MANIFEST].replace(str(next_id).encode(), str(next_id - 10).encode())
    write(tmp_path / "index", {**files, MANIFEST: sealed(smaller)})
    with pytest.raises(bitweigh.CorruptFileError, match="next_id is not larger than every id"):
        bitweigh.load(tmp_path / "index").verify()
