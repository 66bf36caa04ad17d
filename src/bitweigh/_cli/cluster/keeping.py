"""`bitweigh cluster versions`, `verify` and `vacuum`: what is stored, and what can go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitweigh._cli.cluster.shared import Url, VersionNumber, naming
from bitweigh._cli.output import Json, counted, readable_bytes, report

if TYPE_CHECKING:
    from bitweigh.cluster import Version

__all__ = ["vacuum_command", "verify_command", "versions_command"]


def versions_command(url: Url, as_json: Json = False) -> None:
    """List all versions: when each was made, its rows, shards and bytes.

    Example: bitweigh cluster versions shards
    """
    from bitweigh.cluster.opening import read
    from bitweigh.cluster.stores import open_store

    with naming(url):
        store = open_store(url)
        newest = read(store)  # raises if there is none
        older = [read(store, each) for each in store.version_numbers() if each < newest.number]
    facts = [_facts(version) for version in [*older, newest]]
    if as_json:
        report("", {"url": url, "versions": facts}, True)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{url}: codes of {newest.n_bits} bits")
    for heading in ("version", "created", "rows", "shards", "size"):
        table.add_column(heading, justify="left" if heading == "created" else "right")
    for each in facts:
        size = readable_bytes(each["bytes"])
        table.add_row(
            str(each["version"]), each["created"], f"{each['rows']:,}", str(each["shards"]), size
        )
    Console(highlight=False).print(table)


def verify_command(url: Url, version: VersionNumber = None, as_json: Json = False) -> None:
    """Check every file of a version against its checksum, and every id against its shard.

    Takes about as long as building the shards. The exit code is 1 if anything is damaged.

    Example: bitweigh cluster verify shards
    """
    from bitweigh import cluster

    start = time.perf_counter()
    with naming(url):
        found = cluster.verify(url, version=version)
    seconds = time.perf_counter() - start
    report(
        f"{url}: version {found.number}, {counted(found.rows, 'code')} in "
        f"{counted(len(found.shards), 'shard')}, nothing is damaged ({seconds:.1f} s)",
        {"url": url, "version": found.number, "rows": found.rows, "sound": True}
        | {"seconds": seconds},
        as_json,
    )


def vacuum_command(
    url: Url,
    keep: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many of the newest versions to keep.")
    ] = 3,
    as_json: Json = False,
) -> None:
    """Delete old versions, and shards that no version names.

    It must not run while a build does: shards that are not published yet look unused.

    Example: bitweigh cluster vacuum shards --keep 2
    """
    from bitweigh import cluster

    with naming(url):
        gone = cluster.vacuum(url, keep=keep)
    report(
        f"{url}: deleted {counted(len(gone.versions), 'version')} and "
        f"{counted(len(gone.shards), 'shard')}",
        {"url": url, "versions": gone.versions, "shards": gone.shards},
        as_json,
    )


def _facts(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "created": version.created,
        "rows": version.rows,
        "shards": len(version.shards),
        "bytes": version.n_bytes,
    }
