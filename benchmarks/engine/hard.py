"""The cost of `auto` where bands do not help: its time against the scan's, query by query.

Measured for the k nearest, for everything within a radius, and for the k nearest with all ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple, TypedDict

import numpy as np

import bitweigh
from benchmarks import report
from benchmarks.data import NoDataError
from benchmarks.engine.clock import (
    Spread,
    Times,
    Turn,
    engine_turn,
    nanoseconds,
    spread_of,
    take_turns,
    typical,
    wall_turn,
)
from benchmarks.engine.sections import Codes, Costs, Display, Report, Settings, indexed, load
from benchmarks.hashed import HasherName
from bitweigh.typing import Method
from bitweigh_experiments.reproduce.formats import MISSING

__all__ = ["Comparison", "HardFigures", "compare", "markdown", "run"]

_ALL = (1_000, 10_000, 100_000, 1_000_000)
_ENDS = (10_000, 1_000_000)
SHAPES: dict[int, tuple[int, ...]] = {64: _ALL, 128: _ENDS, 256: _ENDS, 512: _ALL}
"""Numbers of rows by code length; a real set is limited to the rows it has."""
WORDS = "word vectors"
ITQ_BITS = 64
"""Code length at which word vectors are also hashed by ITQ, which needs as many dimensions."""
KS = (1, 10, 100, 1000)
N_QUERIES = 128
N_RANGES = 48
"""Queries for range searches and ties, which may find thousands of rows each."""
BATCH = 64
SHORT_US = 20.0
"""Scans shorter than this are compared by difference, as their ratios say little."""
_SEED = 4
_METHODS: tuple[Method, ...] = ("auto", "scan")
_CHUNK_ROWS = 50_000
_CALLS: tuple[tuple[str, Literal["single", "batch", "within", "ties"]], ...] = (
    ("Single queries", "single"),
    (f"Batches of {BATCH}", "batch"),
    ("`range_search`, the distance of number k as radius, whole calls", "within"),
    ("`search_with_ties`, whole calls", "ties"),
)


class Comparison(TypedDict):
    """`auto` and the scan on the same queries."""

    auto_us: float
    scan_us: float
    mean_ratio: float
    """`auto_us` divided by `scan_us`."""
    ratios: Spread
    """Ratios of each query's best times."""
    most_us: float
    """The largest difference of those best times, `auto` minus scan."""


class HardFigures(TypedDict):
    """One set of codes and one k."""

    data: str
    rows: int
    n_bits: int
    k: int
    single: Comparison
    """One query per call."""
    batch: Comparison
    """64 queries per call."""
    within: Comparison
    """Everything within the distance of the k-th nearest."""
    ties: Comparison
    """The k nearest and all rows tied with the last."""


class _CodeSet(NamedTuple):
    name: str
    codes: Codes
    costs: Costs


def run(settings: Settings, display: Display) -> Report:
    """Measure every set of every shape with every k up to its number of rows."""
    measured = []
    for n_bits, sizes in SHAPES.items():
        for n in sorted({min(n, settings.rows) for n in sizes}):
            for code_set in _code_sets(n, n_bits, settings, display):
                display.doing(f"{code_set.name}, {len(code_set.codes):,} x {n_bits} bits: building")
                index = indexed(code_set.codes, n_bits)
                for k in KS:
                    if k <= len(code_set.codes):
                        display.doing(
                            f"{code_set.name}, {len(code_set.codes):,} x {n_bits} bits, k = {k}"
                        )
                        measured.append(_measure(code_set, index, k, settings.rounds))
    if not any(code_set["data"] == WORDS for code_set in measured):
        display.say(f"hard: without {WORDS}, whose folder --data names")
    return Report(measured, markdown(measured))


def _code_sets(n: int, n_bits: int, settings: Settings, display: Display) -> Iterator[_CodeSet]:
    # The smaller sets are the first rows of the largest.
    codes, costs = load("random", max(_ALL), n_bits, settings, display)
    yield _CodeSet("random bits", codes[:n], costs)
    yield _CodeSet("skewed bits", _skewed(n, n_bits), costs)
    yield _CodeSet("duplicated codes", _duplicated(codes, n), costs)
    with suppress(NoDataError):
        words, own_costs = _words(n_bits, "lsh", settings, display)
        yield _CodeSet(WORDS, words[:n], own_costs)
        if n_bits == ITQ_BITS:
            words, own_costs = _words(n_bits, "itq", settings, display)
            yield _CodeSet(f"{WORDS}, ITQ", words[:n], own_costs)


def _skewed(n: int, n_bits: int) -> Codes:
    """Draw independent bits; most have the same value in nearly all rows."""
    rng = np.random.default_rng(_SEED)
    shares = rng.beta(0.3, 0.3, n_bits)
    sizes = [min(_CHUNK_ROWS, n - first) for first in range(0, n, _CHUNK_ROWS)]
    chunks = (rng.random((size, n_bits), dtype=np.float32) < shares for size in sizes)
    return np.concatenate([np.packbits(bits, axis=1, bitorder="little") for bits in chunks])


