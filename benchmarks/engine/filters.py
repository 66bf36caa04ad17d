"""Filters: how long searches with them take, kept, or given in each call."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

import bitweigh
from benchmarks import report
from benchmarks.data import Kind
from benchmarks.engine.clock import (
    Turn,
    engine_turn,
    fastest,
    take_turns,
    typical,
    wall_turn,
)
from benchmarks.engine.sections import Costs, Display, Report, Settings, indexed, load
from bitweigh_experiments.reproduce.formats import three_digits

__all__ = ["CallFigures", "FilterFigures", "ShareFigures", "markdown", "run"]

ROWS = 1_000_000
N_BITS = 64
SETS: tuple[Kind, ...] = ("mixture", "random")
K = 10
SHARES = (0.0001, 0.01, 0.1, 0.5, 0.99)
FEW, MORE = 100, 10_000
N_QUERIES = 100
# Fewer queries, each with other ids: applying many ids takes longer than the search.
N_FIRST = 25
_SEED = 11


class ShareFigures(TypedDict):
    """Searches with a kept filter that allows a share of the rows, by the engine's clock."""

    data: str
    share: float
    auto_us: float
    scan_us: float
    """A scan with the same filter."""
    unfiltered_us: float
    """A scan without filter."""
    nbytes: int
    """Memory of the filter."""


class CallFigures(TypedDict):
    """Whole calls with a filter by wall clock, the best round of each query."""

    data: str
    what: str
    us: float
    beyond_us: float
    """Time beyond a call that finds nothing because its kept filter allows nothing."""
    unfiltered_us: float
    """A search without filter for as many neighbours, or twice as many if half are allowed."""


class FilterFigures(TypedDict):
    """All figures of this section."""

    rows: int
    n_bits: int
    calls: list[CallFigures]
    shares: list[ShareFigures]


def run(settings: Settings, display: Display) -> Report:
    """Measure both sets."""
    figures = FilterFigures(rows=0, n_bits=N_BITS, calls=[], shares=[])
    for kind in SETS:
        codes, costs = load(kind, ROWS, N_BITS, settings, display)
        figures["rows"] = len(codes)
        display.doing(f"filters, {kind}: building")
        index = indexed(codes, N_BITS)
        display.doing(f"filters, {kind}: calls")
        figures["calls"] += _calls(kind, index, costs[:N_QUERIES], settings.rounds)
        for share in SHARES:
            display.doing(f"filters, {kind}: {share:.2%} allowed")
            figures["shares"].append(
                _shared(kind, index, costs[:N_QUERIES], share, settings.rounds)
            )
    return Report(figures, markdown(figures))


def _calls(kind: Kind, index: bitweigh.Index, costs: Costs, rounds: int) -> list[CallFigures]:
    n, few, more = len(index), min(FEW, len(index)), min(MORE, len(index))
    kept = {count: index.filter(allow=drawn(n, count)) for count in (0, few, more, n // 2)}
    filtered = {
        f"{few:,} ids, kept": _kept_turn(index, costs, kept[few]),
        f"{more:,} ids, kept": _kept_turn(index, costs, kept[more]),
        "half of the ids, kept": _kept_turn(index, costs, kept[n // 2]),
        f"{few:,} ids, others in each call": _first_turn(index, costs, few),
        f"{more:,} ids, others in each call": _first_turn(index, costs, more),
    }
    others = {
        "nothing": _kept_turn(index, costs, kept[0]),
        "k": wall_turn(lambda q: index.search(costs[q], K, threads=1), len(costs)),
        "2k": wall_turn(lambda q: index.search(costs[q], 2 * K, threads=1), len(costs)),
    }
    us = {name: fastest(times) for name, times in take_turns(others | filtered, rounds).items()}
    return [
        CallFigures(
            data=kind,
            what=what,
            us=us[what],
            beyond_us=us[what] - us["nothing"],
            unfiltered_us=us["2k" if what.startswith("half") else "k"],
        )
        for what in filtered
    ]


def _kept_turn(index: bitweigh.Index, costs: Costs, kept: bitweigh.Filter) -> Turn:
    return wall_turn(lambda q: index.search(costs[q], K, threads=1, filter=kept), len(costs))


def _first_turn(index: bitweigh.Index, costs: Costs, count: int) -> Turn:
    allow = [drawn(len(index), count, seed) for seed in range(N_FIRST)]
    return wall_turn(
        lambda q: index.search(costs[q], K, threads=1, allow=allow[q]), min(N_FIRST, len(costs))
    )


def _shared(
    kind: Kind, index: bitweigh.Index, costs: Costs, share: float, rounds: int
) -> ShareFigures:
    kept = index.filter(allow=drawn(len(index), max(1, round(share * len(index)))))
    turns = {
        "auto": engine_turn(index, costs, K, kept=kept),
        "scan": engine_turn(index, costs, K, "scan", kept),
        "unfiltered": engine_turn(index, costs, K, "scan"),
    }
    us = {name: typical(times) for name, times in take_turns(turns, rounds).items()}
    return ShareFigures(
        data=kind,
        share=share,
        auto_us=us["auto"],
        scan_us=us["scan"],
        unfiltered_us=us["unfiltered"],
        nbytes=kept.nbytes,
    )


def drawn(n: int, count: int, seed: int = _SEED) -> NDArray[np.int64]:
    """Draw distinct ids from 0 to n - 1 uniformly."""
    return np.random.default_rng(seed).choice(n, count, replace=False)


def markdown(figures: FilterFigures) -> str:
    """Return a table of whole calls, and one of shares."""
    calls = [
        [
            entry["data"],
            entry["what"],
            three_digits(entry["us"]),
            three_digits(entry["beyond_us"]),
            three_digits(entry["unfiltered_us"]),
            f"{entry['us'] / entry['unfiltered_us']:.2f}",
        ]
        for entry in figures["calls"]
    ]
    shares = [
        [
            entry["data"],
            f"{100 * entry['share']:g} %",
            three_digits(entry["auto_us"]),
            three_digits(entry["scan_us"]),
            f"{entry['auto_us'] / entry['scan_us']:.2f}",
            three_digits(entry["unfiltered_us"]),
            f"{entry['unfiltered_us'] / entry['auto_us']:.1f}",
            f"{entry['nbytes']:,}",
        ]
        for entry in figures["shares"]
    ]
    return "\n\n".join(
        [
            f"{figures['rows']:,} codes of {figures['n_bits']} bits, k = {K}, whole calls by wall "
            "clock:",
            report.table(
                ["data", "allowed", "us", "beyond the call, us", "unfiltered, us", "ratio"], calls
            ),
            "Kept filters by the engine's clock:",
            report.table(
                [
                    "data",
                    "allowed",
                    "auto, us",
                    "scan, us",
                    "auto / scan",
                    "unfiltered scan, us",
                    "unfiltered scan / auto",
                    "bytes of the filter",
                ],
                shares,
            ),
        ]
    )
