"""Arguments that are a folder or URL of shards, or the name of a cluster on Ray."""

from __future__ import annotations

import os
import re
from typing import Annotated, TypeAlias

import typer

__all__ = ["Address", "UrlOrName", "is_name"]

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")

UrlOrName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="URL|NAME",
        help="The folder of the shards, or a URL such as s3://bucket/name: this process opens "
        "them. Or the name of a running cluster, which answers; a folder of that name comes first.",
    ),
]
Address: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", envvar="RAY_ADDRESS", help="The Ray cluster, as `ray start` says it."
    ),
]


def is_name(given: str) -> bool:
    """Whether this names a cluster: nothing is stored there, and it is no path and no URL."""
    return _NAME.fullmatch(given) is not None and not os.path.lexists(given)
