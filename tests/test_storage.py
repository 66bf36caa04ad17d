"""Indexes on disk: golden files, what a save writes and leaves alone, what a load reads.

test_hostile_files.py tests damage, test_save_faults.py interrupted saves.
"""

from __future__ import annotations

import fcntl
import gc
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
from storage_cases import codes_by_id, repaired, sealed, small_index, write

import bitweigh
from bitweigh._storage import folder_kind, index_files
from bitweigh._storage.arrays import ARRAY_KINDS, array_data, header_of
from bitweigh._storage.formats import FORMATS, INDEX
from bitweigh._storage.index_files import READERS
from bitweigh._storage.manifest import MANIFEST

ROOT = Path(__file__).parent.parent
GOLDEN = sorted((ROOT / "tests" / "golden").glob("format-*/*/expected.json"))
VECTORS = sorted((ROOT / "tests" / "golden").glob("vectors-2/*/expected.json"))
BANDED = ROOT / "tests" / "golden" / "format-1" / "banded" / "index"
HEADER = 128
COSTS = np.random.default_rng(0).standard_normal((20, 2))


def facts(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the inode and modification time of each file."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_there_are_golden_indexes_of_both_versions() -> None:
    found = {f"{path.parts[-3]}/{path.parts[-2]}" for path in GOLDEN}
    assert found == {"format-1/banded", "format-1/empty", "format-1/plain", "format-2/lean"}
    assert INDEX.versions == (1, 2)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_a_golden_index_holds_what_was_put_into_it(path: Path, mapped: bool) -> None:
    expected = json.loads(path.read_text())
    index = bitweigh.load(path.parent / "index", mmap=mapped)
    index.verify()
    assert (index.n_bits, index.bitorder) == (expected["n_bits"], expected["bitorder"])
    assert codes_by_id(index) == expected["codes"]
    options = index._policy.band_options
    for name in ("bands", "band_bits", "memory_limit"):
        assert getattr(options, name) == expected["options"].get(name)
    index.add(np.zeros((1, (index.n_bits + 7) // 8), dtype=np.uint8))
    assert index.ids[-1] == expected["next_id"]


@pytest.fixture(scope="module")
def reader() -> dict[str, Any]:
    """Return the functions of the reader in the docs."""
    page = (ROOT / "docs" / "file-format.md").read_text()
    functions: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "file-format.md", "exec"), functions)
    return functions


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.parent.name)
def test_the_reader_in_the_docs_reads_the_codes_of_a_golden_vector_index(
    path: Path, reader: dict[str, Any]
) -> None:
    reader["check_files"](path.parent / "index")
    found = reader["read_codes"](path.parent / "index")
    expected = json.loads(path.read_text())
    assert sorted(found) == expected["ids"]
    assert b"".join(found[number] for number in sorted(found)).hex() == expected["codes"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_the_reader_in_the_docs_reads_a_golden_index(path: Path, reader: dict[str, Any]) -> None:
    reader["check_files"](path.parent / "index")
    found = {
        str(one): code.hex() for one, code in reader["read_codes"](path.parent / "index").items()
    }
    assert found == json.loads(path.read_text())["codes"]


def golden_content(folder: Path) -> dict[str, object]:
    """Return all files by name, without what depends on the version of bitweigh or Python."""
    found: dict[str, object] = {}
    for path in folder.rglob("*.*"):
        name = path.relative_to(folder).as_posix()
        found[name] = path.read_bytes()
        if path.name == MANIFEST:
            manifest = json.loads(path.read_bytes())
            del manifest["writer"], manifest["checksum"]
            found[name] = re.sub(r"(hasher|weigher)-\w+\.npz", r"\1", json.dumps(manifest))
        elif path.suffix == ".npz":
            # The other metadata of an archive's members is Python's.
            del found[name]
            arrays = {member: array.tobytes() for member, array in np.load(path).items()}
            found[name.rpartition("-")[0]] = arrays
    return found


GOLDEN_KINDS = ["format-1", "format-2", "vectors-2", "embeddings-1"]


@pytest.mark.parametrize("kind", GOLDEN_KINDS)
def test_the_golden_folders_are_written_again_byte_by_byte(kind: str, tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "tools" / "write_golden.py"))["write"](tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(GOLDEN_KINDS)
    assert golden_content(tmp_path / kind) == golden_content(ROOT / "tests" / "golden" / kind)


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
    assert codes_by_id(bitweigh.load(folder)) == codes_by_id(index)


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
    assert codes_by_id(bitweigh.load(str(tmp_path / "a" / "b"))) == codes_by_id(index)


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
    assert codes_by_id(bitweigh.load(tmp_path)) == codes_by_id(small_index(seed=2))


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
    with pytest.raises(ValueError, match="no room for 1 more after the largest id"):
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
    # Except for root, the folder is read-only.
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
    expected = codes_by_id(old), old.search(COSTS, 9).ids.tolist()
    small_index().save(folder)
    assert (codes_by_id(old), old.search(COSTS, 9).ids.tolist()) == expected
    old.verify()
    assert codes_by_id(bitweigh.load(folder, mmap=True)) == codes_by_id(small_index())


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


# Damage: the segment (-1 is the tail), the array, the change, and what the message must say.
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


def test_the_table_of_arrays_in_the_docs_is_the_one_that_is_used() -> None:
    page = (ROOT / "docs" / "file-format.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`.+) \| `\((.+?),?\)` \| .+ \|$", page, re.MULTILINE)
    documented = [
        (name, tuple(re.findall(r"`(.+?)`", dtypes.replace("\\", ""))), tuple(shape.split(", ")))
        for name, dtypes, shape in rows
    ]
    assert documented == [(kind.name, kind.dtypes, kind.lengths) for kind in ARRAY_KINDS.values()]


def test_every_length_in_the_table_of_arrays_is_documented() -> None:
    page = (ROOT / "docs" / "file-format.md").read_text()
    table = page.partition("| length | is |\n")[2].partition("\n\n")[0]
    lengths = {length for kind in ARRAY_KINDS.values() for length in kind.lengths}
    assert (
        set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.+?)\|", table, re.MULTILINE))))
        == lengths
    )


def test_there_is_a_reader_and_a_golden_folder_for_each_version_of_each_format() -> None:
    known = {(known.name, version) for known in FORMATS.values() for version in known.versions}
    assert set(READERS) == known
    golden = {
        (body["format"], body["version"])
        for path in (ROOT / "tests" / "golden").rglob(MANIFEST)
        for body in [json.loads(path.read_bytes())]
    }
    assert golden == known


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("format-1/plain", "index"), ("vectors-2/codes", "vectors"), ("answers-1/vectors", "vectors")],
)
def test_a_manifest_tells_what_a_folder_holds(folder: str, kind: str) -> None:
    assert folder_kind(ROOT / "tests" / "golden" / folder / "index") == kind


