"""Help texts: examples that can be pasted, and flags without a type after them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup

__all__ = ["PlainHelp", "pasteable"]


class PlainHelp(TyperGroup):
    """A group of commands whose help does not write `<bool>` after a flag."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Find the command that the arguments begin with."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _hide_flag_types(command, ctx)
        return name, command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the help of the group itself."""
        _hide_flag_types(self, ctx)
        super().format_help(ctx, formatter)


def _hide_flag_types(command: Any, ctx: Any) -> None:  # noqa: ANN401
    for parameter in command.get_params(ctx):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _hide_flag_types(inner, ctx)


def pasteable(command: Callable[..., object]) -> str:
    """The help of a command from its docstring, with the lines of examples kept apart."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    # \b tells typer not to join the lines of a paragraph.
    return "\n\n".join(
        f"\b\n{paragraph}" if paragraph.startswith("Example") and "\n" in paragraph else paragraph
        for paragraph in paragraphs
    )
