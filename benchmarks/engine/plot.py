"""The plot of the section "growth": time against rows, both on log scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bitweigh_experiments.plots import COLOURS, GREY, svg

__all__ = ["draw"]

_COLOURS = {"scan": GREY, "Alg. 2": COLOURS[1], "engine": COLOURS[0]}


def draw(
    lines: Mapping[str, Sequence[tuple[int, float]]],
    exponents: Mapping[str, float | None],
    title: str,
) -> str:
    """Return an SVG with a line of (rows, microseconds) for each name; needs matplotlib."""

    def on(figure: Any) -> None:  # noqa: ANN401 matplotlib may be missing
        axes = figure.subplots()
        for name, points in lines.items():
            if points:
                rows, us = zip(*points, strict=True)
                label = _label(name, exponents[name])
                axes.loglog(rows, us, "o-", color=_COLOURS[name], label=label, markersize=4)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("codes")
        axes.set_ylabel("microseconds per query")
        axes.grid(True)
        axes.legend(frameon=False)

    return svg(on, 7.6, 4.4)


def _label(name: str, power: float | None) -> str:
    return name if power is None else f"{name}: codes to the power of {power:.2f}"
