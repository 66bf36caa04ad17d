"""The model: callers, one coordinator, groups of holders with replicas, hedges.

Events are handled in the order of time. A coordinator has one CPU: sending a question, taking an
answer and merging occupy it. It has at most two batches under way. A holder answers one question
after the other. A question that has no answer after a while is asked again of the next replica, as
far as the budget of hedges goes; the first answer counts. All times are in milliseconds.

A new version is published in three steps: every holder downloads and opens it, each at a rate of
its own and slower in its searches meanwhile; when the last one has it, all new batches are of that
version; its pages are not in memory then, and each search reads those that it is the first to need.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

__all__ = ["Costs", "Outcome", "Setting", "simulate"]


@dataclass(frozen=True, slots=True)
class Costs:
    """What calls and searches take, in milliseconds.

    Those of the coordinator are the CPU time of a process that asked 1, 2 and 4 holders for batches
    of 1 and of 32 queries, Ray's own threads included. `search` is that of a billion codes of 64
    bits at k = 10. The others are assumptions.
    """

    batch: float = 0.2
    """The coordinator's CPU for a batch: collecting queries, packing, waking callers."""
    call: float = 0.55
    """Its CPU for each question that is sent and each answer that is taken, together."""
    query: float = 0.012
    """Its CPU for merging, and handing over, one query."""
    travel: float = 0.35
    """The median of the time that a call is on its way, there and back."""
    travel_spread: float = 0.35
    """The standard deviation of the logarithm of that."""
    pause: float = 30.0
    """How long a holder stands still now and then: page faults, garbage, neighbours."""
    pause_share: float = 2e-4
    """The share of questions that meet such a pause."""
    search: float = 0.15
    """A holder's search for one query."""
    cold_search: float = 8.2
    """The same if no page of the index is in memory, measured for a billion codes at k = 10."""
    warm_after: float = 2_600.0
    """Searches after which a third of the pages is still to be read, if queries are alike."""
    download: float = 37_000.0
    """The median time that a holder takes to download a version."""
    download_spread: float = 0.15
    """The standard deviation of the logarithm of that."""
    download_slows: float = 1.3
    """How many times as long searches take meanwhile."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster, and who asks it."""

    groups: int
    replicas: int
    callers: int
    queries: int = 20_000
    hedge_after: float = 50.0
    hedge_share: float = 0.05
    max_batch: int = 256
    dead_nodes: int = 0
    """Holders of the first replica that do not answer, from the beginning on."""
    publish_at: float | None = None
    """When a new version is published whose shards have all changed."""
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """What the callers saw."""

    seconds: float
    latencies: np.ndarray[tuple[int], np.dtype[np.float64]]
    hedges: int
    questions: int
    coordinator_busy: float
    """The share of time that the coordinator's CPU was busy."""
    holder_busy: float
    """The same for the busiest holder."""
    mean_batch: float
    ends: np.ndarray[tuple[int], np.dtype[np.float64]]
    """When each query was answered."""
    switched: float
    """When the new version was served; +inf if none was."""

    def percentile(self, share: float) -> float:
        """A percentile of the latencies."""
        return float(np.percentile(self.latencies, share))

    def between(self, first: float, last: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The latencies of queries that were answered in a part of the time."""
        return self.latencies[(self.ends >= first) & (self.ends < last)]


@dataclass(slots=True)
class _Batch:
    born: list[float]
    waiting_for: int
    answered: set[int] = field(default_factory=set)


def simulate(setting: Setting, costs: Costs) -> Outcome:
    """Run the model until all queries are answered."""
    return _Simulation(setting, costs).run()


class _Simulation:
    def __init__(self, setting: Setting, costs: Costs) -> None:
        self.setting, self.costs = setting, costs
        self.rng = np.random.default_rng(setting.seed)
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        self.queue: deque[float] = deque()
        self.under_way = 0
        self.cpu_free = 0.0
        self.cpu_used = 0.0
        self.free = np.zeros((setting.groups, setting.replicas))
        self.used = np.zeros_like(self.free)
        self.dead = np.zeros(self.free.shape, dtype=np.bool_)
        self.dead[: setting.dead_nodes, 0] = True
        self.suspect = np.zeros_like(self.dead)
        self.latencies: list[float] = []
        self.begun = 0
        self.hedges = 0
        self.questions = 0
        self.batches = 0
        self.tokens = 10.0
        self.ends: list[float] = []
        self.downloading = np.zeros(self.free.shape, dtype=np.bool_)
        self.not_open = 0
        self.searched = np.full(self.free.shape, np.inf)
        """Queries that each holder has searched in its version; +inf if all pages are there."""
        self.switched = np.inf

    def run(self) -> Outcome:
        if self.setting.publish_at is not None:
            self._at(self.setting.publish_at, self._publish)
        for _ in range(self.setting.callers):
            self._ask()
        while self.events and len(self.latencies) < self.setting.queries:
            self.now, _, event = heapq.heappop(self.events)
            event()
        return Outcome(
            self.now / 1e3,
            np.array(self.latencies),
            self.hedges,
            self.questions,
            self.cpu_used / self.now,
            float(self.used.max() / self.now),
            len(self.latencies) / max(1, self.batches),
            np.array(self.ends),
            float(self.switched),
        )

    def _publish(self) -> None:
        """Every holder begins to download the new version."""
        self.downloading[:] = ~self.dead
        self.not_open = int(self.downloading.sum())
        for group, replica in np.argwhere(self.downloading):
            spread = self.costs.download_spread * self.rng.standard_normal()
            self._at(
                self.now + self.costs.download * float(np.exp(spread)),
                partial(self._opened, int(group), int(replica)),
            )

    def _opened(self, group: int, replica: int) -> None:
        self.downloading[group, replica] = False
        self.not_open -= 1
        if self.not_open == 0:
            self.switched = self.now
            self.searched[:] = 0

    def _work(self, group: int, replica: int, queries: int) -> float:
        """What a holder takes for a batch."""
        costs = self.costs
        cold = costs.cold_search - costs.search
        seen = self.searched[group, replica]
        each = costs.search + cold * float(np.exp(-seen / costs.warm_after))
        self.searched[group, replica] = seen + queries
        return queries * each * (costs.download_slows if self.downloading[group, replica] else 1.0)

    def _at(self, when: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), event))

    def _on_cpu(self, cost: float) -> float:
        """Occupy the coordinator's CPU; returns when that ends."""
        self.cpu_free = max(self.now, self.cpu_free) + cost
        self.cpu_used += cost
        return self.cpu_free

    def _ask(self) -> None:
        """A caller asks its next query."""
        self.begun += 1
        self.queue.append(self.now)
        self._pump()

    def _pump(self) -> None:
        while self.queue and self.under_way < 2:
            self.under_way += 1
            n = min(len(self.queue), self.setting.max_batch)
            batch = _Batch([self.queue.popleft() for _ in range(n)], self.setting.groups)
            self._on_cpu(self.costs.batch)
            for group in range(self.setting.groups):
                sent = self._on_cpu(self.costs.call / 2)
                self._at(sent, self._question(batch, group, None))

    def _question(self, batch: _Batch, group: int, first: int | None) -> Callable[[], None]:
        """Send a question to a replica: the one that is free first, or another than `first`."""

        def send() -> None:
            if group in batch.answered:
                return
            order = np.lexsort((self.free[group], self.suspect[group]))
            replica = int(next(r for r in order if r != first or len(order) == 1))
            self.questions += 1
            self.tokens = min(10.0, self.tokens + self.setting.hedge_share)
            self._search(batch, group, replica)
            if first is None and self.setting.replicas > 1:
                self._at(self.now + self.setting.hedge_after, self._hedge(batch, group, replica))

        return send

    def _search(self, batch: _Batch, group: int, replica: int) -> None:
        if self.dead[group, replica]:
            return
        costs = self.costs
        travel = costs.travel * float(np.exp(costs.travel_spread * self.rng.standard_normal()))
        work = self._work(group, replica, len(batch.born))
        if self.rng.random() < costs.pause_share:
            work += costs.pause
        start = max(self.now + travel / 2, float(self.free[group, replica]))
        self.free[group, replica] = start + work
        self.used[group, replica] += work
        self._at(start + work + travel / 2, lambda: self._answer(batch, group))

    def _hedge(self, batch: _Batch, group: int, replica: int) -> Callable[[], None]:
        def check() -> None:
            if group in batch.answered:
                return
            self.suspect[group, replica] = self.dead[group, replica]
            if self.tokens >= 1 or self.dead[group, replica]:
                self.tokens -= self.tokens >= 1
                self.hedges += 1
                self._question(batch, group, replica)()

        return check

    def _answer(self, batch: _Batch, group: int) -> None:
        if group in batch.answered:
            return
        batch.answered.add(group)
        done = self._on_cpu(self.costs.call / 2)
        batch.waiting_for -= 1
        if batch.waiting_for == 0:
            done = self._on_cpu(self.costs.query * len(batch.born))
            self._at(done, lambda: self._merged(batch))

    def _merged(self, batch: _Batch) -> None:
        self.batches += 1
        self.latencies += [self.now - born for born in batch.born]
        self.ends += [self.now] * len(batch.born)
        self.under_way -= 1
        for _ in batch.born:
            self._ask()
        self._pump()
