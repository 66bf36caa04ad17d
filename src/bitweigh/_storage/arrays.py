"""Arrays in files: the table of all kinds of arrays, and reading and mapping their files.

Writing, reading, verifying and recognising our files all use this table, and a test compares it
with the one in docs/file-format.md. A file is identical, byte for byte, to what NumPy writes.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._disk.reading import PIECE_BYTES, open_plain, pieces
from bitweigh._index.bands import BLOCK_ROWS
from bitweigh.errors import CorruptFileError

__all__ = [
    "ARRAY_KINDS",
    "DAMAGED",
    "PART_KINDS",
    "SCALE_KIND",
    "VECTOR_KINDS",
    "Array",
    "ArrayData",
    "ArrayFile",
    "ArrayKind",
    "Shape",
    "agrees",
    "array_data",
    "check_file",
    "digest_of",
    "digest_of_pieces",
    "header_of",
    "map_array",
    "part_lengths",
    "read_array",
]

Array = NDArray[Any]
Shape = tuple[int, ...]

DAMAGED = "the checksum does not match: the file is damaged"
_HEADER_START = b"\x93NUMPY\x01\x00v\x00{'descr': '"
_HEADER = re.compile(
    re.escape(_HEADER_START) + rb"(.{3})', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n"
)
_HEADER_BYTES = 128


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """The dtype and shape of arrays of one kind. The name of a file begins with its kind."""

    ending: ClassVar[str] = "npy"

    name: str
    dtypes: tuple[str, ...]
    """The dtypes allowed, as NumPy writes them."""
    lengths: tuple[str, ...]
    """The names of the lengths in its shape, from `part_lengths` or a vector index.

    Only the first of them can be 0.
    """
    optional: bool = False
    """Whether it may be missing. Arrays without elements never have a file."""

    def shape(self, lengths: Mapping[str, int]) -> Shape:
        """The shape of an array of this kind."""
        return tuple([lengths[name] for name in self.lengths])

    def fits(self, head: bytes, size: int, whole: bool) -> bool:
        """Whether a file with these first bytes is of this kind; if not whole, begins like one."""
        if not whole and size < _HEADER_BYTES:
            return agrees(head, _HEADER_START)
        match = _HEADER.fullmatch(head)
        if match is None or match[1].decode("latin-1") not in self.dtypes:
            return False
        shape = [int(length) for length in match[2].replace(b",", b" ").split()]
        n_bytes = math.prod(shape) * np.dtype(match[1].decode()).itemsize
        return len(shape) == len(self.lengths) and (not whole or size == _HEADER_BYTES + n_bytes)


PART_KINDS = (
    ArrayKind("codes", ("|u1",), ("code_bytes",)),
    ArrayKind("ids", ("<u4", "<i8"), ("rows",), optional=True),
    ArrayKind("by_id", ("<u4",), ("rows",), optional=True),
    ArrayKind("starts", ("<u4",), ("key_starts",)),
    ArrayKind("band_rows", ("<u4",), ("other_bands", "rows")),
    ArrayKind("band_codes", ("|u1",), ("other_bands", "code_bytes")),
    ArrayKind("removed", ("<u4",), ("blocks",), optional=True),
)
"""Arrays of a part of an index."""

VECTOR_KINDS = (
    ArrayKind("vectors", ("|i1", "<f2", "<f4"), ("vectors", "features")),
    ArrayKind("vector_ids", ("<i8",), ("vectors",)),
)
"""Arrays that an index with kept vectors has in addition to its codes."""

SCALE_KIND = ArrayKind("scales", ("<f8",), ("features",), optional=True)
"""The array that embeddings kept as int8 have in addition."""

ARRAY_KINDS = {kind.name: kind for kind in (*PART_KINDS, *VECTOR_KINDS, SCALE_KIND)}


def part_lengths(
    rows: int, n_bits: int, bands: tuple[tuple[int, ...], ...], lean: bool = False
) -> dict[str, int]:
    """The named lengths in the shapes of a part's arrays; `bands` has the bits of each band.

    The bands of a part with lean rows all have the same number of bits.
    """
    blocks = -(-rows // BLOCK_ROWS)
    row_bits = max(1, n_bits - len(bands[0])) if lean else n_bits
    return {
        "rows": rows,
        "blocks": blocks,
        "code_bytes": blocks * BLOCK_ROWS * ((row_bits + 7) // 8),
        "key_starts": sum(2 ** len(bits) + 1 for bits in bands),
        "other_bands": max(0, len(bands) - 1),
    }


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A file with one array, named after its content: ``<kind>-<checksum>.npy``."""

    name: str
    dtype: str
    """The dtype as NumPy writes it."""
    shape: Shape

    @property
    def kind(self) -> str:
        """The name of its kind."""
        return self.name.partition("-")[0]

    @property
    def checksum(self) -> str:
        """XXH3 of all bytes of the file, 128 bits in hexadecimal."""
        return self.name[-36:-4]

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(header_of(self.dtype, self.shape)) + self.nbytes

    def facts(self) -> dict[str, Any]:
        """The entry of the file in a manifest."""
        return {"dtype": self.dtype, "shape": list(self.shape)}


