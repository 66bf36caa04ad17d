"""The manifest of a folder: JSON that contains its own checksum. Reading it trusts nothing.

The manifests of all formats have `format`, `version`, `checksum`, `writer` and `files`. The other
fields are up to the readers of the format, which read them through `Fields`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bitweigh._disk.reading import head_of, read_plain
from bitweigh._storage.arrays import DAMAGED, ArrayFile, ArrayKind
from bitweigh._storage.formats import FORMATS, Format, why_unknown
from bitweigh._storage.sealed_json import matching_checksum, seal
from bitweigh._system import __version__
from bitweigh.errors import CorruptFileError

__all__ = [
    "FILE_NAME",
    "MANIFEST",
    "MAX_BYTES",
    "Fields",
    "Manifest",
    "OtherFile",
    "format_named_in",
    "parse",
    "read_manifest",
    "sealed",
]

MANIFEST = "manifest.json"
# A part takes less than 100 KiB even if all of 8192 bits are in bands, and there are O(log n)
# parts: about 30 for any number of codes that fits in memory. Anything much larger is not a
# manifest. Parsing hostile JSON can take 32 times its size in memory, which is bearable here.
MAX_BYTES = 1 << 22
FILE_NAME = re.compile(r"([a-z_]+)-[0-9a-f]{32}\.(np[yz])")
"""The name of a file, with its kind and ending as groups."""
# The beginning of every manifest that bitweigh writes, whatever its format and version.
_HEAD = re.compile(rb'\{\n "format": "([a-z-]{1,40})",\n "version": (\d{1,9})\b')
_HEAD_BYTES = 128
_NOT_OURS = "not the manifest of a bitweigh index"


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that is not an array: that of a hasher or weigher. It is named like an array file."""

    name: str
    size: int
    """Size in bytes."""

    @property
    def checksum(self) -> str:
        """XXH3 of all bytes of the file, 128 bits in hexadecimal."""
        return self.name[-36:-4]

    def facts(self) -> dict[str, Any]:
        """The entry of the file in a manifest."""
        return {"bytes": self.size}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest with a matching checksum and a known format and version."""

    path: Path
    format: Format
    version: int
    checksum: str
    body: dict[str, Any]

    def fields(self) -> Fields:
        """The fields, for reading and checking."""
        return Fields(self.path, self.body, "", self.body.get("files"))

    def listed(self) -> set[str]:
        """The names of all listed files that a folder of this format may hold."""
        listed = self.body.get("files")
        kinds = {(kind.name, kind.ending) for kind in self.format.files}
        matches = map(FILE_NAME.fullmatch, listed if isinstance(listed, dict) else ())
        return {match[0] for match in matches if match is not None and match.groups() in kinds}


def sealed(fields: Mapping[str, Any], in_format: Format, version: int | None = None) -> bytes:
    """The bytes of a manifest with these fields and its checksum; by default the usual version."""
    head = {
        "format": in_format.name,
        "version": in_format.usual_version if version is None else version,
    }
    return seal(head, {"writer": f"bitweigh {__version__}", **fields})


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder."""
    path = folder / MANIFEST
    return parse(read_plain(path, MAX_BYTES), path)


def parse(raw: bytes, path: Path) -> Manifest:
    """Parse a manifest; raises CorruptFileError naming `path` for anything wrong with it.

    The checksum comes first: parsing may take far more memory than the file has bytes, so damaged
    JSON is not parsed.
    """
    if len(raw) > MAX_BYTES:
        raise CorruptFileError(path, f"must have at most {MAX_BYTES} bytes, has {len(raw)}")
    checksum = matching_checksum(raw)
    if checksum is None:
        raise CorruptFileError(path, _why_not(raw))
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"not a manifest: {error}") from None
    if not isinstance(body, dict):
        raise CorruptFileError(path, _NOT_OURS)
    known, version = _known(path, body.get("format"), body.get("version"))
    if body.get("checksum") != checksum:
        raise CorruptFileError(path, "checksum must be the first one in the file")
    return Manifest(path, known, version, checksum, body)


def format_named_in(path: Path) -> str:
    """The format that a manifest names, even if it is damaged; "" if it names none."""
    head = _HEAD.match(head_of(path, _HEAD_BYTES))
    if head is not None:
        return head[1].decode()
    try:
        body = json.loads(read_plain(path, MAX_BYTES))
    except (ValueError, RecursionError):  # includes files larger than any manifest
        return ""
    name = body.get("format") if isinstance(body, dict) else None
    return name if isinstance(name, str) else ""


def _why_not(raw: bytes) -> str:
    """Why a manifest without a matching checksum is refused; a later format may have another."""
    head = _HEAD.match(raw)
    if head is None:
        return f"{_NOT_OURS}, or damaged"
    return _why_not_read(head[1].decode(), int(head[2])) or DAMAGED


