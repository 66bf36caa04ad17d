"""`bitweigh search`: find the nearest codes or vectors of many queries, for a file or a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.files import read_filter, read_weights
from bitweigh._cli.folders import AnySearched, open_index
from bitweigh._cli.neighbours import Answer, CodeQueries, Options, neighbours
from bitweigh._cli.options import Columns, Folder, Member
from bitweigh._cli.output import Json, counted, report
from bitweigh._cli.queries import Queries, queries_by_id, read_queries
from bitweigh._cli.search_options import (
    Allow,
    ById,
    Candidates,
    CostsFlag,
    Deny,
    Format,
    HammingFlag,
    Limit,
    NeighbourCount,
    OutFile,
    QueryIdColumn,
    QueryIds,
    Radius,
    Request,
    SearchThreads,
    Weights,
)
from bitweigh._cli.writers import Writer, open_writer
from bitweigh._progress import ProgressBar
from bitweigh.typing import Ids

__all__ = ["answer", "search_command"]

# Queries between two steps of the progress bar.
_QUERIES_AT_ONCE = 256


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
    by_id: ById = None,
    k: NeighbourCount = None,
    radius: Radius = None,
    limit: Limit = None,
    allow: Allow = None,
    deny: Deny = None,
    threads: SearchThreads = None,
    as_json: Json = False,
    weights: Weights = None,
    hamming: HammingFlag = False,
    by_costs: CostsFlag = False,
    candidates: Candidates = None,
    out: OutFile = "-",
    stdout_format: Format = "jsonl",
    query_ids: QueryIds = None,
    id_column: QueryIdColumn = None,
    column: Columns = None,
    member: Member = None,
) -> None:
    """Find the nearest rows of each query. An answer has query, rank, id and distance.

    Example: bitweigh search index queries.npy -k 3 -o found.csv

    Example: bitweigh search index queries.npy -k 1 | head -n 5

    Example: bitweigh search index --id 5 --id 7 -k 3
    """
    request = Request(
        queries=queries,
        by_id=by_id,
        k=k,
        radius=radius,
        limit=limit,
        allow=allow,
        deny=deny,
        threads=threads,
        as_json=as_json,
        weights=weights,
        hamming=hamming,
        by_costs=by_costs,
        out=out,
        stdout_format=stdout_format,
        query_ids=query_ids,
        id_column=id_column,
        column=column,
        member=member,
        candidates=candidates,
    )
    answer(str(folder), lambda: open_index(folder, mmap=True), request)


def answer(name: str, open_it: Callable[[], AnySearched], request: Request) -> None:
    """Search the index of this name, and write the answers; it is opened if the options are right.

    Reports what was written, unless that was to stdout.
    """
    request.check()
    options = Options(
        request.k,
        request.radius,
        request.limit,
        request.candidates,
        request.threads,
        _filter(request.allow),
        _filter(request.deny),
    )
    options.check()
    request.check_file()
    index = open_it()
    query_set = _query_set(name, index, request)
    bit_weights = None if request.weights is None else read_weights(request.weights)
    codes = CodeQueries(query_set.where, request.by_costs, bit_weights, request.hamming)
    search = neighbours(index, codes, options)
    start = time.perf_counter()
    with open_writer(request.out, request.stdout_format) as writer:
        _write_answers(query_set, search, writer)
    seconds = time.perf_counter() - start
    if request.out != "-":
        found = counted(writer.rows, "neighbour")
        queries = counted(writer.queries, "query")
        report(
            f"{request.out}: {found} of {queries}, in {seconds:.1f} s",
            {
                "file": request.out,
                "queries": writer.queries,
                "rows": writer.rows,
                "seconds": seconds,
            },
            request.as_json,
        )


def _filter(name: str | None) -> NDArray[Any] | None:
    return None if name is None else read_filter(name)


def _query_set(name: str, index: AnySearched, request: Request) -> Queries:
    if request.queries is None:
        return queries_by_id(name, index, request.by_id or [])
    return read_queries(
        request.queries,
        index,
        columns=request.column,
        id_column=request.id_column,
        member=request.member,
        query_ids=request.query_ids,
        single_dimensions=2 if request.by_costs else 1,
    )


def _write_answers(
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
