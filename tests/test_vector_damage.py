"""Damaged and hostile folders of vector indexes: errors name what is wrong."""

from __future__ import annotations

import itertools
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
from storage_cases import QUERIES, old_vectors, sealed

import bitweigh
from bitweigh._storage.arrays import digest_of
from bitweigh._storage.manifest import MANIFEST, parse
from bitweigh._vectors import files
from bitweigh.vector_index import VectorIndex


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    old_vectors().save(folder)
    return folder


def error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (bitweigh.CorruptFileError, FileNotFoundError) as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["hasher", "weigher", "vectors", "vector_ids", "codes"])
@pytest.mark.parametrize("damage", ["first", "middle", "last", "cut", "longer", "gone"])
def test_a_damaged_file_is_named(kind: str, damage: str, stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob(f"{kind}-*")
    raw = bytearray(path.read_bytes())
    if damage in ("first", "middle", "last"):
        raw[{"first": 0, "middle": len(raw) // 2, "last": -1}[damage]] ^= 4
    path.write_bytes(raw[:-1] if damage == "cut" else raw + b"." * (damage == "longer"))
    if damage == "gone":
        path.unlink()
    with pytest.raises(bitweigh.CorruptFileError) as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path


@given(st.integers(0, 10**6), st.integers(0, 7), st.booleans())
@settings(max_examples=100)
def test_a_damaged_manifest_is_named(stored: Path, place: int, bit: int, cut: bool) -> None:
    path = stored / MANIFEST
    raw = path.read_bytes()
    place %= len(raw)
    flipped = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
    error = error_of(lambda: parse(raw[:place] if cut else flipped, path))
    assert error is not None
    assert str(path) in str(error)


def test_a_manifest_that_was_edited_is_refused(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    path = tmp_path / "copy" / MANIFEST
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum does not match"):
        VectorIndex.load(tmp_path / "copy")


def rewritten(folder: Path, **fields: Any) -> None:
    """Change fields of the manifest or of its attachments, with a matching checksum."""
    body = json.loads((folder / MANIFEST).read_text())
    for name, value in fields.items():
        target = body if name in body else body["attachments"]
        target[name] = value
        if value is ...:
            del target[name]
    (folder / MANIFEST).write_bytes(sealed(json.dumps(body, indent=1).encode()))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"format": "other"}, "not the manifest of a bitweigh index"),
        ({"format": "bitweigh-cubes"}, "written as 'bitweigh-cubes', which this version"),
        ({"version": 3}, "written in format 3; this version of bitweigh reads up to 2"),
        ({"version": 1}, "version must be one of 2"),
        ({"version": True}, "version must be a positive integer"),
        ({"attachments": []}, "attachments must be an object"),
        ({"attachments": ...}, "attachments must be an object"),
        ({"files": []}, "files must be an object"),
        ({"files": {}}, "files must have codes-"),
        (
            {"metric": "dot"},
            r"attachments\.metric must be 'euclidean' or 'cosine' or 'inner_product'",
        ),
        ({"rerank": ["float16"]}, "rerank must be null or 'float16' or 'float32'"),
        ({"rerank": "float32"}, "rerank must be the dtype of vectors-"),
        ({"hasher": "../hasher.npz"}, "hasher must be the name of such a file"),
        ({"hasher": None}, "hasher must be the name of such a file"),
        ({"vectors": None}, "vectors must be the name of such a file"),
        ({"vector_ids": ...}, "vector_ids must be the name of such a file"),
        ({"rows": 2**63}, "rows must be an integer from 0"),
        ({"rows": 199}, "files must have vectors-.* with shape"),
        ({"n_features": 9}, "files must have vectors-.* with shape"),
        ({"n_features": 0}, "n_features must be an integer from 1"),
        ({"n_features": 9, "rerank": None}, "do not fit each other"),
        ({"rows": 199, "rerank": None}, "do not fit each other"),
        ({"seed": -1}, "seed must be an integer from 0"),
    ],
)
def test_what_a_manifest_says_is_not_believed(
    fields: dict[str, Any], match: str, stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    rewritten(tmp_path / "copy", **fields)
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=match):
            VectorIndex.load(tmp_path / "copy", mmap=mmap)


