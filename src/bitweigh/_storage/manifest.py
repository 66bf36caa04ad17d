"""The manifest: what an index consists of, as JSON. Reading one trusts nothing in it.

What an array's shape must be follows from a few numbers; it is compared with what the manifest and
the file itself say.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import xxhash

from bitweigh import _core
from bitweigh._checks import MAX_BITS
from bitweigh._disk.reading import PIECE_BYTES
from bitweigh._index.bands import BLOCK_ROWS, BandOptions
from bitweigh._index.segments import COUNTED_IDS_END
from bitweigh._system import __version__
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder

__all__ = [
    "FORMAT",
    "HEAD",
    "MANIFEST",
    "MOST_BYTES",
    "VERSION",
    "ArrayFile",
    "Manifest",
    "Shape",
    "StoredPart",
    "digest_of",
]

MANIFEST = "manifest.json"
FORMAT = "bitweigh-index"
VERSION = 1
# A part has less than 100 KiB, if all of 8192 bits are in bands, and there are O(log n) parts: some
# 30 for any number of codes that fits in memory. What is larger is no manifest. JSON that is made
# for it takes 32 times its bytes in memory, which is still bearable here.
MOST_BYTES = 1 << 22
_NO_CHECKSUM = "0" * 32
_NAME = re.compile(r"[a-z_]+-([0-9a-f]{32})\.npy")
# How every manifest begins that was written by bitweigh.
HEAD = f'{{\n "format": "{FORMAT}",\n "version": '.encode()
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{32})"')
_VERSION = re.compile(re.escape(HEAD) + rb"(\d{1,9})\b")
_ID_ENDS = 2**63

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A file with one array, named after what is in it."""

    name: str
    dtype: str
    """As NumPy writes it: "|u1", "<u2", "<u4" or "<i8"."""
    shape: Shape

    @property
    def kind(self) -> str:
        """The field of a part that it stands in."""
        return self.name.partition("-")[0]

    @property
    def checksum(self) -> str:
        """XXH3 of all bytes of the file, 128 bits in hexadecimal."""
        return self.name[-36:-4]

    @property
    def nbytes(self) -> int:
        """Of the array."""
        count = 1
        for length in self.shape:
            count *= length
        return count * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A segment, and what was removed from it."""

    rows: int
    codes: ArrayFile
    ids: ArrayFile | int
    """Of each row, or the first where each is one more than the last."""
    by_id: ArrayFile | None
    bands: tuple[tuple[int, ...], ...]
    """The bits of each."""
    starts: ArrayFile | None
    """Of all bands, one after the other."""
    band_rows: ArrayFile | None
    """Of all bands but the first."""
    band_codes: ArrayFile | None
    removed: ArrayFile | None

    def files(self) -> list[ArrayFile]:
        """Those it has."""
        every = [self.codes, self.ids, self.by_id, self.starts, self.band_rows, self.band_codes]
        return [one for one in [*every, self.removed] if isinstance(one, ArrayFile)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of an index but the arrays."""

    n_bits: int
    bitorder: BitOrder
    next_id: int
    options: BandOptions
    tail: StoredPart | None
    segments: tuple[StoredPart, ...]
    checksum: str = ""
    """Of the file that it was read from."""

    def parts(self) -> list[StoredPart]:
        """The tail, if there is one, and the segments."""
        return [*([self.tail] if self.tail else []), *self.segments]

    def files(self) -> dict[str, ArrayFile]:
        """All files by name."""
        return {one.name: one for part in self.parts() for one in part.files()}

    def to_bytes(self) -> bytes:
        """The file, with its own checksum in it."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "checksum": _NO_CHECKSUM,
            "writer": f"bitweigh {__version__}",
            "n_bits": self.n_bits,
            "bitorder": self.bitorder,
            "next_id": self.next_id,
            "bands": self.options.bands,
            "band_bits": self.options.band_bits,
            "memory_limit": self.options.memory_limit,
            "tail": None if self.tail is None else _part_to_json(self.tail),
            "segments": [_part_to_json(part) for part in self.segments],
            "files": {
                name: {"dtype": one.dtype, "shape": list(one.shape)}
                for name, one in sorted(self.files().items())
            },
        }
        blank = (json.dumps(body, indent=1) + "\n").encode()
        return _with_checksum(blank, digest_of(blank))

    @classmethod
    def from_bytes(cls, raw: bytes, path: Path) -> Manifest:
        """Read one; raises CorruptFileError naming `path` for whatever is wrong with it."""
        return _Reader(path).manifest(raw)


def digest_of(*pieces: bytes | memoryview) -> str:
    """XXH3, 128 bits in hexadecimal."""
    hasher = xxhash.xxh3_128()
    for piece in pieces:
        for first in range(0, len(piece), PIECE_BYTES):
            hasher.update(piece[first : first + PIECE_BYTES])
    return hasher.hexdigest()


def _with_checksum(raw: bytes, checksum: str) -> bytes:
    """The manifest with another checksum in the place of its own."""
    return _CHECKSUM.sub(b'"checksum": "' + checksum.encode() + b'"', raw, count=1)


def _part_to_json(part: StoredPart) -> dict[str, Any]:
    return {
        "rows": part.rows,
        "codes": part.codes.name,
        "ids": part.ids.name if isinstance(part.ids, ArrayFile) else None,
        "first_id": None if isinstance(part.ids, ArrayFile) else part.ids,
        "by_id": None if part.by_id is None else part.by_id.name,
        "bands": [list(bits) for bits in part.bands],
        "starts": None if part.starts is None else part.starts.name,
        "band_rows": None if part.band_rows is None else part.band_rows.name,
        "band_codes": None if part.band_codes is None else part.band_codes.name,
        "removed": None if part.removed is None else part.removed.name,
    }


class _Reader:
    """Takes a manifest apart; each method names what it found wrong and where."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listed: dict[str, Any] = {}  # what it says of each file

    def fail(self, reason: str) -> NoReturn:
        raise CorruptFileError(self.path, reason)

    def manifest(self, raw: bytes) -> Manifest:
        body = self.body(raw)
        bitorder = body.get("bitorder")
        if bitorder not in ("big", "little"):
            self.fail("bitorder must be 'big' or 'little'")
        n_bits = self.integer(body, "n_bits", 1, MAX_BITS)
        options = BandOptions(
            self.optional_integer(body, "bands", 1, n_bits),
            self.optional_integer(body, "band_bits", 1, _core.max_band_bits),
            self.optional_integer(body, "memory_limit", 0, 2**62),
        )
        segments = body.get("segments")
        if not isinstance(segments, list):
            self.fail("segments must be a list")
        tail = body.get("tail")
        listed = body.get("files")
        if not isinstance(listed, dict):
            self.fail("files must be an object")
        self.listed = listed
        return Manifest(
            n_bits,
            bitorder,
            self.integer(body, "next_id", 0, _ID_ENDS),
            options,
            None if tail is None else self.part(tail, "tail", n_bits),
            tuple(self.part(one, f"segments[{i}]", n_bits) for i, one in enumerate(segments)),
            body["checksum"],
        )

    def body(self, raw: bytes) -> dict[str, Any]:
        # Parsing may take far more memory than the file has bytes: nothing damaged is parsed.
        checksum = self.checksum(raw)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            self.fail(f"not a manifest: {error}")
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            self.fail("not the manifest of a bitweigh index")
        version = body.get("version")
        if type(version) is not int or version < 1:
            self.fail("version must be a positive integer")
        if version > VERSION:
            self.refuse_version(version)
        if body.get("checksum") != checksum:
            self.fail("checksum must be the first one in the file")
        return body

    def checksum(self, raw: bytes) -> str:
        """The checksum of the file, which matches."""
        if len(raw) > MOST_BYTES:
            self.fail(f"must have at most {MOST_BYTES} bytes, has {len(raw)}")
        found = _CHECKSUM.search(raw)
        if found is not None:
            checksum = found[1].decode()
            if digest_of(_with_checksum(raw, _NO_CHECKSUM)) == checksum:
                return checksum
        # A later format may have another checksum.
        version = _VERSION.match(raw)
        if version is not None and int(version[1]) > VERSION:
            self.refuse_version(int(version[1]))
        return self.fail(
            "the checksum does not match: the file is damaged"
            if raw.startswith(HEAD)
            else "not the manifest of a bitweigh index, or damaged"
        )

    def refuse_version(self, version: int) -> NoReturn:
        self.fail(f"written in format {version}; this version of bitweigh reads up to {VERSION}")

    def part(self, body: object, where: str, n_bits: int) -> StoredPart:
        if not isinstance(body, dict):
            self.fail(f"{where} must be an object")
        rows = self.integer(body, "rows", 1, _core.max_segment_rows - 1, where)
        blocks = -(-rows // BLOCK_ROWS)
        code_bytes = blocks * BLOCK_ROWS * ((n_bits + 7) // 8)
        bands = self.bands(body.get("bands"), where, n_bits)
        starts = sum(2 ** len(bits) + 1 for bits in bands)
        more = len(bands) - 1
        u1, u4 = ("|u1",), ("<u4",)
        return StoredPart(
            rows=rows,
            codes=self.file(body, "codes", where, u1, (code_bytes,)),
            ids=self.ids(body, rows, where),
            by_id=self.optional_file(body, "by_id", where, u4, (rows,)),
            bands=bands,
            starts=self.file(body, "starts", where, u4, (starts,)) if bands else None,
            band_rows=self.file(body, "band_rows", where, u4, (more, rows)) if more > 0 else None,
            band_codes=self.file(body, "band_codes", where, u1, (more, code_bytes))
            if more > 0
            else None,
            removed=self.optional_file(body, "removed", where, u4, (blocks,)),
        )

    def ids(self, body: dict[str, Any], rows: int, where: str) -> ArrayFile | int:
        if body.get("ids") is None:
            return self.integer(body, "first_id", 0, COUNTED_IDS_END - rows, where)
        return self.file(body, "ids", where, ("<u4", "<i8"), (rows,))

    def bands(self, value: object, where: str, n_bits: int) -> tuple[tuple[int, ...], ...]:
        if not isinstance(value, list) or not all(isinstance(bits, list) for bits in value):
            self.fail(f"{where}.bands must be lists of bits")
        seen: set[int] = set()
        for bits in value:
            if not 1 <= len(bits) <= _core.max_band_bits:
                self.fail(f"{where}.bands must have 1 to {_core.max_band_bits} bits each")
            for bit in bits:
                if type(bit) is not int or not 0 <= bit < n_bits or bit in seen:
                    self.fail(f"{where}.bands must name bits of the code, each once")
                seen.add(bit)
        return tuple(map(tuple, value))

    def file(
        self, body: dict[str, Any], name: str, where: str, dtypes: tuple[str, ...], shape: Shape
    ) -> ArrayFile:
        value = body.get(name)
        if not (isinstance(value, str) and _NAME.fullmatch(value) and value.startswith(f"{name}-")):
            self.fail(f"{where}.{name} must be the name of such a file of an index")
        said = self.listed.get(value)
        if not isinstance(said, dict) or said.get("dtype") not in dtypes:
            self.fail(f"files must have {value} with dtype {' or '.join(dtypes)}")
        if said.get("shape") != list(shape):
            self.fail(f"files must have {value} with shape {list(shape)}")
        return ArrayFile(value, str(said["dtype"]), shape)

    def optional_file(
        self, body: dict[str, Any], name: str, where: str, dtypes: tuple[str, ...], shape: Shape
    ) -> ArrayFile | None:
        return None if body.get(name) is None else self.file(body, name, where, dtypes, shape)

    def integer(
        self, body: dict[str, Any], name: str, least: int, most: int, where: str = ""
    ) -> int:
        value = body.get(name)
        if type(value) is not int or not least <= value <= most:
            place = f"{where}.{name}" if where else name
            self.fail(f"{place} must be an integer from {least} to {most}")
        return value

    def optional_integer(
        self, body: dict[str, Any], name: str, least: int, most: int
    ) -> int | None:
        return None if body.get(name) is None else self.integer(body, name, least, most)
