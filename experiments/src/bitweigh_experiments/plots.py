"""Plots as SVG for pages that may be light or dark.

There is no background, and all colours have medium brightness. The files do not depend on when they
were drawn.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from typing import Any

__all__ = ["COLOURS", "GREY", "svg"]

GREY = "#7d848c"
COLOURS = ("#1f9d78", "#c8702a", "#5b78c7", "#b1589e")
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bitweigh",
    "font.size": 11,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "grid.color": GREY,
    "grid.alpha": 0.3,
}


def svg(draw: Callable[[Any], None], width: float, height: float) -> str:
    """Return what `draw` puts on a figure of this size in inches; needs matplotlib."""
    # Imported by name, as type checkers know it only if it is installed.
    matplotlib: Any = importlib.import_module("matplotlib")
    figures: Any = importlib.import_module("matplotlib.figure")
    with matplotlib.rc_context(_STYLE):
        figure = figures.Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return written.getvalue()
