"""Answers to files or to stdout, in the format that the name ends in.

A file appears under its name when it is whole; if it cannot be written, nothing is left behind.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bitweigh import SearchResult

__all__ = ["StdoutFormat", "Writer", "writing"]


class StdoutFormat(StrEnum):
    """What can go into a pipe."""

    JSONL = "jsonl"
    CSV = "csv"


class Writer(ABC):
    """Takes one result after the other."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.queries = 0
        self.rows = 0

    def write(self, result: SearchResult) -> None:
        """The answers to the next queries."""
        numbers = np.arange(self.queries, self.queries + len(result.ids))
        columns = result.to_frame("dict", queries=numbers)
        self.put(columns)
        self.queries += len(result.ids)
        self.rows += len(columns["id"])

    @abstractmethod
    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        """Write some rows."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, after the last of them."""


class _Text(Writer):
    def __init__(self, file: BinaryIO | None) -> None:
        super().__init__()
        self.file: IO[str] = (
            sys.stdout
            if file is None
            else io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        )

    def finish(self) -> None:
        self.file.flush()


class _Csv(_Text):
    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        lines = csv.writer(self.file, lineterminator="\n")
        if self.queries == 0:
            lines.writerow(columns)
        lines.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


class _Jsonl(_Text):
    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        for row in rows:
            self.file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")


class _Parquet(Writer):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("parquet needs pyarrow: pip install 'bitweigh[frames]'") from None
        self.pyarrow = pyarrow
        self.file = file
        self.parquet: Any = None

    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        table = self.pyarrow.table(columns)
        if self.parquet is None:
            self.parquet = self.pyarrow.parquet.ParquetWriter(self.file, table.schema)
        self.parquet.write_table(table)

    def finish(self) -> None:
        if self.parquet is not None:
            self.parquet.close()


class _Npz(Writer):
    """`ids` and `distances`, (nq, k); ids are -1 where there are fewer than k."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self.results: list[SearchResult] = []

    def write(self, result: SearchResult) -> None:
        self.results.append(result)
        super().write(result)

    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        pass  # the results are kept as they came

    def finish(self) -> None:
        distances, ids = (np.concatenate(own) for own in zip(*self.results, strict=True))
        # NumPy's own errors of files do not say what went wrong.
        made = io.BytesIO()
        self.save(made, distances, ids)
        self.file.write(made.getbuffer())

    def save(self, file: BinaryIO, distances: NDArray[Any], ids: NDArray[Any]) -> None:
        np.savez(file, ids=ids, distances=distances)


class _Npy(_Npz):
    """The ids alone."""

    def save(self, file: BinaryIO, distances: NDArray[Any], ids: NDArray[Any]) -> None:  # noqa: ARG002
        np.save(file, ids)


# Written at a time.
_BUFFER_BYTES = 1 << 20

_FORMATS: dict[str, Any] = {
    ".parquet": _Parquet,
    ".csv": _Csv,
    ".jsonl": _Jsonl,
    ".npy": _Npy,
    ".npz": _Npz,
}


@contextlib.contextmanager
def writing(name: str, stdout_format: StdoutFormat) -> Iterator[Writer]:
    """A writer by the ending of the name; `-` is stdout. If it raises there is no file.

    What the name leads to is replaced if it is a file, also through a link. A pipe or a device is
    written to as it is.
    """
    if name == "-":
        writer = _FORMATS[f".{stdout_format.value}"](None)
        yield writer
        writer.finish()
        return
    path = Path(name)
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            f"{name}: the name must end in one of {' '.join(_FORMATS)}, or be - for stdout"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {path.parent}: make it first")
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield from _written(kind, target, "wb", name)
        return
    # A name that nobody else has: what is there under it is ours to remove.
    unfinished = target.with_name(f"bitweigh-{uuid.uuid4().hex}.part")
    try:
        yield from _written(kind, unfinished, "xb", name)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _written(kind: Any, path: Path, mode: str, name: str) -> Iterator[Writer]:  # noqa: ANN401
    with _Output(path, mode, name) as output, io.BufferedWriter(output, _BUFFER_BYTES) as buffered:
        writer = kind(buffered)
        try:
            yield writer
            writer.finish()
            buffered.flush()
        except BaseException:
            output.give_up()
            raise


class _Output(io.FileIO):
    """A file whose errors say which it is, by the name that the user gave, and what to do."""

    def __init__(self, path: Path, mode: str, name: str) -> None:
        self._name = name
        self._given_up = False
        try:
            super().__init__(path, mode)
        except OSError as error:
            raise self._told(error) from None

    def write(self, data: Any) -> int:  # noqa: ANN401
        if self._given_up:
            return len(data)
        try:
            return int(super().write(data))
        except OSError as error:
            raise self._told(error) from None

    def give_up(self) -> None:
        """Write no more: what is left in buffers belongs to a file that will not be."""
        self._given_up = True

    def _told(self, error: OSError) -> OSError:
        text = f"{error.strerror}; make room there, or name another place with --out"
        return OSError(error.errno, text, self._name)
