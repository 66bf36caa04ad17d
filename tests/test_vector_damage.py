"""Damaged and hostile folders of vector indexes: what is wrong is named, nothing is believed."""

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
from storage_cases import QUERIES, old_vectors

import bitweigh
from bitweigh._storage.manifest import digest_of
from bitweigh._vectors import manifest
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


@pytest.mark.parametrize("kind", ["hasher", "weigher", "vectors", "ids", "index/codes"])
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
def test_a_damaged_description_is_named_or_says_the_same(
    stored: Path, place: int, bit: int, cut: bool
) -> None:
    path = stored / manifest.NAME
    raw = path.read_bytes()
    place %= len(raw)
    flipped = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
    damaged = raw[:place] if cut else flipped
    error = error_of(lambda: manifest.from_bytes(damaged, path))
    if error is None:  # a space between the words became another one
        assert manifest.from_bytes(damaged, path) == manifest.from_bytes(raw, path)
    else:
        assert str(path) in str(error)


def test_a_description_that_was_edited_is_refused(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    path = tmp_path / "copy" / manifest.NAME
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(bitweigh.CorruptFileError, match="checksum does not match"):
        VectorIndex.load(tmp_path / "copy")


@pytest.mark.parametrize("missing", ["index", "index/manifest.json"])
def test_codes_that_are_missing_are_named(missing: str, stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    path = tmp_path / "copy" / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(bitweigh.CorruptFileError, match=r"manifest\.json: the file is missing"):
        VectorIndex.load(tmp_path / "copy")


def rewritten(folder: Path, **fields: Any) -> None:
    """Change fields of the description, and seal it."""
    body = json.loads((folder / manifest.NAME).read_text())
    for name, value in fields.items():
        target = body if name in body else body["indexes"][0]
        target[name] = value
        if value is ...:
            del target[name]
    body["checksum"] = manifest._seal(body)
    (folder / manifest.NAME).write_text(json.dumps(body))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"format": "other"}, "not the description of a vector index"),
        ({"version": 2}, "written in format 2; this version of bitweigh reads up to 1"),
        ({"version": True}, "version must be a positive integer"),
        ({"indexes": []}, "indexes must be a list that is not empty"),
        ({"indexes": [3]}, "each of indexes must have index, metric"),
        ({"index": "0" * 32}, "does not describe what index holds"),
        ({"index": "../etc"}, "index must not be '../etc'"),
        ({"metric": "dot"}, "metric must not be 'dot'"),
        ({"rerank": ["float16"]}, "rerank must not be"),
        ({"rerank": "float32"}, "must hold an array"),
        ({"rerank": None}, "vectors must not be"),
        ({"rerank": ...}, "each of indexes must have"),
        ({"hasher": "../hasher.npz"}, "hasher must not be '../hasher.npz'"),
        ({"vectors": None}, "vectors must not be None"),
        ({"rows": 2**63}, "rows must not be"),
        ({"rows": 199}, "do not fit each other"),
        ({"n_features": 9}, "do not fit each other"),
        ({"n_features": 0}, "n_features must not be 0"),
        ({"seed": -1}, "seed must not be -1"),
    ],
)
def test_what_a_description_says_is_not_believed(
    fields: dict[str, Any], match: str, stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    rewritten(tmp_path / "copy", **fields)
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=match):
            VectorIndex.load(tmp_path / "copy", mmap=mmap)


def test_a_vector_that_is_missing_from_a_mapped_file_is_named(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("ids-*.npy")
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
    path = path.rename(path.with_name(f"vectors-{digest_of(path.read_bytes())}.npy"))
    rewritten(tmp_path / "copy", vectors=path.name)
    with pytest.raises(bitweigh.CorruptFileError, match="must hold finite numbers") as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path


def test_a_hasher_larger_than_its_index_allows_is_not_read(stored: Path, tmp_path: Path) -> None:
    shutil.copytree(stored, tmp_path / "copy")
    (path,) = (tmp_path / "copy").glob("hasher-*.npz")
    os.truncate(path, 2**40)  # takes no space on the disk
    with pytest.raises(bitweigh.CorruptFileError, match="must have at most") as caught:
        VectorIndex.load(tmp_path / "copy")
    assert caught.value.path == path
    old_vectors().save(tmp_path / "copy")
    VectorIndex.load(tmp_path / "copy")
