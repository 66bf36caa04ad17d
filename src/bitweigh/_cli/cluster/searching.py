"""`bitweigh cluster search`: `bitweigh search` over all shards, opened in this process."""

from __future__ import annotations

from typing import Annotated

import typer

from bitweigh._cli.cluster.shared import Url, VersionNumber, naming
from bitweigh._cli.folders import CodeIndex
from bitweigh._cli.options import Columns, Member
from bitweigh._cli.output import Json
from bitweigh._cli.search import answer
from bitweigh._cli.search_options import (
    Allow,
    ById,
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

__all__ = ["search_command"]


def search_command(
    url: Url,
    queries: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERIES",
            help="A file, or - for stdin: packed codes, floats with one number per bit (ranked "
            "by inner product), or costs.",
            show_default=False,
        ),
    ] = None,
    by_id: ById = None,
    k: NeighbourCount = None,
    radius: Radius = None,
    limit: Limit = None,
    version: VersionNumber = None,
    allow: Allow = None,
    deny: Deny = None,
    threads: SearchThreads = None,
    as_json: Json = False,
    weights: Weights = None,
    hamming: HammingFlag = False,
    by_costs: CostsFlag = False,
    out: OutFile = "-",
    stdout_format: Format = "jsonl",
    query_ids: QueryIds = None,
    id_column: QueryIdColumn = None,
    column: Columns = None,
    member: Member = None,
) -> None:
    """Find the nearest codes of each query in all shards, which this process opens.

    The answers are those of `bitweigh search` with one index of all codes, to the last bit. Shards
    of an object store are downloaded first, to BITWEIGH_CACHE or ~/.cache/bitweigh.

    Example: bitweigh cluster search shards queries.npy -k 3 -o found.parquet
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
    )

    def open_shards() -> CodeIndex:
        from bitweigh import cluster

        with naming(url):
            return cluster.open(url, version=version)

    answer(url, open_shards, request)
