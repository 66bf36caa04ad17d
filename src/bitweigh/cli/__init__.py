"""The command line, `bitweigh`: one module per command group. Needs the extra "cli"."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; says how to install it where its packages are missing."""
    try:
        from bitweigh.cli.app import app
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("rich", "typer"):
            raise
        sys.exit(f"bitweigh: the command line needs {error.name}: pip install 'bitweigh[cli]'")
    app()