def test_what_a_damaged_folder_holds_is_told_by_the_first_bytes_of_its_manifest(
    tmp_path: Path,
) -> None:
    raw = (ROOT / "tests" / "golden" / "vectors-2" / "codes" / "index" / MANIFEST).read_bytes()
    (tmp_path / MANIFEST).write_bytes(raw[:100])
    assert folder_kind(tmp_path) == "vectors"
    (tmp_path / MANIFEST).write_bytes(b"nothing")
    assert folder_kind(tmp_path) == "index"
    with pytest.raises(bitweigh.CorruptFileError, match="not the manifest of a bitweigh index"):
        bitweigh.load(tmp_path)


@pytest.mark.parametrize("checksum_fits", [False, True])
def test_a_format_that_is_not_known_is_refused_by_its_name(
    checksum_fits: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    small_index().save(folder)
    raw = (folder / MANIFEST).read_bytes().replace(b"bitweigh-index", b"bitweigh-cubes")
    (folder / MANIFEST).write_bytes(sealed(raw) if checksum_fits else raw)
    before = facts(folder)
    reason = "written as 'bitweigh-cubes', which this version of bitweigh does not know"
    for load in (bitweigh.load, bitweigh.Index.load, bitweigh.VectorIndex.load, folder_kind):
        with pytest.raises(bitweigh.CorruptFileError, match=reason):
            load(folder)
    with pytest.raises(FileExistsError, match=f"its manifest.json is {reason}"):
        small_index().save(folder)
    assert facts(folder) == before


def test_a_folder_without_a_manifest_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no index"):
        folder_kind(tmp_path)


def test_arrays_are_hashed_once_and_forgotten_with_their_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, hashed = small_index(), []
    make = index_files.array_data

    def counted(kind: Any, *arguments: Any) -> Any:
        hashed.append(kind.name)
        return make(kind, *arguments)

    monkeypatch.setattr(index_files, "array_data", counted)
    index.save(tmp_path / "first")
    index.save(tmp_path / "second")
    bitweigh.load(tmp_path / "first").save(tmp_path / "third")
    assert hashed == ["codes"]
    gc.collect()
    before = len(index_files._known_files)
    del index
    gc.collect()
    assert len(index_files._known_files) < before


def test_arrays_of_other_dtypes_than_the_table_has_are_not_written() -> None:
    with pytest.raises(TypeError, match=r"codes must have dtype \|u1, got <f8"):
        array_data(ARRAY_KINDS["codes"], np.dtype(float), [np.zeros(3)], {"code_bytes": 3})
