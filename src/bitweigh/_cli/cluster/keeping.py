"""`bitweigh cluster versions`, `verify` and `vacuum`: what is stored, and what can go."""

from __future__ import annotations

import re
import time
from datetime import timedelta
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


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d+)([dhm])", text)
    if found is None:
        raise typer.BadParameter(
            f"{text} is not an age: a number of days, hours or minutes, as 12h"
        )
    return timedelta(**{{"d": "days", "h": "hours", "m": "minutes"}[found[2]]: int(found[1])})


def vacuum_command(
    url: Url,
    keep: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many of the newest versions to keep.")
    ] = 3,
    staged_older_than: Annotated[
        timedelta,
        typer.Option(
            metavar="AGE",
            parser=_age,
            help="Delete what killed builds have left, if it is older: 12h, 2d, 30m.",
        ),
    ] = "1d",  # type: ignore[assignment] # parsed, as what is given is
    as_json: Json = False,
) -> None:
    """Delete old versions, shards that no version names, and what killed builds have left.

    It must not run while a build does: shards that are not published yet look unused.

    Example: bitweigh cluster vacuum shards --keep 2 --staged-older-than 12h
    """
    from bitweigh import cluster

    with naming(url):
        gone = cluster.vacuum(url, keep=keep, staged_older_than=staged_older_than)
    left = f", and what {counted(len(gone.builds), 'build')} left" if gone.builds else ""
    report(
        f"{url}: deleted {counted(len(gone.versions), 'version')} and "
        f"{counted(len(gone.shards), 'shard')}{left}",
        {"url": url, **gone._asdict()},
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
