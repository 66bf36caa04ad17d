"""The formats of folders: their names, their versions, the files that each may hold.

A folder that holds more kinds of files than a plain index has a format of its own, so that a
version of bitweigh that does not know it refuses the folder instead of saving over it.
docs/file-format.md says how to add a format, a version or a kind of array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from bitweigh._storage.arrays import PART_KINDS, VECTOR_KINDS, agrees

__all__ = ["FORMATS", "INDEX", "VECTORS", "FileKind", "FolderKind", "Format", "why_unknown"]

FolderKind: TypeAlias = Literal["index", "vectors"]
"""What a folder holds."""


class FileKind(Protocol):
    """How the files of one kind are told from others."""

    @property
    def name(self) -> str:
        """How their names begin, before the checksum."""

    @property
    def ending(self) -> str:
        """How their names end."""

    def fits(self, head: bytes, size: int, whole: bool) -> bool:
        """Whether a file with these first bytes is of this kind; if not whole, begins as one."""


@dataclass(frozen=True, slots=True)
class EstimatorKind:
    """Files of hashers and weighers."""

    ending: ClassVar[str] = "npz"

    name: str

    def fits(self, head: bytes, size: int, whole: bool) -> bool:
        """Whether it begins as they do: a zip archive with `about.npy` first."""
        return (size >= 39 or not whole) and all(
            agrees(head[first:], wanted)
            for first, wanted in ((0, b"PK\x03\x04"), (30, b"about.npy"))
        )


@dataclass(frozen=True, slots=True)
class Format:
    """What the folders of one format have in common."""

    name: str
    """As the manifest names it."""
    versions: tuple[int, ...]
    """Those whose manifest this version of bitweigh reads. It writes the last."""
    kind: FolderKind
    what: str
    """What such a folder holds, with its article."""
    files: tuple[FileKind, ...]
    """All files but the manifest that such a folder may hold."""
    older_manifest: str | None = None
    """The file that told what a folder holds in a version that had no `manifest.json`."""

    @property
    def head(self) -> bytes:
        """How every manifest of this format begins that bitweigh writes."""
        return f'{{\n "format": "{self.name}",\n "version": '.encode()


INDEX = Format("bitweigh-index", (1,), "index", "an index", PART_KINDS)

VECTORS = Format(
    "bitweigh-vectors",
    (2,),
    "vectors",
    "a vector index",
    (*PART_KINDS, *VECTOR_KINDS, EstimatorKind("hasher"), EstimatorKind("weigher")),
    older_manifest="vectors.json",
)

FORMATS = {known.name: known for known in (INDEX, VECTORS)}


def why_unknown(name: str) -> str | None:
    """What to say of a manifest that names a format of ours which is not among `FORMATS`."""
    if name in FORMATS or not name.startswith("bitweigh-"):
        return None
    return f"written as {name!r}, which this version of bitweigh does not know"
