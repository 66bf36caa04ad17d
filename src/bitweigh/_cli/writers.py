"""Writers of answers to files or stdout, in the format of the file's ending.

A file appears under its name when it is complete; if it cannot be written, nothing is left behind.
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
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import RangeResult, SearchResult

__all__ = ["StdoutFormat", "Writer", "open_output", "open_writer", "pyarrow_for_parquet"]

AnyResult: TypeAlias = SearchResult | RangeResult
StdoutFormat: TypeAlias = Literal["jsonl", "csv"]
"""Formats that can go into a pipe."""


class Writer(ABC):
    """Writer of results, batch of queries by batch."""

    def __init__(self) -> None:
        """Start without queries."""
        self.queries = 0
        self.rows = 0

    def write(self, result: AnyResult, names: NDArray[Any] | None = None) -> None:
        """Write the answers to the next queries; `names` fill the column `query`."""
        count = len(result.lims) - 1 if isinstance(result, RangeResult) else len(result.ids)
        if names is None:
            names = np.arange(self.queries, self.queries + count)
        columns = result.to_frame("dict", queries=names)
        self.put(columns)
        self.queries += count
        self.rows += len(columns["id"])

    @abstractmethod
    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        """Write the next rows of the table."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still pending after the last batch."""


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
        self.pyarrow = pyarrow_for_parquet()
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
    """`ids` and `distances`, (nq, k), with -1 for missing ids; of a range search also `lims`.

    `queries` has the names of the queries, if they have names.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self.results: list[AnyResult] = []
        self.names: list[NDArray[Any]] = []

    def write(self, result: AnyResult, names: NDArray[Any] | None = None) -> None:
        self.results.append(result)
        if names is not None:
            self.names.append(names)
        super().write(result, names)

    def put(self, columns: dict[str, NDArray[Any]]) -> None:
        pass  # `write` collects the results, and `finish` writes them

    def finish(self) -> None:
        arrays = {
            name: np.concatenate([getattr(result, name) for result in self.results])
            for name in ("ids", "distances")
        }
        counts = [np.diff(found.lims) for found in self.results if isinstance(found, RangeResult)]
        if counts:
            arrays["lims"] = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        if self.names:
            arrays["queries"] = np.concatenate(self.names)
        # In memory first: NumPy's errors about files do not say what went wrong.
        data = io.BytesIO()
        self.save(data, arrays)
        self.file.write(data.getbuffer())

    def save(self, file: BinaryIO, arrays: dict[str, NDArray[Any]]) -> None:
        np.savez(file, **arrays)  # type: ignore[arg-type]


class _Npy(_Npz):
    """The ids alone."""

    def save(self, file: BinaryIO, arrays: dict[str, NDArray[Any]]) -> None:
        np.save(file, arrays["ids"])


# Bytes written at once.
_BUFFER_BYTES = 1 << 20

_FORMATS: dict[str, Any] = {
    ".parquet": _Parquet,
    ".csv": _Csv,
    ".jsonl": _Jsonl,
    ".npy": _Npy,
    ".npz": _Npz,
}


def pyarrow_for_parquet() -> Any:  # noqa: ANN401
    """The package pyarrow, with `pyarrow.parquet`."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("parquet needs pyarrow: pip install 'bitweigh[frames]'") from None
    return pyarrow


@contextlib.contextmanager
def open_writer(name: str, stdout_format: StdoutFormat) -> Iterator[Writer]:
    """A writer chosen by the ending of the name; `-` is stdout. If the block raises, no file."""
    if name == "-":
        writer = _FORMATS[f".{stdout_format}"](None)
        yield writer
        writer.finish()
        return
    kind = _FORMATS.get(Path(name).suffix.lower())
    if kind is None:
        raise ValueError(
            f"{name}: the name must end in one of {' '.join(_FORMATS)}, or be - for stdout"
        )
    with open_output(name) as file:
        writer = kind(file)
        yield writer
        writer.finish()


@contextlib.contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """A file to write, which appears under its name when the block ends without an error.

    An existing file is replaced, also through a link. A pipe or a device is written to directly.
    """
    path = Path(name)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {path.parent}: create it first")
    target = path.resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{name} is a folder; name a file")
    if target.exists() and not target.is_file():
        yield from _buffered(target, "wb", name)
        return
    # A unique name: a file under it is ours to remove.
    unfinished = target.with_name(f"bitweigh-{uuid.uuid4().hex}.part")
    try:
        yield from _buffered(unfinished, "xb", name)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _buffered(path: Path, mode: str, name: str) -> Iterator[BinaryIO]:
    with _Output(path, mode, name) as output, io.BufferedWriter(output, _BUFFER_BYTES) as buffered:
        try:
            yield buffered
            buffered.flush()
        except BaseException:
            output.give_up()
            raise


class _Output(io.FileIO):
    """A file whose errors use the name that the user gave, and say what to do."""

    def __init__(self, path: Path, mode: str, name: str) -> None:
        self._name = name
        self._given_up = False
        try:
            super().__init__(path, mode)
        except OSError as error:
            raise self._explained(error) from None

    def write(self, data: Any) -> int:  # noqa: ANN401
        if self._given_up:
            return len(data)
        try:
            return int(super().write(data))
        except OSError as error:
            # Formats that write an end when they are closed need not fail again.
            self.give_up()
            raise self._explained(error) from None

    def give_up(self) -> None:
        """Discard further writes: the data in buffers belongs to a file that will not exist."""
        self._given_up = True

    def _explained(self, error: OSError) -> OSError:
        text = f"{error.strerror}; make room there, or name another place with --out"
        return OSError(error.errno, text, self._name)
