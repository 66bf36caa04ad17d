"""Line charts as inline SVG: panels side by side on one vertical axis, a line per method.

Colours, widths and fonts are in style.css, by class, so that charts follow the page's colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

from bitweigh_experiments.reproduce.formats import three_digits
from bitweigh_experiments.reproduce.report.scales import Scale, scale_for
from bitweigh_experiments.reproduce.results import METHODS

__all__ = ["Axis", "Chart", "Reading", "Series", "draw", "legend"]

WIDTH, HEIGHT = 440.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 6.0, 40.0, 40.0
GAP = 7.0  # between panels

_SQUARE = "M-4.2-4.2H4.2V4.2H-4.2Z"
_CROSS = "M-3.6-3.6L3.6 3.6M-3.6 3.6L3.6-3.6"
_TRIANGLE = "M0-4.6L4.4 3.2H-4.4Z"
_CIRCLE = "M3 0A3 3 0 1 1-3 0A3 3 0 1 1 3 0Z"
_RING = "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z"
_DIAMOND = "M0-4.6L4.1 0L0 4.6L-4.1 0Z"
_STAR = "M0-5L1.3-1.7L4.8-1.5L2 .7L3 4.1L0 2.1L-3 4.1L-2 .7L-4.8-1.5L-1.3-1.7Z"
MARKERS = {
    "Baseline": _CROSS,
    "MIH": _TRIANGLE,
    "Linear Scan": _SQUARE,
    "MIWQ": _CIRCLE,
    "MIWQ descending": _RING,
    "PQTable": _DIAMOND,
    "PQTable_max_heap": _DIAMOND,
    "bitweigh": _STAR,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A value to draw and, where known, the range of its measurements."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """The meaning of panels, or of positions in a panel: a name and its values in order."""

    name: str
    values: tuple[int, ...]


Series: TypeAlias = Mapping[str, Mapping[tuple[int, int], Reading]]
"""Readings by method, then by (panel, place) values."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of a chart. Missing readings leave a gap in their line."""

    title: str
    panels: Axis
    places: Axis
    y_label: str
    unit: str
    series: Series
    log: bool
    paper: Series = field(default_factory=dict)
    """The paper's figures, drawn in the background."""
    reference: float | None = None
    """The value at which to draw a horizontal line."""


def css_class(method: str) -> str:
    """Return the CSS class that gives a method its colour."""
    return "m-" + "".join(c if c.isalnum() else "-" for c in method.lower())


def marker(method: str) -> str:
    """Return the SVG path of a method's marker, centred on the origin."""
    return MARKERS.get(method, _CIRCLE)


def legend(methods: Sequence[str], *, with_paper: bool) -> str:
    """Render the methods' lines and markers as a list; `with_paper` explains dotted lines."""
    items = [
        _key(
            css_class(method),
            '<path class="line" d="M1 7H33"/>'
            f'<path class="mark" d="{marker(method)}" transform="translate(17 7)"/>',
            method,
        )
        for method in methods
    ]
    if with_paper:
        items.append(_key("", '<path class="printed" d="M3 7H33"/>', "the paper's"))
    return f'<ul class="legend">{"".join(items)}</ul>'


def _key(kind: str, drawing: str, text: str) -> str:
    return (
        f'<li><svg class="key {kind}" viewBox="0 0 34 14" aria-hidden="true">{drawing}</svg>'
        f"{escape(text)}</li>"
    )


def draw(chart: Chart, name: str) -> str:
    """Render the chart as an SVG element; `name`, unique on the page, is the prefix of its ids."""
    values = [
        edge
        for readings in (*chart.series.values(), *chart.paper.values())
        for reading in readings.values()
        for edge in (reading.value, reading.low, reading.high)
        if edge is not None
    ]
    if chart.reference is not None:
        values.append(chart.reference)
    frame = _Frame(chart, scale_for(values, log=chart.log))
    drawn = sorted(chart.series, key=METHODS.index)
    parts = [
        f'<title id="{name}-t">{escape(chart.title)}</title>',
        f'<desc id="{name}-d">{escape(_description(chart))}</desc>',
        f'<text class="unit" x="0" y="11">{escape(_scale_in_words(chart))}</text>',
        *frame.background(),
        *(frame.dots(method) for method in chart.paper),
        *(frame.line(method) for method in drawn),
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-labelledby="{name}-t {name}-d">{"".join(parts)}</svg>'
    )


def _description(chart: Chart) -> str:
    """Describe the two ends of each line in words."""
    ends = []
    for method, readings in chart.series.items():
        keys = sorted(readings)
        end_texts = [
            f"{three_digits(readings[key].value)}{chart.unit} at {_setting(chart, key)}"
            for key in dict.fromkeys((keys[0], keys[-1]))
        ]
        ends.append(f"{method}: {' and '.join(end_texts)}.")
    return f"{_scale_in_words(chart)}, against {chart.places.name}. " + " ".join(ends)


def _scale_in_words(chart: Chart) -> str:
    return f"{chart.y_label}, log scale" if chart.log else chart.y_label


