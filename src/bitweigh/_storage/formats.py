"""The formats of folders: their names, their versions, and the files that each may hold.

A folder with more kinds of files than a plain index has a separate format, so that a version of
bitweigh that does not know it refuses the folder instead of saving over it. docs/file-format.md
says how to add a format, a version or a kind of array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from bitweigh._storage.arrays import PART_KINDS, SCALE_KIND, VECTOR_KINDS, agrees

__all__ = [
    "EMBEDDINGS",
    "FORMATS",
    "INDEX",
    "VECTORS",
    "FileKind",
    "FolderKind",
    "Format",
    "why_unknown",
]

FolderKind: TypeAlias = Literal["index", "vectors", "embeddings"]
"""The kind of index in a folder."""


class FileKind(Protocol):
    """A kind of file, and how to recognise its files."""

    @property
    def name(self) -> str:
        """The beginning of their names, before the checksum."""

    @property
    def ending(self) -> str:
        """The ending of their names, without the dot."""

    def fits(self, head: bytes, size: int, whole: bool) -> bool:
        """Whether a file with these first bytes is of this kind; if not whole, begins like one."""


@dataclass(frozen=True, slots=True)
class EstimatorKind:
    """Files of hashers and weighers."""

    ending: ClassVar[str] = "npz"

    name: str

    def fits(self, head: bytes, size: int, whole: bool) -> bool:
        """Whether a file begins like theirs: a zip archive with `about.npy` first."""
        return (size >= 39 or not whole) and all(
            agrees(head[first:], expected)
            for first, expected in ((0, b"PK\x03\x04"), (30, b"about.npy"))
        )


@dataclass(frozen=True, slots=True)
class Format:
    """A format of folders."""

    name: str
    """The name of the format in the manifest."""
    versions: tuple[int, ...]
    """The versions whose manifest this version of bitweigh reads."""
    kind: FolderKind
    what: str
    """The content of such a folder for messages, with its article."""
    files: tuple[FileKind, ...]
    """The kinds of files that such a folder may hold besides the manifest."""
    older_manifest: str | None = None
    """The file that described a folder in a version that had no `manifest.json`."""
    usual_version: int = 1
    """The version that is written where no other is needed."""

    @property
    def head(self) -> bytes:
        """The first bytes of every manifest of this format that bitweigh writes."""
        return f'{{\n "format": "{self.name}",\n "version": '.encode()


# Version 2 has parts with lean rows, which version 1 does not know. Every other index is written as
# version 1, so that older versions of bitweigh read it.
INDEX = Format("bitweigh-index", (1, 2), "index", "an index", PART_KINDS)

VECTORS = Format(
    "bitweigh-vectors",
    (2,),
    "vectors",
    "a vector index",
    (*PART_KINDS, *VECTOR_KINDS, EstimatorKind("hasher"), EstimatorKind("weigher")),
    older_manifest="vectors.json",
    usual_version=2,
)

EMBEDDINGS = Format(
    "bitweigh-embeddings",
    (1,),
    "embeddings",
    "a collection of embeddings",
    (*PART_KINDS, *VECTOR_KINDS, SCALE_KIND),
)

FORMATS = {known.name: known for known in (INDEX, VECTORS, EMBEDDINGS)}


def why_unknown(name: str) -> str | None:
    """The error message for a manifest in a format of ours that is not in `FORMATS`, else None."""
    if name in FORMATS or not name.startswith("bitweigh-"):
        return None
    return f"written as {name!r}, which this version of bitweigh does not know"