def _why_not_read(name: str, version: int) -> str | None:
    """The reason why this version of bitweigh cannot read such a manifest; None if it can."""
    known = FORMATS.get(name)
    if known is None:
        return why_unknown(name) or _NOT_OURS
    latest = known.versions[-1]
    if version > latest:
        return f"written in format {version}; this version of bitweigh reads up to {latest}"
    if version not in known.versions:
        return f"version must be one of {', '.join(map(str, known.versions))}"
    return None


def _known(path: Path, name: object, version: object) -> tuple[Format, int]:
    """The format and version of a manifest; raises CorruptFileError unless they are known."""
    if not isinstance(name, str) or (name not in FORMATS and why_unknown(name) is None):
        raise CorruptFileError(path, _NOT_OURS)
    if type(version) is not int or version < 1:
        raise CorruptFileError(path, "version must be a positive integer")
    reason = _why_not_read(name, version)
    if reason is not None:
        raise CorruptFileError(path, reason)
    return FORMATS[name], version


class Fields:
    """The fields of an object in a manifest; errors say which field is wrong, and why."""

    def __init__(self, path: Path, body: object, where: str, listed: object) -> None:
        """`where` is the position of the object in the manifest, `listed` the value of `files`."""
        self._path = path
        self._where = f"{where}." if where else ""
        if not isinstance(body, dict):
            self.fail(f"{where} must be an object")
        if not isinstance(listed, dict):
            self.fail("files must be an object")
        self._body: dict[str, Any] = body
        self._listed: dict[str, Any] = listed

    def fail(self, reason: str) -> NoReturn:
        """Raise CorruptFileError for the manifest."""
        raise CorruptFileError(self._path, reason)

    def fail_at(self, name: str, reason: str) -> NoReturn:
        """Raise CorruptFileError for a field."""
        self.fail(f"{self._where}{name} {reason}")

    def value(self, name: str) -> Any:  # noqa: ANN401
        """The value of a field, unchecked; None if it is missing."""
        return self._body.get(name)

    def integer(self, name: str, minimum: int, maximum: int) -> int:
        """An integer from `minimum` to `maximum`."""
        value = self._body.get(name)
        if type(value) is not int or not minimum <= value <= maximum:
            self.fail_at(name, f"must be an integer from {minimum} to {maximum}")
        return value

    def optional_integer(self, name: str, minimum: int, maximum: int) -> int | None:
        """An integer from `minimum` to `maximum`, or null."""
        return None if self._body.get(name) is None else self.integer(name, minimum, maximum)

    def number(self, name: str) -> float:
        """A number, not negative."""
        value = self._body.get(name)
        if not isinstance(value, int | float) or not 0 <= value < float("inf"):
            self.fail_at(name, "must be a number that is not negative")
        return float(value)

    def choice(self, name: str, choices: tuple[str | None, ...]) -> Any:  # noqa: ANN401
        """One of the choices; None is null or a missing field."""
        value = self._body.get(name)
        if not (value is None or isinstance(value, str)) or value not in choices:
            words = " or ".join("null" if word is None else repr(word) for word in choices)
            self.fail_at(name, f"must be {words}")
        return value

    def object(self, name: str) -> Fields:
        """The fields of an object inside this one."""
        return Fields(self._path, self._body.get(name), f"{self._where}{name}", self._listed)

    def objects(self, name: str) -> list[Fields]:
        """The fields of each object in a list inside this one."""
        value = self._body.get(name)
        if not isinstance(value, list):
            self.fail_at(name, "must be a list")
        return [
            Fields(self._path, body, f"{self._where}{name}[{i}]", self._listed)
            for i, body in enumerate(value)
        ]

    def array(self, kind: ArrayKind, lengths: Mapping[str, int]) -> ArrayFile | None:
        """The file of an array; None if the array is empty, or optional and missing."""
        if not lengths[kind.lengths[0]] or (kind.optional and self._body.get(kind.name) is None):
            return None
        shape = kind.shape(lengths)
        name, facts = self._named(kind.name, kind.ending)
        if facts.get("dtype") not in kind.dtypes:
            self.fail(f"files must have {name} with dtype {' or '.join(kind.dtypes)}")
        if facts.get("shape") != list(shape):
            self.fail(f"files must have {name} with shape {list(shape)}")
        return ArrayFile(name, str(facts["dtype"]), shape)

    def other_file(self, kind: str, max_bytes: int) -> OtherFile:
        """A file that is not an array."""
        name, facts = self._named(kind, "npz")
        size = facts.get("bytes")
        if type(size) is not int or not 0 <= size <= max_bytes:
            self.fail(f"files must have {name} with at most {max_bytes} bytes")
        return OtherFile(name, size)

    def _named(self, kind: str, ending: str) -> tuple[str, dict[str, Any]]:
        """The name of a file, and its entry in `files`."""
        value: Any = self._body.get(kind)
        match = FILE_NAME.fullmatch(value) if isinstance(value, str) else None
        if match is None or match.groups() != (kind, ending):
            self.fail_at(kind, "must be the name of such a file of an index")
        facts = self._listed.get(value)
        if not isinstance(facts, dict):
            self.fail(f"files must have {value}")
        return value, facts
