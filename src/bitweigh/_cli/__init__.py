"""The command line, `bitweigh`: a module for each group of commands. Needs the extra "cli"."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line; if its packages are missing, say how to install them."""
    for package in ("rich", "typer"):
        if find_spec(package) is None:
            sys.exit(f"bitweigh: the command line needs {package}: pip install 'bitweigh[cli]'")
    from bitweigh._cli.app import app

    app()
