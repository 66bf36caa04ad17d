"""Commands of other packages, found by their entry points in the group `bitweigh.commands`.

An entry point names a function, which becomes a command, or a `typer.Typer`, which becomes a group
of commands. A package is not loaded before its command runs or its help is shown. The command of a
package that is missing or cannot be loaded says so in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import typer
from typer.main import get_command, get_group

from bitweigh._cli.errors import OneLineErrors

__all__ = ["GROUP", "WithPlugins"]

GROUP = "bitweigh.commands"


class _Known(NamedTuple):
    """A command that is listed whether its package is installed or not."""

    help: str
    package: str


_KNOWN = {
    "demo": _Known("Search real documents by meaning, three ways.", "bitweigh-experiments"),
    "paper": _Known("Repeat the paper's experiments.", "bitweigh-experiments"),
}


class WithPlugins(OneLineErrors):
    """The commands of bitweigh, then those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """All names, in the order of the help."""
        built_in = super().list_commands(ctx)
        return built_in + sorted({*_KNOWN, *entry_points(group=GROUP).names} - set(built_in))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """The command of that name; None if there is none."""
        built_in = super().get_command(ctx, cmd_name)
        return _plugin_command(cmd_name) if built_in is None else built_in


def _plugin_command(name: str) -> Any:  # noqa: ANN401
    entries = tuple(entry_points(group=GROUP, name=name))
    if entries:
        try:
            return _load(entries[0])
        except Exception as error:
            return _failing_command(
                name,
                "Cannot be loaded.",
                f"`bitweigh {name}` cannot be loaded from {_package(entries[0])}: {error}",
                error,
            )
    if name in _KNOWN:
        about, package = _KNOWN[name]
        return _failing_command(
            name,
            f"{about} Needs: pip install {package}",
            f"`bitweigh {name}` is in a package of its own: pip install {package}",
        )
    return None


def _load(entry: EntryPoint) -> Any:  # noqa: ANN401
    target = entry.load()
    if isinstance(target, typer.Typer):
        group = get_group(target)
        group.name = entry.name
        return group
    return _command(entry.name, target)


def _failing_command(name: str, about: str, line: str, cause: Exception | None = None) -> Any:  # noqa: ANN401
    """A command that accepts any arguments and fails with a line that says why."""

    def command(ctx: typer.Context) -> None:  # noqa: ARG001
        raise ImportError(line) from cause

    any_arguments = {"allow_extra_args": True, "ignore_unknown_options": True}
    return _command(
        name, command, help=about, add_help_option=False, context_settings=any_arguments
    )


def _command(name: str, function: Callable[..., None], **options: Any) -> Any:  # noqa: ANN401
    app = typer.Typer(add_completion=False)
    app.command(name, **options)(function)
    return get_command(app)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
