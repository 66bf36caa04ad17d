"""Files that commands read: rows with their ids, queries, and lists of ids."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import frames, io
from bitweigh._checks import as_ids, first_repeated
from bitweigh.typing import Ids

__all__ = [
    "Columns",
    "IdColumn",
    "IdsFile",
    "Member",
    "check_codes",
    "naming",
    "read_filter",
    "read_ids",
    "read_rows",
    "read_weights",
]

Columns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Parquet: the column of codes or vectors, `code` or `vector` if not given; several "
        "times for columns of numbers.",
    ),
]
IdColumn: TypeAlias = Annotated[
    str | None, typer.Option("--id-column", help="Parquet: the column of ids.")
]
Member: TypeAlias = Annotated[
    str | None, typer.Option(help="npz and HDF5: the name of the array in the file.")
]
IdsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ids", metavar="FILE", help="Ids: .npy, or text with one in a line; - is stdin."
    ),
]


def read_rows(
    path: Path,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    member: str | None = None,
    ids: str | None = None,
) -> tuple[NDArray[Any], Ids | None]:
    """Rows of a file, and an id for each, distinct, if there are ids.

    `kind` is "code" or "vector": what the rows are, and the name of the column if none is given.
    """
    if ids is not None and id_column is not None:
        raise ValueError("ids come from --ids or from --id-column: give one of them")
    own: Ids | None = None
    if path.is_dir() or path.suffix.lower() == ".parquet":
        names = list(columns or [kind])
        if kind == "code":
            if len(names) > 1:
                raise ValueError("codes are in one column: give --column once")
            rows, own = frames.codes_and_ids(path, names[0], id_column)
        else:
            chosen = names[0] if len(names) == 1 else names
            rows, own = frames.vectors_and_ids(path, chosen, id_column)
    elif columns or id_column:
        raise ValueError(f"{path}: --column and --id-column are for parquet")
    else:
        rows = io.read(path, member=member)
    if ids is not None:
        own = read_ids(ids)
    if own is not None:
        _check_ids(own, len(rows), ids or str(path))
    return rows, own


@contextmanager
def naming(path: Path, first: int = 0) -> Iterator[None]:
    """Let the library's errors about rows say which file these come from, and where they begin."""
    where = f"{path}, rows from {first} on" if first else str(path)
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError) or str(error).startswith(f"{path}: "):
            raise
        raise type(error)(f"{where}: {error}") from error


def check_codes(path: Path, rows: NDArray[Any], n_bits: int | None = None) -> None:
    """Raise unless rows are packed codes, of so many bits if that is known."""
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
    """Ids from an npy file, or from text or stdin with one in a line."""
    if name != "-" and Path(name).suffix.lower() == ".npy":
        return as_ids(io.read_npy(name), name)
    where = "stdin" if name == "-" else name
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{where}: expected text with one id in a line; names of arrays end in .npy"
        ) from None
    numbers = []
    for number, line in enumerate(text.splitlines(), 1):
        one = line.strip()
        if one and not one.isdecimal():
            raise ValueError(
                f"{where}, line {number}: expected an id, a number from 0 on, got {one[:40]!r}; "
                "text files of ids have one in a line"
            )
        if one:
            numbers.append(int(one))
    return as_ids(numbers, where)


def read_filter(name: str) -> NDArray[Any]:
    """Ids, or an npy file of booleans, one for each id from 0 on."""
    if name != "-" and Path(name).suffix.lower() == ".npy":
        return io.read_npy(name)
    return read_ids(name)


def read_weights(name: str) -> NDArray[Any]:
    """Weights of bits, for all queries the same."""
    weights = io.read(name)
    if weights.ndim == 3:
        raise ValueError(
            f"{name}: expected weights of shape (n_bits,) or (n_bits, 2), got {weights.shape}; "
            "what differs by query goes into the queries, with --costs"
        )
    return weights


def _check_ids(ids: Ids, rows: int, where: str) -> None:
    if len(ids) != rows:
        raise ValueError(f"{where}: expected {rows} ids, one for each row, got {len(ids)}")
    repeated = first_repeated(ids)
    if repeated is not None:
        place, first = repeated
        raise ValueError(
            f"{where}: ids must be distinct, but those of the rows {first} and {place} are both "
            f"{ids[place]}"
        )
