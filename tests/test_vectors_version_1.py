"""Folders of vector indexes in version 1: read, replaced by version 2, never mixed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_cases import index_of, sealed, stopped_at_every_step

import bitweigh
from bitweigh._storage import attachments, index_files, vectors_1
from bitweigh._storage.arrays import digest_of
from bitweigh._storage.manifest import MANIFEST
from bitweigh._vectors import files
from bitweigh.vector_index import VectorIndex

GOLDEN = Path(__file__).parent / "golden" / "answers-1" / "vectors-rerank" / "index"
QUERIES = np.random.default_rng(5).standard_normal((4, 12))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of version 1."""
    shutil.copytree(GOLDEN, tmp_path / "folder")
    return tmp_path / "folder"


def content(index: VectorIndex) -> tuple[bytes, ...]:
    """Return everything that can be read from an index."""
    found = index.search(QUERIES, 9)
    arrays = (index.ids, index.vectors_of(index.ids), found.ids, found.distances)
    return tuple(array.tobytes() for array in arrays)


def changed() -> VectorIndex:
    index = VectorIndex.load(GOLDEN)
    index.remove([10, 11])
    index.add(QUERIES, on_duplicate="replace", ids=[0, 20, 5000, 5001])
    return index


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def rewritten(folder: Path, **fields: Any) -> None:
    """Change fields of the description, with a matching checksum."""
    body = json.loads((folder / vectors_1.NAME).read_text())
    for name, value in fields.items():
        target = body if name in body else body["indexes"][0]
        target[name] = value
        if value is ...:
            del target[name]
    body["checksum"] = vectors_1._expected_checksum(body)
    (folder / vectors_1.NAME).write_text(json.dumps(body))


@pytest.mark.parametrize("mmap", [False, True])
def test_a_save_leaves_version_2_and_nothing_of_version_1(mmap: bool, folder: Path) -> None:
    index = VectorIndex.load(folder, mmap=mmap)
    expected = content(index)
    index.save(folder)
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    assert names(folder) == {MANIFEST, *listed}
    assert content(index) == expected
    assert content(VectorIndex.load(folder, mmap=mmap)) == expected


@pytest.mark.parametrize("mmap", [False, True])
def test_a_description_of_two_indexes_is_read_for_the_one_that_is_there(
    mmap: bool, folder: Path
) -> None:
    (entry,) = json.loads((folder / vectors_1.NAME).read_text())["indexes"]
    other = {**entry, "index": "0" * 32, "hasher": f"hasher-{'0' * 32}.npz"}
    rewritten(folder, indexes=[other, entry])
    assert content(VectorIndex.load(folder, mmap=mmap)) == content(VectorIndex.load(GOLDEN))


@pytest.mark.parametrize("clean", [True, False])
def test_wherever_a_save_stops_the_folder_has_version_1_or_the_new_index(
    clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, new = content(VectorIndex.load(GOLDEN)), changed()
    after = content(new)
    seen = []
    for copy in stopped_at_every_step(new.save, GOLDEN, tmp_path, monkeypatch, clean=clean):
        seen += [content(VectorIndex.load(copy, mmap=mmap)) for mmap in (False, True)]
        new.save(copy)
        assert content(VectorIndex.load(copy)) == after
        listed = json.loads((copy / MANIFEST).read_text())["files"]
        assert names(copy) == {MANIFEST, *listed}
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)
    assert seen.count(before) > 20
    # Files of version 1 that are no longer needed are removed after the new index is in place.
    assert seen.count(after) > 20


def test_a_failed_save_leaves_the_files_of_version_1_and_no_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(folder)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        changed().save(folder)
    assert names(folder) == before
    assert content(VectorIndex.load(folder)) == content(VectorIndex.load(GOLDEN))


def test_files_of_others_beside_version_1_stay(folder: Path) -> None:
    (folder / "index" / "notes.txt").write_text("mine")
    changed().save(folder)
    assert (folder / "index" / "notes.txt").read_text() == "mine"
    assert {path.name for path in (folder / "index").iterdir()} == {"notes.txt"}
    assert not (folder / vectors_1.NAME).exists()


def test_an_index_beside_version_2_is_not_taken_for_a_part_of_it(folder: Path) -> None:
    changed().save(folder)
    index_of(3).save(folder / "index")
    changed().save(folder)
    assert len(bitweigh.load(folder / "index")) == 3


