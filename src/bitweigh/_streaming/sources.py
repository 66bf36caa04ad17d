"""Where the rows of a streaming build come from: files, pieces that can be asked for, an iterator.

Every source yields batches of codes, with ids or without. Files and pieces can be read from any row
on, by several threads at a time, so a build from them can be resumed. An iterator cannot.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import io
from bitweigh._checks import as_ids
from bitweigh.frames import codes_and_ids, vectors_and_ids
from bitweigh.frames._sources import opened_parquet
from bitweigh.hashers import Hasher

__all__ = [
    "STREAMED_ENDINGS",
    "WILDCARDS",
    "ArraySource",
    "Batch",
    "FileSource",
    "IteratorSource",
    "PieceSource",
    "RowSource",
    "Source",
    "as_source",
    "files_at",
    "loaded_bytes",
]

Batch: TypeAlias = tuple[NDArray[Any], NDArray[Any] | None]
"""Codes, and their ids if the source has some."""

# Rows that are copied, and vectors that are hashed, at a time.
BATCH_ROWS = 1 << 15
_HASHED_ROWS = 1 << 12
# Memory that reading a row group takes, in multiples of its rows, measured for float32: pages as
# they are stored and decoded, Arrow's arrays and ours, and what Arrow keeps for later.
_PARQUET_COPIES = 7
_MAPPED = {".npy", ".bvecs", ".fbin", ".fvecs", ".i8bin", ".u8bin", ".ivecs"}
STREAMED_ENDINGS = _MAPPED | {".parquet"}
"""Endings of the names of files that need not be read as a whole."""

WILDCARDS = "*?["
"""Signs that make a path a pattern, unless there is a file of that very name."""


class RowSource(ABC):
    """A source whose rows can be read in any order."""

    rows: int
    has_ids: bool
    resumable = True
    """Whether a build that was ended can be continued."""
    loaded_rows = 0
    """The most rows that a thread has in memory besides its workspace."""
    loaded_row_bytes: int | None = None
    """Bytes of such a row; None for those of a code and its id."""
    loaded_copies = 1
    """How many times their bytes loading them takes."""

    @abstractmethod
    def fingerprint(self) -> Any:  # noqa: ANN401 any JSON
        """What tells this source from another, or from itself after a change; JSON."""

    @abstractmethod
    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last`, in batches."""

    def sample(self, max_rows: int) -> Iterator[Batch]:
        """At most so many rows to choose a layout by: the first ones, if they are like the rest."""
        return self.read(0, min(self.rows, max_rows))

    def edges(self, max_rows: int) -> list[int]:
        """Rows where the pieces of at most `max_rows` begin, and the number of all rows."""
        return [*range(0, self.rows, max_rows), self.rows]

    def parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Rows from `first` to before `last`, cut so that threads read them at the same time."""
        edges = [*range(first, last, BATCH_ROWS), last]
        return list(pairwise(edges))


class PieceSource(RowSource):
    """Pieces that a function loads by number, such as the output of a generator with a seed.

    Parameters
    ----------
    load : callable
        Returns the codes of a piece, uint8 (rows, n_bytes), or (codes, ids). Several threads call
        it. For the same number it must return the same rows.
    rows : sequence of int
        Rows of each piece.
    name : str
        Tells this source from others: a build is resumed only with the same name and rows.
    has_ids : bool
        Whether `load` returns ids as well.

    """

    def __init__(
        self,
        load: Callable[[int], Any],
        rows: Sequence[int],
        *,
        name: str = "",
        has_ids: bool = False,
    ) -> None:
        """Keep the function; it is not called yet."""
        self._load = load
        self._firsts = [0, *accumulate(rows)]
        self._name = name
        self.rows = self._firsts[-1]
        self.has_ids = has_ids
        self.loaded_rows = max(rows, default=0)

    def fingerprint(self) -> Any:  # noqa: ANN401
        """The name, and the rows of each piece."""
        return {"name": self._name, "rows": [b - a for a, b in pairwise(self._firsts)]}

    def edges(self, max_rows: int) -> list[int]:
        """Whole pieces together if they fit, so that each is loaded once."""
        edges = [0]
        for first, last in pairwise(self._firsts):
            if last - edges[-1] > max_rows and first > edges[-1]:
                edges.append(first)
            while last - edges[-1] > max_rows:
                edges.append(edges[-1] + max_rows)
        return [*edges, self.rows] if edges[-1] < self.rows else edges

    def parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """One for each piece, so that it is loaded once."""
        inside = [edge for edge in dict.fromkeys(self._firsts) if first < edge < last]
        return list(pairwise([first, *inside, last]))

    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last`, loading each piece that has some of them."""
        number = bisect_right(self._firsts, first) - 1
        while first < last:
            start, end = self._firsts[number], self._firsts[number + 1]
            if start < end:
                codes, ids = self._piece(number, end - start)
                stop = min(last, end)
                part = slice(first - start, stop - start)
                yield codes[part], None if ids is None else ids[part]
                first = stop
            number += 1

    def _piece(self, number: int, rows: int) -> Batch:
        loaded = self._load(number)
        codes, ids = loaded if isinstance(loaded, tuple) else (loaded, None)
        if (ids is not None) != self.has_ids:
            expected = "(codes, ids)" if self.has_ids else "codes without ids"
            raise ValueError(f"piece {number} must be {expected}, as has_ids={self.has_ids} says")
        if len(codes) != rows:
            raise ValueError(f"piece {number} must have {rows} rows, got {len(codes)}")
        return codes, ids


