"""Parquet files: vectors as one column of lists or as several columns of numbers.

They are read in batches, not mapped. Needs pyarrow, from the extra ``bitweigh[io]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.io._paths import PathLike, as_file, as_max_rows

__all__ = ["read_parquet"]


def read_parquet(
    path: PathLike, *, columns: Sequence[str] | None = None, max_rows: int | None = None
) -> NDArray[Any]:
    """Read vectors from a parquet file.

    Parameters
    ----------
    path : path
        The file.
    columns : sequence of str, optional
        One column whose values are lists of the same length, or columns of numbers, in the order
        of the dimensions. By default the column of lists if there is exactly one, else all columns,
        which must then be numbers.
    max_rows : int, optional
        Max rows to read, from the start; no others are read.

    Returns
    -------
    (n, d) in the dtype of the lists' values, or in the common dtype of the columns

    Raises
    ------
    ImportError
        pyarrow is not installed.
    FileNotFoundError
        There is no such file.
    ValueError
        It is not a complete parquet file, it has no rows, or a column is missing, is not numeric,
        has nulls, or has lists of different lengths.

    Examples
    --------
    >>> from bitweigh import io
    >>> io.read_parquet("words.parquet", columns=["embedding"]).shape  # doctest: +SKIP
    (400000, 256)

    """
    file, _ = as_file(path)
    pyarrow, parquet = _pyarrow()
    try:
        opened = parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{file}: not a complete parquet file: {error}") from None
    with opened:
        chosen = _chosen_columns(pyarrow, file, opened.schema_arrow, columns)
        if opened.metadata.num_rows == 0:
            raise ValueError(f"{file}: has no rows")
        rows = as_max_rows(max_rows, opened.metadata.num_rows)
        blocks: list[NDArray[Any]] = []
        n_read = 0
        try:
            for batch in opened.iter_batches(columns=chosen, batch_size=min(rows, 1 << 16)):
                block = _rows_of(pyarrow, file, batch.select(chosen))
                if blocks and block.shape[1] != blocks[0].shape[1]:
                    raise ValueError(f"{file}: {chosen[0]!r} has lists of different lengths")
                blocks.append(block[: rows - n_read])
                n_read += len(blocks[-1])
                if n_read == rows:
                    break
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{file}: cannot be read: {error}") from None
    return np.concatenate(blocks)


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise ImportError('Parquet needs pyarrow: pip install "bitweigh[io]"') from None
    return pyarrow, pyarrow.parquet


def _chosen_columns(
    pyarrow: ModuleType,
    file: Path,
    schema: Any,  # noqa: ANN401
    columns: Sequence[str] | None,
) -> list[str]:
    """The names of the columns that make up a row, checked against the schema."""
    kinds = {field.name: field.type for field in schema}
    if len(kinds) != len(schema):
        raise ValueError(f"{file}: two columns have the same name: {schema.names}")
    lists = [name for name, kind in kinds.items() if _is_list(pyarrow, kind)]
    if columns is None:
        names = lists if len(lists) == 1 else list(kinds)
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
    missing = [name for name in names if name not in kinds]
    if missing or not names:
        raise ValueError(f"{file}: has no columns {missing}; it has {list(kinds)}")
    if len(names) == 1 and names[0] in lists:
        values = kinds[names[0]].value_type
        if not _is_number(pyarrow, values):
            raise ValueError(f"{file}: {names[0]!r} must be lists of numbers, got {values}")
        return names
    for name in names:
        if not _is_number(pyarrow, kinds[name]):
            raise ValueError(
                f"{file}: column {name!r} is {kinds[name]}: choose with columns= one column of "
                f"lists or columns of numbers out of {list(kinds)}"
            )
    return names


def _is_list(pyarrow: ModuleType, kind: Any) -> bool:  # noqa: ANN401
    types = pyarrow.types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _is_number(pyarrow: ModuleType, kind: Any) -> bool:  # noqa: ANN401
    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _rows_of(pyarrow: ModuleType, file: Path, batch: Any) -> NDArray[Any]:  # noqa: ANN401
    """Convert a batch to an array (rows, d)."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise ValueError(f"{file}: column {name!r} has nulls")
    if not _is_list(pyarrow, batch.schema.types[0]):
        return np.stack([column.to_numpy(zero_copy_only=False) for column in batch.columns], axis=1)
    name, column = batch.schema.names[0], batch.columns[0]
    lengths = np.unique(pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False))
    values = column.flatten()
    if len(lengths) != 1 or lengths[0] == 0:
        raise ValueError(f"{file}: {name!r} must have lists of one length, got {lengths[:4]}")
    if values.null_count:
        raise ValueError(f"{file}: column {name!r} has nulls")
    flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), int(lengths[0]))
