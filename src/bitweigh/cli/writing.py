"""Answers to files or to stdout, in the format that the name ends in.

A file appears under its name when it is whole.
"""

from __future__ import annotations

import csv
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import SearchResult
from bitweigh.frames import to_frame

__all__ = ["StdoutFormat", "Writer", "writing"]


class StdoutFormat(StrEnum):
    """What can go into a pipe."""

    JSONL = "jsonl"
    CSV = "csv"


class Writer(ABC):
    """Takes one result after the other."""

    def __init__(self, path: Path | None) -> None:
        """`path` is where to write; None is stdout."""
        self.path = path
        self.queries = 0
        self.rows = 0

    def write(self, result: SearchResult) -> None:
        """The answers to the next queries."""
        numbers = np.arange(self.queries, self.queries + len(result.ids))
        columns = to_frame(result, "dict", numbers)
        self.put(columns)
        self.queries += len(result.ids)
        self.rows += len(columns["id"])

    @abstractmethod
    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        """Write some rows."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left, after the last of them."""

    @abstractmethod
    def release(self) -> None:
        """Close what is open, whether it is finished or not."""


class _Text(Writer):
    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self.file: IO[str] = (
            sys.stdout if path is None else path.open("w", encoding="utf-8", newline="")
        )

    def finish(self) -> None:
        self.file.flush()

    def release(self) -> None:
        if self.path is not None:
            self.file.close()


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
    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("parquet needs pyarrow: pip install 'bitweigh[frames]'") from None
        self.pyarrow = pyarrow
        self.file: Any = None

    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        table = self.pyarrow.table(columns)
        if self.file is None:
            self.file = self.pyarrow.parquet.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)

    def finish(self) -> None:
        pass  # closing it does

    def release(self) -> None:
        if self.file is not None:
            self.file.close()


class _Arrays(Writer):
    """npy: the ids, (nq, k), -1 where there are fewer than k; npz: `ids` and `distances`."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self.results: list[SearchResult] = []

    def write(self, result: SearchResult) -> None:
        self.results.append(result)
        super().write(result)

    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        pass  # the results are kept as they came

    def release(self) -> None:
        pass  # nothing is open

    def finish(self) -> None:
        assert self.path is not None
        distances, ids = (np.concatenate(own) for own in zip(*self.results, strict=True))
        with self.path.open("wb") as file:
            if ".npz" in self.path.suffixes:
                np.savez(file, ids=ids, distances=distances)
            else:
                np.save(file, ids)


_FORMATS: dict[str, type[Writer]] = {
    ".parquet": _Parquet,
    ".csv": _Csv,
    ".jsonl": _Jsonl,
    ".npy": _Arrays,
    ".npz": _Arrays,
}


@contextmanager
def writing(name: str, stdout_format: StdoutFormat) -> Iterator[Writer]:
    """A writer by the ending of the name; `-` is stdout. If it raises there is no file."""
    if name == "-":
        writer = _FORMATS[f".{stdout_format.value}"](None)
        yield writer
        writer.finish()
        return
    path = Path(name)
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(
            f"{name}: the name must end in one of {' '.join(_FORMATS)}, or be - for stdout"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {path.parent}: make it first")
    unfinished = path.with_name(f"{path.name}.part")
    writer = _FORMATS[path.suffix.lower()](unfinished)
    try:
        yield writer
        writer.finish()
        writer.release()
        unfinished.replace(path)
    finally:
        writer.release()
        unfinished.unlink(missing_ok=True)
