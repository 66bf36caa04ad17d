"""Reports of what a command did: a line for people, or JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from bitweigh._wording import counted, readable_bytes

__all__ = ["Json", "counted", "readable_bytes", "report"]

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def report(text: str, facts: Mapping[str, object], as_json: bool) -> None:
    """Print the facts as JSON, or the text."""
    typer.echo(json.dumps(facts) if as_json else text)