def _setting(chart: Chart, key: tuple[int, int]) -> str:
    return f"{_label(chart.panels, key[0])}, {_label(chart.places, key[1])}"


def _label(axis: Axis, value: int) -> str:
    return f"{axis.name} = {value}" if axis.name == "K" else f"{value} {axis.name}"


class _Frame:
    """The geometry of one chart, in pixels of its viewBox."""

    def __init__(self, chart: Chart, scale: Scale) -> None:
        self.chart = chart
        self.scale = scale
        count = max(1, len(chart.panels.values))
        self.panel_width = (WIDTH - LEFT - RIGHT - GAP * (count - 1)) / count
        self.bottom = HEIGHT - BOTTOM

    def panel_x(self, panel: int) -> float:
        place = self.chart.panels.values.index(panel)
        return LEFT + place * (self.panel_width + GAP)

    def x(self, key: tuple[int, int]) -> float:
        """Return the x of a reading; places are equally spaced, as bits and K grow by factors."""
        panel, value = key
        place = self.chart.places.values.index(value)
        share = (place + 0.5) / len(self.chart.places.values)
        return self.panel_x(panel) + share * self.panel_width

    def y(self, value: float) -> float:
        return self.bottom - self.scale.share(value) * (self.bottom - TOP)

    def background(self) -> Iterator[str]:
        """Yield panels, grid, ticks and labels."""
        chart = self.chart
        for tick in self.scale.ticks:
            label = f'x="{LEFT - 7:g}" y="{self.y(tick) + 3.6:.1f}" text-anchor="end"'
            yield f"<text {label}>{_tick(tick)}</text>"
        for panel in chart.panels.values:
            left = self.panel_x(panel)
            right, middle = left + self.panel_width, left + self.panel_width / 2
            yield (
                f'<rect class="panel" x="{left:.1f}" y="{TOP:g}" width="{self.panel_width:.1f}" '
                f'height="{self.bottom - TOP:g}"/>'
            )
            lines = "".join(
                f"M{left:.1f} {self.y(tick):.1f}H{right:.1f}" for tick in self.scale.ticks
            )
            yield f'<path class="grid" d="{lines}"/>'
            if chart.reference is not None:
                y = self.y(chart.reference)
                yield f'<path class="reference" d="M{left:.1f} {y:.1f}H{right:.1f}"/>'
            yield (
                f'<text class="strip" x="{middle:.1f}" y="{TOP - 7:g}" text-anchor="middle">'
                f"{escape(_label(chart.panels, panel))}</text>"
            )
            for value in chart.places.values:
                x = self.x((panel, value))
                where = f'x="{x:.1f}" y="{self.bottom + 15:g}"'
                yield f'<text {where} text-anchor="middle">{value}</text>'
        centre = (LEFT + WIDTH - RIGHT) / 2
        yield (
            f'<text class="axis" x="{centre:g}" y="{HEIGHT - 7:g}" text-anchor="middle">'
            f"{escape(chart.places.name)}</text>"
        )

    def dots(self, method: str) -> str:
        """Render the paper's line of a method."""
        return (
            f'<path class="printed {css_class(method)}" d="{self.path(self.chart.paper[method])}"/>'
        )

    def line(self, method: str) -> str:
        """Render a method's line and, for each reading, its range and a marker."""
        readings = self.chart.series[method]
        ranges, marks = [], []
        for key, reading in sorted(readings.items()):
            if not self.has(reading):
                continue
            x, y = self.x(key), self.y(reading.value)
            if reading.low and reading.high:
                ranges.append(f"M{x:.1f} {self.y(reading.low):.1f}V{self.y(reading.high):.1f}")
            figure = three_digits(reading.value) + self.chart.unit
            tooltip = f"{method}, {_setting(self.chart, key)}: {figure}"
            marks.append(
                f'<path class="mark" d="{marker(method)}" transform="translate({x:.1f} {y:.1f})">'
                f"<title>{escape(tooltip)}</title></path>"
            )
        spans = f'<path class="range" d="{"".join(ranges)}"/>' if ranges else ""
        return (
            f'<g class="{css_class(method)}"><path class="line" d="{self.path(readings)}"/>'
            f"{spans}{''.join(marks)}</g>"
        )

    def path(self, readings: Mapping[tuple[int, int], Reading]) -> str:
        """Connect the readings, with gaps where one is missing and between panels."""
        steps = []
        for panel in self.chart.panels.values:
            pen = "M"
            for place in self.chart.places.values:
                reading = readings.get((panel, place))
                if reading is None or not self.has(reading):
                    pen = "M"
                    continue
                steps.append(f"{pen}{self.x((panel, place)):.1f} {self.y(reading.value):.1f}")
                pen = "L"
        return "".join(steps)

    def has(self, reading: Reading) -> bool:
        """Whether the axis can show the value: a log axis has no 0."""
        return reading.value > 0 or not self.scale.log


def _tick(value: float) -> str:
    return f"{value / 1e6:,g}M" if value >= 1e6 else f"{value:,.10g}"
