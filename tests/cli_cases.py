"""Helpers to run the command line in tests: in this process, or as a script in a shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner, Result

from bitweigh._cli.app import app

ROOT = Path(__file__).parent.parent


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    # Line widths and colours depend on these.
    usual = {"COLUMNS": "100", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    return CliRunner(env=usual).invoke(app, [str(one) for one in arguments], input=stdin)


def plain(text: str) -> str:
    """Strip colours, which some environments force."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def done(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Run a command that must succeed; return its output."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def commands() -> dict[str, Any]:
    """Return all commands by the words typed for them, without command groups."""
    found: dict[str, Any] = {}

    def collect(command: Any, name: str) -> None:
        if hasattr(command, "list_commands"):
            context = command.context_class(command)
            for child in command.list_commands(context):
                collect(command.get_command(context, child), f"{name} {child}")
        else:
            found[name] = command

    collect(get_command(app), "bitweigh")
    return found


def examples(command: Any) -> list[str]:
    """Return the examples in the help of a command, each a shell script."""
    found = []
    for paragraph in (command.help or "").replace("\b\n", "").split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        if first.startswith("Example: "):
            found.append(first.removeprefix("Example: "))
        elif first.startswith("Example"):
            found.append(rest.strip())
    return found


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that calls `bitweigh` and `python` of this environment."""
    ours = (
        f'bitweigh() {{ "{sys.executable}" -m bitweigh "$@"; }}\n'
        f'python() {{ "{sys.executable}" "$@"; }}\n'
    )
    bash = shutil.which("bash")
    assert bash
    return subprocess.run(
        [bash, "-e", "-c", ours + script], cwd=folder, capture_output=True, text=True, check=False
    )
