"""The costs around a search: the call from Python, threads, building and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np

import bitweigh
from benchmarks import report
from benchmarks.engine.clock import Spread, Times, Turn, nanoseconds, spread_of, take_turns, typical
from benchmarks.engine.sections import Codes, Costs, Display, Report, Settings, indexed, load
from bitweigh_experiments.reproduce.formats import three_digits

__all__ = ["BuildFigures", "CallFigures", "MemoryFigures", "ThreadFigures", "markdown", "run"]

ROWS = 1_000_000
N_BITS = 64
K = 10
N_CALLS = 10_000
BATCH = 1000
_SEED = 7


class ThreadFigures(TypedDict):
    """A batch of queries, by wall clock."""

    queries: int
    one_ms: float
    two_ms: float
    speed_up: float


class BuildFigures(TypedDict):
    """Seconds to build the bands of an index, on one thread and on all."""

    bands: int
    threads: int
    one_thread: float
    all_threads: float
    argsort: float
    """Time of np.argsort of as many uint64 keys as rows."""
    per_band: float
    """Time per band on one thread, divided by that of an argsort."""
    per_band_all_threads: float


class MemoryFigures(TypedDict):
    """Bytes per row, by part."""

    counted_ids: dict[str, float]
    """With ids assigned by the index."""
    own_ids: dict[str, float]
    """With the caller's ids, unordered."""


class CallFigures(TypedDict):
    """All figures of this section."""

    rows: int
    n_bits: int
    k: int
    calls: int
    overhead_us: Spread
    """Time of a call minus that of the engine in it."""
    engine_us: float
    threads: ThreadFigures
    build: BuildFigures
    memory: MemoryFigures


def run(settings: Settings, display: Display) -> Report:
    """Measure all of this for one index."""
    codes, costs = load("mixture", ROWS, N_BITS, settings, display)
    display.doing("calls: building")
    index = indexed(codes, N_BITS)
    display.doing("calls: overhead")
    turn = partial(_call_turn, index, costs)
    rounds = -(-N_CALLS // len(costs))
    overhead, engine = np.moveaxis(take_turns({"call": turn}, rounds)["call"], 1, 0)
    display.doing("calls: threads")
    threads = _thread_figures(index, costs[:BATCH], settings.rounds)
    display.doing("calls: build")
    bands = sum(part.bands for part in index.explain(costs[0], K).segments)
    figures = CallFigures(
        rows=len(codes),
        n_bits=N_BITS,
        k=K,
        calls=overhead.size,
        overhead_us=spread_of(overhead),
        engine_us=typical(engine),
        threads=threads,
        build=_build_figures(codes, bands, settings.rounds),
        memory=_memory_figures(index, codes),
    )
    return Report(figures, markdown(figures))


def _call_turn(index: bitweigh.Index, costs: Costs) -> Times:
    """Return the microseconds of each call outside and inside the engine, (2, nq)."""
    index.search(costs[-1], K, threads=1, stats=True)
    times = np.empty((2, len(costs)))
    for number, query in enumerate(costs):
        started = time.perf_counter_ns()
        found = index.search(query, K, threads=1, stats=True)
        total = time.perf_counter_ns() - started
        engine = nanoseconds(found)
        times[:, number] = total - engine, engine
    return times / 1e3


def _thread_figures(index: bitweigh.Index, costs: Costs, rounds: int) -> ThreadFigures:
    turns = {n: _timed(partial(index.search, costs, K, threads=n)) for n in (1, 2)}
    times = take_turns(turns, rounds, pinned=False)
    one, two = typical(times[1]), typical(times[2])
    return ThreadFigures(queries=len(costs), one_ms=one / 1e3, two_ms=two / 1e3, speed_up=one / two)


def _build_figures(codes: Codes, bands: int, rounds: int) -> BuildFigures:
    keys = np.random.default_rng(_SEED).integers(0, 2**64, len(codes), dtype=np.uint64)
    threads = bitweigh.info().threads
    turns: dict[str, Turn] = {
        "one": partial(_build_turn, codes, 1),
        "argsort": _timed(partial(np.argsort, keys)),
        "all": partial(_build_turn, codes, threads),
    }
    seconds = {
        name: typical(times) / 1e6
        for name, times in take_turns(turns, rounds, pinned=False).items()
    }
    return BuildFigures(
        bands=bands,
        threads=threads,
        one_thread=seconds["one"],
        all_threads=seconds["all"],
        argsort=seconds["argsort"],
        per_band=seconds["one"] / bands / seconds["argsort"],
        per_band_all_threads=seconds["all"] / bands / seconds["argsort"],
    )


def _build_turn(codes: Codes, threads: int) -> Times:
    """Time the building of bands only."""
    index = bitweigh.Index(N_BITS, bitorder="little", build="manual")
    index.add(codes)
    return _timed(partial(index.build, threads=threads))()


def _timed(work: Callable[[], object]) -> Turn:
    def turn() -> Times:
        started = time.perf_counter()
        work()
        return np.array([1e6 * (time.perf_counter() - started)])

    return turn


def _memory_figures(index: bitweigh.Index, codes: Codes) -> MemoryFigures:
    with_ids = bitweigh.Index(N_BITS, bitorder="little", build="manual")
    # Ids too large for 32 bits.
    with_ids.add(codes, np.random.default_rng(_SEED).permutation(len(codes)) << 20)
    with_ids.build()
    return MemoryFigures(counted_ids=_bytes_per_row(index), own_ids=_bytes_per_row(with_ids))


def _bytes_per_row(index: bitweigh.Index) -> dict[str, float]:
    memory = index.memory()
    parts = memory._asdict() | {"total": memory.total}
    return {part: n_bytes / len(index) for part, n_bytes in parts.items()}


def markdown(figures: CallFigures) -> str:
    """Return three paragraphs and the table of memory."""
    overhead, threads, build = figures["overhead_us"], figures["threads"], figures["build"]
    memory = figures["memory"]
    rows = [
        [part.replace("_", " "), f"{n_bytes:.1f}", f"{memory['own_ids'][part]:.1f}"]
        for part, n_bytes in memory["counted_ids"].items()
    ]
    what = f"{figures['rows']:,} codes of {figures['n_bits']} bits, k = {figures['k']}"
    return "\n\n".join(
        [
            f"{what}. A call for a single query takes {overhead['p50']:.1f} microseconds more than "
            f"the engine in it, the median of {figures['calls']:,} calls (99th percentile "
            f"{overhead['p99']:.1f}); the engine takes {three_digits(figures['engine_us'])}.",
            f"A batch of {threads['queries']:,} queries takes {threads['one_ms']:.2f} ms on one "
            f"thread and {threads['two_ms']:.2f} ms on two: {threads['speed_up']:.2f} times as "
            "fast.",
            f"`build()` makes {build['bands']} bands in {build['one_thread']:.3f} s on one thread, "
            f"{build['per_band']:.2f} times an `np.argsort` of as many uint64 keys for each "
            f"({build['argsort']:.3f} s), and in {build['all_threads']:.3f} s on "
            f"{build['threads']}, {build['per_band_all_threads']:.2f} times.",
            report.table(["bytes a row", "ids 0 to n - 1", "own ids"], rows),
        ]
    )
