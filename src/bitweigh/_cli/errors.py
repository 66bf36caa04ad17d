"""Errors of commands: one line on stderr that says what to do, and an exit code.

0: success; 1: the command failed; 2: wrong usage; 130: Ctrl-C.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from bitweigh import CorruptFileError
from bitweigh._cli.help import PlainHelp

__all__ = ["OneLineErrors", "prefix_errors"]

T = TypeVar("T")

# Exceptions that the library and the readers raise for wrong input; anything else is a bug.
_EXPECTED = (ImportError, KeyError, MemoryError, OSError, TypeError, ValueError)
# Messages of the library name its arguments; here they are options.
_OPTIONS = {
    "member=": "--member",
    "columns=": "--column",
    "nodes=": "--nodes",
    "memory=": "--memory",
    "overwrite=True": "--overwrite",
    "on_duplicate='replace'": "--replace",
    "on_missing='ignore'": "--ignore-missing",
}


class OneLineErrors(PlainHelp):
    """The group of all commands; it reports an error in one line unless `--debug` is set."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the options before the command."""
        return _reporting(ctx, super().parse_args, ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        return _reporting(ctx, super().invoke, ctx)


@contextmanager
def prefix_errors(path: str | Path, first: int = 0) -> Iterator[None]:
    """Prefix the library's errors about rows with the file and, if not 0, their first row."""
    where = f"{path}, rows from {first} on" if first else str(path)
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError) or str(error).startswith(f"{path}: "):
            raise
        raise type(error)(f"{where}: {error}") from error


def _reporting(ctx: Any, function: Callable[..., T], *arguments: object) -> T:  # noqa: ANN401
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None
    except Exception as error:
        line = None if ctx.params.get("debug") else _line_of(error)
        if line is None:
            raise
        _print_error(line)
        raise typer.Exit(int(getattr(error, "exit_code", 1))) from None


def _print_error(line: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    # One line however long: a terminal wraps it, and a log keeps it whole.
    console = Console(stderr=True)
    console.print(f"[red]error:[/red] {escape(line)}", highlight=False, soft_wrap=True)


def _line_of(error: Exception) -> str | None:
    """The line to print for an error; None if it is to be raised again."""
    if hasattr(error, "format_message"):
        return _usage(error)
    if not isinstance(error, _EXPECTED):
        return None
    if isinstance(error, MemoryError):
        text = f"not enough memory: {error}" if str(error) else "not enough memory"
    elif isinstance(error, KeyError):
        text = f"there is no {error}"
    elif isinstance(error, OSError) and error.strerror:
        if error.errno == errno.EPIPE:
            return None  # the reader of the output closed its end
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, CorruptFileError):
        text = f"{error}; restore the folder from a backup, or build the index again"
    else:
        text = str(error) or type(error).__name__
    for argument, option in _OPTIONS.items():
        text = re.sub(rf"\b{argument}", option, text)
    return " ".join(text.split())


def _usage(error: Any) -> str | None:  # noqa: ANN401
    """The line for a wrong option or argument, with the help command that explains it."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return None
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message} (see `{context.command_path} --help`)"
