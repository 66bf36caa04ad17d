"""`python -m bitweigh_experiments.demo [QUERY ...]`: `bitweigh demo` without options or typer."""

from __future__ import annotations

import argparse
import sys

from bitweigh_experiments.demo.run import Settings, run
from bitweigh_experiments.demo.serving import PORT, serve_documents


def main() -> int:
    """Run the demo with the queries of the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bitweigh_experiments.demo",
        description="Search real documents by meaning. `bitweigh demo` has more options.",
    )
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="what to look for, in quotes")
    parser.add_argument("--serve", action="store_true", help="show the documents in a browser")
    parser.add_argument("--port", type=int, default=PORT, help="of the server")
    given = parser.parse_args()
    settings = Settings(tuple(given.queries))
    try:
        return serve_documents(settings, given.port) if given.serve else run(settings)
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
