"""`bitweigh cluster plan`: what codes take on one machine, and when a cluster is slower."""

from __future__ import annotations

from typing import Annotated

import typer

from bitweigh._cli.cluster.shared import (
    Bits,
    CodeColumn,
    RowsPerShard,
    ShardCount,
    as_path_or_paths,
    naming,
)
from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.options import BandBits, Bands, Layout, MemoryLimit, parse_bytes
from bitweigh._cli.output import Json, report

__all__ = ["plan_command"]


def plan_command(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...|URL",
            help="Files of packed codes as for `build`, or the folder or URL of shards.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The number of codes, with --bits, for no INPUT."),
    ] = None,
    bits: Bits = None,
    codes: CodeColumn = None,
    rows_per_shard: RowsPerShard = None,
    shards: ShardCount = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Nodes of the cluster to compare with (default: as many as are needed).",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            parser=parse_bytes,
            help="Memory of a machine, such as 64G (default: that of this one).",
        ),
    ] = None,
    as_json: Json = False,
    bands: Bands = None,
    band_bits: BandBits = None,
    memory_limit: MemoryLimit = None,
    layout: Layout = None,
) -> None:
    """Say what codes take on one machine, and when a cluster is slower. Writes nothing.

    Times are those of the worst case, a scan of all codes. Most searches look at few of them; then
    one machine is faster, if the codes fit into its memory.

    Example: bitweigh cluster plan --rows 1000000000 --bits 64 --memory 16G
    """
    from bitweigh import cluster

    if bool(sources) == (rows is not None):
        raise typer.BadParameter("give INPUT, or the URL of shards, or --rows and --bits")
    if not sources and bits is None:
        raise typer.BadParameter("--rows goes with --bits")
    source = as_path_or_paths(sources) if sources else None
    where = sources[0] if sources else "--rows"
    with naming(where), prefix_errors(where):
        found = cluster.plan(
            source,
            rows=rows,
            n_bits=bits,
            codes=codes,
            rows_per_shard=rows_per_shard,
            shards=shards,
            bands=bands,
            band_bits=band_bits,
            memory_limit=memory_limit,
            layout=layout,
            nodes=nodes,
            memory=memory,
        )
    report(str(found), found._asdict() | {"advice": found.advice}, as_json)
