"""The plots of the page, a panel for each set: share found against bytes, time and bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from benchmarks.quality.measuring import Figures
from benchmarks.quality.methods import K
from benchmarks.quality.results import SetFigures
from benchmarks.quality.weighing import BITS, WAYS
from bitweigh_experiments import plots

__all__ = ["PLOTS"]

_OURS, _PRODUCT, _RABITQ, _GRAPH = plots.COLOURS


class _Style(NamedTuple):
    """How the methods of a family are drawn: a colour for a kind, filled if codes are all."""

    colour: str
    marker: str
    line: str
    filled: bool = True


_STYLES = {
    "bitweigh Scalar": _Style(_OURS, "o", "-"),
    "bitweigh Scalar, not rotated": _Style(_OURS, "v", "-."),
    "bitweigh Levels": _Style(_OURS, "s", "--"),
    "bitweigh LSH, ITQ, Sign": _Style(_OURS, "^", ""),
    "bitweigh + rerank": _Style(_OURS, "D", ":", filled=False),
    "FAISS PQ": _Style(_PRODUCT, "o", "-"),
    "FAISS rotated PQ": _Style(_PRODUCT, "s", "--"),
    "FAISS fast scan + refine": _Style(_PRODUCT, "D", ":", filled=False),
    "FAISS RaBitQ": _Style(_RABITQ, "o", "-"),
    "FAISS RaBitQ fast scan": _Style(_RABITQ, "s", "--"),
    "FAISS scalar quantiser": _Style(plots.GREY, "o", "-"),
    "FAISS HNSW": _Style(_GRAPH, "D", ":", filled=False),
}


_TICKS = {
    "bytes_per_row": [2**power for power in range(12)],
    "ms": [digit * 10.0**power for power in range(-3, 3) for digit in (1, 3)],
}


def _of_methods(
    sets: Sequence[SetFigures], quantity: Literal["bytes_per_row", "ms"], label: str
) -> str:
    """Plot the share found by all methods against a quantity."""
    values = [method[quantity] for figures in sets for method in figures["methods"]]
    ticks = [tick for tick in _TICKS[quantity] if min(values) <= tick <= max(values)]

    def on_axes(axes: Any, figures: SetFigures) -> None:  # noqa: ANN401 matplotlib may be missing
        for family, style in _STYLES.items():
            of_family = [method for method in figures["methods"] if method["family"] == family]
            # Sizes of a code make one line; where a method has settings, these make the line.
            lines: list[list[Figures]] = [of_family]
            if not style.filled:
                lines = [
                    list(group) for _, group in groupby(of_family, lambda method: method["name"])
                ]
            for number, line in enumerate(lines):
                line.sort(key=lambda method: method["bytes_per_row"])
                axes.plot(
                    [method[quantity] for method in line],
                    [method["precision"] for method in line],
                    style.marker + style.line,
                    color=style.colour,
                    markerfacecolor=style.colour if style.filled else "none",
                    markersize=4,
                    linewidth=1,
                    label="_" if number else family,
                )
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)

    return _panels(sets, on_axes, label)


def _of_weighers(sets: Sequence[SetFigures]) -> str:
    """Plot the share found against the bits: a colour for each way, LSH dotted."""

    def on_axes(axes: Any, figures: SetFigures) -> None:  # noqa: ANN401 matplotlib may be missing
        for way, colour in enumerate(plots.COLOURS):
            for hasher, style in (("ITQ", "o-"), ("LSH", "o:")):
                selected = [line for line in figures["weighing"] if line["hasher"] == hasher]
                axes.plot(
                    [line["n_bits"] for line in selected],
                    [line["precision"][way] for line in selected],
                    style,
                    color=colour,
                    markersize=3.5,
                    label=f"{WAYS[way]}, {hasher}",
                )
        axes.set_xscale("log", base=2)
        axes.set_xticks(BITS, [str(n_bits) for n_bits in BITS])

    return _panels(sets, on_axes, "bits")


def _panels(
    sets: Sequence[SetFigures],
    on_axes: Callable[[Any, SetFigures], None],
    label: str,
) -> str:
    """Draw a panel for each set, two beside each other, and one legend."""

    def on(figure: Any) -> None:  # noqa: ANN401 matplotlib may be missing
        wide = min(2, len(sets))
        every = figure.subplots(-(-len(sets) // 2), wide, sharex=True, sharey=True, squeeze=False)
        for axes in every.flat[len(sets) :]:
            axes.set_visible(False)
        for axes, figures in zip(every.flat, sets, strict=False):
            on_axes(axes, figures)
            axes.set_title(figures["name"], loc="left", fontsize=10)
            axes.grid(True)
        for axes in every[-1]:
            axes.set_xlabel(label)
        figure.supylabel(f"share of the {K} nearest found", fontsize=11)
        handles, labels = every.flat[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9
        )

    return plots.svg(on, 9.0, 7.0)


PLOTS: dict[str, Callable[[Sequence[SetFigures]], str]] = {
    "quality-bytes.svg": lambda sets: _of_methods(sets, "bytes_per_row", "bytes a row"),
    "quality-time.svg": lambda sets: _of_methods(sets, "ms", "ms a query, one thread"),
    "quality.svg": _of_weighers,
}
"""By the name of the file that the page shows."""
