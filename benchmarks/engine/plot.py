"""The plot of the section growth: time against rows, both in logarithms.

The page may be light or dark: there is no background, and all colours are of a middle brightness.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["draw"]

_GREY = "#7d848c"
_COLOURS = {"scan": _GREY, "Alg. 2": "#c8702a", "engine": "#1f9d78"}
_STYLE = {
    "svg.fonttype": "none",
    # Nothing in the file may depend on when it was drawn.
    "svg.hashsalt": "growth",
    "font.size": 11,
    "text.color": _GREY,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _GREY,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "grid.color": _GREY,
    "grid.alpha": 0.3,
}


def draw(
    lines: Mapping[str, Sequence[tuple[int, float]]],
    exponents: Mapping[str, float | None],
    title: str,
) -> str:
    """SVG with a line of (rows, microseconds) for each name; ImportError without matplotlib."""
    # By name, as checkers of types know it only where it is installed.
    matplotlib: Any = importlib.import_module("matplotlib")
    figures: Any = importlib.import_module("matplotlib.figure")
    with matplotlib.rc_context(_STYLE):
        figure = figures.Figure(figsize=(7.6, 4.4), layout="constrained")
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
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return written.getvalue()


def _label(name: str, power: float | None) -> str:
    return name if power is None else f"{name}: codes to the power of {power:.2f}"
