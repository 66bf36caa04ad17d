"""Commands of other packages, found by their entry points in the group `bitweigh.commands`.

An entry point names a function, which becomes a command, or a `typer.Typer`, which becomes a group
of commands. Nothing of a package is loaded before its command runs or its help is shown. A package
that is missing or cannot be loaded leaves a command that says so in one line.
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
        """All names, as the help lists them."""
        ours = super().list_commands(ctx)
        return ours + sorted({*_KNOWN, *entry_points(group=GROUP).names} - set(ours))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """The command of that name; None if there is none."""
        ours = super().get_command(ctx, cmd_name)
        return _of_packages(cmd_name) if ours is None else ours


def _of_packages(name: str) -> Any:  # noqa: ANN401
    found = tuple(entry_points(group=GROUP, name=name))
    if found:
        try:
            return _loaded(found[0])
        except Exception as error:
            return _refusing(
                name,
                "Cannot be loaded.",
                f"`bitweigh {name}` cannot be loaded from {_package(found[0])}: {error}",
                error,
            )
    if name in _KNOWN:
        about, package = _KNOWN[name]
        return _refusing(
            name,
            f"{about} Needs: pip install {package}",
            f"`bitweigh {name}` is in a package of its own: pip install {package}",
        )
    return None


def _loaded(entry: EntryPoint) -> Any:  # noqa: ANN401
    target = entry.load()
    if isinstance(target, typer.Typer):
        group = get_group(target)
        group.name = entry.name
        return group
    return _command(entry.name, target)


def _refusing(name: str, about: str, line: str, cause: Exception | None = None) -> Any:  # noqa: ANN401
    """A command that takes any arguments and says why it cannot run."""

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
