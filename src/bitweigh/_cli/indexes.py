"""Indexes in folders: which kind one is, opening it, adding rows with a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from bitweigh import Index, load
from bitweigh._cli.files import naming
from bitweigh._cli.progress import progress
from bitweigh._disk.folders import held
from bitweigh._disk.reading import resolved
from bitweigh._storage import folder_kind
from bitweigh.typing import Ids
from bitweigh.vector_index import VectorIndex

__all__ = [
    "AnyIndex",
    "RowKind",
    "add_rows",
    "changing",
    "codes_in",
    "kind_of",
    "kind_stored",
    "opened",
]

AnyIndex: TypeAlias = Index | VectorIndex
RowKind: TypeAlias = Literal["code", "vector"]
"""What the rows of an index are."""

# Rows that are added between two steps of the bar.
_AT_ONCE = 1 << 18


def opened(folder: Path, *, mmap: bool = False) -> AnyIndex:
    """The index in a folder, of codes or of vectors."""
    if kind_stored(folder) == "vector":
        return VectorIndex.load(folder, mmap=mmap)
    return load(folder, mmap=mmap)


@contextmanager
def changing(folder: Path, kind: RowKind) -> Iterator[AnyIndex]:
    """The index in a folder, to be changed and saved; other commands that change it wait."""
    with held(resolved(folder)):
        index = opened(folder)
        if kind_of(index) != kind:
            raise ValueError(
                f"{folder}: another index was saved there meanwhile, of {kind_of(index)}s"
            )
        yield index


def kind_stored(folder: Path) -> RowKind:
    """What the rows of the index in a folder are, by its files alone."""
    _need_folder(folder)
    try:
        return "vector" if folder_kind(folder) == "vectors" else "code"
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder}: there is no index in this folder; `bitweigh build INPUT -o FOLDER` makes "
            "one"
        ) from None


def _need_folder(folder: Path) -> None:
    if not folder.exists():
        raise FileNotFoundError(
            f"{folder}: there is no such folder; `bitweigh build INPUT -o {folder}` makes an index"
        )
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; an index is a folder: give its name")


def kind_of(index: AnyIndex) -> RowKind:
    """What its rows are."""
    return "code" if isinstance(index, Index) else "vector"


def codes_in(index: AnyIndex) -> Index:
    """The index of the codes."""
    return index if isinstance(index, Index) else index.index


def add_rows(
    index: AnyIndex, rows: NDArray[Any], ids: Ids | None, path: Path, *, replace: bool = False
) -> None:
    """Add rows of a file, a part after the other so that a bar can move."""
    with progress("adding", len(rows), "rows") as done:
        for first in range(0, len(rows), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            with naming(path, first):
                index.add(
                    rows[part],
                    None if ids is None else ids[part],
                    on_duplicate="replace" if replace else "error",
                )
            done(len(rows[part]))
