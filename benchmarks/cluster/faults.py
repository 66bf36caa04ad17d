"""Faults while queries go on without pause: errors, wrong answers, the longest query.

Every answer is compared in every byte with that of one index of all rows.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.cluster.codes import some_codes, some_costs
from benchmarks.cluster.ray_cluster import Served, served
from bitweigh import Index
from bitweigh.cluster import Cluster

__all__ = ["FAULTS", "Load", "run_faults"]

_CALLERS = 4
_K = 10


@dataclass
class Load:
    """Queries without pause from several threads."""

    cluster: Cluster
    costs: NDArray[np.float32]
    expected: Any
    queries: int = 0
    wrong: int = 0
    errors: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Start the callers."""
        self._threads = [
            threading.Thread(target=self._ask, args=(caller,)) for caller in range(_CALLERS)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, caller: int) -> None:
        number = caller
        while not self._stop.is_set():
            query = number % len(self.costs)
            number += _CALLERS
            began = time.monotonic()
            try:
                found = self.cluster.search(self.costs[query], _K)
                same = (
                    found.ids.tobytes() == self.expected.ids[query].tobytes()
                    and found.distances.tobytes() == self.expected.distances[query].tobytes()
                )
                self.wrong += not same
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}")
            self.times.append(time.monotonic() - began)
            self.queries += 1

    def line(self) -> str:
        """What happened, in one line."""
        worst = max(self.times, default=0.0)
        p50 = float(np.median(self.times)) if self.times else 0.0
        return (
            f"{self.queries:,} queries, {len(self.errors)} errors, {self.wrong} wrong, "
            f"worst {worst:.3f} s, p50 {1e3 * p50:.1f} ms"
        )


def _nothing(_: Served) -> None:
    time.sleep(2)


def _kill_holder(run: Served) -> None:
    run.kill(0, 0)
    time.sleep(6)


def _stop_holder(run: Served) -> None:
    process = run.kill(1, 0, signal.SIGSTOP)
    time.sleep(3)
    os.kill(process, signal.SIGCONT)
    time.sleep(1)


def _kill_node(run: Served) -> None:
    node = run.node_of(0, 1)
    for group in (0, 1):
        for replica in (0, 1):
            if run.node_of(group, replica) is node:
                run.kill(group, replica)
    run.nodes.remove_node(node, allow_graceful=False)
    time.sleep(8)


def _add_node(run: Served) -> None:
    run.nodes.add_node(num_cpus=4)
    time.sleep(10)


def _kill_gcs(run: Served) -> None:
    run.nodes.head_node.kill_gcs_server()
    time.sleep(6)


FAULTS: dict[str, Callable[[Served], None]] = {
    "none": _nothing,
    "a holder is killed": _kill_holder,
    "a holder hangs for 3 s": _stop_holder,
    "a node dies, with its holders": _kill_node,
    "another node joins": _add_node,
    "Ray's control plane dies": _kill_gcs,
}


def run_faults(rows: int = 200_000, names: list[str] | None = None) -> dict[str, Load]:
    """One fault after the other, each under load; returns what the queries saw."""
    codes = some_codes(rows)
    costs = some_costs(codes, 200)
    one = Index(64)
    one.add(codes)
    expected = one.search(costs, _K)
    found: dict[str, Load] = {}
    with served(codes) as run:
        for name, fault in FAULTS.items():
            if names is not None and name not in names:
                continue
            with Load(run.cluster, costs, expected) as load:
                time.sleep(0.5)
                fault(run)
            found[name] = load
            holders = [state for group in run.cluster.status().holders for _, state in group]
            print(f"{name}: {load.line()}, holders {holders.count('open')} of {len(holders)} open")
            for error in sorted(set(load.errors))[:3]:
                print(f"    {error}")
        print(run.cluster.status())
    return found
