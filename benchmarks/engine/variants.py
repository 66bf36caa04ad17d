"""Other kinds of searches compared with plain search: iterating, a radius, filters."""

from __future__ import annotations

from itertools import islice
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

import bitweigh
from benchmarks import report
from benchmarks.data import Kind
from benchmarks.engine.clock import Turn, engine_turn, take_turns, typical, wall_turn
from benchmarks.engine.sections import Costs, Display, Report, Settings, indexed, load
from bitweigh_experiments.reproduce.formats import three_digits

__all__ = ["FilterFigures", "VariantFigures", "WallFigures", "markdown", "run"]

ROWS = 1_000_000
N_BITS = 64
SETS: tuple[Kind, ...] = ("mixture", "random")
ITERATED = 10
KS = (1, 10, 100)
FILTERED_K = 10
SHARES = (0.0001, 0.01, 0.5, 0.99)
# Up to this share of rows a filter lists ids; above it, it has a flag per id.
_NAMED_SHARE = 0.1
N_QUERIES = 200
# Fewer queries: building the filter takes longer than most of the searches.
N_FILTERED = 50
_SEED = 11


class WallFigures(TypedDict):
    """Wall-clock times of another call and of the search that finds the same rows."""

    data: str
    what: str
    us: float
    search_us: float


class FilterFigures(TypedDict):
    """Times with a share of the rows allowed, by the engine's clock unless noted."""

    data: str
    share: float
    auto_us: float
    scan_us: float
    """A scan with the same filter."""
    unfiltered_us: float
    """A scan without filter."""
    call_us: float
    """The whole call by wall clock; most of it builds the filter from ids or flags."""


class VariantFigures(TypedDict):
    """All figures of this section."""

    rows: int
    n_bits: int
    asked: list[WallFigures]
    filters: list[FilterFigures]


def run(settings: Settings, display: Display) -> Report:
    """Measure both sets."""
    figures = VariantFigures(rows=0, n_bits=N_BITS, asked=[], filters=[])
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
        for share in SHARES:
            display.doing(f"variants, {kind}: {share:.2%} allowed")
            filtered = _filtered(kind, index, costs[:N_FILTERED], share, settings.rounds)
            figures["filters"].append(filtered)
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


def _filtered(
    kind: Kind, index: bitweigh.Index, costs: Costs, share: float, rounds: int
) -> FilterFigures:
    allow = allowed(len(index), share)
    turns = {
        "auto": engine_turn(index, costs, FILTERED_K, allow=allow),
        "scan": engine_turn(index, costs, FILTERED_K, "scan", allow),
        "unfiltered": engine_turn(index, costs, FILTERED_K, "scan"),
        "call": wall_turn(
            lambda q: index.search(costs[q], FILTERED_K, threads=1, allow=allow), len(costs)
        ),
    }
    us = {name: typical(times) for name, times in take_turns(turns, rounds).items()}
    return FilterFigures(
        data=kind,
        share=share,
        auto_us=us["auto"],
        scan_us=us["scan"],
        unfiltered_us=us["unfiltered"],
        call_us=us["call"],
    )


def allowed(n: int, share: float) -> NDArray[np.int64] | NDArray[np.bool_]:
    """Draw a share of the ids 0 to n - 1 uniformly, at least one."""
    ids = np.random.default_rng(_SEED).choice(n, max(1, round(share * n)), replace=False)
    if share <= _NAMED_SHARE:
        return ids
    flags = np.zeros(n, dtype=np.bool_)
    flags[ids] = True
    return flags


def markdown(figures: VariantFigures) -> str:
    """Return a table of wall-clock times, and one of filters."""
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
    filters = [
        [
            entry["data"],
            f"{100 * entry['share']:g} %",
            three_digits(entry["auto_us"]),
            three_digits(entry["scan_us"]),
            f"{entry['auto_us'] / entry['scan_us']:.2f}",
            three_digits(entry["unfiltered_us"]),
            f"{entry['unfiltered_us'] / entry['auto_us']:.1f}",
            three_digits(entry["call_us"]),
        ]
        for entry in figures["filters"]
    ]
    return "\n\n".join(
        [
            f"{figures['rows']:,} codes of {figures['n_bits']} bits, by wall clock:",
            report.table(["data", "asked", "us", "search, us", "ratio"], wall_rows),
            f"Filters, k = {FILTERED_K}:",
            report.table(
                [
                    "data",
                    "allowed",
                    "auto, us",
                    "scan, us",
                    "auto / scan",
                    "unfiltered scan, us",
                    "unfiltered scan / auto",
                    "whole call, us",
                ],
                filters,
            ),
        ]
    )
