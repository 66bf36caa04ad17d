"""How late searches with a timeout end: the engine by its own clock, and the call by the caller's.

``python -m benchmarks.deadlines [--rows 1e6] [--deadlines 1000]``

For each kind of search: random deadlines between 0 and the time that the search takes, from as many
threads as there are CPUs, each search on one thread, or from one thread on all CPUs. Every outcome
is checked: it is the right answer or `DeadlineError`. The engine's figure is read when all its work
has ended and before it waits for Python's lock; the caller's includes that wait and the exception.
Both include waits that no search can end: for Python's lock before the engine begins, since another
thread may hold it for five milliseconds, and for a CPU that other work has. So the worst of the
searches whose thread was never off its CPU for long is given, too. What a hypervisor takes away is
in no record, so the longest pauses of loops that only read the clock, one per CPU, are given beside
all that.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table

import bitweigh
from benchmarks import machine

__all__ = ["Kind", "Lateness", "kinds", "measure", "pauses_ms"]

N_BITS = 64
LIMIT_MS = 5.0
"""How late the engine may be."""
# A thread that is off its CPU for longer than this has waited for Python's lock or for a CPU.
_WAIT_SECONDS = 0.0005

Search: TypeAlias = Callable[[float | None], tuple[Any, ...]]
"""A search by its timeout."""


class Lateness(NamedTuple):
    """What random deadlines of one kind of search came to; milliseconds after the deadline."""

    took_ms: float
    """Time of the search without a timeout, with as many others at the same time."""
    answers: int
    errors: int
    engine_p99_ms: float
    engine_max_ms: float
    running_max_ms: float
    """The worst by the engine's clock of the searches whose thread ran all the time."""
    caller_p99_ms: float
    caller_max_ms: float


class _Outcome(NamedTuple):
    answered: bool
    engine_ms: float
    caller_ms: float
    waited: bool
    """Whether the caller's thread was off its CPU for long."""


class Kind(NamedTuple):
    """A kind of search, and how many threads call it at the same time."""

    search: Search
    callers: int


