"""Columns of a table as NumPy arrays; errors name the column and the row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_ids
from bitweigh.typing import Codes, Ids

__all__ = ["Chunk", "first_inexact"]

# Names of pyarrow types.
_BINARY = ("binary", "large_binary", "binary_view", "fixed_size_binary")
_NUMBERS = ("int8", "int16", "int32", "int64", "halffloat", "float", "double")


class Chunk(NamedTuple):
    """Consecutive rows of a source, and where they come from."""

    where: str
    """The file, or the kind of frame."""
    first: int
    """The number of the first row in that file or frame."""
    columns: dict[str, Any]
    """NumPy or pyarrow arrays by name."""

    def ids_of(self, name: str | None) -> Ids | None:
        """The ids in a column, int64 (n,), or None without a name."""
        if name is None:
            return None
        return as_ids(self.numbers_of(name), f"{self.where}: column {name!r}", self.first)

    def is_flat(self, name: str) -> bool:
        """Whether each row of this column is a single value, not a list."""
        column = self.columns[name]
        return column.ndim == 1 if isinstance(column, np.ndarray) else not _is_list(column.type)

    def numbers_of(self, name: str) -> NDArray[Any]:
        """A column of numbers, (n,)."""
        column = self._without_nulls(name)
        if not isinstance(column, np.ndarray):
            if not _is_number(column.type):
                raise TypeError(f"{self.where}: column {name!r} must be numbers, got {column.type}")
            column = column.to_numpy(zero_copy_only=False)
        if column.ndim != 1 or column.dtype.kind not in "iuf":
            raise TypeError(
                f"{self.where}: column {name!r} must be numbers, one in each row, got "
                f"{column.dtype} of shape {column.shape}"
            )
        return np.asarray(column)

    def lists_of(self, name: str, width: int | None) -> NDArray[Any]:
        """A column of lists of numbers, (n, d)."""
        column = self._without_nulls(name)
        if isinstance(column, np.ndarray):
            if column.ndim != 2 or column.dtype.kind not in "iuf":
                raise TypeError(
                    f"{self.where}: column {name!r} must be numbers of shape (n, d), got "
                    f"{column.dtype} of shape {column.shape}"
                )
            return column
        if not (_is_list(column.type) and _is_number(column.type.value_type)):
            raise TypeError(
                f"{self.where}: column {name!r} must be lists of numbers, got {column.type}"
            )
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        d = self._common_length(name, lengths, width, "values")
        values = column.flatten()
        if values.null_count:
            position = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise ValueError(
                f"{self.where}: column {name!r} has a null in the list of row "
                f"{self.first + position // d}: fill or drop such rows"
            )
        flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return flat.reshape(len(column), d)

    def bytes_of(self, name: str, width: int | None) -> Codes:
        """A column of binary values, or of lists of uint8, as (n, n_bytes)."""
        column = self._without_nulls(name)
        kind = str(column.dtype if isinstance(column, np.ndarray) else column.type)
        if not isinstance(column, np.ndarray) and kind.partition("[")[0] in _BINARY:
            return self._binary(name, column, width)
        if isinstance(column, np.ndarray):
            are_codes = column.ndim == 2 and kind == "uint8"
        else:
            are_codes = _is_list(column.type) and str(column.type.value_type) == "uint8"
        if are_codes:
            return self.lists_of(name, width)
        raise TypeError(
            f"{self.where}: column {name!r} must be binary or lists of uint8 (packed bits, as "
            f"np.packbits returns them), got {kind}"
        )

    def _binary(self, name: str, column: Any, width: int | None) -> Codes:  # noqa: ANN401
        if str(column.type) != "large_binary":
            column = column.cast("large_binary")
        # Without nulls the values are contiguous.
        _, offsets, values = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        n_bytes = self._common_length(name, np.diff(ends), width, "bytes")
        raw = np.frombuffer(values, np.uint8)[ends[0] : ends[-1]]
        return raw.reshape(len(column), n_bytes)

    def _without_nulls(self, name: str) -> Any:  # noqa: ANN401
        column = self.columns[name]
        if not isinstance(column, np.ndarray) and column.null_count:
            position = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise ValueError(
                f"{self.where}: column {name!r} has a null in row {self.first + position}: fill or "
                "drop such rows"
            )
        return column

    def _common_length(
        self, name: str, lengths: NDArray[np.integer], width: int | None, what: str
    ) -> int:
        """The length of every row; `width` is that of the chunks before, if any."""
        expected = int(lengths[0]) if width is None else width
        other = np.flatnonzero(lengths != expected)
        if len(other):
            raise ValueError(
                f"{self.where}: column {name!r} must have the same number of {what} in each "
                f"row: row {self.first + other[0]} has {lengths[other[0]]}, those before it "
                f"{expected}"
            )
        if expected == 0:
            raise ValueError(f"{self.where}: column {name!r} has no {what} in its rows")
        return expected


def _is_list(kind: Any) -> bool:  # noqa: ANN401
    # list<...>, large_list<...>, fixed_size_list<...>: by name, without importing pyarrow.
    return str(kind).partition("<")[0] in ("list", "large_list", "fixed_size_list")


def _is_number(kind: Any) -> bool:  # noqa: ANN401
    return str(kind).lstrip("u") in _NUMBERS


def first_inexact(values: NDArray[Any], dtype: np.dtype[Any]) -> int | None:
    """The position of the first integer that this dtype cannot hold exactly, or None."""
    if dtype.kind != "f" or values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None  # NumPy chooses a dtype that holds shorter integers exactly
    beyond = np.flatnonzero((values > 2**53) | (values < -(2**53)))
    inexact = (
        position
        for position in beyond.tolist()
        if int(values[position]) != int(dtype.type(values[position]))
    )
    return next(inexact, None)
