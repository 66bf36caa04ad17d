"""`bitweigh search`: the nearest codes or vectors of many queries, to a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import Index, SearchResult, costs
from bitweigh._checks import MAX_K
from bitweigh._cli.files import (
    Columns,
    Member,
    check_codes,
    naming,
    read_filter,
    read_rows,
    read_weights,
)
from bitweigh._cli.indexes import AnyIndex, kind_of, opened
from bitweigh._cli.progress import progress
from bitweigh._cli.telling import Json, counted, tell
from bitweigh._cli.writing import StdoutFormat, writing
from bitweigh._system import MAX_THREADS

__all__ = ["search_command"]

# Queries between two steps of the bar.
_AT_ONCE = 256


def search_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES",
            help="A file of vectors, for an index of vectors. For an index of codes: packed codes, "
            "floats with one number for each bit (ranks by inner product), or costs.",
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, max=MAX_K, help="How many neighbours.")] = 10,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help=".parquet .csv .jsonl .npy .npz; - is stdout."
        ),
    ] = "-",
    stdout_format: Annotated[
        StdoutFormat, typer.Option("--format", help="Of what goes to stdout.")
    ] = StdoutFormat.JSONL,
    by_costs: Annotated[
        bool, typer.Option("--costs", help="QUERIES has costs, (nq, n_bits, 2).")
    ] = False,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What each bit of QUERIES costs: (n_bits,) or (n_bits, 2)."
        ),
    ] = None,
    hamming: Annotated[
        bool, typer.Option("--hamming", help="QUERIES has codes; count the bits that differ.")
    ] = False,
    allow: Annotated[
        str | None, typer.Option(metavar="FILE", help="Only these ids: .npy or text; - is stdin.")
    ] = None,
    deny: Annotated[
        str | None, typer.Option(metavar="FILE", help="All but these ids: .npy or text.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help="As many as are worth it.")
    ] = None,
    column: Columns = None,
    member: Member = None,
    as_json: Json = False,
) -> None:
    """Find the k nearest of each query. A line or row has query, rank, id and distance.

    Example: bitweigh search index queries.npy -k 3 -o found.csv

    Example: bitweigh search index queries.npy -k 1 | head -n 5
    """
    if by_costs + hamming + (weights is not None) > 1:
        raise typer.BadParameter("give one of --costs, --weights and --hamming")
    if allow is not None and deny is not None:
        raise typer.BadParameter("give --allow or --deny, not both")
    index = opened(folder, mmap=True)
    asked, _ = read_rows(queries, kind_of(index), columns=column, member=member)
    own_weights = None if weights is None else read_weights(weights)
    search = _searching(index, queries, by_costs, own_weights, hamming)
    rows = asked[np.newaxis] if asked.ndim == (2 if by_costs else 1) else asked
    options = {
        "threads": threads,
        "allow": None if allow is None else read_filter(allow),
        "deny": None if deny is None else read_filter(deny),
    }
    start = time.perf_counter()
    with (
        writing(out, stdout_format) as writer,
        progress("searching", len(rows), "queries") as done,
    ):
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            with naming(queries, first):
                found = search(np.asarray(part), k, options)
            writer.write(found)
            done(len(part))
    seconds = time.perf_counter() - start
    if out != "-":
        what = counted(writer.rows, "neighbour")
        tell(
            f"{out}: {what} of {counted(writer.queries, 'query')}, in {seconds:.1f} s",
            {"file": out, "queries": writer.queries, "rows": writer.rows, "seconds": seconds},
            as_json,
        )


def _searching(
    index: AnyIndex, path: Path, by_costs: bool, weights: NDArray[Any] | None, hamming: bool
) -> Callable[[NDArray[Any], int, dict[str, Any]], SearchResult]:
    """How to search for rows of queries, which come from `path`."""
    if not isinstance(index, Index):
        if by_costs or hamming or weights is not None:
            raise typer.BadParameter(
                "--costs, --weights and --hamming are for indexes of codes; this one has vectors"
            )
        return lambda rows, k, options: index.search(rows, k, **options)
    n_bits, bitorder = index.n_bits, index.bitorder
    if weights is not None and len(weights) != n_bits:
        raise ValueError(
            f"--weights must have one for each of the {n_bits} bits, got {len(weights)}"
        )

    def costs_of(rows: NDArray[Any]) -> NDArray[Any]:
        is_float = rows.dtype.kind == "f"
        if by_costs or (is_float and rows.ndim == 3):
            return rows
        if is_float and weights is None and not hamming:
            if rows.shape[1] != n_bits:
                raise ValueError(
                    f"floats are queries of one number for each of the {n_bits} bits, got "
                    f"{rows.shape[1]}; codes are uint8, and costs (nq, {n_bits}, 2)"
                )
            return costs.inner_product(rows)
        check_codes(path, rows, n_bits)
        if weights is not None:
            return costs.from_weights(rows, weights, bitorder=bitorder)
        return costs.hamming(rows, n_bits, bitorder=bitorder)

    return lambda rows, k, options: index.search(costs_of(rows), k, **options)
