"""`bitweigh cluster build`, `update` and `reshard`: publish a new version of shards."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bitweigh import BinaryEmbeddings, VectorIndex
from bitweigh._checks import as_ids
from bitweigh._cli.cluster.names import Address
from bitweigh._cli.cluster.shared import (
    Bits,
    BuildWorkers,
    CodeColumn,
    IdSource,
    RowsPerShard,
    ShardCount,
    Url,
    VectorColumn,
    as_path_or_paths,
    ids_option,
    naming,
    report_version,
)
from bitweigh._cli.errors import prefix_errors
from bitweigh._cli.files import read_ids
from bitweigh._cli.folders import open_stored
from bitweigh._cli.options import BandBits, Bands, BitOrderOption, Layout, MemoryLimit
from bitweigh._cli.output import Json
from bitweigh.index import Index
from bitweigh.typing import Ids

__all__ = ["build_command", "reshard_command", "update_command"]


def build_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Packed codes: parquet, npy, bvecs, u8bin, i8bin, or a folder of such files; or "
            "parquet files at a URL such as s3://bucket/*.parquet. Several follow each other.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="URL",
            help="A folder for the shards, or a URL such as s3://bucket/name.",
        ),
    ],
    rows_per_shard: RowsPerShard = None,
    shards: ShardCount = None,
    codes: CodeColumn = None,
    vectors: VectorColumn = None,
    ids: IdSource = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="An index of vectors, or embeddings: INPUT has vectors, and the shards make of "
            "them what that index would. Its own rows do not matter.",
        ),
    ] = None,
    bits: Bits = None,
    workers: BuildWorkers = "1",
    address: Address = "auto",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Publish a new version where there is one.")
    ] = False,
    as_json: Json = False,
    bitorder: BitOrderOption = "big",
    bands: Bands = None,
    band_bits: BandBits = None,
    memory_limit: MemoryLimit = None,
    layout: Layout = None,
) -> None:
    """Build shards from files of packed codes or vectors, and publish them as a version.

    The files of a shard are the same whoever builds them. Codes may take more space than there is
    memory, but a shard must fit. --memory-limit is that of each shard.

    Example: bitweigh cluster build codes.parquet --codes hash --shards 4 -o shards

    Example: bitweigh cluster build vectors.npy --like near --shards 2 -o vector-shards
    """
    from bitweigh import cluster
    from bitweigh._cli.build_codes import checked_bits
    from bitweigh.cluster.building import ROWS_PER_SHARD
    from bitweigh.cluster.sources import rows_from
    from bitweigh.cluster.tasks import connected_for

    if shards is not None and rows_per_shard is not None:
        raise typer.BadParameter("give --rows-per-shard or --shards, not both")
    start = time.perf_counter()
    source, id_source = as_path_or_paths(sources), ids_option(sources, ids)
    with naming(out), connected_for(workers, address), prefix_errors(sources[0]):
        template = None if like is None else _template(like)
        if template is None:
            bits = checked_bits(sources[0], rows_from(source, codes, id_source), bits, bands)
        version = cluster.build(
            source,
            out,
            like=template,
            codes=codes,
            vectors=vectors,
            ids=id_source,
            n_bits=bits,
            bitorder=bitorder if template is None else None,
            rows_per_shard=ROWS_PER_SHARD if rows_per_shard is None else rows_per_shard,
            shards=shards,
            bands=bands,
            band_bits=band_bits,
            memory_limit=memory_limit,
            layout=layout,
            overwrite=overwrite,
            workers=workers,
            progress=_shows_progress(),
        )
    report_version(out, version, time.perf_counter() - start, as_json)


def update_command(
    url: Url,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="FILE",
            help="A file or URL of rows to add, as for `build`. Repeat it for several.",
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="IDS",
            help="Ids to remove first: 17 or 17,4, or a file with ids, .npy, `ids` of .npz or text "
            "with one per line; - for stdin. Repeat it for several.",
        ),
    ] = None,
    codes: CodeColumn = None,
    vectors: VectorColumn = None,
    ids: IdSource = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rows whose ids are there already.")
    ] = False,
    ignore_missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Skip ids to remove that are not there.")
    ] = False,
    workers: BuildWorkers = "1",
    address: Address = "auto",
    as_json: Json = False,
) -> None:
    """Remove and add rows, and publish the result as a new version: all of it, or nothing.

    Only shards that change are written. Older versions stay until `vacuum` deletes them.

    Example: bitweigh cluster update shards --add queries.npy --remove 17,4

    Example: seq 100 199 | bitweigh cluster update shards --remove -
    """
    from bitweigh import cluster
    from bitweigh.cluster.tasks import connected_for

    if not add and not remove:
        raise typer.BadParameter("give --add FILE or --remove IDS, or both")
    if ids and not add:
        raise typer.BadParameter("--ids goes with --add; --remove takes ids to remove")
    start = time.perf_counter()
    removed = _ids_to_remove(remove or [])
    with naming(url), connected_for(workers, address), prefix_errors(add[0] if add else url):
        version = cluster.update(
            url,
            add=as_path_or_paths(add) if add else None,
            codes=codes,
            vectors=vectors,
            ids=ids_option(add or [], ids),
            remove=removed,
            on_duplicate="replace" if replace else "error",
            on_missing="ignore" if ignore_missing else "error",
            workers=workers,
            progress=_shows_progress(),
        )
    report_version(url, version, time.perf_counter() - start, as_json)


def reshard_command(
    url: Url,
    shards: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many shards there are to be.")
    ],
    workers: BuildWorkers = "1",
    address: Address = "auto",
    as_json: Json = False,
) -> None:
    """Spread the rows of the newest version over another number of shards, as a new version.

    The shards are those that `build` would have made.

    Example: bitweigh cluster reshard shards --shards 6
    """
    from bitweigh import cluster
    from bitweigh.cluster.tasks import connected_for

    start = time.perf_counter()
    with naming(url), connected_for(workers, address):
        version = cluster.reshard(url, shards, workers=workers, progress=_shows_progress())
    report_version(url, version, time.perf_counter() - start, as_json)


def _template(folder: Path) -> VectorIndex | BinaryEmbeddings:
    """The index in a folder that shards are to be like."""
    index = open_stored(folder, mmap=True)
    if isinstance(index, Index):
        raise ValueError(f"{folder}: --like needs vectors or embeddings, this is an index of codes")
    return index


def _ids_to_remove(given: Sequence[str]) -> Ids:
    """Ids that are listed, or in files."""
    if list(given).count("-") > 1:
        raise typer.BadParameter("only one --remove can be -, stdin")
    found = [as_ids([])]
    for text in given:
        words = [word.strip() for word in text.split(",")]
        if all(word.isdecimal() for word in words):
            found.append(as_ids([int(word) for word in words], "--remove"))
        else:
            found.append(read_ids(text))
    return np.concatenate(found)


def _shows_progress() -> bool:
    return sys.stderr.isatty()