class FileSource(RowSource):
    """Files of codes, or of vectors that a fitted hasher turns into codes, one after the other.

    Parameters
    ----------
    paths : sequence of paths
        Files that are mapped: npy, bvecs, fvecs, fbin, u8bin, i8bin. Or parquet files, which are
        read one row group at a time.
    ids : sequence of paths, optional
        npy files with the ids of all rows, in their order. By default ids are counted from 0.
    hasher : Hasher, optional
        Turns vectors into codes; without it the files have codes.
    column, id_column : str, optional
        Columns of parquet files: of the codes or vectors, by default "code" or "vector", and of
        the ids.
    vectors : bool
        Whether the files have vectors, also without a hasher: they are read as they are.

    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        ids: Sequence[str | os.PathLike[str]] | None = None,
        hasher: Hasher | None = None,
        column: str | None = None,
        id_column: str | None = None,
        vectors: bool = False,
    ) -> None:
        """Open the files."""
        self.paths = [Path(path) for path in paths]
        self.column = column
        self.id_column = id_column
        if not self.paths:
            raise ValueError("a build needs at least one file, got none")
        self.id_paths = [Path(path) for path in ids or ()]
        self._hasher = hasher
        self.vectors = vectors or hasher is not None
        name = column or ("vector" if self.vectors else "code")
        endings = {path.suffix.lower() for path in self.paths}
        self._source: RowSource
        if endings == {".parquet"}:
            if self.id_paths:
                raise ValueError("ids of parquet files are in a column: give id_column, not ids")
            self._source = _row_groups(self.paths, name, id_column, self.vectors)
        elif endings <= _MAPPED:
            if column is not None or id_column is not None:
                raise ValueError("column and id_column are for parquet files")
            self._source = ArraySource(
                [io.read(path) for path in self.paths],
                [io.read_npy(path) for path in self.id_paths],
            )
        else:
            allowed = " ".join(sorted(_MAPPED))
            raise ValueError(
                f"names of files must end in .parquet, all of them, or in one of {allowed}, got "
                f"{' '.join(sorted(endings))}"
            )
        self.rows = self._source.rows
        self.has_ids = self._source.has_ids
        self.loaded_rows = self._source.loaded_rows
        if endings == {".parquet"}:
            self.loaded_copies = _PARQUET_COPIES
        if hasher is not None:
            self.loaded_row_bytes = hasher.n_features_in_ * np.dtype(np.float32).itemsize

    def fingerprint(self) -> Any:  # noqa: ANN401
        """Names, sizes and times of change of the files."""
        stats = [(path, path.stat()) for path in (*self.paths, *self.id_paths)]
        files = [[str(path.absolute()), stat.st_size, stat.st_mtime_ns] for path, stat in stats]
        return {"files": files, "hasher": None if self._hasher is None else repr(self._hasher)}

    def edges(self, max_rows: int) -> list[int]:
        """Rows where pieces begin."""
        return self._source.edges(max_rows)

    def parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Rows cut for threads."""
        return self._source.parts(first, last)

    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last`, hashed if they are vectors."""
        return _hashed(self._source.read(first, last), self._hasher)


def _hashed(batches: Iterator[Batch], hasher: Hasher | None) -> Iterator[Batch]:
    """Batches of codes; with a hasher they are made from vectors, a few at a time."""
    if hasher is None:
        yield from batches
        return
    for values, ids in batches:
        for start in range(0, len(values), _HASHED_ROWS):
            part = slice(start, start + _HASHED_ROWS)
            codes = hasher.transform(np.asarray(values[part]))
            yield codes, None if ids is None else ids[part]


class ArraySource(RowSource):
    """Arrays one after the other, in memory or mapped, of codes or of vectors for a hasher."""

    resumable = False

    def __init__(
        self,
        values: Sequence[NDArray[Any]],
        ids: Sequence[NDArray[Any]] = (),
        hasher: Hasher | None = None,
    ) -> None:
        """Keep the arrays; `ids` are those of all rows, in their order, or none."""
        self._values = values
        self._ids = ids
        self._hasher = hasher
        self._firsts = [0, *accumulate(map(len, self._values))]
        self._id_firsts = [0, *accumulate(map(len, self._ids))]
        self.rows = self._firsts[-1]
        self.has_ids = bool(ids)
        for each in ids:
            as_ids(each[:1])  # raises unless they are integers
        if self.has_ids and self._id_firsts[-1] != self.rows:
            raise ValueError(
                f"expected {self.rows} ids, one for each row, got {self._id_firsts[-1]}"
            )

    def fingerprint(self) -> Any:  # noqa: ANN401
        """Nothing that would be enough to resume by."""
        return None

    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last`, hashed if they are vectors."""
        return _hashed(self._stored(first, last), self._hasher)

    def _stored(self, first: int, last: int) -> Iterator[Batch]:
        for start in range(first, last, BATCH_ROWS):
            end = min(last, start + BATCH_ROWS)
            values = _rows_of(self._values, self._firsts, start, end)
            yield values, _rows_of(self._ids, self._id_firsts, start, end) if self._ids else None


def _rows_of(
    arrays: Sequence[NDArray[Any]], firsts: Sequence[int], first: int, last: int
) -> NDArray[Any]:
    """Rows of arrays that follow each other."""
    number = bisect_right(firsts, first) - 1
    if last <= firsts[number + 1]:
        return np.asarray(arrays[number][first - firsts[number] : last - firsts[number]])
    middle = firsts[number + 1]
    rest = _rows_of(arrays, firsts, middle, last)
    return np.concatenate([arrays[number][first - firsts[number] :], rest])


def _row_groups(
    paths: Sequence[Path], column: str, id_column: str | None, vectors: bool
) -> PieceSource:
    """The row groups of parquet files as pieces."""
    names = [column] if id_column is None else [column, id_column]
    groups, rows = [], []
    for path in paths:
        with opened_parquet(path, names) as file:
            metadata = file.metadata
            for group in range(metadata.num_row_groups):
                groups.append((path, group))
                rows.append(metadata.row_group(group).num_rows)

    def load(number: int) -> Any:  # noqa: ANN401
        path, group = groups[number]
        with opened_parquet(path, names) as file:
            table = file.read_row_group(group, columns=names)
        read = vectors_and_ids if vectors else codes_and_ids
        try:
            values, ids = read(table, column, id_column)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path}, row group {group}: {error}") from None
        return values if ids is None else (values, ids)

    return PieceSource(load, rows, name="parquet", has_ids=id_column is not None)


class IteratorSource:
    """Batches in the order in which an iterator yields them: codes, or (codes, ids)."""

    resumable = False
    loaded_rows = 0
    """The memory of batches is the caller's."""
    loaded_row_bytes: int | None = None
    loaded_copies = 1

    def __init__(self, batches: Iterable[Any], hasher: Hasher | None = None) -> None:
        """Keep the iterator; nothing is read yet."""
        self._batches = iter(batches)
        self._hasher = hasher
        self._begun: list[Batch] = []

    def begin(self, rows: int) -> list[Batch]:
        """The first batches, with at least so many rows, or all; `batches` yields them again."""
        done = sum(len(codes) for codes, _ in self._begun)
        while done < rows and (batch := self._next()) is not None:
            # Copied: the iterator may use the memory of a batch for the next one.
            codes, ids = batch
            self._begun.append((np.array(codes), None if ids is None else np.array(ids)))
            done += len(codes)
        return self._begun

    def batches(self) -> Iterator[Batch]:
        """All batches."""
        while self._begun:
            yield self._begun.pop(0)
        while (batch := self._next()) is not None:
            yield batch

    def _next(self) -> Batch | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        codes, ids = batch if isinstance(batch, tuple) else (batch, None)
        return (codes if self._hasher is None else self._hasher.transform(codes)), ids


