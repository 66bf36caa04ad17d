"""`bitweigh cluster start`, `status`, `publish`, `rollback`, `scale` and `stop`: on Ray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from bitweigh._cli.cluster.names import Address
from bitweigh._cli.cluster.shared import Url, VersionNumber, naming
from bitweigh._cli.output import Json, counted, report

if TYPE_CHECKING:
    from bitweigh.cluster import Cluster, ClusterStatus

__all__ = [
    "publish_command",
    "rollback_command",
    "scale_command",
    "start_command",
    "status_command",
    "stop_command",
]

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The name that the cluster was started with.")
]
NewName: TypeAlias = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Letters, digits and underscores.")
]
Replicas: TypeAlias = Annotated[
    int, typer.Option(metavar="N", min=1, max=100, help="Holders that have the same shards.")
]
Groups: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Groups of shards that are held together (default: by nodes)."
    ),
]
HolderThreads: TypeAlias = Annotated[
    int, typer.Option(metavar="N", min=1, help="Threads, and reserved CPUs, of a holder.")
]


def start_command(
    url: Url,
    name: NewName = "default",
    replicas: Replicas = 1,
    groups: Groups = None,
    threads: HolderThreads = 1,
    version: VersionNumber = None,
    address: Address = "auto",
    as_json: Json = False,
) -> None:
    """Start holders for all shards on a running Ray cluster, and wait until all are open.

    Example: bitweigh cluster start shards --name wiki --replicas 2
    """
    from bitweigh import cluster

    began = time.perf_counter()
    with _closing(url) as opened:
        opened.append(
            cluster.start(
                url,
                name,
                replicas=replicas,
                groups=groups,
                threads=threads,
                version=version,
                address=address,
            )
        )
        status = opened[0].status()
    seconds = time.perf_counter() - began
    report(
        f"{name}: {status}\n  open after {seconds:.1f} s",
        {"name": name, "url": url, "seconds": seconds, **_facts(status)},
        as_json,
    )


def status_command(name: Name, address: Address = "auto", as_json: Json = False) -> None:
    """Show the version that is served, and whether each holder answers.

    The exit code is 1 if shards cannot be reached.

    Example: bitweigh cluster status wiki
    """
    with _connected(name, address) as found:
        missing = found.check()
        status = found.status()
    lines = [str(status)]
    lines += [f"  shard {each.shard} is missing: {each.reason}" for each in missing]
    facts = {"name": name, **_facts(status), "missing": [each._asdict() for each in missing]}
    report("\n".join([f"{name}: {lines[0]}", *lines[1:]]), facts, as_json)
    if missing:
        raise typer.Exit(1)


def publish_command(
    name: Name, version: VersionNumber = None, address: Address = "auto", as_json: Json = False
) -> None:
    """Serve another version, by default the newest, once all holders have opened it.

    Example: bitweigh cluster publish wiki
    """
    with _connected(name, address) as found:
        number = found.publish(version)
        rows = len(found)
    _report_served(name, number, rows, as_json)


def rollback_command(name: Name, address: Address = "auto", as_json: Json = False) -> None:
    """Serve the version that the present one was made from.

    Example: bitweigh cluster rollback wiki
    """
    with _connected(name, address) as found:
        number = found.rollback()
        rows = len(found)
    _report_served(name, number, rows, as_json)


def scale_command(
    name: Name,
    replicas: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=100, help="Holders that have the same shards."),
    ],
    address: Address = "auto",
    as_json: Json = False,
) -> None:
    """Have more or fewer holders for the same shards.

    Example: bitweigh cluster scale wiki --replicas 3
    """
    with _connected(name, address) as found:
        found.scale(replicas)
        status = found.status()
    report(f"{name}: {status}", {"name": name, **_facts(status)}, as_json)


def stop_command(name: Name, address: Address = "auto", as_json: Json = False) -> None:
    """Stop all holders; what is stored stays.

    Example: bitweigh cluster stop wiki
    """
    with _connected(name, address) as found:
        found.stop()
    report(f"{name}: stopped", {"name": name, "stopped": True}, as_json)


@contextmanager
def _connected(name: str, address: str) -> Iterator[Cluster]:
    from bitweigh import cluster

    with _closing(name) as opened:
        opened.append(cluster.connect(name, address=address))
        yield opened[0]


@contextmanager
def _closing(what: str) -> Iterator[list[Cluster]]:
    """Disconnect from the clusters in the list in the end, and tell errors in one line."""
    opened: list[Cluster] = []
    with naming(what):
        try:
            yield opened
        finally:
            for each in opened:
                each.close()


def _report_served(name: str, number: int, rows: int, as_json: bool) -> None:
    report(
        f"{name}: version {number}, {counted(rows, 'code')}",
        {"name": name, "version": number, "rows": rows},
        as_json,
    )


def _facts(status: ClusterStatus) -> dict[str, Any]:
    return {
        "version": status.version,
        "rows": status.rows,
        "shards": status.shards,
        "holders": [[list(holder) for holder in group] for group in status.holders],
    }
