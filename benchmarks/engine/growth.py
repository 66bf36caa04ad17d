"""How the cost of a query grows with the rows: engine, scan and Alg. 2, with fitted exponents."""

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
"""Its tables take minutes to build for more."""
FITTED_FROM = 100_000
"""Fewer rows fit into a cache, and what a query costs at any size counts too much."""
# What the index takes, and what it takes more while it is built.
_BYTES_PER_ROW = 100


class Size(Race):
    """One number of rows."""

    rows: int


class GrowthFigures(TypedDict):
    """All sizes."""

    sizes: list[Size]
    exponents: dict[str, float | None]
    """By name of the line; None where there are fewer than two sizes to fit."""


def run(settings: Settings, display: Display) -> Report:
    """From 10,000 rows to as many as the settings and the memory allow."""
    most = min(settings.rows, SIZES[-1])
    held = free_memory() // _BYTES_PER_ROW
    if held < most:
        display.say(f"growth: at most {held:,} rows, as many as the free memory holds")
    largest = max([size for size in SIZES if size <= min(most, held)], default=SIZES[0])
    # The first rows of the largest set are the smaller ones.
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
    """By name: (rows, microseconds)."""
    alg2 = [(own["rows"], own["alg2_us"]) for own in sizes]
    return {
        "scan": [(own["rows"], own["scan_us"]) for own in sizes],
        "Alg. 2": [(rows, us) for rows, us in alg2 if us is not None],
        "engine": [(own["rows"], own["engine_us"]) for own in sizes],
    }


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """The e of the curve c * rows**e through the larger sizes, by least squares of logarithms."""
    fitted = [point for point in points if point[0] >= FITTED_FROM]
    if len(fitted) < 2:
        return None
    rows, us = np.log(np.array(fitted)).T
    return float(np.polyfit(rows, us, 1)[0])


def markdown(figures: GrowthFigures, *, with_plot: bool) -> str:
    """The plot, and a row for each size."""
    rows = [
        [
            f"{own['rows']:,}",
            three_digits(own["engine_us"]),
            three_digits(own["scan_us"]),
            MISSING if own["alg2_us"] is None else three_digits(own["alg2_us"]),
            f"{own['scan_us'] / own['engine_us']:.1f}",
        ]
        for own in figures["sizes"]
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
