"""The root of the command line: groups of commands, and the version."""

from __future__ import annotations

from typing import Annotated

import typer

import bitweigh
from bitweigh.cli import paper

__all__ = ["app"]

app = typer.Typer(
    help="Exact nearest binary codes under a weighted Hamming distance.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.add_typer(paper.app, name="paper")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bitweigh {bitweigh.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass
