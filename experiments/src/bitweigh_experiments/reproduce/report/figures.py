"""The charts of the report: their measures, methods and axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from bitweigh_experiments.reproduce.published import PAPER
from bitweigh_experiments.reproduce.report.charts import Axis, Chart, Reading, Series, draw, legend
from bitweigh_experiments.reproduce.results import HASHERS, METHODS, WEIGHERS, Cell, Results

__all__ = ["FIGURES", "charts_of", "figures", "main_setting", "other_figures"]

Setting: TypeAlias = tuple[str, str]
"""A pair of hasher and weigher."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity of a cell and how to draw it."""

    read: Callable[[Cell], Reading | None]
    y_label: str
    unit: str
    log: bool = True
    reference: float | None = None
    with_paper: bool = False
    """Whether the paper's figures may be drawn into the same chart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Two charts per data set, one legend."""

    name: str
    title: str
    note: str
    methods: tuple[str, ...]
    charts: tuple[tuple[Measure, bool], ...]
    """Measures, each with True if drawn against K (a panel per code length), else against bits."""


def _time(cell: Cell) -> Reading | None:
    return None if cell.ms is None else Reading(cell.ms, cell.ms_low, cell.ms_high)


def _speed_up(cell: Cell) -> Reading | None:
    return None if cell.speed_up is None else Reading(cell.speed_up)


def _precision(cell: Cell) -> Reading | None:
    return None if cell.precision is None else Reading(100 * cell.precision)


def _buckets(cell: Cell) -> Reading | None:
    return None if cell.buckets is None else Reading(cell.buckets)


def _candidates(cell: Cell) -> Reading | None:
    return None if cell.candidates is None else Reading(cell.candidates)


TIME = Measure(_time, "ms per query", " ms")
SPEED_UP = Measure(
    _speed_up, "times faster than Linear Scan", "\u00d7", reference=1.0, with_paper=True
)
PRECISION = Measure(_precision, "precision in %", "%", log=False, with_paper=True)
BUCKETS = Measure(_buckets, "buckets probed per query", "")
CANDIDATES = Measure(_candidates, "candidates compared per query", "")

FIGURES = (
    Figure(
        "time",
        "Time per query",
        "Lower is faster. A thin vertical line behind a marker spans the fastest and the slowest "
        "round of timing.",
        METHODS,
        ((TIME, False), (TIME, True)),
    ),
    Figure(
        "speed-up",
        "Speed-up over Linear Scan",
        "Higher is faster. The horizontal line at 1 is Linear Scan.",
        tuple(method for method in METHODS if method != "Linear Scan"),
        ((SPEED_UP, False), (SPEED_UP, True)),
    ),
    Figure(
        "precision",
        "Precision",
        "Higher is better. Where MIWQ finds what Linear Scan "
        "finds, its disc lies inside the square. More tables, below, have the other methods.",
        ("Baseline", "MIH", "Linear Scan", "MIWQ"),
        ((PRECISION, False), (PRECISION, True)),
    ),
    Figure(
        "work",
        "Candidates and buckets",
        "How many codes MIWQ and MIH compare and how many buckets they look into, empty ones "
        "included; the paper's Fig. 2 shows it for its SIFT1B.",
        ("MIH", "MIWQ"),
        ((CANDIDATES, True), (BUCKETS, True)),
    ),
)


def main_setting(results: Results) -> Setting | None:
    """Return LSH and Asym, as in the paper's main text, else the first pair measured."""
    measured = _settings(results)
    return measured[0] if measured else None


def figures(results: Results) -> tuple[str, list[tuple[str, str]]]:
    """Render all figures of the main setting; also return the id and title of each."""
    setting = main_setting(results)
    if setting is None:
        return "", []
    drawn = {figure: _figure(results, setting, figure, 3) for figure in FIGURES}
    links = [(_name(figure, setting), figure.title) for figure in FIGURES if drawn[figure]]
    return "".join(drawn.values()), links


