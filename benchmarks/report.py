"""Results as markdown: ``python -m benchmarks.report RESULTS.json [--markdown FILE.md]``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.results import PeerFigures, Results, WorkloadFigures

__all__ = ["machine_list", "table", "tables", "write_between_markers"]


def tables(measured: Results) -> str:
    """Everything worth showing of a run, as markdown."""
    single = [figures for figures in measured["workloads"] if figures["batch"] == 1]
    batches = [figures for figures in measured["workloads"] if figures["batch"] > 1]
    parts = [machine_list(measured["machine"])]
    if single:
        parts += ["### Single queries", _times(single)]
    if batches:
        parts += [f"### Batches of {batches[0]['batch']} queries", _times(batches)]
    if measured["workloads"]:
        parts += ["### Recall", _recalls(measured["workloads"])]
    left_out = [
        f"- {figures['name']}: {peer} left out, {why}"
        for figures in measured["workloads"]
        for peer, why in figures["left_out"].items()
    ]
    skipped = [f"- {name} not measured: {why}" for name, why in measured["skipped"].items()]
    if left_out or skipped:
        parts.append("\n".join(left_out + skipped))
    return "\n\n".join(parts)


def machine_list(facts: dict[str, str]) -> str:
    """The machine in one paragraph."""
    return "Measured on: " + "; ".join(f"{name} {fact}" for name, fact in facts.items()) + "."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; columns after the first are aligned to the right."""
    ruler = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ruler, *rows])


def write_between_markers(file: Path, marker: str, text: str) -> None:
    """Replace what stands between <!-- marker --> and <!-- /marker -->; make a new file if none."""
    opening, closing = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    old = file.read_text() if file.exists() else f"{opening}\n{closing}\n"
    before, found, rest = old.partition(opening)
    _, found_too, after = rest.partition(closing)
    if not (found and found_too):
        raise ValueError(f"{file.name} must have the markers {opening} and {closing}")
    file.write_text(f"{before}{opening}\n\n{text}\n\n{closing}{after}")


def _times(workloads: list[WorkloadFigures]) -> str:
    """Milliseconds per query and, in brackets, how many times those of bitweigh."""
    names = _peer_names(workloads)
    rows = [[*_what(own), *(_time(_figures_of(own, name)) for name in names)] for own in workloads]
    return table(["data", "codes", "bits", "k", *names], rows)


def _recalls(workloads: list[WorkloadFigures]) -> str:
    """Share of the exact neighbours found, for the peers that missed any."""
    all_figures = [figures for own in workloads for figures in own["peers"]]
    incomplete = {figures["peer"] for figures in all_figures if figures["recall"] < 1}
    names = [name for name in _peer_names(workloads) if name in incomplete]
    if not names:
        return "Every peer found all of the exact neighbours."
    rows = [
        [*_what(own), str(own["batch"]), *(_recall(_figures_of(own, name)) for name in names)]
        for own in workloads
    ]
    return table(["data", "codes", "bits", "k", "batch", *names], rows)


def _peer_names(workloads: list[WorkloadFigures]) -> list[str]:
    return list(dict.fromkeys(figures["peer"] for own in workloads for figures in own["peers"]))


def _what(workload: WorkloadFigures) -> list[str]:
    return [workload["data"], f"{workload['n']:,}", str(workload["n_bits"]), str(workload["k"])]


def _figures_of(workload: WorkloadFigures, name: str) -> PeerFigures | None:
    return next((own for own in workload["peers"] if own["peer"] == name), None)


def _time(figures: PeerFigures | None) -> str:
    if figures is None:
        return "-"
    if figures["ratio"] == 1:
        return _short(figures["median_ms"])
    return f"{_short(figures['median_ms'])} ({_short(figures['ratio'])}x)"


def _recall(figures: PeerFigures | None) -> str:
    """Four digits, rounded down, so that 1 means all."""
    if figures is None:
        return "-"
    return "1" if figures["recall"] == 1 else f"{math.floor(1e4 * figures['recall']) / 1e4:.4f}"


def _short(number: float) -> str:
    """Three significant digits, never in the form 1e+03."""
    digits = 2 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{number:.{max(digits, 0)}f}"


def main() -> None:
    """Print the tables of a results file, or put them between a file's markers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=Path, help="what --out wrote")
    parser.add_argument("--markdown", type=Path, help="file with the results markers")
    arguments = parser.parse_args()
    text = tables(results.load(arguments.results))
    if arguments.markdown is None:
        print(text)
    else:
        write_between_markers(arguments.markdown, "results", text)


if __name__ == "__main__":
    main()
