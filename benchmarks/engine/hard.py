"""What `auto` costs where bands do not help: its time against the scan's, query by query.

For the k nearest, for everything within a radius, and for the k nearest with every tie.
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
"""Rows by bits; of a real set at most those that it has."""
WORDS = "word vectors"
ITQ_BITS = 64
"""Of word vectors hashed by ITQ too, which takes no more bits than they have dimensions."""
KS = (1, 10, 100, 1000)
N_QUERIES = 128
N_RANGES = 48
"""Fewer queries for these: they may find thousands of rows each."""
BATCH = 64
SHORT_US = 20.0
"""Below this a ratio says little, and a difference more."""
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
    """Of those two."""
    ratios: Spread
    """Of each query's best time with the one and with the other."""
    most_us: float
    """By so much `auto` took longer at most, by the same times."""


class HardFigures(TypedDict):
    """One set of codes and one k."""

    data: str
    rows: int
    n_bits: int
    k: int
    single: Comparison
    """A query per call."""
    batch: Comparison
    """64 queries per call."""
    within: Comparison
    """Everything within the distance of the k-th nearest."""
    ties: Comparison
    """The k nearest and all that are as far as the last."""


class _CodeSet(NamedTuple):
    name: str
    codes: Codes
    costs: Costs


def run(settings: Settings, display: Display) -> Report:
    """Every set of every shape with every k that it has rows for."""
    measured = []
    for n_bits, sizes in SHAPES.items():
        for n in sorted({min(n, settings.rows) for n in sizes}):
            for own in _code_sets(n, n_bits, settings, display):
                display.doing(f"{own.name}, {len(own.codes):,} x {n_bits} bits: building")
                index = indexed(own.codes, n_bits)
                for k in KS:
                    if k <= len(own.codes):
                        display.doing(f"{own.name}, {len(own.codes):,} x {n_bits} bits, k = {k}")
                        measured.append(_measure(own, index, k, settings.rounds))
    if not any(own["data"] == WORDS for own in measured):
        display.say(f"hard: without {WORDS}, whose folder --data names")
    return Report(measured, markdown(measured))


def _code_sets(n: int, n_bits: int, settings: Settings, display: Display) -> Iterator[_CodeSet]:
    # The first rows of the largest set are the smaller ones.
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
    """Independent bits; of most nearly all rows have the same value."""
    rng = np.random.default_rng(_SEED)
    shares = rng.beta(0.3, 0.3, n_bits)
    sizes = [min(_CHUNK_ROWS, n - first) for first in range(0, n, _CHUNK_ROWS)]
    chunks = (rng.random((size, n_bits), dtype=np.float32) < shares for size in sizes)
    return np.concatenate([np.packbits(bits, axis=1, bitorder="little") for bits in chunks])


def _duplicated(codes: Codes, n: int) -> Codes:
    """Some 50 rows to a code, of a few codes far more."""
    distinct = max(1, n // 50)
    drawn = np.random.default_rng(_SEED).zipf(1.5, n) % distinct
    return np.asarray(codes[:distinct])[drawn]


# Of one length at a time: the shapes of a length follow each other, and hashing takes seconds.
@lru_cache(maxsize=2)
def _words(
    n_bits: int, hasher: HasherName, settings: Settings, display: Display
) -> tuple[Codes, Costs]:
    return load("glove", None, n_bits, settings, display, hasher)


def _measure(own: _CodeSet, index: bitweigh.Index, k: int, rounds: int) -> HardFigures:
    queries = own.costs[:N_QUERIES]
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
        data=own.name,
        rows=len(own.codes),
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
    """By the engine's clock; queries that were scanned together share the time."""

    def turn() -> Times:
        index.search(costs[-1], k, threads=1, method=method)
        batches = (costs[first : first + BATCH] for first in range(0, len(costs), BATCH))
        found = (index.search(own, k, threads=1, method=method, stats=True) for own in batches)
        return np.concatenate([nanoseconds(result) for result in found]) / 1e3

    return turn


def compare(auto: Times, scan: Times) -> Comparison:
    """Two methods by their times (rounds, nq)."""
    auto_us, scan_us = typical(auto), typical(scan)
    # The best of the rounds: what disturbs a query in one of them is not the method's.
    auto_best, scan_best = auto.min(axis=0), scan.min(axis=0)
    return Comparison(
        auto_us=auto_us,
        scan_us=scan_us,
        mean_ratio=auto_us / scan_us,
        ratios=spread_of(auto_best / scan_best),
        most_us=float((auto_best - scan_best).max()),
    )


def markdown(measured: list[HardFigures]) -> str:
    """For single queries and for batches: the worst in words, and a row for each set."""
    parts = []
    columns = ["data", "codes", "bits", *(f"k = {k}" for k in KS)]
    for title, call in _CALLS:
        rows = []
        for (data, n, n_bits), group in groupby(measured, key=_shape):
            by_k = {own["k"]: _cell(own[call]) for own in group}
            rows.append([data, f"{n:,}", str(n_bits), *(by_k.get(k, MISSING) for k in KS)])
        said = worst_in_words([own[call] for own in measured])
        parts += [f"{title}: {said}", report.table(columns, rows)]
    return "\n\n".join(parts)


def _shape(own: HardFigures) -> tuple[str, int, int]:
    return own["data"], own["rows"], own["n_bits"]


def _cell(own: Comparison) -> str:
    numbers = own["mean_ratio"], own["ratios"]["p50"], own["ratios"]["p99"], own["ratios"]["max"]
    return " / ".join(f"{number:.2f}" for number in numbers)


def worst_in_words(cells: list[Comparison]) -> str:
    """By ratio where the scan takes its time, by difference where it is short."""
    long = [own for own in cells if own["scan_us"] >= SHORT_US]
    short = [own for own in cells if own["scan_us"] < SHORT_US]
    parts = []
    if long:
        mean = max(own["mean_ratio"] for own in long)
        query = max(own["ratios"]["max"] for own in long)
        parts.append(
            f"where the scan takes {SHORT_US:.0f} microseconds or more, `auto` takes at most "
            f"{mean:.2f} times as long in the mean and {query:.2f} times for a single query"
        )
    if short:
        difference = max(own["auto_us"] - own["scan_us"] for own in short)
        most = max(own["most_us"] for own in short)
        parts.append(
            f"where it takes less, at most {difference:.1f} microseconds longer in the mean and "
            f"{most:.1f} for a single query"
        )
    return "; ".join(parts) + "."
