"""The measurement: all peers on the same queries, interleaved in one process.

Machines drift: clock rates, other programs and caches change from minute to minute. So the peers
take turns, for several rounds, and figures are compared only within a run. A turn begins with one
query that is not recorded: it brings the peer's data back into the cache and leaves the CPU's
vector registers in the state that this peer, not the previous one, leaves them in.

Peers are built once for all searches of the same codes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import data, machine, results
from benchmarks.data import NoDataError, Recipe
from benchmarks.peers import Codes, Costs, Ids, Peer, Query, UnavailableError
from benchmarks.peers.bitweigh_auto import Bitweigh
from benchmarks.peers.bitweigh_scan import BitweighScan
from benchmarks.peers.faiss_binary_flat import FaissBinaryFlat
from benchmarks.peers.faiss_binary_multi_hash import FaissBinaryMultiHash
from benchmarks.peers.faiss_pq import FaissPq
from benchmarks.peers.faiss_pq_fast_scan import FaissPqFastScan
from benchmarks.peers.faiss_pq_refine import FaissPqRefine
from benchmarks.peers.numpy_blas import NumpyBlas
from benchmarks.peers.numpy_lut import NumpyLut
from benchmarks.peers.paper_linear_scan import PaperLinearScan
from benchmarks.peers.paper_mih import PaperMih
from benchmarks.peers.paper_miwq import PaperMiwq
from benchmarks.recall import recall
from benchmarks.results import PeerFigures, Results, WorkloadFigures
from benchmarks.workloads import Workload

# The first peer is the one that the others are compared with.
PEERS: tuple[type[Peer], ...] = (
    Bitweigh,
    BitweighScan,
    PaperMiwq,
    FaissPqRefine,
    FaissPqFastScan,
    FaissPq,
    PaperLinearScan,
    NumpyLut,
    NumpyBlas,
    PaperMih,
    FaissBinaryFlat,
    FaissBinaryMultiHash,
)

_BATCHES_PER_TURN = 3
_TURN_SECONDS = 0.4
"""A turn ends early after this time: 20 calls of 20 ms."""
_WORKLOAD_SECONDS = 20.0
"""A peer that has used this much time on a workload takes no turns after the third."""
_MIN_ROUNDS = 3
_RECALL_QUERIES = 500
"""Queries for the recall of peers that are not exact; the timed ones are too few."""
_RECALL_PIECE = 20
_RECALL_SECONDS = 5.0
"""No further piece of those queries is started after this time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the command line."""

    rounds: int
    queries: int
    """Single queries per turn."""
    data: Path | None
    """Folder of the real data sets."""


@dataclass(slots=True, eq=False)
class _Entrant:
    """A peer on one workload, with its times and answers so far."""

    peer: Peer
    build_seconds: float
    unrecorded: Query
    calls: list[Query]
    next_call: int = 0
    seconds: list[float] = field(default_factory=list)
    answers: dict[int, Ids] = field(default_factory=dict)

    def turn(self, k: int) -> None:
        """Answer each call once, or as many as time allows; the next turn continues from there."""
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


class _Display:
    """The current step on one line, refreshed explicitly: a thread would disturb the timing."""

    def __init__(self, progress: Progress, rounds: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=rounds)

    def doing(self, what: str, done: int = 0) -> None:
        self._progress.update(self._task, description=what, completed=done, refresh=True)

    def say(self, line: str) -> None:
        self._progress.console.print(line, soft_wrap=True, highlight=False)


def run(
    chosen: Sequence[Workload], settings: Settings, console: Console, out: Path | None = None
) -> Results:
    """Measure the workloads; rewrite `out`, if given, after each of them."""
    measured = Results(
        machine=machine.facts(),
        rounds=settings.rounds,
        queries=settings.queries,
        workloads=[],
        skipped={},
    )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns, TimeElapsedColumn(), console=console, auto_refresh=False, transient=True
    ) as progress:
        display = _Display(progress, settings.rounds)
        _load_libraries()
        for recipe, group in groupby(chosen, key=lambda workload: workload.recipe):
            workloads = list(group)
            try:
                for figures in _measure(recipe, workloads, settings, display):
                    measured["workloads"].append(figures)
                    if out is not None:
                        results.save(measured, out)
            except NoDataError as error:
                for workload in workloads:
                    measured["skipped"][workload.name] = str(error)
                    display.say(f"{workload.name} not measured: {error}")
    return measured


def _load_libraries() -> None:
    """Build each peer once on a few rows, so that no build time includes loading libraries."""
    for make in PEERS:
        with suppress(UnavailableError):
            make().build(np.arange(2**13, dtype=np.uint16).view(np.uint8).reshape(-1, 4), 32)


def _measure(
    recipe: Recipe, workloads: list[Workload], settings: Settings, display: _Display
) -> Iterator[WorkloadFigures]:
    """Yield the figures of each workload over the same codes."""
    display.doing(f"{workloads[0].name}: data")
    codes = data.load_codes(recipe, settings.data)
    display.doing(f"{workloads[0].name}: building")
    peers, left_out = _build(codes, recipe.n_bits)
    for workload in workloads:
        display.doing(f"{workload.name}: queries")
        costs = data.load_costs(recipe, workload.weigher, settings.data)
        calls = _calls(workload, costs, settings.queries)
        entrants = [
            _Entrant(
                peer, seconds, peer.prepare(costs[-1:]), [peer.prepare(call) for call in calls]
            )
            for peer, seconds in peers
        ]
        for number in range(settings.rounds):
            display.doing(workload.name, number)
            _round(entrants, workload.k, number)
        display.doing(f"{workload.name}: recall", settings.rounds)
        figures = _figures(workload, codes, costs, entrants)
        display.say(f"{workload.name}: bitweigh {figures[0]['median_ms']:.4f} ms")
        yield WorkloadFigures(
            name=workload.name,
            data=recipe.kind,
            n=len(codes),
            n_bits=recipe.n_bits,
            hasher=recipe.hasher,
            weigher=workload.weigher,
            k=workload.k,
            batch=workload.batch,
            peers=figures,
            left_out=left_out,
        )


def _build(codes: Codes, n_bits: int) -> tuple[list[tuple[Peer, float]], dict[str, str]]:
    """Build the peers; return them with their build times, and reasons for those left out."""
    built, left_out = [], {}
    for make in PEERS:
        peer = make()
        gc.collect()
        started = time.perf_counter()
        try:
            peer.build(codes, n_bits)
        except UnavailableError as error:
            left_out[peer.name] = str(error)
        else:
            built.append((peer, time.perf_counter() - started))
    return built, left_out


def _calls(workload: Workload, costs: Costs, queries: int) -> list[Costs]:
    """Return the costs of each call of a turn, (batch, n_bits, 2)."""
    n_calls = queries if workload.batch == 1 else _BATCHES_PER_TURN
    n_queries = min(n_calls * workload.batch, len(costs))
    return [costs[first : first + workload.batch] for first in range(0, n_queries, workload.batch)]


def _round(entrants: list[_Entrant], k: int, number: int) -> None:
    """Give each peer one turn, without garbage collection in between."""
    gc.collect()
    gc.disable()
    try:
        for entrant in entrants:
            if number < _MIN_ROUNDS or sum(entrant.seconds) < _WORKLOAD_SECONDS:
                entrant.turn(k)
    finally:
        gc.enable()


def _figures(
    workload: Workload, codes: Codes, costs: Costs, entrants: list[_Entrant]
) -> list[PeerFigures]:
    first = entrants[0]
    n_asked = max(_RECALL_QUERIES, len(first.calls) * workload.batch)
    exact = first.peer.search(first.peer.prepare(costs[:n_asked]), workload.k)
    figures = []
    for entrant in entrants:
        per_query = 1e3 * np.array(entrant.seconds) / workload.batch
        p10, median, p90 = (float(value) for value in np.percentile(per_query, [10, 50, 90]))
        numbers, found = _answers(entrant, workload.batch)
        if not entrant.peer.exact:
            numbers, found = _more_answers(entrant.peer, costs, workload.k)
        n_bytes = entrant.peer.n_bytes()
        figures.append(
            PeerFigures(
                peer=entrant.peer.name,
                exact=entrant.peer.exact,
                calls=len(entrant.seconds),
                median_ms=median,
                best_ms=float(per_query.min()),
                p10_ms=p10,
                p90_ms=p90,
                recall=recall(codes, costs[numbers], found, exact[numbers]),
                recall_queries=len(numbers),
                ratio=float(np.median(entrant.seconds) / np.median(first.seconds)),
                build_seconds=entrant.build_seconds,
                bytes_per_row=None if n_bytes is None else n_bytes / len(codes),
            )
        )
    return figures


def _answers(entrant: _Entrant, batch: int) -> tuple[Ids, Ids]:
    """Return the numbers of the timed queries, and the rows found."""
    numbers = [np.arange(call * batch, (call + 1) * batch) for call in entrant.answers]
    return np.concatenate(numbers), np.concatenate(list(entrant.answers.values()))


def _more_answers(peer: Peer, costs: Costs, k: int) -> tuple[Ids, Ids]:
    """Answer as many queries as time allows; return their numbers and the rows found."""
    found: list[Ids] = []
    ends = time.perf_counter() + _RECALL_SECONDS
    for first in range(0, _RECALL_QUERIES, _RECALL_PIECE):
        found.append(peer.search(peer.prepare(costs[first : first + _RECALL_PIECE]), k))
        if time.perf_counter() > ends:
            break
    return np.arange(_RECALL_PIECE * len(found)), np.concatenate(found)
