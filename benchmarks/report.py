"""Results as markdown: ``python -m benchmarks.report RESULTS.json [--markdown FILE.md]``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from benchmarks import results
from benchmarks.results import Results, WorkloadFigures

__all__ = ["machine_list", "table", "tables", "write_between_markers"]

_HASHERS = {"lsh": "LSH", "itq": "ITQ", "sign": "Sign"}
_WEIGHERS = {"asym": "Asym", "wh": "Wh", "ip": "inner product"}


def tables(measured: Results) -> str:
    """Return the results of a run as markdown: a table for each set of codes."""
    parts = [machine_list(measured["machine"])]
    for title, group in groupby(measured["workloads"], key=_title):
        workloads = list(group)
        parts += [f"### {title}", _table_of(workloads)]
        if workloads[0]["left_out"]:
            parts.append(_left_out(workloads[0]))
    if measured["skipped"]:
        parts += ["### Not measured", _skipped(measured["skipped"])]
    return "\n\n".join(parts)


def machine_list(facts: dict[str, str]) -> str:
    """Return the facts about the machine as one paragraph."""
    return "Measured on: " + "; ".join(f"{name} {fact}" for name, fact in facts.items()) + "."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a markdown table; columns after the first are right-aligned."""
    ruler = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ruler, *rows])


def write_between_markers(file: Path, marker: str, text: str) -> None:
    """Replace the text between <!-- marker --> and <!-- /marker -->; create a missing file."""
    opening, closing = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    old = file.read_text() if file.exists() else f"{opening}\n{closing}\n"
    before, found, rest = old.partition(opening)
    _, found_too, after = rest.partition(closing)
    if not (found and found_too):
        raise ValueError(f"{file.name} must have the markers {opening} and {closing}")
    file.write_text(f"{before}{opening}\n\n{text}\n\n{closing}{after}")


def _title(workload: WorkloadFigures) -> str:
    """Return the title of a table: the data that its searches share."""
    hasher = "" if workload["hasher"] == "lsh" else f", {_HASHERS[workload['hasher']]}"
    return f"{workload['data']}, {workload['n']:,} codes of {workload['n_bits']} bits{hasher}"


def _table_of(workloads: list[WorkloadFigures]) -> str:
    """Return a row for each peer: build time and size, then a column for each search."""
    rows = []
    for figures in workloads[0]["peers"]:
        n_bytes = figures["bytes_per_row"]
        rows.append(
            [
                figures["peer"],
                f"{figures['build_seconds']:.3f}",
                "" if n_bytes is None else f"{n_bytes:.1f}",
                *(_time(workload, figures["peer"]) for workload in workloads),
            ]
        )
    return table(["peer", "build, s", "bytes a row", *map(_search, workloads)], rows)


def _search(workload: WorkloadFigures) -> str:
    """Return the title of a column: the parameters of the search."""
    weigher = "" if workload["weigher"] == "asym" else f", {_WEIGHERS[workload['weigher']]}"
    batch = "" if workload["batch"] == 1 else f", batches of {workload['batch']}"
    return f"k = {workload['k']}{weigher}{batch}"


def _time(workload: WorkloadFigures, peer: str) -> str:
    """Return milliseconds per query, the ratio to bitweigh, and the recall if it is not 1."""
    number, figures = next(
        (number, entry) for number, entry in enumerate(workload["peers"]) if entry["peer"] == peer
    )
    remarks = [f"{_short(figures['ratio'])}x"] if number > 0 else []
    if figures["recall"] < 1:
        # Rounded down, so that 1 means all.
        remarks.append(f"recall {math.floor(1e4 * figures['recall']) / 1e4:.4f}")
    shown = _short(figures["median_ms"])
    return f"{shown} ({', '.join(remarks)})" if remarks else shown


def _left_out(workload: WorkloadFigures) -> str:
    return "\n".join(f"- {peer} left out: {why}" for peer, why in workload["left_out"].items())


def _skipped(skipped: dict[str, str]) -> str:
    return "\n".join(f"- {name}: {why}" for name, why in skipped.items())


def _short(number: float) -> str:
    """Format with three significant digits, never as 1e+03."""
    digits = 2 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{number:.{max(digits, 0)}f}"


def main() -> None:
    """Print the tables of a results file, or write them between a file's markers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=Path, help="the file written by --out")
    parser.add_argument("--markdown", type=Path, help="file with the results markers")
    arguments = parser.parse_args()
    text = tables(results.load(arguments.results))
    if arguments.markdown is None:
        print(text)
    else:
        write_between_markers(arguments.markdown, "results", text)


if __name__ == "__main__":
    main()
