"""Times of queries on a Ray cluster on this machine, beside one index in this process."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cluster.codes import some_codes, some_costs
from benchmarks.cluster.ray_cluster import served
from bitweigh import Index
from bitweigh.cluster import Cluster

__all__ = ["Rate", "measure", "rate_of"]


class Rate(NamedTuple):
    """Queries of several callers."""

    callers: int
    per_second: float
    p50: float
    p99: float
    """Milliseconds of a query."""


def measure(rows: int, callers: tuple[int, ...] = (1, 16, 64), seconds: float = 5.0) -> None:
    """Print the times with one and with two holders."""
    codes = some_codes(rows)
    costs = some_costs(codes, 1000)
    one = Index(64)
    one.add(codes)
    local = _median_ms(lambda query: one.search(query, 10, threads=1), costs)
    print(f"{rows:,} codes of 64 bits; one index in this process: {local:.3f} ms a query")
    expected = one.search(costs, 10)
    for groups in (1, 2):
        with served(codes, groups=groups, replicas=1, nodes=groups) as run:
            found = run.cluster.search(costs, 10)
            assert found.ids.tobytes() == expected.ids.tobytes()
            single = _median_ms(lambda query, run=run: run.cluster.search(query, 10), costs[:500])
            print(f"{groups} holders, 4 shards: p50 {single:.2f} ms for k = 10", flush=True)
            for n in callers:
                rate = rate_of(run.cluster, costs, n, seconds)
                print(
                    f"  {rate.callers} callers: {rate.per_second:,.0f} queries/s, "
                    f"p50 {rate.p50:.1f} ms, p99 {rate.p99:.1f} ms",
                    flush=True,
                )
            coordinator = run.cluster._coordinator
            before = coordinator.engine_seconds
            for query in costs[:200]:
                run.cluster.search(query, 1000)
            engine = 1e3 * (coordinator.engine_seconds - before) / 200
            print(f"  k = 1000: {engine:.2f} ms of engine time in the slowest holder")
            print(run.cluster.status())


def rate_of(cluster: Cluster, costs: NDArray[np.float32], callers: int, seconds: float) -> Rate:
    """Ask without pause from several threads."""
    times: list[float] = []
    stop = time.monotonic() + seconds

    def ask(number: int) -> None:
        while time.monotonic() < stop:
            began = time.perf_counter()
            cluster.search(costs[number % len(costs)], 10)
            times.append(time.perf_counter() - began)
            number += callers

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    milliseconds = 1e3 * np.array(times)
    return Rate(
        callers,
        len(times) / seconds,
        float(np.percentile(milliseconds, 50)),
        float(np.percentile(milliseconds, 99)),
    )


def _median_ms(search: Any, costs: NDArray[np.float32]) -> float:  # noqa: ANN401
    for query in costs[:50]:
        search(query)
    times = []
    for query in costs:
        began = time.perf_counter()
        search(query)
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))
