"""The growth of a query's time with the rows: engine, scan and Alg. 2, with fitted exponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from benchmarks import report
from benchmarks.engine import plot
from benchmarks.engine.race import Race, alg2_tables, race
from benchmarks.engine.sections import Codes, Costs, Display, Report, Settings, indexed, load
from bitweigh._free_memory import free_memory
from bitweigh_experiments.reproduce.formats import MISSING, three_digits

__all__ = ["GrowthFigures", "Size", "exponent", "markdown", "run"]

N_BITS = 64
K = 10
SIZES = (*(step * 10**power for power in range(4, 8) for step in (1, 3)), 10**8)
ALG2_ROWS = 10_000_000
"""Maximum rows for Alg. 2: for more, its tables take minutes to build."""
FITTED_FROM = 100_000
"""Minimum rows for the fit: fewer fit into a cache, and fixed costs weigh too much."""
# Memory of the index, including temporary memory while it is built.
_BYTES_PER_ROW = 100


class Size(Race):
    """The figures for one number of rows."""

    rows: int


class GrowthFigures(TypedDict):
    """All sizes."""

    sizes: list[Size]
    exponents: dict[str, float | None]
    """Exponents by name of the line; None if there are fewer than two sizes to fit."""


def run(settings: Settings, display: Display) -> Report:
    """Measure from 10,000 rows to as many as the settings and the memory allow."""
    max_rows = min(settings.rows, SIZES[-1])
    fitting = free_memory() // _BYTES_PER_ROW
    if fitting < max_rows:
        display.say(f"growth: at most {fitting:,} rows, as many as fit into free memory")
    largest = max([size for size in SIZES if size <= min(max_rows, fitting)], default=SIZES[0])
    # The smaller sets are the first rows of the largest.
    codes, costs = load("mixture", largest, N_BITS, settings, display)
    sizes: list[Size] = []
    for n in [size for size in SIZES if size <= len(codes)]:
        display.doing(f"growth, {n:,} rows")
        sizes.append(Size(rows=n, **_measure(codes[:n], costs, settings.rounds)))
    lines = lines_of(sizes)
    exponents = {name: exponent(points) for name, points in lines.items()}
    figures = GrowthFigures(sizes=sizes, exponents=exponents)
    try:
        drawn = plot.draw(lines, exponents, f"{N_BITS} bits, k = {K}")
    except ImportError:
        display.say("growth: no plot without matplotlib")
        drawn = None
    return Report(figures, markdown(figures, with_plot=drawn is not None), drawn)


def _measure(codes: Codes, costs: Costs, rounds: int) -> Race:
    index = indexed(codes, N_BITS)
    tables = alg2_tables(codes, N_BITS) if len(codes) <= ALG2_ROWS else []
    return race(index, tables, costs, K, rounds)


def lines_of(sizes: list[Size]) -> dict[str, list[tuple[int, float]]]:
    """Return the points (rows, microseconds) of each line by name."""
    alg2 = [(size["rows"], size["alg2_us"]) for size in sizes]
    return {
        "scan": [(size["rows"], size["scan_us"]) for size in sizes],
        "Alg. 2": [(rows, us) for rows, us in alg2 if us is not None],
        "engine": [(size["rows"], size["engine_us"]) for size in sizes],
    }


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """Fit c * rows**e to the larger sizes by least squares of logarithms; return e."""
    fitted = [point for point in points if point[0] >= FITTED_FROM]
    if len(fitted) < 2:
        return None
    rows, us = np.log(np.array(fitted)).T
    return float(np.polyfit(rows, us, 1)[0])


def markdown(figures: GrowthFigures, *, with_plot: bool) -> str:
    """Return the plot, and a table with a row for each size."""
    rows = [
        [
            f"{size['rows']:,}",
            three_digits(size["engine_us"]),
            three_digits(size["scan_us"]),
            MISSING if size["alg2_us"] is None else three_digits(size["alg2_us"]),
            f"{size['scan_us'] / size['engine_us']:.1f}",
        ]
        for size in figures["sizes"]
    ]
    fitted = figures["exponents"]
    powers = [
        MISSING if fitted[name] is None else f"{fitted[name]:.2f}"
        for name in ("engine", "scan", "Alg. 2")
    ]
    rows.append([f"exponent from {FITTED_FROM:,} on", *powers, ""])
    table = report.table(["codes", "engine, us", "scan, us", "Alg. 2, us", "scan / engine"], rows)
    picture = "![Time of a query against the number of codes, both in logarithms](growth.svg)"
    return f"{picture}\n\n{table}" if with_plot else table
