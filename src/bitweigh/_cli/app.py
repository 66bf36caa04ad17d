"""The root of the command line: its commands, groups of commands, and common options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import bitweigh
from bitweigh._cli.bench import bench_command
from bitweigh._cli.build import build_command
from bitweigh._cli.change import (
    add_command,
    compact_command,
    merge_command,
    remove_command,
)
from bitweigh._cli.cluster import cluster_app
from bitweigh._cli.export import export_command
from bitweigh._cli.help import pasteable
from bitweigh._cli.info import info_command, verify_command
from bitweigh._cli.plugins import WithPlugins
from bitweigh._cli.search import search_command
from bitweigh._cli.serve import serve_app

__all__ = ["app"]

app = typer.Typer(
    cls=WithPlugins,
    help="Exact nearest binary codes under a weighted Hamming distance.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "build": build_command,
    "add": add_command,
    "remove": remove_command,
    "merge": merge_command,
    "compact": compact_command,
    "search": search_command,
    "export": export_command,
    "info": info_command,
    "verify": verify_command,
    "bench": bench_command,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, help=pasteable(_command))(_command)
app.add_typer(cluster_app, name="cluster")
app.add_typer(serve_app, name="serve")


def _show_version(requested: bool) -> None:
    if requested:
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
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from, not only what it is.")
    ] = False,
) -> None:
    pass