def other_figures(results: Results) -> str:
    """Render the figures of every other setting, folded."""
    return "".join(
        f"<details><summary>The same charts for {escape(hasher)} codes and {escape(weigher)} "
        "weights</summary>"
        + "".join(_figure(results, (hasher, weigher), figure, 4) for figure in FIGURES)
        + "</details>"
        for hasher, weigher in _settings(results)[1:]
    )


def charts_of(results: Results, setting: Setting, figure: Figure, role: str) -> list[Chart]:
    """Return the charts of one data set, without those that have no measurements."""
    ours, papers = (
        [
            cell
            for cell in source.cells
            if (cell.role, cell.hasher, cell.weigher) == (role, *setting)
            and cell.method in figure.methods
        ]
        for source in (results, PAPER)
    )
    title = f"{figure.title}: {results.name_of(role)}, {' and '.join(setting)}"
    charts = [
        _chart(ours, papers, measure, against_k, title) for measure, against_k in figure.charts
    ]
    return [chart for chart in charts if chart.series]


def _chart(
    ours: list[Cell], papers: list[Cell], measure: Measure, against_k: bool, title: str
) -> Chart:
    series = _series(ours, measure, against_k)
    names = ("bits", "K") if against_k else ("K", "bits")
    panels, places = (Axis(name, _values(series, part)) for part, name in enumerate(names))
    papers_series = _series(papers, measure, against_k) if measure.with_paper else {}
    return Chart(
        title=f"{title}, against {places.name}",
        panels=panels,
        places=places,
        y_label=measure.y_label,
        unit=measure.unit,
        series=series,
        log=measure.log,
        paper={
            method: {
                key: reading
                for key, reading in readings.items()
                if key[0] in panels.values and key[1] in places.values
            }
            for method, readings in papers_series.items()
        },
        reference=measure.reference,
    )


def _series(
    cells: list[Cell], measure: Measure, against_k: bool
) -> dict[str, dict[tuple[int, int], Reading]]:
    series: dict[str, dict[tuple[int, int], Reading]] = {}
    for cell in cells:
        reading = measure.read(cell)
        if reading is not None:
            key = (cell.bits, cell.k) if against_k else (cell.k, cell.bits)
            series.setdefault(cell.method, {})[key] = reading
    return series


def _values(series: Series, part: int) -> tuple[int, ...]:
    return tuple(sorted({key[part] for readings in series.values() for key in readings}))


def _figure(results: Results, setting: Setting, figure: Figure, level: int) -> str:
    """Render a heading of `level`, the legend, and a row of charts for each data set."""
    name = _name(figure, setting)
    rows: list[str] = []
    methods: set[str] = set()
    for role in roles(results):
        charts = charts_of(results, setting, figure, role)
        if not charts:
            continue
        methods.update(method for chart in charts for method in chart.series)
        drawn = "".join(draw(chart, f"{name}-{len(rows)}-{i}") for i, chart in enumerate(charts))
        rows.append(
            f'<div class="whole"><h{level + 1}>{escape(results.name_of(role))}</h{level + 1}>'
            f'<div class="charts">{drawn}</div></div>'
        )
    if not rows:
        return ""
    shown = [method for method in figure.methods if method in methods]
    with_paper = any(measure.with_paper for measure, _ in figure.charts)
    return (
        f'<section id="{name}"><div class="whole"><h{level}>{escape(figure.title)}</h{level}>'
        f"<p>{escape(figure.note)}</p>{legend(shown, with_paper=with_paper)}{rows[0]}</div>"
        f"{''.join(rows[1:])}</section>"
    )


def _name(figure: Figure, setting: Setting) -> str:
    return "-".join((figure.name, *setting)).lower()


def roles(results: Results) -> list[str]:
    """Return the data sets, in the order of the records."""
    named = [facts.role for facts in results.data]
    return list(dict.fromkeys([*named, *(cell.role for cell in results.cells)]))


def _settings(results: Results) -> list[Setting]:
    """Return the measured pairs of hasher and weigher, in the paper's order."""
    measured = {(cell.hasher, cell.weigher) for cell in results.cells}
    return [
        (hasher, weigher)
        for hasher in HASHERS
        for weigher in WEIGHERS
        if (hasher, weigher) in measured
    ]
