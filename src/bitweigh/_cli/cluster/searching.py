"""`bitweigh cluster search`: `bitweigh search` over all shards, opened here or by a cluster."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from bitweigh._cli.cluster.names import Address, UrlOrName, is_name
from bitweigh._cli.cluster.shared import VersionNumber, naming
from bitweigh._cli.folders import AnySearched
from bitweigh._cli.options import Columns, Member
from bitweigh._cli.output import Json
from bitweigh._cli.search import answer
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

if TYPE_CHECKING:
    from bitweigh.cluster import Cluster, Shards

__all__ = ["search_command"]


def search_command(
    url: UrlOrName,
    queries: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERIES",
            help="A file, or - for stdin. For shards of vectors: vectors. For others: packed "
            "codes, floats with one number per bit (ranked by inner product), or costs.",
            show_default=False,
        ),
    ] = None,
    by_id: ById = None,
    k: NeighbourCount = None,
    radius: Radius = None,
    limit: Limit = None,
    version: VersionNumber = None,
    address: Address = "auto",
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
    """Find the nearest rows of each query in all shards, here or on a running cluster.

    The answers are those of `bitweigh search` with one index of all rows, to the last bit. Shards
    of an object store are downloaded first, to BITWEIGH_CACHE or ~/.cache/bitweigh; with the name
    of a cluster nothing is, and the version is that which it serves.

    Example: bitweigh cluster search shards queries.npy -k 3 -o found.parquet

    Example: bitweigh cluster search wiki queries.npy -k 3
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

    if is_name(url):
        _answer_by_cluster(url, address, version, request)
        return

    def open_shards() -> AnySearched:
        from bitweigh import cluster

        with naming(url):
            return _by_kind(cluster.open(url, version=version))

    answer(url, open_shards, request)


def _by_kind(shards: Shards | Cluster) -> AnySearched:
    """Shards of vectors as an index of vectors; of others, their codes are searched."""
    is_vectors = shards.version is not None and shards.version.kind == "vectors"
    return shards.vectors if is_vectors else shards


def _answer_by_cluster(name: str, address: str, version: int | None, request: Request) -> None:
    if version is not None:
        raise typer.BadParameter(
            f"--version goes with a folder or URL of shards; there is no folder {name}, and a "
            "cluster of that name answers by the version that it serves"
        )
    with contextlib.ExitStack() as stack:

        def connect() -> AnySearched:
            from bitweigh import cluster

            try:
                connected = cluster.connect(name, address=address)
                return _by_kind(stack.enter_context(contextlib.closing(connected)))
            except (KeyError, ImportError, OSError) as error:
                # The folder may be what was meant.
                reason = str(error.args[0]).partition("\n")[0]
                raise ValueError(
                    f"there is no folder {name}, nor a cluster of that name: {reason}"
                ) from error

        with naming(name):
            answer(name, connect, request)