Source: TypeAlias = RowSource | IteratorSource


def loaded_bytes(source: Source, n_bytes: int, number_bytes: int) -> int:
    """Bytes of the rows that a thread has loaded from a source of codes of `n_bytes`."""
    row_bytes = source.loaded_row_bytes or n_bytes + number_bytes
    return source.loaded_rows * source.loaded_copies * row_bytes


def as_source(
    source: object,
    *,
    ids: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    hasher: Hasher | None = None,
    column: str | None = None,
    id_column: str | None = None,
    vectors: bool = False,
) -> Source:
    """The source that a caller means: a path, several paths, an array, an iterable of batches.

    A folder stands for the files in it whose names `FileSource` accepts, in the order of their
    names, and so does a pattern such as ``codes/*.parquet``. The options are those of `FileSource`;
    only `hasher` is for batches as well.
    """
    of_files = {"ids": ids, "column": column, "id_column": id_column}
    if hasher is not None:
        if not isinstance(hasher, Hasher):
            raise TypeError(f"hasher must be one of bitweigh.hashers, got {type(hasher).__name__}")
        hasher._need_fitted()
    paths: Sequence[Any] = ()
    if isinstance(source, str | os.PathLike):
        paths = files_at(Path(source))
    elif isinstance(source, list | tuple) and all(isinstance(p, str | os.PathLike) for p in source):
        paths = source
    if paths:
        ids = [ids] if isinstance(ids, str | os.PathLike) else ids
        return FileSource(
            paths, ids=ids, hasher=hasher, column=column, id_column=id_column, vectors=vectors
        )
    for name, value in of_files.items():
        if value is not None:
            raise ValueError(f"{name} is for files; batches can be (codes, ids)")
    if isinstance(source, RowSource | IteratorSource):
        if hasher is not None:
            raise ValueError("a source has its own hasher, or none")
        return source
    if isinstance(source, np.ndarray):
        return ArraySource([source], hasher=hasher)
    if isinstance(source, Iterable):
        return IteratorSource(source, hasher)
    raise TypeError(
        "source must be a path, paths, an array or an iterable of arrays, got "
        f"{type(source).__name__}"
    )


def files_at(path: Path) -> list[Path]:
    """The file at a path, those in the folder there, or those that a pattern with * ? [ means."""
    if path.is_dir():
        endings = " ".join(sorted(STREAMED_ENDINGS))
        found = [file for file in path.iterdir() if file.suffix.lower() in STREAMED_ENDINGS]
        if not found:
            raise ValueError(f"{path} has no files that end in {endings}")
        return sorted(found)
    if path.exists() or not any(sign in str(path) for sign in WILDCARDS):
        return [path]
    matching = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not matching:
        raise FileNotFoundError(f"{path}: no file has such a name")
    return matching
