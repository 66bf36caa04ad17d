"""What the commands of `bitweigh cluster` share: options, errors, and reports of versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from bitweigh._checks import MAX_BITS
from bitweigh._cli.output import counted, report

if TYPE_CHECKING:
    from bitweigh.cluster import Version
    from bitweigh.cluster.tasks import Workers

__all__ = [
    "Bits",
    "BuildWorkers",
    "CodeColumn",
    "IdSource",
    "RowsPerShard",
    "ShardCount",
    "Url",
    "VectorColumn",
    "VersionNumber",
    "as_path_or_paths",
    "ids_option",
    "naming",
    "report_version",
]

Url: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="URL", help="The folder of the shards, or a URL such as s3://bucket/name."
    ),
]
VersionNumber: TypeAlias = Annotated[
    int | None,
    typer.Option("--version", metavar="N", min=1, help="The version (default: the newest)."),
]
Bits: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=MAX_BITS, help="Code length in bits (default: 8 per byte)."
    ),
]
CodeColumn: TypeAlias = Annotated[
    str | None,
    typer.Option("--codes", metavar="NAME", help="Parquet: the column of codes (default: `code`)."),
]
VectorColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="NAME",
        help="Parquet, for shards of vectors: their column (default: `vector`).",
    ),
]
IdSource: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--ids",
        metavar="NAME|FILE",
        help="The column of ids in parquet files; for other files .npy with ids, which may be "
        "several, too: repeat it.",
    ),
]
RowsPerShard: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="About how many rows a shard has (default: 20,000,000)."),
]
ShardCount: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="How many shards there are, instead."),
]


def _workers(text: str) -> Workers:
    if text == "ray":
        return "ray"
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise typer.BadParameter(f"{text} is neither a number from 1 to 256 nor ray")
    return int(text)


BuildWorkers: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--workers",
        metavar="N|ray",
        parser=_workers,
        help="Processes that build, or `ray`: the nodes of a running Ray cluster.",
    ),
]


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Turn errors of shards and of object stores into those that are told in one line."""
    from bitweigh.cluster import (
        ControlPlaneError,
        IncompleteError,
        OverloadedError,
        PublishConflictError,
    )

    try:
        yield
    except (ControlPlaneError, IncompleteError, OverloadedError, PublishConflictError) as error:
        raise ValueError(f"{url}: {error}") from error
    except KeyError as error:
        raise ValueError(f"{url}: {error.args[0]}") from error
    except Exception as error:
        # They have a base class of their own, in a package that may be missing.
        if type(error).__module__ != "obstore.exceptions":
            raise
        first_line = str(error).partition("\n")[0]
        raise OSError(f"{url}: {first_line}") from error


def as_path_or_paths(paths: Sequence[str]) -> str | list[str]:
    """A single path, which may be a folder of files, or several."""
    return paths[0] if len(paths) == 1 else list(paths)


def ids_option(paths: Sequence[str], ids: Sequence[str] | None) -> str | list[str] | None:
    """The option `ids` as `cluster.build` takes it."""
    if not ids:
        return None
    if len(ids) > 1 and any(path.lower().endswith(".parquet") for path in paths):
        raise typer.BadParameter("ids of parquet files are in one column: give --ids once")
    return ids[0] if len(ids) == 1 else list(ids)


def report_version(url: str, version: Version, seconds: float, as_json: bool) -> None:
    """Report that a version was published."""
    facts: dict[str, Any] = {
        "url": url,
        "version": version.number,
        "rows": version.rows,
        "kind": version.kind,
        "n_bits": version.n_bits,
        "shards": len(version.shards),
        "bytes": version.n_bytes,
        "seconds": seconds,
    }
    rows = version.kind.removesuffix("s")
    report(
        f"{url}: version {version.number}, {counted(version.rows, rows)} of {version.n_bits} "
        f"bits in {counted(len(version.shards), 'shard')}, in {seconds:.1f} s",
        facts,
        as_json,
    )
