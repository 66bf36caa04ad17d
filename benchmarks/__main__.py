"""The command line of ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from rich.console import Console

from benchmarks import report, results, run, workloads


def main() -> None:
    """Parse the arguments, measure, write the results and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure bitweigh and its peers; docs/benchmarks.md explains how.",
        epilog=_names(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--workloads",
        nargs="+",
        default=["quick"],
        metavar="NAME",
        help="groups or workloads, see below (quick)",
    )
    parser.add_argument("--rounds", type=_positive, default=7, help="default: 7")
    parser.add_argument(
        "--queries", type=_positive, default=20, help="single queries per peer and round (20)"
    )
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    parser.add_argument(
        "--markdown", type=Path, help="write the tables between the results markers of this file"
    )
    arguments = parser.parse_args()
    try:
        chosen = workloads.choose(arguments.workloads)
    except ValueError as error:
        parser.error(str(error))

    settings = run.Settings(arguments.rounds, arguments.queries, arguments.data)
    console = Console()
    measured = run.run(chosen, settings, console, out=arguments.out)
    tables = report.tables(measured)
    if arguments.out is not None:
        results.save(measured, arguments.out)
    if arguments.markdown is not None:
        report.write_between_markers(arguments.markdown, "results", tables)
    console.print(tables, markup=False, highlight=False, soft_wrap=True)


def _names() -> str:
    """List the groups with their descriptions, and all workloads."""
    groups = [f"  {name:<8}{what}" for name, what in workloads.GROUPS.items()]
    every = ", ".join(workload.name for workload in workloads.WORKLOADS)
    wrapped = textwrap.wrap(
        every, 96, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(["groups:", *groups, "", "workloads:", *wrapped])


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


if __name__ == "__main__":
    main()
