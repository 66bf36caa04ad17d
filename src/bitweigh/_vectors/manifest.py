"""`vectors.json`: which files belong to the index of codes beside it. Reading one trusts nothing.

It describes one index, or two while a save is under way; `Entry.index` tells which is there.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bitweigh._disk.reading import read_plain
from bitweigh._storage.manifest import ArrayFile, digest_of
from bitweigh._storage.ownership import OwnFiles, agrees, array_file
from bitweigh._system import __version__
from bitweigh.errors import CorruptFileError
from bitweigh.typing import Metric, VectorDtype

__all__ = [
    "FORMAT",
    "NAME",
    "VECTOR_FILES",
    "Entry",
    "entries_of",
    "from_bytes",
    "read",
    "to_bytes",
]


FORMAT = "bitweigh-vectors"
VERSION = 1
NAME = "vectors.json"
# It has less than 1 KiB for each of one or two indexes.
_MOST_BYTES = 1 << 16
_CHECKSUM = re.compile(r"[0-9a-f]{32}")
_FILES = {"hasher": "npz", "weigher": "npz", "vectors": "npy", "ids": "npy"}
_MOST = {"n_features": 2**31, "rows": 2**62, "seed": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Entry:
    """What belongs to an index of codes."""

    index: str
    """The checksum of its manifest."""
    metric: Metric
    rerank: VectorDtype | None
    seed: int
    n_features: int
    rows: int
    hasher: str
    """The name of its file, after its content, as of the others."""
    weigher: str
    vectors: str | None
    """There if vectors are kept and there are any, and then the ids are, too."""
    ids: str | None
    """Of each row of the vectors, ascending."""

    def names(self) -> set[str]:
        """All files."""
        return {name for name in (self.hasher, self.weigher, self.vectors, self.ids) if name}

    def arrays(self) -> tuple[ArrayFile, ArrayFile] | None:
        """The vectors and their ids, if there are any."""
        if self.rerank is None or self.vectors is None or self.ids is None:
            return None
        dtype = np.dtype(self.rerank).newbyteorder("<").str
        vectors = ArrayFile(self.vectors, dtype, (self.rows, self.n_features))
        return vectors, ArrayFile(self.ids, "<i8", (self.rows,))


def to_bytes(entries: list[Entry]) -> bytes:
    """The file, with a checksum of everything else in it."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "writer": f"bitweigh {__version__}",
        "indexes": [asdict(entry) for entry in entries],
    }
    return (json.dumps({**body, "checksum": _seal(body)}, indent=1) + "\n").encode()


def read(path: Path) -> list[Entry]:
    """Such a file, taken apart."""
    return from_bytes(read_plain(path, _MOST_BYTES), path)


def entries_of(path: Path) -> list[Entry]:
    """What such a file says, nothing if it cannot be read."""
    try:
        return read(path)
    except (FileNotFoundError, CorruptFileError):
        return []


def from_bytes(raw: bytes, path: Path) -> list[Entry]:
    """Take such a file apart; raises CorruptFileError naming `path` for whatever is wrong."""
    try:
        body = json.loads(raw)
        sealed = _seal(body) if isinstance(body, dict) else ""
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"not JSON: {error}") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise CorruptFileError(path, "not the description of a vector index")
    version = body.get("version")
    if type(version) is not int or version < 1:
        raise CorruptFileError(path, "version must be a positive integer")
    if version > VERSION:
        raise CorruptFileError(
            path, f"written in format {version}; this version of bitweigh reads up to {VERSION}"
        )
    if body.get("checksum") != sealed:
        raise CorruptFileError(path, "the checksum does not match: the file is damaged")
    listed = body.get("indexes")
    if not isinstance(listed, list) or not listed:
        raise CorruptFileError(path, "indexes must be a list that is not empty")
    return [_entry(one, path) for one in listed]


def _entry(body: object, path: Path) -> Entry:
    names = [field.name for field in fields(Entry)]
    if not isinstance(body, dict) or sorted(body) != sorted(names):
        raise CorruptFileError(path, f"each of indexes must have {', '.join(names)}")
    kept = body["rerank"] is not None and body["rows"] != 0
    wrong = [name for name in names if not _is_right(name, body[name], kept)]
    if wrong:
        raise CorruptFileError(path, f"{wrong[0]} must not be {body[wrong[0]]!r}")
    return Entry(**body)


def _is_right(name: str, value: object, kept: bool) -> bool:
    if name in _MOST:
        return type(value) is int and (name == "n_features") <= value <= _MOST[name]
    if name in ("vectors", "ids") and not kept:
        return value is None
    if name in _FILES:
        return isinstance(value, str) and _is_file_of(name, value)
    if name == "index":
        return isinstance(value, str) and _CHECKSUM.fullmatch(value) is not None
    choices = ("euclidean", "cosine") if name == "metric" else (None, "float16", "float32")
    return value in choices


def _is_file_of(kind: str, name: str) -> bool:
    return re.fullmatch(rf"{kind}-[0-9a-f]{{32}}\.{_FILES[kind]}", name) is not None


def _seal(body: dict[str, Any]) -> str:
    others = {name: value for name, value in body.items() if name != "checksum"}
    return digest_of(json.dumps(others, sort_keys=True).encode())


def _is_estimator(head: bytes, size: int, whole: bool) -> bool:
    """Begins as the files of hashers and weighers do: a zip archive with `about.npy` first."""
    return (size >= 39 or not whole) and all(
        agrees(head[first:], wanted) for first, wanted in ((0, b"PK\x03\x04"), (30, b"about.npy"))
    )


VECTOR_FILES = OwnFiles(
    "a vector index",
    NAME,
    FORMAT,
    f'{{\n "format": "{FORMAT}",\n "version": '.encode(),
    _MOST_BYTES,
    {
        "hasher": ("npz", _is_estimator),
        "weigher": ("npz", _is_estimator),
        "vectors": ("npy", array_file(2, "<f2", "<f4")),
        "ids": ("npy", array_file(1, "<i8")),
    },
)
