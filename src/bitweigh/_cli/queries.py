"""Queries of `bitweigh search`: from a file, from stdin, or rows of the index by id."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_ids
from bitweigh._cli.files import check_count, read_ids, read_rows
from bitweigh._cli.folders import AnySearched, has_vectors, kind_of, stored_rows
from bitweigh.typing import Ids

__all__ = ["Queries", "queries_by_id", "read_queries"]

_NPY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries, and how answers and errors name them."""

    rows: NDArray[Any]
    """(nq, ...): vectors, codes, floats or costs."""
    names: Ids | None
    """The values of the column `query` in the answers; None numbers the queries from 0."""
    where: str
    """The source of the queries, for error messages."""
    stored: bool = False
    """Whether they are rows of the index, which are not their own neighbours."""


def read_queries(
    source: str,
    index: AnySearched,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    member: str | None = None,
    query_ids: str | None = None,
    single_dimensions: int = 1,
) -> Queries:
    """Queries from a file, or from stdin if `source` is `-`.

    An array of `single_dimensions` dimensions is a single query.
    """
    if query_ids is not None and id_column is not None:
        raise ValueError("ids of queries come from --query-ids or --id-column: give one of them")
    names: Ids | None = None
    if source == "-":
        if query_ids == "-":
            raise ValueError("stdin has the queries: give --query-ids a file")
        if columns or id_column or member:
            raise ValueError("--column, --id-column and --member are for files, not for stdin")
        where, rows = "stdin", _from_stdin(index)
    else:
        where = source
        rows, names = read_rows(
            Path(source), kind_of(index), columns=columns, id_column=id_column, member=member
        )
    if rows.ndim == single_dimensions:
        rows = rows[np.newaxis]
    if query_ids is not None:
        names = read_ids(query_ids)
        check_count(names, len(rows), query_ids)
    return Queries(rows, names, where)


def queries_by_id(name: str, index: AnySearched, ids: Sequence[int]) -> Queries:
    """Rows of the index of this name as queries, named by their ids."""
    if has_vectors(index) and index.rerank is None:
        raise ValueError(
            f"{name} keeps no vectors to look up by --id; give QUERIES, or build with --rerank"
        )
    row_ids = as_ids(ids)
    try:
        rows = stored_rows(index, row_ids)
    except KeyError as error:
        raise ValueError(f"{name} has no id {error}: give --id an id of the index") from None
    return Queries(rows, row_ids, "--id", stored=True)


def _from_stdin(index: AnySearched) -> NDArray[Any]:
    """An npy file, or text with a query per line: numbers or, for an index of codes, hex codes."""
    data = sys.stdin.buffer.read()
    if data.startswith(_NPY_MAGIC):
        try:
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"stdin: truncated, or not an npy file of numbers: {error}") from None
        if array.ndim == 0 or array.size == 0 or array.dtype.kind not in "biuf":
            raise ValueError(
                f"stdin: expected rows of numbers, got {array.dtype} of shape {array.shape}"
            )
        return array
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("stdin: expected an npy file, or text with one query per line") from None
    lines = [
        (number, line.replace(",", " ").split())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise ValueError("stdin: there are no queries; give one per line, or an npy file")
    if not has_vectors(index) and len(lines[0][1]) == 1:
        return _hex_codes(lines, (index.n_bits + 7) // 8)
    return _numbers(lines)


def _hex_codes(lines: list[tuple[int, list[str]]], n_bytes: int) -> NDArray[np.uint8]:
    codes = np.empty((len(lines), n_bytes), dtype=np.uint8)
    for row, (number, words) in enumerate(lines):
        try:
            (word,) = words
            code = bytes.fromhex(word.removeprefix("0x"))
            if len(code) != n_bytes:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"stdin, line {number}: expected a code of {2 * n_bytes} hex digits, got "
                f"{' '.join(words)[:40]!r}"
            ) from None
        codes[row] = np.frombuffer(code, dtype=np.uint8)
    return codes


def _numbers(lines: list[tuple[int, list[str]]]) -> NDArray[np.float64]:
    width = len(lines[0][1])
    rows = np.empty((len(lines), width))
    for row, (number, words) in enumerate(lines):
        if len(words) != width:
            raise ValueError(
                f"stdin, line {number}: expected {width} numbers, as in the first line, got "
                f"{len(words)}"
            )
        try:
            rows[row] = [float(word) for word in words]
        except ValueError as error:
            raise ValueError(f"stdin, line {number}: expected numbers: {error}") from None
    return rows
