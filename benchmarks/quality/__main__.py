"""Quality against bytes and time: ``python -m benchmarks.quality [--data DIR]``.

The share of the ten nearest vectors that bitweigh and FAISS find, what they need for it, and how
hashers and weighers compare. Real sets need ``--data``, except "text", the demo's documents;
without it scikit-learn's digits are measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.quality import page, results
from benchmarks.quality.measuring import measure
from benchmarks.quality.methods import Method
from benchmarks.quality.ours import our_methods
from benchmarks.quality.peers import UnavailableError, peer_methods
from benchmarks.quality.results import Results, SetFigures
from benchmarks.quality.sets import REAL, Vectors, digits, load
from benchmarks.quality.weighing import compare


def main() -> None:
    """Measure every set; print the tables, or write them and the plots into a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument(
        "--sets", nargs="+", choices=REAL, help="measure only these; the others stay as they are"
    )
    parser.add_argument(
        "--rows", type=int, default=100_000, help="maximum rows of each set (100000)"
    )
    parser.add_argument(
        "--queries", type=int, default=1000, help="maximum queries of each set (1000)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/quality.json"),
        help="file for the figures (build/quality.json)",
    )
    parser.add_argument(
        "--markdown", type=Path, help="write tables between the markers of this file, plots beside"
    )
    arguments = parser.parse_args()
    console = Console()
    names = arguments.sets or (("digits",) if arguments.data is None else REAL)
    measured = results.load(arguments.out)
    for name in names:
        try:
            data = (
                digits()
                if name == "digits"
                else load(name, arguments.data or Path(), arguments.rows, arguments.queries)
            )
        except FileNotFoundError as error:
            console.print(f"{name} left out: {error}", style="yellow")
            continue
        measured = _with(measured, name, _figures(data, console))
        results.save(measured, arguments.out)
    shown = {name: measured["sets"][name] for name in names if name in measured["sets"]}
    if not shown:
        parser.error(f"none of the sets {', '.join(names)} is in {arguments.data}")
    if arguments.markdown is not None:
        page.write(measured, arguments.markdown)
    text = page.tables(Results(machine=measured["machine"], sets=shown))
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _figures(data: Vectors, console: Console) -> SetFigures:
    """Measure one set."""
    n, n_features = data.rows.shape
    console.print(f"{data.name}: {n:,} x {n_features}", style="bold")
    methods: list[Method] = our_methods(n_features)
    without = ""
    try:
        methods += peer_methods(n_features)
    except UnavailableError as error:
        without = f"Without FAISS's methods: {error}."
        console.print(without, style="yellow")
    with console.status("") as status:
        measured = measure(data, methods, lambda doing: status.update(f"{data.name}: {doing}"))
        status.update(f"{data.name}: comparing hashers and weighers")
        lines = list(compare(data))
    return SetFigures(
        name=data.name,
        n=n,
        n_features=n_features,
        n_queries=len(data.queries),
        methods=measured,
        weighing=lines,
        without=without,
    )


def _with(measured: Results, name: str, figures: SetFigures) -> Results:
    """Return the results with a set added, in the order of the page."""
    sets = measured["sets"] | {name: figures}
    order = [*REAL, "digits"]
    return Results(
        machine=machine.facts(), sets={key: sets[key] for key in sorted(sets, key=order.index)}
    )


if __name__ == "__main__":
    main()
