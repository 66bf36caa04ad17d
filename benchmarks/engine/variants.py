"""Other kinds of searches compared with plain search: iterating, a radius."""

from __future__ import annotations

from itertools import islice
from typing import TypedDict

import bitweigh
from benchmarks import report
from benchmarks.data import Kind
from benchmarks.engine.clock import Turn, take_turns, typical, wall_turn
from benchmarks.engine.sections import Costs, Display, Report, Settings, indexed, load
from bitweigh_experiments.reproduce.formats import three_digits

__all__ = ["VariantFigures", "WallFigures", "markdown", "run"]

ROWS = 1_000_000
N_BITS = 64
SETS: tuple[Kind, ...] = ("mixture", "random")
ITERATED = 10
KS = (1, 10, 100)
N_QUERIES = 200


class WallFigures(TypedDict):
    """Wall-clock times of another call and of the search that finds the same rows."""

    data: str
    what: str
    us: float
    search_us: float


class VariantFigures(TypedDict):
    """All figures of this section."""

    rows: int
    n_bits: int
    asked: list[WallFigures]


def run(settings: Settings, display: Display) -> Report:
    """Measure both sets."""
    figures = VariantFigures(rows=0, n_bits=N_BITS, asked=[])
    for kind in SETS:
        codes, costs = load(kind, ROWS, N_BITS, settings, display)
        figures["rows"] = len(codes)
        display.doing(f"variants, {kind}: building")
        index = indexed(codes, N_BITS)
        display.doing(f"variants, {kind}: iterating and a radius")
        queries = costs[:N_QUERIES]
        figures["asked"].append(_iterated(kind, index, queries, settings.rounds))
        for k in KS:
            figures["asked"].append(_within(kind, index, queries, k, settings.rounds))
    return Report(figures, markdown(figures))


def _iterated(kind: Kind, index: bitweigh.Index, costs: Costs, rounds: int) -> WallFigures:
    turn = wall_turn(lambda q: list(islice(index.iterate(costs[q]), ITERATED)), len(costs))
    search = _search_turn(index, costs, ITERATED)
    return _compared(kind, f"the first {ITERATED} of `iterate`", turn, search, rounds)


def _within(kind: Kind, index: bitweigh.Index, costs: Costs, k: int, rounds: int) -> WallFigures:
    radii = index.search(costs, k).distances[:, -1]
    turn = wall_turn(lambda q: index.range_search(costs[q], radii[q], threads=1), len(costs))
    what = f"`range_search`, the distance of number {k} as radius"
    return _compared(kind, what, turn, _search_turn(index, costs, k), rounds)


def _compared(kind: Kind, what: str, turn: Turn, search: Turn, rounds: int) -> WallFigures:
    times = take_turns({"own": turn, "search": search}, rounds)
    return WallFigures(
        data=kind, what=what, us=typical(times["own"]), search_us=typical(times["search"])
    )


def _search_turn(index: bitweigh.Index, costs: Costs, k: int) -> Turn:
    return wall_turn(lambda q: index.search(costs[q], k, threads=1), len(costs))


def markdown(figures: VariantFigures) -> str:
    """Return a table of wall-clock times."""
    wall_rows = [
        [
            entry["data"],
            entry["what"],
            three_digits(entry["us"]),
            three_digits(entry["search_us"]),
            f"{entry['us'] / entry['search_us']:.2f}",
        ]
        for entry in figures["asked"]
    ]
    return "\n\n".join(
        [
            f"{figures['rows']:,} codes of {figures['n_bits']} bits, by wall clock:",
            report.table(["data", "asked", "us", "search, us", "ratio"], wall_rows),
        ]
    )
