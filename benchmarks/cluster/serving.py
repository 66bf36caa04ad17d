"""Times of queries on a Ray cluster on this machine, beside one index in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cluster.ray_cluster import served
from benchmarks.data import Recipe, load_codes, load_costs
from bitweigh import Index
from bitweigh.cluster import Cluster
from bitweigh.cluster.opening import open_shards
from bitweigh.cluster.shares import share_of

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
    recipe = Recipe("mixture", rows, 64)
    codes = load_codes(recipe)
    costs = load_costs(recipe, "asym")
    one = Index(64, bitorder="little")
    one.add(codes)
    local = _median_ms(lambda query: one.search(query, 10, threads=1), costs)
    print(f"{rows:,} codes of 64 bits; one index in this process: {local:.3f} ms a query")
    expected = one.search(costs, 10)
    for groups in (1, 2):
        with served(codes, groups=groups, replicas=1, nodes=groups, bitorder="little") as run:
            found = run.cluster.search(costs, 10)
            assert found.ids.tobytes() == expected.ids.tobytes()
            single = _median_ms(lambda query, run=run: run.cluster.search(query, 10), costs[:500])
            print(f"{groups} holders, 4 shards: p50 {single:.2f} ms for k = 10", flush=True)
            for kind, rated in (("threads", rate_of), ("coroutines", async_rate_of)):
                for n in callers:
                    rate = rated(run.cluster, costs, n, seconds)
                    print(
                        f"  {rate.callers} {kind}: {rate.per_second:,.0f} queries/s, "
                        f"p50 {rate.p50:.1f} ms, p99 {rate.p99:.1f} ms",
                        flush=True,
                    )
            if groups == 1:
                _print_engine_time(run.url, costs[:100])
            print(run.cluster.status())


def _print_engine_time(url: Path | str, costs: NDArray[np.floating[Any]], k: int = 1000) -> None:
    """Print what the engine takes for many neighbours, by its own clock."""
    shards = open_shards(url)
    share = share_of(k, len(shards.shards))
    shards.search(costs, k)  # pages into memory
    nanoseconds = 0
    for query in costs:
        for index in shards.shards:
            stats = index.search(query, share, threads=1, stats=True).stats
            assert stats is not None
            nanoseconds += int(stats.nanoseconds)
    milliseconds = nanoseconds / len(costs) / 1e6
    print(f"  k = {k}, {share} of each shard: {milliseconds:.2f} ms in the engine for all shards")


def rate_of(
    cluster: Cluster, costs: NDArray[np.floating[Any]], callers: int, seconds: float
) -> Rate:
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
    return _rate(callers, times, seconds)


def async_rate_of(
    cluster: Cluster, costs: NDArray[np.floating[Any]], callers: int, seconds: float
) -> Rate:
    """Ask without pause from several coroutines, as a server does."""
    times: list[float] = []
    stop = time.monotonic() + seconds

    async def ask(number: int) -> None:
        while time.monotonic() < stop:
            began = time.perf_counter()
            await cluster.asearch(costs[number % len(costs)], 10)
            times.append(time.perf_counter() - began)
            number += callers

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, range(callers)))

    asyncio.run(ask_all())
    return _rate(callers, times, seconds)


def _rate(callers: int, times: list[float], seconds: float) -> Rate:
    milliseconds = 1e3 * np.array(times)
    return Rate(
        callers,
        len(times) / seconds,
        float(np.percentile(milliseconds, 50)),
        float(np.percentile(milliseconds, 99)),
    )


def _median_ms(search: Any, costs: NDArray[np.floating[Any]]) -> float:  # noqa: ANN401
    for query in costs[:50]:
        search(query)
    times = []
    for query in costs:
        began = time.perf_counter()
        search(query)
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))
