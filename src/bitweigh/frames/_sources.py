"""Sources of tables: frames in memory and parquet files, a chunk of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_integer
from bitweigh._optional import optional
from bitweigh.frames._columns import Chunk
from bitweigh.io._paths import PathLike, as_file

__all__ = ["Frame", "Source", "chunks_of", "opened_parquet", "parquet_in"]

Frame: TypeAlias = Any
"""A DataFrame of pandas or polars, or a Table or RecordBatch of pyarrow; none need be installed."""
Source: TypeAlias = Frame | Mapping[str, ArrayLike] | PathLike


def chunks_of(source: Source, names: Sequence[str], batch_rows: int) -> Iterator[Chunk]:
    """The named columns in chunks of at most `batch_rows` rows; ValueError if there is no row."""
    rows = as_integer(batch_rows, "batch_rows", 1, 2**31 - 1)
    if isinstance(source, str | os.PathLike):
        chunks = _of_files(Path(source), names, rows)
    else:
        chunks = _of_frame(source, names, rows)
    empty = True
    for chunk in chunks:
        empty = False
        yield chunk
    if empty:
        raise ValueError(f"{_name_of(source)}: has no rows")


def _name_of(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return str(source)
    return f"the {type(source).__name__}"


def _of_files(path: Path, names: Sequence[str], rows: int) -> Iterator[Chunk]:
    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise FileNotFoundError(f"{path}: the folder has no *.parquet files")
    for file in files:
        yield from _of_file(file, names, rows)


def _of_file(path: Path, names: Sequence[str], rows: int) -> Iterator[Chunk]:
    with opened_parquet(path, names) as opened:
        first = 0
        for batch in opened.iter_batches(columns=list(names), batch_size=rows):
            if len(batch):
                yield Chunk(str(path), first, {name: batch.column(name) for name in names})
            first += len(batch)


@contextmanager
def opened_parquet(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """A parquet file with these columns, as pyarrow opens it; errors name the file."""
    file, _ = as_file(path)
    with parquet_in(file, str(file), names) as opened:
        yield opened


@contextmanager
def parquet_in(file: Any, name: str, names: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
    """The same for a path or an open file of this name."""
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    try:
        with parquet.ParquetFile(file) as opened:
            _need_columns(name, names, opened.schema_arrow.names)
            yield opened
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{name}: not a complete parquet file: {error}") from None


def _of_frame(source: Any, names: Sequence[str], rows: int) -> Iterator[Chunk]:  # noqa: ANN401
    where = _name_of(source)
    package = type(source).__module__.partition(".")[0]
    if isinstance(source, Mapping):
        _need_columns(where, names, list(source))
        columns = {name: _of_values(source[name], where, name) for name in names}
        yield from _slices(where, columns, rows)
    elif package == "pandas" and hasattr(source, "columns"):
        _need_columns(where, names, list(source.columns))
        columns = {name: _of_series(source[name], where, name) for name in names}
        yield from _slices(where, columns, rows)
    elif package == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
        _need_columns(where, names, source.columns)
        optional("pyarrow")
        yield from _of_table(where, source.select(list(names)).to_arrow(), rows)
    elif package == "pyarrow" and hasattr(source, "schema") and hasattr(source, "select"):
        _need_columns(where, names, source.schema.names)
        table = source.select(list(names))
        if not hasattr(table, "to_batches"):  # a RecordBatch
            table = optional("pyarrow").Table.from_batches([table])
        yield from _of_table(where, table, rows)
    else:
        raise TypeError(
            "source must be a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a dict "
            f"of arrays, or the path of a parquet file or folder, got {type(source).__name__}"
        )


def _of_table(where: str, table: Any, rows: int) -> Iterator[Chunk]:  # noqa: ANN401
    first = 0
    for batch in table.to_batches(max_chunksize=rows):
        if len(batch):
            yield Chunk(where, first, dict(zip(table.column_names, batch.columns, strict=True)))
        first += len(batch)


def _slices(where: str, columns: dict[str, Any], rows: int) -> Iterator[Chunk]:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{where}: the columns have different lengths: {lengths}")
    for first in range(0, min(lengths.values()), rows):
        yield Chunk(
            where, first, {name: column[first : first + rows] for name, column in columns.items()}
        )


def _of_series(series: Any, where: str, name: str) -> Any:  # noqa: ANN401
    """A pandas column: NumPy numbers unchanged, since NaN is a value there and not a null."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        return series.to_numpy()
    values = series.astype(object)
    return _of_objects(values.where(values.notna(), None).tolist(), where, name)


def _of_values(values: Any, where: str, name: str) -> Any:  # noqa: ANN401
    """A column of a dict: numbers as a NumPy array, anything else by pyarrow."""
    library = type(values).__module__.partition(".")[0]
    # NumPy would convert the nulls of these libraries to NaN.
    if library == "pandas":
        return _of_series(values, where, name)
    if library == "polars":
        values, library = values.to_arrow(), "pyarrow"
    if library == "pyarrow":
        return values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{where}: column {name!r} is a masked array: its mask would be lost")
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths, which are reported when used
        return _of_objects(values, where, name)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        _refuse_rounded(values, array, where, name)
    if array.dtype.kind in "iuf":
        return array
    if isinstance(values, np.ndarray) and array.dtype.kind == "S":
        raise TypeError(
            f"{where}: column {name!r} is {array.dtype}, which drops zeros at the end: give a "
            "list of bytes, or an array of uint8"
        )
    return _of_objects(values, where, name)


def _refuse_rounded(values: Any, array: NDArray[Any], where: str, name: str) -> None:  # noqa: ANN401
    """Raise ValueError if NumPy rounded an integer among floats to a float."""
    if not (np.abs(array) >= 2**53).any():
        return
    objects = np.array(values, dtype=object)
    for value, converted in zip(objects.flat, array.flat, strict=True):
        if isinstance(value, int | np.integer) and int(value) != int(converted):
            raise ValueError(
                f"{where}: column {name!r} has {value}, which float64 cannot hold, among floats: "
                "give integers only, or an array"
            )


def _of_objects(values: Any, where: str, name: str) -> Any:  # noqa: ANN401
    arrow = optional("pyarrow")
    try:
        return arrow.array(list(values), from_pandas=False)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"{where}: column {name!r} cannot be read: {error}") from None


def _need_columns(where: str, names: Sequence[str], available: Sequence[Any]) -> None:
    for name in names:
        if list(available).count(name) > 1:
            raise ValueError(
                f"{where}: has {list(available).count(name)} columns {name!r}: rename all but one"
            )
        if name not in available:
            raise ValueError(
                f"{where}: has no column {name!r}, only {', '.join(map(repr, available))}: name "
                "the right one"
            )