def kinds(rows: int, cpus: int, seed: int = 0) -> dict[str, Kind]:
    """Return every kind of search over random codes and vectors; none uses more than all CPUs."""
    rng = np.random.default_rng(seed)
    index = bitweigh.Index(N_BITS)
    index.add(rng.integers(0, 256, (rows, N_BITS // 8), dtype=np.uint8))
    costs = rng.standard_normal((256, N_BITS, 2))
    flags = rng.random(rows) < 0.5
    ids = rng.permutation(rows)[: rows // 2]
    tenth = index.search(costs[0], rows // 10).distances[-1]
    vectors = rng.standard_normal((rows // 20, 64)).astype(np.float32)
    reranked = bitweigh.VectorIndex(n_bits=64, hasher="lsh", rerank="float32").fit(vectors[:1000])
    reranked.add(vectors)
    narrow = bitweigh.VectorIndex(n_bits=4, hasher="lsh", rerank="float32").fit(vectors[:, :4])
    narrow.add(rng.standard_normal((rows, 4)))
    by_one_thread: dict[str, Search] = {
        "256 queries, k = 10": lambda t: index.search(costs, 10, threads=1, timeout=t),
        "256 queries, scanned": lambda t: index.search(
            costs, 10, threads=1, method="scan", timeout=t
        ),
        "1 query, k = rows / 4": lambda t: index.search(costs[0], rows // 4, threads=1, timeout=t),
        "every row within a radius": lambda t: index.range_search(
            costs[0], np.inf, threads=1, timeout=t
        ),
        "a tenth of them, by bands": lambda t: index.range_search(
            costs[0], tenth, threads=1, method="probe", timeout=t
        ),
        "ties of 64 queries": lambda t: index.search_with_ties(
            costs[:64], 100, threads=1, timeout=t
        ),
        "ids of half the rows": lambda t: index.search(
            costs[:16], 10, threads=1, allow=ids, timeout=t
        ),
        "flags of half the rows": lambda t: index.search(
            costs[:16], 10, threads=1, deny=flags, timeout=t
        ),
        "reranked, 64 queries": lambda t: reranked.search(
            vectors[:64], 10, rerank_from=1000, threads=1, timeout=t
        ),
        "vectors within a radius": lambda t: reranked.range_search(
            vectors[:16], 8.0, threads=1, timeout=t
        ),
        "every vector within a radius": lambda t: narrow.range_search(
            vectors[0, :4], np.inf, threads=1, timeout=t
        ),
    }
    found = {name: Kind(search, cpus) for name, search in by_one_thread.items()}
    found["256 queries, all CPUs"] = Kind(
        lambda t: index.search(costs, 10, threads=cpus, timeout=t), 1
    )
    return found


def measure(kind: Kind, deadlines: int, seed: int = 0) -> Lateness:
    """Search with random deadlines, from several threads; raise if an answer is wrong."""
    search, callers = kind
    expected = search(None)

    def outcome(timeout: float | None) -> _Outcome:
        began, began_cpu = time.perf_counter(), time.thread_time()
        try:
            answer = search(timeout)
        except bitweigh.DeadlineError as error:
            took, took_cpu = time.perf_counter() - began, time.thread_time() - began_cpu
            # A caller that is alone has nobody to wait for but the threads of its own search.
            waited = callers > 1 and took - took_cpu > _WAIT_SECONDS
            late = took - error.timeout
            return _Outcome(False, 1e3 * error.seconds_late, 1e3 * late, waited)
        if not all(map(np.array_equal, answer, expected)):
            raise AssertionError("a search with a timeout gave another answer")
        return _Outcome(True, 0.0, 1e3 * (time.perf_counter() - began), False)

    with ThreadPoolExecutor(callers) as pool:
        took_ms = statistics.median(
            outcome.caller_ms for outcome in pool.map(outcome, [None] * 4 * callers)
        )
        random = np.random.default_rng(seed).uniform(0.0, took_ms / 1e3, deadlines)
        outcomes = list(pool.map(outcome, random.tolist()))
    late = [outcome for outcome in outcomes if not outcome.answered]
    engine = np.array([outcome.engine_ms for outcome in late] or [0.0])
    running = [outcome.engine_ms for outcome in late if not outcome.waited]
    caller = np.array([outcome.caller_ms for outcome in late] or [0.0])
    return Lateness(
        took_ms,
        len(outcomes) - len(late),
        len(late),
        float(np.percentile(engine, 99)),
        float(engine.max()),
        max(running, default=0.0),
        float(np.percentile(caller, 99)),
        float(caller.max()),
    )


def pauses_ms(seconds: float) -> list[float]:
    """Return the longest pauses of a loop that does nothing but read the clock, longest first."""
    pauses = []
    last = time.perf_counter()
    end = last + seconds
    while last < end:
        now = time.perf_counter()
        if now - last > 1e-3:
            pauses.append(1e3 * (now - last))
        last = now
    return sorted(pauses, reverse=True)


def main() -> None:
    """Measure every kind of search, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--deadlines", type=int, default=1000)
    arguments = parser.parse_args()
    console = Console(width=150)
    cpus = bitweigh.info().threads
    where = ", ".join(machine.facts().values())
    table = Table(title=f"Milliseconds after the deadline; {cpus} CPUs; {where}")
    table.add_column("search")
    for column in ("takes", "answers", "errors", "engine p99", "worst", "running"):
        table.add_column(column, justify="right")
    for column in ("caller p99", "worst"):
        table.add_column(column, justify="right")
    worst = running = 0.0
    began = time.perf_counter()
    for name, kind in kinds(int(arguments.rows), cpus).items():
        found = measure(kind, arguments.deadlines)
        worst = max(worst, found.engine_max_ms)
        running = max(running, found.running_max_ms)
        table.add_row(
            name,
            f"{found.took_ms:.1f}",
            str(found.answers),
            str(found.errors),
            *(f"{value:.2f}" for value in found[3:]),
        )
    console.print(table)
    seconds = time.perf_counter() - began
    with ProcessPoolExecutor(cpus) as pool:
        pauses = sorted(chain(*pool.map(pauses_ms, [seconds] * cpus)), reverse=True)
    longest = ", ".join(f"{pause:.1f}" for pause in pauses[:5]) or "none above 1"
    console.print(
        f"Loops that only read the clock, one per CPU, for {seconds:.0f} s: longest pauses "
        f"{longest} ms, {sum(pause > LIMIT_MS for pause in pauses)} above {LIMIT_MS:g} ms."
    )
    for what, value in (("All searches", worst), ("Searches that did not wait", running)):
        verdict = "within" if value <= LIMIT_MS else "NOT within"
        console.print(f"{what}: the engine stopped {verdict} {LIMIT_MS:g} ms of every deadline.")


if __name__ == "__main__":
    main()
