"""The command line, `bitweigh`: a module for each group of commands. Needs the extra "cli"."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; where its packages are missing, say how to install them."""
    try:
        from bitweigh._cli.app import app
    except ImportError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("rich", "typer"):
            raise
        sys.exit(f"bitweigh: the command line needs {package}: pip install 'bitweigh[cli]'")
    app()