@dataclass(frozen=True, slots=True, eq=False)
class ArrayData:
    """An array for one file, in pieces that follow each other there."""

    file: ArrayFile
    pieces: Iterable[Array]
    """The pieces in order; can be iterated repeatedly."""
    built: Path | None = None
    """A file with all of these bytes, if there is one: then it gets another name, not a copy.

    Without any pieces there is no other way.
    """

    def data(self) -> Iterator[memoryview]:
        """All bytes of the file."""
        yield memoryview(header_of(self.file.dtype, self.file.shape))
        for piece in self.pieces:
            yield _bytes_of(piece, self.file.dtype)


def array_data(
    kind: ArrayKind, dtype: np.dtype[Any], pieces: Iterable[Array], lengths: Mapping[str, int]
) -> ArrayData:
    """The file for an array. Its name has the checksum, so all of the array is read."""
    stored = dtype.newbyteorder("<").str
    if stored not in kind.dtypes:
        raise TypeError(f"{kind.name} must have dtype {' or '.join(kind.dtypes)}, got {stored}")
    unnamed = ArrayFile("", stored, kind.shape(lengths))
    checksum = digest_of_pieces(ArrayData(unnamed, pieces).data())
    named = ArrayFile(f"{kind.name}-{checksum}.{kind.ending}", stored, unnamed.shape)
    return ArrayData(named, pieces)


def _bytes_of(array: Array, dtype: str) -> memoryview:
    return np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8).data


def header_of(dtype: str, shape: Shape) -> bytes:
    """The header of a .npy file, byte for byte as NumPy writes it."""
    fields = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    # Magic number, version and length take 10 bytes; the data starts at a multiple of 64.
    length = -(-(10 + len(fields) + 1) // 64) * 64 - 10
    length = max(length, _HEADER_BYTES - 10)
    return (
        b"\x93NUMPY\x01\x00"
        + length.to_bytes(2, "little")
        + (fields.ljust(length - 1) + "\n").encode()
    )


def digest_of(data: bytes) -> str:
    """XXH3 of the data, 128 bits in hexadecimal."""
    return digest_of_pieces([data])


def digest_of_pieces(data: Iterable[bytes | memoryview]) -> str:
    """XXH3 of all pieces together."""
    hasher = xxhash.xxh3_128()
    for piece in data:
        for first in range(0, len(piece), PIECE_BYTES):
            hasher.update(piece[first : first + PIECE_BYTES])
    return hasher.hexdigest()


def agrees(found: bytes, expected: bytes) -> bool:
    """Whether one is a prefix of the other."""
    length = min(len(found), len(expected))
    return found[:length] == expected[:length]


def load_array(folder: Path, stored: ArrayFile, mapped: bool, verify: bool) -> Array:
    """The array of a file, mapped or read; `verify` checks it against its checksum."""
    if not mapped:
        return read_array(folder, stored, verify)
    if verify:
        check_file(folder, stored)
    return map_array(folder, stored)


def map_array(folder: Path, stored: ArrayFile) -> Array:
    """The array of a file, mapped: read when it is used."""
    path = folder / stored.name
    with open_plain(path) as file:
        start = _data_start(file, path, stored)
        mapping = mmap.mmap(file.fileno(), start + stored.nbytes, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, stored.dtype, offset=start).reshape(stored.shape)


def read_array(folder: Path, stored: ArrayFile, verify: bool) -> Array:
    """The array of a file, read into memory; `verify` checks its checksum on the way."""
    path = folder / stored.name
    with open_plain(path) as file:
        start = _data_start(file, path, stored)
        hasher = xxhash.xxh3_128(header_of(stored.dtype, stored.shape))
        file.seek(start)
        raw = _core.empty_blocks(stored.nbytes)
        view = raw.data
        done = 0
        while done < len(view):
            count = file.readinto(view[done : done + PIECE_BYTES])
            if not count:
                raise CorruptFileError(path, "the file ends too early")
            if verify:
                hasher.update(view[done : done + count])
            done += count
    if verify and hasher.hexdigest() != stored.checksum:
        raise CorruptFileError(path, DAMAGED)
    return raw.view(stored.dtype).reshape(stored.shape)


def check_file(folder: Path, stored: ArrayFile) -> None:
    """Raise CorruptFileError if the file has changed since it was written."""
    path = folder / stored.name
    with open_plain(path) as file:
        _data_start(file, path, stored)
        file.seek(0)
        checksum = digest_of_pieces(pieces(file, stored.size, path))
    if checksum != stored.checksum:
        raise CorruptFileError(path, DAMAGED)


def _data_start(file: io.FileIO, path: Path, stored: ArrayFile) -> int:
    """The offset of the data in a .npy file, whose header and size must match the manifest."""
    header = header_of(stored.dtype, stored.shape)
    if file.read(len(header)) != header:
        expected = f"{stored.dtype} of shape {stored.shape}"
        raise CorruptFileError(path, f"must hold an array, {expected}, as NumPy writes it")
    size = os.fstat(file.fileno()).st_size
    if size != stored.size:
        raise CorruptFileError(path, f"must have {stored.size} bytes for its array, has {size}")
    return len(header)
