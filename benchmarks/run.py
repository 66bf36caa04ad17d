"""The measurement: all peers on the same queries, interleaved in one process.

Machines drift: clocks, neighbours and caches change from minute to minute. So the peers take turns,
several rounds of them, and figures are compared within a run only. A turn begins with one query
that is not recorded: it brings the peer's data back into the cache and leaves the CPU's vector
registers as this peer, not the one before it, leaves them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from benchmarks import data, machine, results
from benchmarks.data import Dataset, NoDataError
from benchmarks.peers import Costs, Ids, Peer, Query, UnavailableError
from benchmarks.peers.bitweigh_scan import BitweighScan
from benchmarks.peers.faiss_binary_flat import FaissBinaryFlat
from benchmarks.peers.faiss_pq import FaissPq
from benchmarks.peers.faiss_pq_fast_scan import FaissPqFastScan
from benchmarks.peers.numpy_blas import NumpyBlas
from benchmarks.peers.numpy_lut import NumpyLut
from benchmarks.peers.paper_linear_scan import PaperLinearScan
from benchmarks.recall import recall
from benchmarks.results import PeerFigures, Results, WorkloadFigures
from benchmarks.workloads import Workload

# The first is the one that the others are compared with.
PEERS: tuple[type[Peer], ...] = (
    BitweighScan,
    FaissPqFastScan,
    FaissPq,
    PaperLinearScan,
    NumpyLut,
    NumpyBlas,
    FaissBinaryFlat,
)

_BATCHES_PER_TURN = 3
_TURN_SECONDS = 0.4
"""A turn ends early after this: 20 calls of 20 ms."""
_WORKLOAD_SECONDS = 20.0
"""A peer that has used this much on a workload takes no more turns after the third."""
_LEAST_ROUNDS = 3
_RECALL_QUERIES = 500
"""Of peers that are not exact; the timed queries are too few to tell."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line chose."""

    rounds: int
    queries: int
    """Single queries per turn."""
    data: Path | None
    """Folder of the real data sets."""


@dataclass(slots=True, eq=False)
class _Entrant:
    """A peer on one workload, and what it has done so far."""

    peer: Peer
    unrecorded: Query
    calls: list[Query]
    next_call: int = 0
    seconds: list[float] = field(default_factory=list)
    answers: dict[int, Ids] = field(default_factory=dict)

    def turn(self, k: int) -> None:
        """Answer each call once, or as many as time allows, going on from there next time."""
        self.peer.search(self.unrecorded, k)
        ends = time.perf_counter() + _TURN_SECONDS
        for _ in self.calls:
            call = self.next_call % len(self.calls)
            started = time.perf_counter()
            ids = self.peer.search(self.calls[call], k)
            stopped = time.perf_counter()
            self.seconds.append(stopped - started)
            self.answers.setdefault(call, ids)
            self.next_call += 1
            if stopped > ends:
                break


def run(
    chosen: Sequence[Workload], settings: Settings, console: Console, out: Path | None = None
) -> Results:
    """Measure the workloads; `out`, if given, is written anew after each of them."""
    measured = Results(
        machine=machine.facts(),
        rounds=settings.rounds,
        queries=settings.queries,
        workloads=[],
        skipped={},
    )
    # Refreshed by hand, between rounds: a refreshing thread would disturb the timing.
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        auto_refresh=False,
    ) as progress:
        for workload in chosen:
            task = progress.add_task(workload.name, total=settings.rounds)
            try:
                figures = _measure(workload, settings, progress, task)
            except NoDataError as error:
                measured["skipped"][workload.name] = str(error)
                progress.remove_task(task)
                console.print(f"{workload.name} not measured: {error}", soft_wrap=True)
                continue
            measured["workloads"].append(figures)
            if out is not None:
                results.save(measured, out)
    return measured


def _measure(
    workload: Workload, settings: Settings, progress: Progress, task: TaskID
) -> WorkloadFigures:
    def now(doing: str) -> None:
        progress.update(task, description=f"{workload.name}: {doing}", refresh=True)

    now("data")
    dataset = data.load(workload.data, workload.n, workload.n_bits, settings.data)
    calls = _calls(workload, dataset, settings.queries)
    now("building")
    entrants, left_out = _enter(workload, dataset, calls)
    now("measuring")
    for number in range(settings.rounds):
        _round(entrants, workload.k, number)
        progress.update(task, advance=1, refresh=True)
    now("recall")
    figures = _figures(workload, dataset, calls, entrants)
    now("done")
    return WorkloadFigures(
        name=workload.name,
        data=workload.data,
        n=len(dataset.codes),
        n_bits=workload.n_bits,
        k=workload.k,
        batch=workload.batch,
        peers=figures,
        left_out=left_out,
    )


def _enter(
    workload: Workload, dataset: Dataset, calls: list[Costs]
) -> tuple[list[_Entrant], dict[str, str]]:
    """Build the peers and prepare their queries; also those that cannot take part, and why."""
    entrants, left_out = [], {}
    for make in PEERS:
        peer = make()
        try:
            peer.build(dataset.codes, workload.n_bits)
        except UnavailableError as error:
            left_out[peer.name] = str(error)
            continue
        prepared = [peer.prepare(costs) for costs in calls]
        entrants.append(_Entrant(peer, peer.prepare(dataset.costs[-1:]), prepared))
    return entrants, left_out


def _calls(workload: Workload, dataset: Dataset, queries: int) -> list[Costs]:
    """The costs of each call of a turn, (batch, n_bits, 2)."""
    n_calls = queries if workload.batch == 1 else _BATCHES_PER_TURN
    wanted = min(n_calls * workload.batch, len(dataset.costs))
    return [
        dataset.costs[first : first + workload.batch] for first in range(0, wanted, workload.batch)
    ]


def _round(entrants: list[_Entrant], k: int, number: int) -> None:
    """One turn for each peer, without garbage collection in between."""
    gc.collect()
    gc.disable()
    try:
        for entrant in entrants:
            if number < _LEAST_ROUNDS or sum(entrant.seconds) < _WORKLOAD_SECONDS:
                entrant.turn(k)
    finally:
        gc.enable()


def _figures(
    workload: Workload, dataset: Dataset, calls: list[Costs], entrants: list[_Entrant]
) -> list[PeerFigures]:
    first = entrants[0]
    exact = [first.peer.search(query, workload.k) for query in first.calls]
    more = dataset.costs[:_RECALL_QUERIES]
    more_exact = first.peer.search(first.peer.prepare(more), workload.k)
    figures = []
    for entrant in entrants:
        per_query = 1e3 * np.array(entrant.seconds) / workload.batch
        p10, median, p90 = (float(value) for value in np.percentile(per_query, [10, 50, 90]))
        answered = sorted(entrant.answers)
        share = recall(
            dataset.codes,
            np.concatenate([calls[call] for call in answered]),
            np.concatenate([entrant.answers[call] for call in answered]),
            np.concatenate([exact[call] for call in answered]),
        )
        if not entrant.peer.exact:
            found = entrant.peer.search(entrant.peer.prepare(more), workload.k)
            share = recall(dataset.codes, more, found, more_exact)
        figures.append(
            PeerFigures(
                peer=entrant.peer.name,
                exact=entrant.peer.exact,
                calls=len(entrant.seconds),
                median_ms=median,
                best_ms=float(per_query.min()),
                p10_ms=p10,
                p90_ms=p90,
                recall=share,
                ratio=float(np.median(entrant.seconds) / np.median(first.seconds)),
            )
        )
    return figures
