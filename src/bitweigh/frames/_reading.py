"""Codes or vectors with their ids, at once or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_bitorder, as_codes, as_n_bits
from bitweigh.frames._columns import Chunk, first_inexact
from bitweigh.frames._sources import Source, chunks_of
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = ["code_batches", "codes_and_ids", "vector_batches", "vectors_and_ids"]

BATCH_ROWS = 65_536


def codes_and_ids(
    source: Source,
    column: str = "code",
    id_column: str | None = None,
    *,
    n_bits: int | None = None,
    bitorder: BitOrder = "big",
) -> tuple[Codes, Ids | None]:
    """Read packed codes, and the ids that go with them.

    Parameters
    ----------
    source : DataFrame, Table, RecordBatch, dict of arrays, or path
        Where the columns are. A path names a parquet file, or a folder of them, which are read in
        the order of their names.
    column : str
        The codes: binary values, or lists of uint8, all of the same length. In a dict also an array
        of shape (n, n_bytes).
    id_column : str, optional
        The ids: integers, not negative.
    n_bits : int, optional
        Bits of a code; by default 8 for each byte. Codes of another length are refused, and so are
        codes with unused bits set.
    bitorder : "big" or "little"
        Order of the bits inside a byte, as in ``np.packbits``: determines which bits are unused.

    Returns
    -------
    codes : uint8 (n, n_bytes)
    ids : int64 (n,), or None without `id_column`

    Raises
    ------
    ImportError
        The source needs a package that is not installed.
    FileNotFoundError
        There is no such file or folder.
    TypeError, ValueError
        A column is missing, of another type, has nulls or values of different lengths, or there
        are no rows. The message names the source, the column and the row.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import frames
    >>> table = {"code": np.array([[1, 2], [3, 4]], dtype=np.uint8), "key": [10, 20]}
    >>> codes, ids = frames.codes_and_ids(table, id_column="key")
    >>> codes.shape, ids
    ((2, 2), array([10, 20]))

    """
    return _joined(code_batches(source, column, id_column, n_bits=n_bits, bitorder=bitorder))


def code_batches(
    source: Source,
    column: str = "code",
    id_column: str | None = None,
    *,
    n_bits: int | None = None,
    bitorder: BitOrder = "big",
    batch_rows: int = BATCH_ROWS,
) -> Iterator[tuple[Codes, Ids | None]]:
    """Read packed codes and ids batch by batch, so that a source may be larger than memory.

    Parameters
    ----------
    source, column, id_column, n_bits, bitorder
        As for `codes_and_ids`.
    batch_rows : int
        Max rows of a batch.

    Yields
    ------
    codes, ids
        As `codes_and_ids` returns them, for each batch.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh import frames
    >>> index = bitweigh.Index(n_bits=16)
    >>> table = {"code": np.zeros((5, 2), dtype=np.uint8)}
    >>> for codes, ids in frames.code_batches(table, batch_rows=2):
    ...     index.add(codes, ids)
    >>> len(index)
    5

    """
    bits, order = None if n_bits is None else as_n_bits(n_bits), as_bitorder(bitorder)
    width: int | None = None
    for chunk in chunks_of(source, _names(column, id_column), batch_rows):
        codes = chunk.bytes_of(column, width)
        width = codes.shape[1]
        name = f"{chunk.where}: column {column!r}"
        packed = as_codes(codes, bits or 8 * width, order, name, chunk.first)
        yield packed, chunk.ids_of(id_column)


def vectors_and_ids(
    source: Source, column: str | Sequence[str] = "vector", id_column: str | None = None
) -> tuple[NDArray[Any], Ids | None]:
    """Read vectors, and the ids that go with them.

    Parameters
    ----------
    source : DataFrame, Table, RecordBatch, dict of arrays, or path
        As for `codes_and_ids`.
    column : str or sequence of str
        One column of lists of equal length, or several columns of numbers in the order of the
        dimensions. In a dict also an array of shape (n, d).
    id_column : str, optional
        The ids: integers, not negative.

    Returns
    -------
    vectors : (n, d) in the dtype of the column, such as float16, float32 or float64
    ids : int64 (n,), or None without `id_column`

    Raises
    ------
    ImportError, FileNotFoundError, TypeError, ValueError
        As for `codes_and_ids`.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import frames
    >>> table = {"x": np.array([0.5, 1.0]), "y": np.array([2.0, 4.0])}
    >>> vectors, ids = frames.vectors_and_ids(table, ["x", "y"])
    >>> vectors
    array([[0.5, 2. ],
           [1. , 4. ]])

    """
    return _joined(vector_batches(source, column, id_column))


def vector_batches(
    source: Source,
    column: str | Sequence[str] = "vector",
    id_column: str | None = None,
    *,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[tuple[NDArray[Any], Ids | None]]:
    """Read vectors and ids batch by batch, so that a source may be larger than memory.

    Parameters
    ----------
    source, column, id_column
        As for `vectors_and_ids`.
    batch_rows : int
        Max rows of a batch.

    Yields
    ------
    vectors, ids
        As `vectors_and_ids` returns them, for each batch.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import frames
    >>> table = {"vector": np.ones((5, 3), dtype=np.float32)}
    >>> [len(vectors) for vectors, _ in frames.vector_batches(table, batch_rows=2)]
    [2, 2, 1]

    """
    names = [column] if isinstance(column, str) else list(column)
    if not names:
        raise ValueError("column must name at least one column, got none")
    width: int | None = None
    for chunk in chunks_of(source, _names(*names, id_column), batch_rows):
        vectors = _vectors(chunk, names, width)
        width = vectors.shape[1]
        yield vectors, chunk.ids_of(id_column)


def _vectors(chunk: Chunk, names: list[str], width: int | None) -> NDArray[Any]:
    if len(names) == 1 and not chunk.is_flat(names[0]):
        return chunk.lists_of(names[0], width)
    columns = [chunk.numbers_of(name) for name in names]
    dtype = np.result_type(*columns)
    for name, column in zip(names, columns, strict=True):
        row = first_inexact(column, dtype)
        if row is not None:
            raise ValueError(
                f"{chunk.where}: column {name!r} has {column[row]} in row {chunk.first + row}, "
                f"which {dtype}, the dtype of all the columns together, cannot hold: leave the "
                "column out, or make the others integers"
            )
    return np.stack(columns, axis=1)


def _names(*names: str | None) -> list[str]:
    """The names without None and repeats."""
    return list(dict.fromkeys(name for name in names if name is not None))


def _joined(
    batches: Iterator[tuple[NDArray[Any], Ids | None]],
) -> tuple[NDArray[Any], Ids | None]:
    parts = list(batches)
    ids = [part_ids for _, part_ids in parts if part_ids is not None]
    dtype = np.result_type(*(rows for rows, _ in parts))
    if any(first_inexact(rows.ravel(), dtype) is not None for rows, _ in parts):
        raise ValueError(
            f"the rows have integers that {dtype}, the dtype of all rows together, cannot hold: "
            "make all of them integers, or read them with vector_batches"
        )
    return np.concatenate([rows for rows, _ in parts]), np.concatenate(ids) if ids else None
