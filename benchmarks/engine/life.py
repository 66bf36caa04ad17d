"""The cost of changing, saving and loading an index, and of removed rows in a search."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np

import bitweigh
from benchmarks import report
from benchmarks.engine.clock import Spread, engine_turn, spread_of, take_turns, typical
from benchmarks.engine.sections import Codes, Costs, Display, Report, Settings, indexed, load
from bitweigh.typing import Method

__all__ = ["LifeFigures", "RemovedFigures", "markdown", "run"]

ROWS = 10_000_000
N_BITS = 64
KS = (1, 10, 100)
N_REMOVED = 1000
N_ADDED = 20_000
N_LOADS = 5
REMOVED_SHARE = 0.05
_N_QUERIES: dict[Method, int] = {"auto": 200, "scan": 8}
_SEED = 9


class RemovedFigures(TypedDict):
    """Times of a search with some rows removed and of one with all rows."""

    method: Method
    k: int
    all_us: float
    removed_us: float
    ratio: float


class LifeFigures(TypedDict):
    """All figures of this section."""

    rows: int
    n_bits: int
    remove_us: Spread
    """Removing one row."""
    first_remove_us: list[float]
    """The first removal after each of several loads."""
    first_remove_mapped_us: list[float]
    add_us: float
    """Adding one row: the mean over enough rows for the tail to become a segment many times."""
    add_with_id_us: float
    save_s: float
    save_again_ms: float
    """Saving after one row was removed."""
    load_s: float
    map_ms: float
    gigabytes: float
    removed: list[RemovedFigures]


def run(settings: Settings, display: Display) -> Report:
    """Measure all of this for one index."""
    codes, costs = load("mixture", ROWS, N_BITS, settings, display)
    display.doing("life: building")
    index = indexed(codes, N_BITS)
    rng = np.random.default_rng(_SEED)
    display.doing("life: removing and adding")
    changed = index.copy()
    removed = [
        _us(lambda ids=[int(id_)]: changed.remove(ids))  # type: ignore[misc]
        for id_ in rng.choice(len(codes), N_REMOVED, replace=False)
    ]
    added = _adding_us(index.copy(), codes, with_ids=False)
    added_with_ids = _adding_us(index.copy(), codes, with_ids=True)
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        display.doing("life: saving and loading")
        stored = _storing(index, Path(scratch) / "index")
    figures = LifeFigures(
        rows=len(codes),
        n_bits=N_BITS,
        remove_us=spread_of(np.array(removed)),
        add_us=added,
        add_with_id_us=added_with_ids,
        gigabytes=index.memory().total / 1e9,
        removed=_searching(index, costs, settings.rounds, display),
        **stored,  # type: ignore[typeddict-item]
    )
    return Report(figures, markdown(figures))


def _us(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - started)


def _adding_us(index: bitweigh.Index, codes: Codes, with_ids: bool) -> float:
    pieces = [np.array(codes[row : row + 1]) for row in range(N_ADDED)]
    ids = [[2**40 + 7 * row] if with_ids else None for row in range(N_ADDED)]

    def add() -> None:
        for piece, piece_ids in zip(pieces, ids, strict=True):
            index.add(piece, piece_ids)

    return _us(add) / N_ADDED


def _storing(index: bitweigh.Index, folder: Path) -> dict[str, object]:
    save = _us(lambda: index.save(folder))
    times: dict[bool, list[float]] = {False: [], True: []}
    first: dict[bool, list[float]] = {False: [], True: []}
    changed = index
    for number in range(N_LOADS):
        for mapped in (False, True):
            started = time.perf_counter()
            changed = bitweigh.Index.load(folder, mmap=mapped)
            times[mapped].append(time.perf_counter() - started)
            first[mapped].append(_us(lambda: changed.remove([1000 * number + 77])))  # noqa: B023
    again = _us(lambda: changed.save(folder))
    return {
        "save_s": save / 1e6,
        "save_again_ms": again / 1e3,
        "load_s": float(np.median(times[False])),
        "map_ms": 1e3 * float(np.median(times[True])),
        "first_remove_us": first[False],
        "first_remove_mapped_us": first[True],
    }


def _searching(
    index: bitweigh.Index, costs: Costs, rounds: int, display: Display
) -> list[RemovedFigures]:
    rng = np.random.default_rng(_SEED)
    fewer = index.copy()
    fewer.remove(rng.choice(len(index), int(REMOVED_SHARE * len(index)), replace=False))
    figures = []
    for method, n_queries in _N_QUERIES.items():
        for k in KS:
            display.doing(f"life: {method}, k = {k}")
            queries = costs[:n_queries]
            turns = {
                name: engine_turn(own, queries, k, method)
                for name, own in (("all", index), ("fewer", fewer))
            }
            times = take_turns(turns, rounds)
            every, left = typical(times["all"]), typical(times["fewer"])
            figures.append(
                RemovedFigures(
                    method=method, k=k, all_us=every, removed_us=left, ratio=left / every
                )
            )
    return figures


def markdown(figures: LifeFigures) -> str:
    """Return three paragraphs and the table of searches."""
    first = ", ".join(f"{us:.0f}" for us in figures["first_remove_us"])
    mapped = ", ".join(f"{us:.0f}" for us in figures["first_remove_mapped_us"])
    rows = [
        [
            removed["method"],
            str(removed["k"]),
            f"{removed['all_us']:.1f}",
            f"{removed['removed_us']:.1f}",
            f"{removed['ratio']:.2f}",
        ]
        for removed in figures["removed"]
    ]
    table = report.table(["method", "k", "all rows, us", "5 % removed, us", "times as long"], rows)
    return "\n\n".join(
        [
            f"{figures['rows']:,} codes of {figures['n_bits']} bits with bands, "
            f"{figures['gigabytes']:.2f} GB.",
            f"Removing one row takes {figures['remove_us']['p50']:.1f} microseconds, the median of "
            f"{N_REMOVED:,} (99th percentile {figures['remove_us']['p99']:.1f}); the first one "
            f"after a load, when no cache has anything of the index, {first}; after a mapped load, "
            f"when its pages are not mapped yet either, {mapped}. Adding one row takes "
            f"{figures['add_us']:.1f} in the mean of {N_ADDED:,}, with an id of its own "
            f"{figures['add_with_id_us']:.1f}.",
            f"Saving takes {figures['save_s']:.2f} s, and {figures['save_again_ms']:.1f} ms after "
            f"a row was removed; loading with checksums {figures['load_s']:.2f} s from the page "
            f"cache, mapping {figures['map_ms']:.1f} ms.",
            table,
        ]
    )
