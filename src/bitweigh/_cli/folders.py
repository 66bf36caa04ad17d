"""Indexes in folders: finding their kind, opening and changing them, reading rows in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import NDArray

from bitweigh import BinaryEmbeddings, Index, VectorIndex, load
from bitweigh._cli.errors import prefix_errors
from bitweigh._disk.folders import locked_folder
from bitweigh._disk.reading import resolved
from bitweigh._progress import ProgressBar
from bitweigh._storage import FolderKind, folder_kind
from bitweigh.typing import Ids

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from bitweigh.cluster import Cluster, ClusterVectors, Shards

__all__ = [
    "AnyIndex",
    "AnySearched",
    "AnyStored",
    "CodeIndex",
    "RowKind",
    "add_rows",
    "changing",
    "codes_in",
    "has_vectors",
    "kind_of",
    "kind_stored",
    "open_index",
    "open_stored",
    "size_on_disk",
    "stored_parts",
    "stored_rows",
]

AnyIndex: TypeAlias = Index | VectorIndex
CodeIndex: TypeAlias = "Index | Shards | Cluster"
"""An index of codes, which may be that of many shards, here or elsewhere."""
AnySearched: TypeAlias = "CodeIndex | VectorIndex | ClusterVectors"
AnyStored: TypeAlias = AnyIndex | BinaryEmbeddings
RowKind: TypeAlias = Literal["code", "vector"]
"""The kind of rows of an index."""

# Rows between two steps of a progress bar, and bytes of a part if rows are copied.
_ROWS_AT_ONCE = 1 << 18
_BYTES_AT_ONCE = 1 << 26


def open_index(folder: Path, *, mmap: bool = False, verify: bool | None = None) -> AnyIndex:
    """The index in a folder, of codes or of vectors.

    Every byte is checked, by default unless mapped; of a mapped index without keeping it in memory.
    """
    kind_stored(folder)  # raises an error that says what to do if there is no index
    index = load(folder, mmap=mmap, verify=verify)
    if isinstance(index, BinaryEmbeddings):  # saved there meanwhile
        raise _embeddings_error(folder)
    return index


def open_stored(folder: Path, *, mmap: bool = False) -> AnyStored:
    """What a folder holds, embeddings with their vectors included."""
    _stored(folder)
    return load(folder, mmap=mmap)


@contextmanager
def changing(folder: Path, kind: RowKind, *, mmap: bool = False) -> Iterator[AnyIndex]:
    """Lock a folder and yield its index, to be changed and saved; other such commands wait."""
    with locked_folder(resolved(folder)):
        index = open_index(folder, mmap=mmap, verify=True)
        if kind_of(index) != kind:
            raise ValueError(
                f"{folder}: another command saved an index of {kind_of(index)}s there meanwhile; "
                "run this command again"
            )
        yield index


def kind_stored(folder: Path) -> RowKind:
    """The kind of rows of the index in a folder, by its files alone."""
    kind = _stored(folder)
    if kind == "embeddings":
        raise _embeddings_error(folder)
    return "vector" if kind == "vectors" else "code"


def _stored(folder: Path) -> FolderKind:
    _need_folder(folder)
    try:
        return folder_kind(folder)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder}: there is no index in this folder; `bitweigh build INPUT -o FOLDER` creates "
            "one"
        ) from None


def _embeddings_error(folder: Path) -> ValueError:
    return ValueError(
        f"{folder}: this command does not take embeddings with their vectors, only `bitweigh info` "
        "and `bitweigh verify` do; bitweigh.BinaryEmbeddings.load opens the folder in Python"
    )


def _need_folder(folder: Path) -> None:
    if not folder.exists():
        raise FileNotFoundError(
            f"{folder}: there is no such folder; `bitweigh build INPUT -o {folder}` creates an "
            "index"
        )
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; an index is a folder: give its name")


def kind_of(index: AnySearched) -> RowKind:
    """The kind of rows of an index."""
    return "vector" if has_vectors(index) else "code"


def has_vectors(index: AnySearched) -> TypeIs[VectorIndex | ClusterVectors]:
    """Whether an index is one of vectors, here or in shards."""
    # Not by its class, since importing that of shards takes long.
    return hasattr(index, "rerank")


def codes_in(index: AnyStored) -> Index:
    """The index of the codes of any index."""
    return index if isinstance(index, Index) else index.index


def stored_rows(index: AnySearched, ids: Ids) -> NDArray[Any]:
    """Codes or vectors by id, as the index stores them."""
    return index.vectors_of(ids) if has_vectors(index) else index.codes_of(ids)


def stored_parts(index: AnyIndex, ids: Ids) -> Iterator[tuple[Ids, NDArray[Any]]]:
    """Ids and their rows as the index stores them, in parts that fit into memory."""
    if len(ids) == 0:
        return
    row_bytes = stored_rows(index, ids[:1]).nbytes
    step = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // row_bytes))
    for first in range(0, len(ids), step):
        part = ids[first : first + step]
        yield part, stored_rows(index, part)


def size_on_disk(folder: Path) -> int:
    """Total size in bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def add_rows(
    index: AnyIndex, rows: NDArray[Any], ids: Ids | None, path: Path, *, replace: bool = False
) -> None:
    """Add rows of a file in parts, with a progress bar."""
    with ProgressBar("adding", len(rows), unit="rows") as bar:
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            with prefix_errors(path, first):
                index.add(
                    rows[part],
                    None if ids is None else ids[part],
                    on_duplicate="replace" if replace else "error",
                )
            bar.advance(len(rows[part]))