ABSURD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, "", "x", "../../etc/passwd", [], {}, [[]],
    "hasher-" + "0" * 32 + ".npz", "vectors-" + "0" * 32 + ".npy", {"bytes": 10**18}, {"bytes": -1},
]  # fmt: skip


def test_absurd_values_in_a_manifest_are_refused_or_change_nothing_else(
    stored: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(stored, folder)
    raw = (folder / MANIFEST).read_bytes()
    places = [("attachments", name) for name in json.loads(raw)["attachments"]]
    places += [("files", name) for name in json.loads(raw)["files"]]
    refused = 0
    for (outer, inner), value in itertools.product(places, ABSURD):
        body = json.loads(raw)
        body[outer][inner] = value
        (folder / MANIFEST).write_bytes(sealed(json.dumps(body, indent=1).encode()))
        for mmap in (False, True):
            error = error_of(lambda mmap=mmap: VectorIndex.load(folder, mmap=mmap))  # type: ignore[misc]
            # Any seed will do, and without rerank= vectors are not looked for.
            assert error is not None or inner == "seed" or (inner, value) == ("rerank", None)
            refused += error is not None
    assert refused > 500


@pytest.mark.parametrize("kind", ["hasher", "weigher", "vectors", "vector_ids"])
def test_damage_beside_the_codes_of_a_mapped_index_is_found_later(
    kind: str, stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    files.check_files(tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob(f"{kind}-*")
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum") as caught:
        files.check_files(tmp_path / "copy")
    assert caught.value.path == path


def test_a_vector_that_is_missing_from_a_mapped_file_is_named(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("vector_ids-*.npy")
    np.save(path, np.arange(200, dtype=np.int64))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum"):
        VectorIndex.load(tmp_path / "copy")
    mapped = VectorIndex.load(tmp_path / "copy", mmap=True)
    with pytest.raises(bitweigh.CorruptFileError, match="has no vector"):
        mapped.search(QUERIES, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_damage_whatever_their_checksums(
    value: float, stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("vectors-*.npy")
    vectors = np.load(path)
    vectors[3, 2] = value
    np.save(path, vectors)
    old, new = path.name, f"vectors-{digest_of(path.read_bytes())}.npy"
    path = path.rename(path.with_name(new))
    manifest = tmp_path / "copy" / MANIFEST
    manifest.write_bytes(sealed(manifest.read_bytes().replace(old.encode(), new.encode())))
    with pytest.raises(bitweigh.CorruptFileError, match="must hold finite numbers") as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path


def test_vectors_of_other_ids_are_damage_whatever_their_checksums(
    stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("vector_ids-*.npy")
    np.save(path, np.load(path) + 1)
    old, new = path.name, f"vector_ids-{digest_of(path.read_bytes())}.npy"
    path = path.rename(path.with_name(new))
    manifest = tmp_path / "copy" / MANIFEST
    manifest.write_bytes(sealed(manifest.read_bytes().replace(old.encode(), new.encode())))
    with pytest.raises(bitweigh.CorruptFileError, match="not the ids of the index") as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path


def test_a_hasher_larger_than_its_index_allows_is_not_read(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("hasher-*.npz")
    os.truncate(path, 2**40)  # takes no space on the disk
    with pytest.raises(bitweigh.CorruptFileError, match=r"must have \d+ bytes, has") as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path
    files = json.loads((tmp_path / "copy" / MANIFEST).read_text())["files"]
    rewritten(tmp_path / "copy", files={**files, path.name: {"bytes": 2**40}})
    with pytest.raises(bitweigh.CorruptFileError, match=r"with at most \d+ bytes"):
        VectorIndex.load(tmp_path / "copy")
    old_vectors().save(tmp_path / "copy")
    VectorIndex.load(tmp_path / "copy")
