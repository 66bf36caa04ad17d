"""`bitweigh search`: find the nearest codes or vectors of many queries, for a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh._checks import MAX_K
from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.files import read_filter, read_weights
from bitweigh._cli.folders import open_index
from bitweigh._cli.neighbours import Answer, CodeQueries, Options, neighbours
from bitweigh._cli.options import FILES, Columns, Folder, Member
from bitweigh._cli.output import Json, counted, report
from bitweigh._cli.queries import Queries, queries_by_id, read_queries
from bitweigh._cli.writers import StdoutFormat, Writer, open_writer
from bitweigh._progress import ProgressBar
from bitweigh._system import MAX_THREADS
from bitweigh.typing import Ids

__all__ = ["search_command"]

# Queries between two steps of the progress bar.
_QUERIES_AT_ONCE = 256
_CODES, _VECTORS = "Indexes of codes", "Indexes of vectors"


def search_command(
    folder: Folder,
    queries: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERIES",
            help="A file, or - for stdin. For an index of vectors: vectors. For an index of codes: "
            "packed codes, floats with one number per bit (ranked by inner product), or costs.",
            show_default=False,
        ),
    ] = None,
    by_id: Annotated[
        list[int] | None,
        typer.Option(
            "--id",
            metavar="ID",
            min=0,
            help="Search for the neighbours of this row of the index, instead of QUERIES. Repeat "
            "it for several.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", metavar="N", min=1, max=MAX_K, help="Number of neighbours (default: 10)."
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(metavar="R", help="Find all rows within this distance, instead of -k."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Fail if a query has more rows than this within --radius."
        ),
    ] = None,
    allow: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Search only these ids: .npy or text; - for stdin."),
    ] = None,
    deny: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Leave out these ids: .npy or text; - for stdin."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_THREADS,
            help="Maximum threads (default: chosen from the amount of work).",
        ),
    ] = None,
    as_json: Json = False,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The cost of each differing bit: (n_bits,), or (n_bits, 2) with the cost of an "
            "equal bit first.",
            rich_help_panel=_CODES,
        ),
    ] = None,
    hamming: Annotated[
        bool,
        typer.Option(
            "--hamming", help="QUERIES has codes; count differing bits.", rich_help_panel=_CODES
        ),
    ] = False,
    by_costs: Annotated[
        bool,
        typer.Option("--costs", help="QUERIES has costs, (nq, n_bits, 2).", rich_help_panel=_CODES),
    ] = False,
    candidates: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_K,
            help="Rows found by their codes that are ranked by true distance, with --rerank of "
            "`build` (default: 10 per neighbour, at least 100).",
            rich_help_panel=_VECTORS,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write: .parquet .csv .jsonl .npy .npz; - for stdout.",
            rich_help_panel=FILES,
        ),
    ] = "-",
    stdout_format: Annotated[
        StdoutFormat,
        typer.Option("--format", help="Output format on stdout.", rich_help_panel=FILES),
    ] = "jsonl",
    query_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Ids of the queries, for the column `query` of the answers: .npy, or text with "
            "one id per line.",
            rich_help_panel=FILES,
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Parquet: the ids of the queries.", rich_help_panel=FILES
        ),
    ] = None,
    column: Columns = None,
    member: Member = None,
) -> None:
    """Find the nearest rows of each query. An answer has query, rank, id and distance.

    Example: bitweigh search index queries.npy -k 3 -o found.csv

    Example: bitweigh search index queries.npy -k 1 | head -n 5

    Example: bitweigh search index --id 5 --id 7 -k 3
    """
    if as_json and out == "-" and stdout_format != "jsonl":
        raise typer.BadParameter("--json is about the report of --out: give --format jsonl")
    if by_costs + hamming + (weights is not None) > 1:
        raise typer.BadParameter("give one of --costs, --weights and --hamming")
    if allow is not None and deny is not None:
        raise typer.BadParameter("give --allow or --deny, not both")
    if (queries is None) == (not by_id):
        raise typer.BadParameter("give QUERIES, a file or - for stdin, or --id ID; not both")
    if [queries, query_ids, allow, deny].count("-") > 1:
        raise typer.BadParameter("only one of QUERIES and the options can be -, stdin")
    options = Options(k, radius, limit, candidates, threads, _filter(allow), _filter(deny))
    options.check()
    if radius is not None and Path(out).suffix.lower() == ".npy":
        raise ValueError(f"{out}: answers to --radius differ in length: write .npz or a table")
    index = open_index(folder, mmap=True)
    if queries is None:
        if by_costs or query_ids or id_column or column or member:
            raise typer.BadParameter("--id takes rows of the index: leave out options of QUERIES")
        query_set = queries_by_id(folder, index, by_id or [])
    else:
        query_set = read_queries(
            queries,
            index,
            columns=column,
            id_column=id_column,
            member=member,
            query_ids=query_ids,
            single_dimensions=2 if by_costs else 1,
        )
    bit_weights = None if weights is None else read_weights(weights)
    codes = CodeQueries(query_set.where, by_costs, bit_weights, hamming)
    search = neighbours(index, codes, options)
    start = time.perf_counter()
    with open_writer(out, stdout_format) as writer:
        _answer(query_set, search, writer)
    seconds = time.perf_counter() - start
    if out != "-":
        found = counted(writer.rows, "neighbour")
        report(
            f"{out}: {found} of {counted(writer.queries, 'query')}, in {seconds:.1f} s",
            {"file": out, "queries": writer.queries, "rows": writer.rows, "seconds": seconds},
            as_json,
        )


def _filter(name: str | None) -> NDArray[Any] | None:
    return None if name is None else read_filter(name)


def _answer(
    query_set: Queries, search: Callable[[NDArray[Any], Ids | None], Answer], writer: Writer
) -> None:
    """Search in batches of queries, and write the answers."""
    with ProgressBar("searching", len(query_set.rows), unit="queries") as bar:
        for first in range(0, len(query_set.rows), _QUERIES_AT_ONCE):
            part = slice(first, first + _QUERIES_AT_ONCE)
            rows = np.asarray(query_set.rows[part])
            names = None if query_set.names is None else query_set.names[part]
            with prefix_errors(query_set.where, first):
                found = search(rows, names if query_set.stored else None)
            writer.write(found, names)
            bar.advance(len(rows))
