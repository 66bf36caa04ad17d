"""Parquet files in object stores as a source of rows, read where a task runs. Needs obstore.

No file is downloaded as a whole: its footer says where the columns of a row group are, and one
request reads each. So a task has as much of the files in memory as one row group takes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from bitweigh._optional import optional
from bitweigh._streaming.sources import WILDCARDS, PieceSource
from bitweigh.frames import codes_and_ids, vectors_and_ids
from bitweigh.frames._sources import parquet_in

__all__ = ["UrlSource", "names_files"]

_ENDING = ".parquet"
# Files whose footers are read at the same time: each waits for the store.
_FOOTERS = 16


class UrlSource(PieceSource):
    """The row groups of parquet files at URLs. It can be pickled, and read in another process.

    Parameters
    ----------
    urls : sequence of str
        Each is the URL of a file, a pattern such as ``s3://bucket/day=*/*.parquet``, or a prefix:
        the files directly below it. Files of a pattern or prefix are in the order of their names.
    column : str, optional
        The column of the codes or vectors, by default "code" or "vector".
    id_column : str, optional
        The column of the ids; by default ids are counted from 0.
    vectors : bool
        Whether the files have vectors, not codes.

    """

    def __init__(
        self,
        urls: Sequence[str],
        column: str | None = None,
        id_column: str | None = None,
        *,
        vectors: bool = False,
    ) -> None:
        """Find the files, and read their footers."""
        files = [file for url in urls for file in _files_at(url)]
        columns = _Columns(column or ("vector" if vectors else "code"), id_column, vectors)
        with ThreadPoolExecutor(_FOOTERS) as pool:
            rows = list(pool.map(lambda file: file.rows_of_groups(columns.names), files))
        numbered = zip(files, map(len, rows), strict=True)
        groups = tuple([(file, group) for file, count in numbered for group in range(count)])
        super().__init__(
            _Groups(groups, columns),
            [n for here in rows for n in here],
            name="parquet",
            has_ids=id_column is not None,
        )


def names_files(url: str) -> bool:
    """Whether a URL is that of a parquet file, or a pattern: then it is not that of shards."""
    return url.lower().endswith(_ENDING) or _has_wildcards(url)


@dataclass(frozen=True, slots=True)
class _File:
    """A parquet file in an object store."""

    folder: str
    """The URL of the folder that `name` begins in."""
    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"

    @contextmanager
    def opened(self, names: Sequence[str]) -> Iterator[Any]:
        """The file as pyarrow opens it, with these columns."""
        reader = _RangeReader(_store_at(self.folder), self.name, self.size)
        with parquet_in(reader, str(self), names) as file:
            yield file

    def rows_of_groups(self, names: Sequence[str]) -> list[int]:
        """The rows of each row group; raises ValueError if a column is missing."""
        with self.opened(names) as file:
            groups = range(file.metadata.num_row_groups)
            return [file.metadata.row_group(group).num_rows for group in groups]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that rows are in."""

    values: str
    ids: str | None
    vectors: bool

    @property
    def names(self) -> list[str]:
        return [self.values] if self.ids is None else [self.values, self.ids]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Loads row groups by number."""

    groups: tuple[tuple[_File, int], ...]
    columns: _Columns

    def __call__(self, number: int) -> Any:  # noqa: ANN401
        """The codes or vectors of a row group, or (codes, ids)."""
        file, group = self.groups[number]
        with file.opened(self.columns.names) as opened:
            table = opened.read_row_group(group, columns=self.columns.names)
        read = vectors_and_ids if self.columns.vectors else codes_and_ids
        try:
            values, ids = read(table, self.columns.values, self.columns.ids)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{file}, row group {group}: {error}") from None
        return values if ids is None else (values, ids)


class _RangeReader(io.RawIOBase):
    """A file in an object store, of which a read is one request for its bytes."""

    def __init__(self, store: Any, name: str, size: int) -> None:  # noqa: ANN401
        self._obstore: Any = optional("obstore", "cluster")
        self._store, self._name, self._size = store, name, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}
        self._at = starts[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        n = left if size < 0 else min(size, left)
        if not n:
            return b""
        found = self._obstore.get_range(self._store, self._name, start=self._at, length=n)
        self._at += n
        return bytes(found)


def _files_at(url: str) -> list[_File]:
    """The files that a URL means, at least one."""
    obstore: Any = optional("obstore", "cluster")
    try:
        if _has_wildcards(url):
            parts = url.split("/")
            first = next(i for i, part in enumerate(parts) if _has_wildcards(part))
            folder, pattern = "/".join(parts[:first]), parts[first:]
            found = _matching(obstore, _store_at(folder), None, pattern)
        elif names_files(url):
            folder, _, name = url.rpartition("/")
            found = [obstore.head(_store_at(folder), name)]
        else:
            folder = url.rstrip("/")
            found = _matching(obstore, _store_at(folder), None, [f"*{_ENDING}"])
    except FileNotFoundError:
        raise FileNotFoundError(f"{url}: there is no such file") from None
    if not found:
        raise FileNotFoundError(
            f"{url}: no file there ends in {_ENDING}, which is what can be read from object stores"
            if folder == url.rstrip("/")
            else f"{url}: no file has such a name"
        )
    files = [_File(folder, str(each["path"]), int(each["size"])) for each in found]
    return sorted(files, key=lambda file: file.name)


def _matching(obstore: Any, store: Any, below: str | None, pattern: list[str]) -> list[Any]:  # noqa: ANN401
    """What a store lists below a prefix, by a pattern for each part of the rest of the name."""
    listed = obstore.list_with_delimiter(store, below)
    part, *rest = pattern
    if not rest:
        return [each for each in listed["objects"] if _last_matches(each["path"], part)]
    folders = [each for each in listed["common_prefixes"] if _last_matches(each, part)]
    return [each for folder in folders for each in _matching(obstore, store, folder, rest)]


def _last_matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path.rpartition("/")[2], pattern)


def _has_wildcards(text: str) -> bool:
    return any(sign in text for sign in WILDCARDS)


def _store_at(folder: str) -> Any:  # noqa: ANN401
    """The store below a URL, with settings from the environment of this process."""
    stores: Any = optional("obstore.store", "cluster")
    errors: Any = optional("obstore.exceptions", "cluster")
    try:
        return stores.from_url(folder)
    except errors.BaseError as error:
        first_line = str(error).partition("\n")[0]
        raise ValueError(f"{folder}: not the URL of an object store: {first_line}") from None