def test_a_description_of_somebody_else_is_not_replaced(folder: Path) -> None:
    (folder / vectors_1.NAME).write_text('{"format": "mine"}')
    with pytest.raises(FileExistsError, match="holds no vector index, but 'index'"):
        changed().save(folder)
    assert (folder / "index" / MANIFEST).exists()


def test_a_first_save_of_version_1_that_was_killed_is_in_nobodys_way(folder: Path) -> None:
    (folder / vectors_1.NAME).rename(folder / f"{vectors_1.NAME}.tmp")
    with pytest.raises(FileNotFoundError):
        VectorIndex.load(folder)
    changed().save(folder)
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    assert names(folder) == {MANIFEST, *listed}


def test_an_index_is_not_saved_over_version_1(folder: Path) -> None:
    before = names(folder)
    with pytest.raises(FileExistsError, match="holds a vector index, not an index"):
        index_of(3).save(folder)
    assert names(folder) == before


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize("mmap", [False, True])
def test_a_load_of_version_1_finds_version_2_when_a_save_comes_in_between(
    mmap: bool, unfinished: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = attachments.read_attachments, []

    def save_then_read(*arguments: Any) -> Any:
        reads.append(True)
        if len(reads) == 1:
            os.link(folder / vectors_1.NAME, folder.parent / "kept")
            changed().save(folder)
            if unfinished:
                os.link(folder.parent / "kept", folder / vectors_1.NAME)
        return read(*arguments)

    new = changed()
    monkeypatch.setattr("bitweigh._storage.vectors_1.read_attachments", save_then_read)
    monkeypatch.setattr(attachments, "read_attachments", save_then_read)
    assert content(VectorIndex.load(folder, mmap=mmap)) == content(new)
    assert len(reads) >= 2


def test_a_load_of_version_1_starts_again_when_its_description_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, loads = index_files.load, []

    def replace_then_load(*arguments: Any, **how: Any) -> Any:
        loads.append(True)
        if len(loads) == 1:
            # The last step of a save in version 1.
            shutil.copy(GOLDEN / vectors_1.NAME, folder / "new")
            (folder / "new").replace(folder / vectors_1.NAME)
        return load(*arguments, **how)

    rewritten(folder, index="0" * 32)
    monkeypatch.setattr(index_files, "load", replace_then_load)
    assert content(VectorIndex.load(folder)) == content(VectorIndex.load(GOLDEN))
    assert len(loads) == 3


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("put", [pipe, link_to_itself])
@pytest.mark.parametrize("name", ["vectors.json", "hasher-*", "vectors-*", "index/manifest.json"])
def test_a_file_that_is_something_else_is_not_read(
    name: str, put: Callable[[Path], None], folder: Path
) -> None:
    (path,) = folder.glob(name)
    path.unlink()
    put(path)
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match="must be a plain file, is") as caught:
            VectorIndex.load(folder, mmap=mmap)
        assert caught.value.path == path
    if path.parent == folder:
        with pytest.raises(FileExistsError, match="must be a plain file to be replaced, is a"):
            changed().save(folder)


def test_the_codes_are_not_looked_for_elsewhere(folder: Path, tmp_path: Path) -> None:
    (folder / "index").rename(tmp_path / "victim")
    before = names(tmp_path / "victim")
    (folder / "index").symlink_to(tmp_path / "victim")
    with pytest.raises(bitweigh.CorruptFileError, match="index: must be a folder, is a link"):
        VectorIndex.load(folder)
    with pytest.raises(FileExistsError, match="holds no vector index, but 'index'"):
        changed().save(folder)
    assert names(tmp_path / "victim") == before


