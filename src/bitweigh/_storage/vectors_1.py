"""Folders of vector indexes in version 1, which are read and replaced, but not written.

The codes are a plain index in the subfolder `index`; `vectors.json` describes the files beside it.
It has one entry, or two if a save was interrupted; an entry belongs to the codes whose manifest has
the checksum that it names. A save writes version 2 beside these files, and removes them once its
manifest is in place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bitweigh._disk.reading import kind_of, read_plain, watched
from bitweigh._disk.writing import temporary_of
from bitweigh._storage import folder as folders
from bitweigh._storage import index_files
from bitweigh._storage.arrays import DAMAGED, ArrayFile, digest_of
from bitweigh._storage.attachments import (
    MAX_FEATURES,
    MAX_ROWS,
    MAX_SEED,
    Attachments,
    VectorContent,
    VectorSource,
    check_attachments,
    read_attachments,
)
from bitweigh._storage.formats import INDEX, VECTORS
from bitweigh._storage.manifest import MANIFEST, OtherFile, format_named_in, read_manifest
from bitweigh.errors import CorruptFileError
from bitweigh.hashers import _files as estimator_files

__all__ = ["CODES", "NAME", "attempt", "check_files", "checksum_of", "owns", "parse", "remove"]

NAME = "vectors.json"
CODES = "index"
_DESCRIPTIONS = (temporary_of(NAME), NAME)
# A description has less than 1 KiB for each of its one or two entries.
_MAX_BYTES = 1 << 16
_CHECKSUM = re.compile(r"[0-9a-f]{32}")
_ENDINGS = {"hasher": "npz", "weigher": "npz", "vectors": "npy", "ids": "npy"}
_MAX = {"n_features": MAX_FEATURES, "rows": MAX_ROWS, "seed": MAX_SEED}
_CHOICES = {"metric": ("euclidean", "cosine"), "rerank": (None, "float16", "float32")}
_FIELDS = ("index", *_CHOICES, *_MAX, *_ENDINGS)

Entry = Mapping[str, Any]
"""The entry for an index of codes: `_FIELDS`, of which `index` is the checksum of its manifest."""


def attempt(folder: Path, mapped: bool, verify: bool) -> tuple[VectorContent, VectorSource] | None:
    """The vector index in a folder, and its source; None if a save interfered.

    A save of version 1 replaces the description before anything else. A save of version 2 writes
    the manifest before it removes anything.
    """
    with watched(folder / NAME, _MAX_BYTES) as (raw, is_still_there):
        try:
            return _read(folder, raw, mapped, verify)
        except (FileNotFoundError, CorruptFileError) as error:
            if not is_still_there() or os.path.lexists(folder / MANIFEST):
                return None
            if isinstance(error, CorruptFileError):
                raise
            raise CorruptFileError(Path(error.filename), "the file is missing") from None


def check_files(folder: Path) -> None:
    """Check the files beside the codes against their checksums."""
    codes = read_manifest(folder / CODES)
    entries = parse(read_plain(folder / NAME, _MAX_BYTES), folder / NAME)
    entry = _entry_for(folder, entries, codes.checksum)
    n_bits = index_files.stored_index(codes).n_bits
    check_attachments(folder, _attachments(folder, entry, n_bits))


def checksum_of(folder: Path) -> str:
    """The checksum of the description."""
    return digest_of(read_plain(folder / NAME, _MAX_BYTES))


def owns(path: Path) -> bool:
    """Whether a path is the description, or the folder of codes beside it."""
    try:
        if path.name == CODES:
            return kind_of(path) == "a folder" and _is_described(path.parent)
        return path.name in _DESCRIPTIONS and format_named_in(path) == VECTORS.name
    except (FileNotFoundError, CorruptFileError):
        return False


def remove(folder: Path) -> None:
    """Remove the description and codes of version 1. The description, which marks them, goes last.

    Other files that it names either belong to version 2 too, or are among the leftover files of
    version 2 and removed with them.
    """
    if not _is_described(folder):
        return
    codes = folder / CODES
    if owns(codes):
        listed = folders.listed_files(codes)
        for path in list(folders.leftover_files(codes, INDEX, listed, set())):
            path.unlink(missing_ok=True)
        if folders.is_ours(codes / MANIFEST, INDEX):
            (codes / MANIFEST).unlink(missing_ok=True)
        if not any(codes.iterdir()):
            codes.rmdir()
    for name in _DESCRIPTIONS:
        if owns(folder / name):
            (folder / name).unlink(missing_ok=True)


def _is_described(folder: Path) -> bool:
    """Whether a folder has a description, or the temporary file of a first save."""
    return any(owns(folder / name) for name in _DESCRIPTIONS)


def _read(
    folder: Path, raw: bytes, mapped: bool, verify: bool
) -> tuple[VectorContent, VectorSource]:
    entries = parse(raw, folder / NAME)
    if os.path.lexists(folder / CODES) and kind_of(folder / CODES) != "a folder":
        found = kind_of(folder / CODES) or "a file"
        raise CorruptFileError(folder / CODES, f"must be a folder, is {found}")
    codes, source = index_files.load(folder / CODES, mapped, verify)
    entry = _entry_for(folder, entries, source.checksum)
    stored = _attachments(folder, entry, codes.n_bits)
    content = read_attachments(folder, folder / NAME, stored, codes, mapped, verify)
    vectors = None if stored.vectors is None else folder / stored.vectors.name
    return content, VectorSource(folder, digest_of(raw), vectors)


def _entry_for(folder: Path, entries: list[Entry], checksum: str) -> Entry:
    """The entry for the codes whose manifest has this checksum."""
    for entry in entries:
        if entry["index"] == checksum:
            return entry
    raise CorruptFileError(folder / NAME, f"does not describe what {CODES} holds")


def _attachments(folder: Path, entry: Entry, n_bits: int) -> Attachments:
    max_bytes = estimator_files.most_bytes_for(entry["n_features"], n_bits)
    hasher, weigher = (
        OtherFile(entry[kind], _size(folder / entry[kind], max_bytes))
        for kind in ("hasher", "weigher")
    )
    vectors = ids = None
    if entry["vectors"] is not None:
        dtype = np.dtype(entry["rerank"]).newbyteorder("<").str
        vectors = ArrayFile(entry["vectors"], dtype, (entry["rows"], entry["n_features"]))
        ids = ArrayFile(entry["ids"], "<i8", (entry["rows"],))
    return Attachments(
        entry["metric"],
        entry["rerank"],
        entry["seed"],
        entry["n_features"],
        entry["rows"],
        hasher,
        weigher,
        vectors,
        ids,
    )


def _size(path: Path, max_bytes: int) -> int:
    size = path.lstat().st_size
    if size > max_bytes:
        raise CorruptFileError(path, f"must have at most {max_bytes} bytes, has {size}")
    return size


def parse(raw: bytes, path: Path) -> list[Entry]:
    """Parse a description; raises CorruptFileError naming `path` for anything wrong with it."""
    try:
        body = json.loads(raw)
        checksum = _expected_checksum(body) if isinstance(body, dict) else ""
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"not JSON: {error}") from None
    if not isinstance(body, dict) or body.get("format") != VECTORS.name:
        raise CorruptFileError(path, "not the description of a vector index")
    if type(body.get("version")) is not int or body["version"] != 1:
        raise CorruptFileError(path, "version must be 1 in this file")
    if body.get("checksum") != checksum:
        raise CorruptFileError(path, DAMAGED)
    entries = body.get("indexes")
    if not isinstance(entries, list) or not entries:
        raise CorruptFileError(path, "indexes must be a list that is not empty")
    for entry in entries:
        _check_entry(entry, path)
    return entries


def _check_entry(entry: object, path: Path) -> None:
    if not isinstance(entry, dict) or sorted(entry) != sorted(_FIELDS):
        raise CorruptFileError(path, f"each of indexes must have {', '.join(_FIELDS)}")
    keeps_vectors = entry["rerank"] is not None and entry["rows"] != 0
    for name, value in entry.items():
        if not _is_valid(name, value, keeps_vectors):
            raise CorruptFileError(path, f"{name} must not be {value!r}")


def _is_valid(name: str, value: object, keeps_vectors: bool) -> bool:
    if name in _MAX:
        return type(value) is int and (name == "n_features") <= value <= _MAX[name]
    if name in _CHOICES:
        return value in _CHOICES[name]
    if name in ("vectors", "ids") and not keeps_vectors:
        return value is None
    if not isinstance(value, str):
        return False
    if name == "index":
        return _CHECKSUM.fullmatch(value) is not None
    return re.fullmatch(rf"{name}-[0-9a-f]{{32}}\.{_ENDINGS[name]}", value) is not None


def _expected_checksum(body: dict[str, Any]) -> str:
    """The checksum that a description should have."""
    other_fields = {name: value for name, value in body.items() if name != "checksum"}
    return digest_of(json.dumps(other_fields, sort_keys=True).encode())
