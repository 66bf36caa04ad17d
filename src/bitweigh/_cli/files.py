"""Input files of commands: rows with their ids, lists of ids, weights."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_ids, first_repeated
from bitweigh.typing import Ids

__all__ = [
    "check_codes",
    "check_count",
    "read_filter",
    "read_ids",
    "read_new_rows",
    "read_rows",
    "read_weights",
]


def read_rows(
    path: Path,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    member: str | None = None,
) -> tuple[NDArray[Any], Ids | None]:
    """Rows of a file, and their ids from `id_column`.

    `kind` is "code" or "vector", and also the default name of the column.
    """
    if path.is_dir() or path.suffix.lower() == ".parquet":
        from bitweigh import frames

        names = list(columns or [kind])
        if kind == "vector":
            return frames.vectors_and_ids(path, names[0] if len(names) == 1 else names, id_column)
        if len(names) > 1:
            raise ValueError("codes are in one column: give --column once")
        return frames.codes_and_ids(path, names[0], id_column)
    if columns or id_column:
        raise ValueError(f"{path}: --column and --id-column are for parquet")
    from bitweigh import io

    return io.read(path, member=member), None


def read_new_rows(
    path: Path,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    member: str | None = None,
    ids: str | None = None,
) -> tuple[NDArray[Any], Ids | None]:
    """Rows of a file to add to an index, and their ids, which must be distinct.

    Ids come from the file `ids` or from `id_column`; without both they are None.
    """
    if ids is not None and id_column is not None:
        raise ValueError("ids come from --ids or from --id-column: give one of them")
    rows, row_ids = read_rows(path, kind, columns=columns, id_column=id_column, member=member)
    if ids is not None:
        row_ids = read_ids(ids)
    if row_ids is not None:
        check_count(row_ids, len(rows), ids or str(path))
        _check_distinct(row_ids, ids or str(path))
    return rows, row_ids


def check_codes(path: str | Path, rows: NDArray[Any], n_bits: int | None = None) -> None:
    """Raise unless rows are packed codes, of `n_bits` bits if that is not None."""
    packing = "pack bits with np.packbits(bits, axis=1)"
    if rows.ndim != 2 or rows.dtype != np.uint8:
        raise TypeError(
            f"{path}: codes must be uint8 of shape (n, n_bytes), got {rows.dtype} of shape "
            f"{rows.shape}; {packing}; vectors need an index built without --codes"
        )
    width = rows.shape[1]
    if n_bits is not None and width != (n_bits + 7) // 8:
        fitting = packing if width == n_bits else f"{8 * width - 7} to {8 * width} bits would fit"
        raise ValueError(
            f"{path}: codes of {n_bits} bits have {(n_bits + 7) // 8} bytes, these have {width}; "
            f"{fitting}"
        )


def read_ids(name: str) -> Ids:
    """Ids from an npy file, `ids` of an npz file, or text or stdin with one id per line."""
    ending = "" if name == "-" else Path(name).suffix.lower()
    if ending in (".npy", ".npz"):
        from bitweigh import io

        array = io.read_npy(name) if ending == ".npy" else io.read_npz(name, member="ids")
        return as_ids(array, name)
    where = "stdin" if name == "-" else name
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{where}: expected text with one id per line; names of arrays end in .npy or .npz"
        ) from None
    ids = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if word and not word.isdecimal():
            raise ValueError(
                f"{where}, line {number}: expected an id, a whole number from 0 on, got "
                f"{word[:40]!r}; text files of ids have one id per line"
            )
        if word:
            ids.append(int(word))
    return as_ids(ids, where)


def read_filter(name: str) -> NDArray[Any]:
    """Ids, or an npy file of booleans, one for each id from 0 on."""
    if name != "-" and Path(name).suffix.lower() == ".npy":
        from bitweigh import io

        return io.read_npy(name)
    return read_ids(name)


def read_weights(name: str) -> NDArray[Any]:
    """Bit weights for all queries."""
    from bitweigh import io

    weights = io.read(name)
    if weights.ndim == 3:
        raise ValueError(
            f"{name}: expected weights of shape (n_bits,) or (n_bits, 2), got {weights.shape}; "
            "weights that differ by query go into QUERIES, with --costs"
        )
    return weights


def check_count(ids: Ids, rows: int, where: str) -> None:
    """Raise unless there are as many ids as rows."""
    if len(ids) != rows:
        raise ValueError(f"{where}: expected {rows} ids, one for each row, got {len(ids)}")


def _check_distinct(ids: Ids, where: str) -> None:
    """Raise if two rows have the same id."""
    repeated = first_repeated(ids)
    if repeated is not None:
        i, first = repeated
        raise ValueError(
            f"{where}: ids must be distinct, but those of the rows {first} and {i} are both "
            f"{ids[i]}"
        )
