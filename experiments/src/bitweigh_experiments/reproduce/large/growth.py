"""The growth of a query's time with the rows: fitted exponents and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bitweigh_experiments import plots
from bitweigh_experiments.reproduce.large.records import LargeResults
from bitweigh_experiments.reproduce.results import KS

__all__ = ["draw", "exponents", "lines_of", "size_exponents"]

FITTED_FROM = 1_000_000
"""Minimum rows for the fit: fewer fit into a cache, and an index of fewer may have no bands."""
_COLOURS = {"Linear Scan": plots.GREY, "MIWQ": plots.COLOURS[1], "bitweigh": plots.COLOURS[0]}
_STYLES = {1: ":", 10: "-", 100: "--"}


def lines_of(results: LargeResults, bits: int) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """Return the points (rows, ms) of each method and K, in ascending rows."""
    lines: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for timing in sorted(results.timings, key=lambda timing: timing.rows):
        if timing.bits == bits:
            lines.setdefault((timing.method, timing.k), []).append((timing.rows, timing.ms))
    return lines


def exponents(results: LargeResults, bits: int) -> dict[tuple[str, int], float]:
    """Fit c * rows**e to each method and K by least squares of logarithms; return each e."""
    fitted = {name: _exponent(points) for name, points in lines_of(results, bits).items()}
    return {name: power for name, power in fitted.items() if power is not None}


def size_exponents(results: LargeResults, bits: int) -> tuple[float | None, float | None]:
    """Return the exponents of the seconds of a build and of the bytes on disk."""
    sizes = [record for record in results.sizes if record.bits == bits]
    return (
        _exponent([(r.rows, r.build_seconds) for r in sizes if not r.resumed]),
        _exponent([(r.rows, float(r.disk_bytes)) for r in sizes]),
    )


def _exponent(points: Sequence[tuple[int, float]]) -> float | None:
    fitted = [point for point in points if point[0] >= FITTED_FROM]
    if len(fitted) < 2:
        return None
    rows, values = np.log(np.array(fitted)).T
    return float(np.polyfit(rows, values, 1)[0])


def draw(results: LargeResults, bits: int) -> str:
    """Return an SVG of time against rows, both on log scales; needs matplotlib."""
    lines, powers = lines_of(results, bits), exponents(results, bits)

    def on(figure: Any) -> None:  # noqa: ANN401 matplotlib may be missing
        axes = figure.subplots()
        for method, colour in _COLOURS.items():
            for k in KS:
                points = lines.get((method, k))
                if not points or (method == "Linear Scan" and k != 10):
                    continue
                rows, ms = zip(*points, strict=True)
                label = method if method == "Linear Scan" else f"{method}, {k}-NN"
                power = powers.get((method, k))
                if power is not None:
                    label += f": codes to the power of {power:.2f}"
                axes.loglog(rows, ms, f"o{_STYLES[k]}", color=colour, label=label, markersize=4)
        axes.set_title(f"{bits} bits", loc="left", fontsize=11)
        axes.set_xlabel("codes")
        axes.set_ylabel("milliseconds per query")
        axes.grid(True)
        axes.legend(frameon=False, fontsize=9)

    return plots.svg(on, 7.6, 4.8)
