"""`bitweigh serve FOLDER`, a server over HTTP, and `bitweigh serve keys`, its keys.

Commands import `bitweigh.server` when they run, so that others start without it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from bitweigh._cli.help import PlainHelp, pasteable
from bitweigh._cli.output import Json, report

__all__ = ["serve_app"]

_RUN = "folder"

Data: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Where the server keeps everything.")
]
KeyName: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of the key.")]


class _RunsByDefault(PlainHelp):
    """`bitweigh serve FOLDER` is `bitweigh serve folder FOLDER`; "keys" is a group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Insert the command that serves unless another is named."""
        if args and args[0] not in (*self.commands, "--help"):
            args = [_RUN, *args]
        found: list[str] = super().parse_args(ctx, args)
        return found


def run_command(
    folder: Data,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8420,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name that requests may call this server by; may be repeated."
        ),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no key, whoever can reach the address.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse changes; nothing is written.")
    ] = False,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Turns a list of texts into vectors, for text queries."
        ),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=URL",
            help="Shards to search under a name: a folder, a URL or ray:CLUSTER; may be repeated.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads of one search.")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests a second of one key; 0 for no limit.")
    ] = 0.0,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.1, help="How often changes are saved into the index folder.")
    ] = 30.0,
    build_seconds: Annotated[
        float, typer.Option(min=0.1, hidden=True, help="How often bands are considered.")
    ] = 10.0,
    build_rows: Annotated[
        int, typer.Option(min=1, hidden=True, help="Changes before bands are considered.")
    ] = 10_000,
    quiet: Annotated[bool, typer.Option("--quiet", help="Write no line for each request.")] = False,
) -> None:
    """Answer searches over HTTP, and keep what is written: nothing acknowledged is lost.

    Example: bitweigh serve data --port 8420
    """
    from bitweigh.server import Limits, Settings
    from bitweigh.server.keys import KeyFile
    from bitweigh.server.process import check_host, is_loopback, serve

    check_host(host, len(KeyFile(folder / "keys.json")), no_auth=no_auth)
    local = ("127.0.0.1", "localhost", "[::1]")
    # An address that others reach has names that only its operator knows; keys protect it.
    named = (*local, host) if is_loopback(host) else ("*",)
    settings = Settings(
        limits=Limits(rate=rate),
        read_only=read_only,
        auth=not no_auth,
        open_without_keys=is_loopback(host),
        hosts=(*local, *allow_host) if allow_host else named,
        checkpoint_seconds=checkpoint_seconds,
        build_seconds=build_seconds,
        build_rows=build_rows,
        search_threads=threads,
    )
    serve(
        folder,
        settings,
        host=host,
        port=port,
        embedder=None if embedder is None else _imported(embedder),
        clusters=_named(cluster or []),
        access_log=not quiet,
    )


def _named(given: list[str]) -> dict[str, str]:
    """The URLs of clusters by their names."""
    named: dict[str, str] = {}
    for one in given:
        name, _, url = one.partition("=")
        if not name or not url:
            raise ValueError(f"--cluster must be NAME=URL, got {one!r}")
        if name in named:
            raise ValueError(f"--cluster: there are two of the name {name!r}")
        named[name] = url
    return named


def _imported(name: str) -> Any:  # noqa: ANN401
    module, _, function = name.partition(":")
    if not module or not function:
        raise ValueError(f"--embedder must be MODULE:FUNCTION, got {name!r}")
    found = getattr(importlib.import_module(module), function, None)
    if not callable(found):
        raise ValueError(f"--embedder: {module} has no function {function!r}")
    return found


def add_command(
    folder: Data,
    name: KeyName,
    scope: Annotated[str, typer.Option(help="What the key may do: read, write or admin.")] = "read",
    collection: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only for this collection; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a key and show it, once: only its hash is kept.

    Example: bitweigh serve keys add data reader --scope read --collection wiki
    """
    from bitweigh.server.keys import KeyFile

    if scope not in ("read", "write", "admin"):
        raise ValueError(f"--scope must be read, write or admin, got {scope!r}")
    secret = KeyFile(folder / "keys.json").add(name, scope, collection or ())  # type: ignore[arg-type]
    report(secret, {"name": name, "scope": scope, "key": secret}, as_json)


def list_command(folder: Data, as_json: Json = False) -> None:
    """List the keys of a server.

    Example: bitweigh serve keys list data
    """
    from bitweigh.server.keys import KeyFile

    keys = KeyFile(folder / "keys.json").listed()
    facts = [
        {"name": key.name, "scope": key.scope, "collections": list(key.collections)} for key in keys
    ]
    lines = [
        f"{key.name}: {key.scope} {', '.join(key.collections) or 'all collections'}, {key.created}"
        for key in keys
    ]
    report("\n".join(lines) or "no keys", {"keys": facts}, as_json)


def revoke_command(folder: Data, name: KeyName, as_json: Json = False) -> None:
    """Delete a key; a running server refuses it within a second.

    Example: bitweigh serve keys revoke data reader
    """
    from bitweigh.server.keys import KeyFile

    KeyFile(folder / "keys.json").revoke(name)
    report(f"revoked {name}", {"revoked": name}, as_json)


serve_app = typer.Typer(
    cls=_RunsByDefault,
    help="Answer searches over HTTP: bitweigh serve FOLDER. See also: bitweigh serve keys.",
    no_args_is_help=True,
)
serve_app.command(_RUN, help=pasteable(run_command))(run_command)
_keys_app = typer.Typer(
    cls=PlainHelp, help="Keys of a server: who may read, write or administer.", no_args_is_help=True
)
for _name, _command in (
    ("add", add_command),
    ("list", list_command),
    ("revoke", revoke_command),
):
    _keys_app.command(_name, help=pasteable(_command))(_command)
serve_app.add_typer(_keys_app, name="keys")
