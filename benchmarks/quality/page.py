"""The figures as tables: ``python -m benchmarks.quality.page RESULTS.json --markdown FILE.md``.

Of the methods of each set the page has the best within some bytes, the fastest that finds some
share, and all of them; then hashers and weighers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from benchmarks import report
from benchmarks.quality import plots, results
from benchmarks.quality.measuring import Figures
from benchmarks.quality.results import Results, SetFigures
from benchmarks.quality.weighing import WAYS

__all__ = ["main", "tables", "write"]

_BYTES = (25, 50, 100, 200, 400, 800, 1600)
_SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
_COSTS = ("fit and add, s", "bytes a row", "ms a query", "P@10")
_Choice = Callable[[Sequence[Figures]], Figures | None]


def write(measured: Results, file: Path) -> None:
    """Write the tables between the markers of a page, and the plots beside it."""
    figures = list(measured["sets"].values())
    facts = report.machine_list(measured["machine"])
    parts = {
        "best": _sections(figures, _best),
        "scalar": _scalar(figures),
        "methods": f"{facts}\n\n{_sections(figures, _every)}",
        "weighers": _sections(figures, _weighing),
    }
    for marker, text in parts.items():
        report.write_between_markers(file, marker, text)
    for name, plot in plots.PLOTS.items():
        file.with_name(name).write_text(plot(figures))


def tables(measured: Results) -> str:
    """Return all tables as markdown."""
    figures = list(measured["sets"].values())
    return "\n\n".join(_sections(figures, part) for part in (_best, _every, _weighing))


def _sections(sets: list[SetFigures], part: Callable[[SetFigures], str]) -> str:
    return "\n\n".join(f"### {_capital(figures)}\n\n{part(figures)}" for figures in sets)


def _capital(figures: SetFigures) -> str:
    name = figures["name"]
    return f"{name[0].upper()}{name[1:]}"


def _best(figures: SetFigures) -> str:
    """Return two tables: the best within some bytes, and the fastest that finds a share."""
    by_bytes = _pairs(figures["methods"], [(f"{limit:,}", _within(limit)) for limit in _BYTES])
    by_share = _pairs(figures["methods"], [(f"{share:.2f}", _finding(share)) for share in _SHARES])
    title = f"{figures['n']:,} rows of {figures['n_features']} numbers."
    return "\n\n".join(
        [
            f"{title} {figures['without']}".strip(),
            report.table(_header("bytes a row, at most"), by_bytes),
            report.table(_header("P@10, at least"), by_share),
        ]
    )


def _header(first: str) -> list[str]:
    return [first, "bitweigh", "bytes", "ms", "P@10", "FAISS", "bytes", "ms", "P@10"]


def _pairs(methods: list[Figures], limits: list[tuple[str, _Choice]]) -> list[list[str]]:
    """Return a row for each limit: bitweigh's choice and FAISS's; no row if both are missing."""
    sides = [
        [method for method in methods if method["family"].startswith(side)]
        for side in ("bitweigh", "FAISS")
    ]
    rows: list[list[str]] = []
    for limit, choose in limits:
        chosen = [choose(side) for side in sides]
        if any(chosen):
            rows.append([limit, *(cell for choice in chosen for cell in _cells(choice))])
    return rows


def _within(limit: float) -> _Choice:
    """Choose what finds most within some bytes a row; of those that find as much, the fastest."""

    def choose(methods: Sequence[Figures]) -> Figures | None:
        small = [method for method in methods if method["bytes_per_row"] <= limit]
        return max(
            small, key=lambda method: (round(method["precision"], 3), -method["ms"]), default=None
        )

    return choose


def _finding(share: float) -> _Choice:
    """Choose the fastest that finds at least this share."""

    def choose(methods: Sequence[Figures]) -> Figures | None:
        good = [method for method in methods if method["precision"] >= share]
        return min(good, key=lambda method: method["ms"], default=None)

    return choose


def _cells(choice: Figures | None) -> list[str]:
    if choice is None:
        return ["none", "", "", ""]
    return [_title(choice), *_numbers(choice)]


def _title(method: Figures) -> str:
    """Return the name and the setting."""
    return f"{method['name']}, {method['setting']}" if method["setting"] else method["name"]


def _numbers(method: Figures) -> list[str]:
    return [
        f"{method['bytes_per_row']:,.0f}",
        f"{method['ms']:.3f}",
        # Rounded down, so that 1 means all.
        f"{math.floor(1e3 * method['precision'] + 1e-9) / 1e3:.3f}",
    ]


def _every(figures: SetFigures) -> str:
    """Return the table of all methods, in the order of their bytes."""
    methods = sorted(figures["methods"], key=lambda method: method["bytes_per_row"])
    rows = []
    for method in methods:
        n_bytes, ms, precision = _numbers(method)
        if not _beaten(method, methods, "bytes_per_row"):
            n_bytes = f"**{n_bytes}**"
        if not _beaten(method, methods, "ms"):
            ms = f"**{ms}**"
        library = method["family"].split()[0]
        rows.append(
            [f"{library} {_title(method)}", f"{method['seconds']:.1f}", n_bytes, ms, precision]
        )
    return report.table(["method", *_COSTS], rows)


def _beaten(
    method: Figures, methods: Sequence[Figures], quantity: Literal["bytes_per_row", "ms"]
) -> bool:
    """Whether another method finds more with no more of a quantity, or as much with less."""
    mine = (-method["precision"], method[quantity])
    for other in methods:
        its = (-other["precision"], other[quantity])
        if its != mine and its[0] <= mine[0] and its[1] <= mine[1]:
            return True
    return False


def _scalar(sets: list[SetFigures]) -> str:
    """Return, for each set, scalar codes and product quantisers of half a byte per feature."""
    rows = []
    for figures in sets:
        parts = f"IndexPQ, {figures['n_features'] // 2} parts"
        for method in figures["methods"]:
            name = method["name"]
            if name.removesuffix(", not rotated") == "Scalar, 4 bits a feature" or name == parts:
                n_bytes = f"{method['bytes_per_row']:.1f}"
                _, ms, precision = _numbers(method)
                fitted = f"{method['seconds']:.1f}"
                rows.append([figures["name"], name, fitted, n_bytes, ms, precision])
    return report.table(["vectors", "method", *_COSTS], rows)


def _weighing(figures: SetFigures) -> str:
    rows = [
        [
            f"{line['hasher']}, {line['n_bits']} bits",
            str(line["n_bits"] // 8),
            *(f"{share:.3f}" for share in line["precision"]),
        ]
        for line in figures["weighing"]
    ]
    return report.table(["codes", "bytes", *WAYS], rows)


def main() -> None:
    """Print the tables of a results file, or write them and the plots into a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.page", description=__doc__)
    parser.add_argument("results", type=Path, help="the file written by --out")
    parser.add_argument("--markdown", type=Path, help="file with the markers")
    arguments = parser.parse_args()
    measured = results.load(arguments.results)
    if arguments.markdown is None:
        print(tables(measured))
    else:
        write(measured, arguments.markdown)


if __name__ == "__main__":
    main()
