"""Which files in a folder are ours: by name, and by how they begin. No other file is ever removed.

What a folder's own manifest names is ours, too; that is for the caller to know.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from bitweigh._disk.reading import head_of, open_plain, read_plain
from bitweigh._disk.writing import refuse_unless_plain, temporary_of
from bitweigh._storage.manifest import FORMAT, HEAD, MANIFEST, MOST_BYTES
from bitweigh.errors import CorruptFileError

__all__ = ["INDEX_FILES", "FileKind", "OwnFiles", "agrees", "array_file"]

FileKind = Callable[[bytes, int, bool], bool]
"""Whether a file is of a kind by its first bytes, its size, and whether it was written whole."""

_UNFINISHED = temporary_of("")
_HEAD_BYTES = 128
_ARRAY_BEGINS = b"\x93NUMPY\x01\x00v\x00{'descr': '"
_ARRAY_HEADER = re.compile(
    re.escape(_ARRAY_BEGINS) + rb"(.{3})', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n"
)
_NAME = re.compile(r"([a-z_]+)-[0-9a-f]{32}\.(np[yz])")


def agrees(found: bytes, wanted: bytes) -> bool:
    """Whether both are the same as far as both go."""
    length = min(len(found), len(wanted))
    return found[:length] == wanted[:length]


def array_file(n_axes: int, *dtypes: str) -> FileKind:
    """Array files as we write them, of such arrays; the header tells the size."""

    def fits(head: bytes, size: int, whole: bool) -> bool:
        if not whole and size < _HEAD_BYTES:
            return agrees(head, _ARRAY_BEGINS)
        match = _ARRAY_HEADER.fullmatch(head)
        if match is None or match[1].decode("latin-1") not in dtypes:
            return False
        shape = [int(length) for length in match[2].replace(b",", b" ").split()]
        n_bytes = math.prod(shape) * np.dtype(match[1].decode()).itemsize
        return len(shape) == n_axes and (not whole or size == _HEAD_BYTES + n_bytes)

    return fits


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files of one format: a manifest, and others that are named after their content."""

    what: str
    """What such a folder holds, with its article."""
    manifest: str
    format: str
    head: bytes
    """How every manifest of the format begins that bitweigh has written."""
    most_bytes: int
    """Of a manifest."""
    kinds: dict[str, tuple[str, FileKind]]
    """By how a name begins: how it ends, and what such a file is like."""

    def refuse_others(
        self, folder: Path, may_hold: Callable[[Path], bool] = lambda _: False
    ) -> None:
        """Raise FileExistsError for a folder that holds something else, or links to elsewhere.

        Beside a manifest of ours anything may lie that is in nobody's way. Without one everything
        must be ours, as a save that was killed leaves it, or what `may_hold` allows.
        """
        entries = sorted(folder.iterdir())
        for path in entries:
            if self._kind_of(path.name) is not None:
                refuse_unless_plain(path)
            if path.name == temporary_of(self.manifest) and not self.is_own(path):
                _refuse(folder, f"its {path.name} is not what a save of {self.what} has left")
        if folder / self.manifest in entries:
            if not self._is_manifest(folder / self.manifest):
                _refuse(folder, f"its {self.manifest} is not that of {self.what}")
            return
        for path in entries:
            if not self.is_own(path) and not may_hold(path):
                missing = self.what.partition(" ")[2]
                _refuse(folder, f"the folder holds no {missing}, but {path.name!r}")

    def left_over(self, folder: Path, named: set[str], kept: set[str]) -> Iterator[Path]:
        """Files of ours but the manifest and `kept`; what is in `named` is taken for ours."""
        for path in sorted(folder.iterdir()):
            if path.name not in {self.manifest, *kept} and (
                path.name in named or self.is_own(path)
            ):
                yield path

    def is_own(self, path: Path) -> bool:
        """Whether this is a file as we write it, maybe half written, by name and first bytes."""
        fits = self._kind_of(path.name)
        if fits is None:
            return False
        try:
            with open_plain(path) as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(_HEAD_BYTES)
        except (FileNotFoundError, CorruptFileError):
            return False
        whole = not path.name.endswith(_UNFINISHED)
        # When the power fails, zeros may be all that is left of what was not synced.
        return fits(head, size, whole) or not (whole or any(head))

    def _kind_of(self, name: str) -> FileKind | None:
        name = name.removesuffix(_UNFINISHED)
        if name == self.manifest:
            return lambda head, _size, _whole: agrees(head, self.head)
        match = _NAME.fullmatch(name)
        ending, fits = self.kinds.get(match[1], ("", None)) if match else ("", None)
        return fits if match and match[2] == ending else None

    def _is_manifest(self, path: Path) -> bool:
        """Whether it says so, or is a damaged one that begins like those that we write."""
        if head_of(path, len(self.head)) == self.head:
            return True
        try:
            body = json.loads(read_plain(path, self.most_bytes))
        except (ValueError, RecursionError):  # also what is larger than any manifest
            return False
        return isinstance(body, dict) and body.get("format") == self.format


def _refuse(folder: Path, reason: str) -> NoReturn:
    raise FileExistsError(errno.EEXIST, reason, str(folder))


INDEX_FILES = OwnFiles(
    "an index",
    MANIFEST,
    FORMAT,
    HEAD,
    MOST_BYTES,
    {
        "codes": ("npy", array_file(1, "|u1")),
        "ids": ("npy", array_file(1, "<u4", "<i8")),
        "by_id": ("npy", array_file(1, "<u4")),
        "starts": ("npy", array_file(1, "<u4")),
        "band_rows": ("npy", array_file(2, "<u4")),
        "band_codes": ("npy", array_file(2, "|u1")),
        "removed": ("npy", array_file(1, "<u4")),
    },
)