@pytest.mark.parametrize("kind", ["hasher", "weigher", "vectors", "ids", "index/codes"])
@pytest.mark.parametrize("damage", ["first", "middle", "last", "cut", "longer", "gone"])
def test_a_damaged_file_is_named(kind: str, damage: str, folder: Path) -> None:
    (path,) = folder.glob(f"{kind}-*")
    raw = bytearray(path.read_bytes())
    if damage in ("first", "middle", "last"):
        raw[{"first": 0, "middle": len(raw) // 2, "last": -1}[damage]] ^= 4
    path.write_bytes(raw[:-1] if damage == "cut" else raw + b"." * (damage == "longer"))
    if damage == "gone":
        path.unlink()
    with pytest.raises(bitweigh.CorruptFileError) as caught:
        VectorIndex.load(folder)
    assert caught.value.path == path


@pytest.mark.parametrize("kind", ["hasher", "weigher", "vectors", "ids"])
def test_damage_of_a_mapped_index_is_found_later(kind: str, folder: Path) -> None:
    files.check_files(folder)
    (path,) = folder.glob(f"{kind}-*")
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum") as caught:
        files.check_files(folder)
    assert caught.value.path == path


@given(st.integers(0, 10**6), st.integers(0, 7), st.booleans())
@settings(max_examples=100)
def test_a_damaged_description_is_named_or_says_the_same(place: int, bit: int, cut: bool) -> None:
    path = GOLDEN / vectors_1.NAME
    raw = path.read_bytes()
    place %= len(raw)
    flipped = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
    damaged = raw[:place] if cut else flipped
    try:
        found = vectors_1.parse(damaged, path)
    except bitweigh.CorruptFileError as error:
        found = []
        named = error.path
    else:  # a space between the words became another one
        named = path
    assert named == path
    assert found in ([], vectors_1.parse(raw, path))


@pytest.mark.parametrize("missing", ["index", "index/manifest.json"])
def test_codes_that_are_missing_are_named(missing: str, folder: Path) -> None:
    path = folder / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(bitweigh.CorruptFileError, match=r"manifest\.json: the file is missing"):
        VectorIndex.load(folder)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"format": "other"}, "not the description of a vector index"),
        ({"version": 2}, "version must be 1 in this file"),
        ({"version": True}, "version must be 1 in this file"),
        ({"indexes": []}, "indexes must be a list that is not empty"),
        ({"indexes": [3]}, "each of indexes must have index, metric"),
        ({"index": "0" * 32}, "does not describe what index holds"),
        ({"index": "../etc"}, "index must not be '../etc'"),
        ({"metric": "dot"}, "metric must not be 'dot'"),
        ({"rerank": ["float16"]}, "rerank must not be"),
        ({"rerank": "float16"}, "must hold an array"),
        ({"rerank": None}, "vectors must not be"),
        ({"rerank": ...}, "each of indexes must have"),
        ({"hasher": "../hasher.npz"}, "hasher must not be '../hasher.npz'"),
        ({"vectors": None}, "vectors must not be None"),
        ({"rows": 2**63}, "rows must not be"),
        ({"rows": 1}, "do not fit each other"),
        ({"n_features": 9}, "do not fit each other"),
        ({"n_features": 0}, "n_features must not be 0"),
        ({"seed": -1}, "seed must not be -1"),
    ],
)
def test_what_a_description_says_is_not_believed(
    fields: dict[str, Any], match: str, folder: Path
) -> None:
    rewritten(folder, **fields)
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=match):
            VectorIndex.load(folder, mmap=mmap)


def test_a_description_that_was_edited_is_refused(folder: Path) -> None:
    path = folder / vectors_1.NAME
    path.write_text(path.read_text().replace('"seed": 5', '"seed": 6'))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum does not match"):
        VectorIndex.load(folder)


def test_vectors_that_are_not_finite_are_damage_whatever_their_checksums(folder: Path) -> None:
    (path,) = folder.glob("vectors-*.npy")
    vectors = np.load(path)
    vectors[3, 2] = np.nan
    np.save(path, vectors)
    path = path.rename(path.with_name(f"vectors-{digest_of(path.read_bytes())}.npy"))
    rewritten(folder, vectors=path.name)
    with pytest.raises(bitweigh.CorruptFileError, match="must hold finite numbers") as caught:
        VectorIndex.load(folder)
    assert caught.value.path == path


def test_a_hasher_larger_than_its_index_allows_is_not_read(folder: Path) -> None:
    (path,) = folder.glob("hasher-*.npz")
    os.truncate(path, 2**40)  # takes no space on the disk
    with pytest.raises(bitweigh.CorruptFileError, match="must have at most") as caught:
        VectorIndex.load(folder)
    assert caught.value.path == path
    changed().save(folder)
    assert content(VectorIndex.load(folder)) == content(changed())


def test_a_manifest_of_version_1_in_the_place_of_version_2_is_refused(folder: Path) -> None:
    changed().save(folder)
    raw = (folder / MANIFEST).read_bytes().replace(b'"version": 2', b'"version": 1')
    (folder / MANIFEST).write_bytes(sealed(raw))
    with pytest.raises(bitweigh.CorruptFileError, match="version must be one of 2"):
        VectorIndex.load(folder)
