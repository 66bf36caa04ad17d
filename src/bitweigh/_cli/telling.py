"""What a command has done: a line for people, or JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

__all__ = ["Json", "counted", "tell"]

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def tell(line: str, facts: Mapping[str, object], as_json: bool) -> None:
    """Print the facts as JSON, or the line."""
    typer.echo(json.dumps(facts) if as_json else line)


def counted(number: int, what: str) -> str:
    """1 code, 1,000 codes."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what[:-1] + 'ies' if what.endswith('y') else what + 's'}"