def _duplicated(codes: Codes, n: int) -> Codes:
    """Repeat codes: about 50 rows per code, far more for a few codes."""
    distinct = max(1, n // 50)
    drawn = np.random.default_rng(_SEED).zipf(1.5, n) % distinct
    return np.asarray(codes[:distinct])[drawn]


# One length at a time is enough: its shapes are adjacent. Hashing takes seconds.
@lru_cache(maxsize=2)
def _words(
    n_bits: int, hasher: HasherName, settings: Settings, display: Display
) -> tuple[Codes, Costs]:
    return load("glove", None, n_bits, settings, display, hasher)


def _measure(code_set: _CodeSet, index: bitweigh.Index, k: int, rounds: int) -> HardFigures:
    queries = code_set.costs[:N_QUERIES]
    single = take_turns(
        {method: engine_turn(index, queries, k, method) for method in _METHODS}, rounds
    )
    batch = take_turns(
        {method: _batch_turn(index, queries, k, method) for method in _METHODS}, rounds
    )
    ranges = queries[:N_RANGES]
    radii = index.search(ranges, k).distances[:, -1]
    within = take_turns(
        {method: _range_turn(index, ranges, radii, method) for method in _METHODS}, rounds
    )
    ties = take_turns({method: _ties_turn(index, ranges, k, method) for method in _METHODS}, rounds)
    return HardFigures(
        data=code_set.name,
        rows=len(code_set.codes),
        n_bits=index.n_bits,
        k=k,
        single=compare(single["auto"], single["scan"]),
        batch=compare(batch["auto"], batch["scan"]),
        within=compare(within["auto"], within["scan"]),
        ties=compare(ties["auto"], ties["scan"]),
    )


def _range_turn(index: bitweigh.Index, costs: Costs, radii: Times, method: Method) -> Turn:
    return wall_turn(
        lambda q: index.range_search(costs[q], radii[q], threads=1, method=method), len(costs)
    )


def _ties_turn(index: bitweigh.Index, costs: Costs, k: int, method: Method) -> Turn:
    return wall_turn(
        lambda q: index.search_with_ties(costs[q], k, threads=1, method=method), len(costs)
    )


def _batch_turn(index: bitweigh.Index, costs: Costs, k: int, method: Method) -> Turn:
    """Return a turn by the engine's clock; queries scanned together share the time."""

    def turn() -> Times:
        index.search(costs[-1], k, threads=1, method=method)
        batches = (costs[first : first + BATCH] for first in range(0, len(costs), BATCH))
        found = (index.search(batch, k, threads=1, method=method, stats=True) for batch in batches)
        return np.concatenate([nanoseconds(result) for result in found]) / 1e3

    return turn


def compare(auto: Times, scan: Times) -> Comparison:
    """Compare two methods by their times (rounds, nq)."""
    auto_us, scan_us = typical(auto), typical(scan)
    # The best round of each query: disturbances in other rounds are not the method's.
    auto_best, scan_best = auto.min(axis=0), scan.min(axis=0)
    return Comparison(
        auto_us=auto_us,
        scan_us=scan_us,
        mean_ratio=auto_us / scan_us,
        ratios=spread_of(auto_best / scan_best),
        most_us=float((auto_best - scan_best).max()),
    )


def markdown(measured: list[HardFigures]) -> str:
    """Return, for each kind of call, the worst case in words and a row for each set."""
    parts = []
    columns = ["data", "codes", "bits", *(f"k = {k}" for k in KS)]
    for title, call in _CALLS:
        rows = []
        for (data, n, n_bits), group in groupby(measured, key=_shape):
            by_k = {figures["k"]: _cell(figures[call]) for figures in group}
            rows.append([data, f"{n:,}", str(n_bits), *(by_k.get(k, MISSING) for k in KS)])
        worst = worst_in_words([figures[call] for figures in measured])
        parts += [f"{title}: {worst}", report.table(columns, rows)]
    return "\n\n".join(parts)


def _shape(figures: HardFigures) -> tuple[str, int, int]:
    return figures["data"], figures["rows"], figures["n_bits"]


def _cell(comparison: Comparison) -> str:
    numbers = (
        comparison["mean_ratio"],
        comparison["ratios"]["p50"],
        comparison["ratios"]["p99"],
        comparison["ratios"]["max"],
    )
    return " / ".join(f"{number:.2f}" for number in numbers)


def worst_in_words(cells: list[Comparison]) -> str:
    """Describe the worst case: by ratio for long scans, by difference for short ones."""
    long = [cell for cell in cells if cell["scan_us"] >= SHORT_US]
    short = [cell for cell in cells if cell["scan_us"] < SHORT_US]
    parts = []
    if long:
        mean = max(cell["mean_ratio"] for cell in long)
        query = max(cell["ratios"]["max"] for cell in long)
        parts.append(
            f"where the scan takes {SHORT_US:.0f} microseconds or more, `auto` takes at most "
            f"{mean:.2f} times as long in the mean and {query:.2f} times for a single query"
        )
    if short:
        difference = max(cell["auto_us"] - cell["scan_us"] for cell in short)
        most = max(cell["most_us"] for cell in short)
        parts.append(
            f"where it takes less, at most {difference:.1f} microseconds longer in the mean and "
            f"{most:.1f} for a single query"
        )
    return "; ".join(parts) + "."
