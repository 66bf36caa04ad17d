"""`bitweigh cluster`: shards in a folder or an object store. A module for each kind of command.

Commands import `bitweigh.cluster` when they run, so that others start without it.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from bitweigh._cli.cluster.changing import build_command, reshard_command, update_command
from bitweigh._cli.cluster.keeping import vacuum_command, verify_command, versions_command
from bitweigh._cli.cluster.planning import plan_command
from bitweigh._cli.cluster.searching import search_command
from bitweigh._cli.cluster.serving import (
    publish_command,
    rollback_command,
    scale_command,
    start_command,
    status_command,
    stop_command,
)
from bitweigh._cli.help import PlainHelp, pasteable

__all__ = ["cluster_app"]

cluster_app = typer.Typer(
    cls=PlainHelp,
    help="Codes beyond one machine: shards in a folder or an object store, searched as one index.",
    no_args_is_help=True,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "plan": plan_command,
    "build": build_command,
    "update": update_command,
    "reshard": reshard_command,
    "search": search_command,
    "versions": versions_command,
    "verify": verify_command,
    "vacuum": vacuum_command,
    "start": start_command,
    "status": status_command,
    "publish": publish_command,
    "rollback": rollback_command,
    "scale": scale_command,
    "stop": stop_command,
}
for _name, _command in _COMMANDS.items():
    cluster_app.command(_name, help=pasteable(_command))(_command)
