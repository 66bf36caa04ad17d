"""The coordinator: batches of queries to all groups of holders, merged into exact answers.

Queries that arrive while others are being answered wait and go together, so a batch is as large as
the cluster is busy, and nothing waits when it is idle. A batch names the version it was begun with,
in both rounds and in every hedge, so an answer is that of one version.

All state belongs to one event loop, on a thread of its own. Other threads hand queries over.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bitweigh._merging import first_of, merge
from bitweigh._results import Neighbours, RangeResult
from bitweigh.cluster.errors import IncompleteError, Missing, OverloadedError, VersionGoneError
from bitweigh.cluster.serving.replicas import HolderGroup, HolderLostError, Patience, Replica
from bitweigh.cluster.serving.wire import Answer, Question, pack_question, unpack_answer
from bitweigh.cluster.shares import SHARE_FROM, Shares, is_enough, merged_of
from bitweigh.cluster.version import Version
from bitweigh.errors import DeadlineError
from bitweigh.typing import Ids

__all__ = ["Coordinator", "Directory", "Found", "Map", "Wanted"]

# A batch has at most so many queries, unless one call has more.
_BATCH_QUERIES = 256
# Batches under way: while one is merged here, the holders answer the next.
_BATCHES = 2
_MAX_QUEUED = 4096
_MAX_QUEUED_BYTES = 64 << 20
_REFRESH_SECONDS = 1.0
# Versions whose maps are remembered, for calls that must not change version.
_KNOWN_VERSIONS = 4


class Map(NamedTuple):
    """Which version is to be searched, and which holders have its shards."""

    version: Version
    groups: tuple[tuple[Replica, ...], ...]
    """The holders of shards g, g + G, g + 2 G, ... for each of G groups."""


class Directory(Protocol):
    """Where a coordinator learns the map, and how it sends large arguments."""

    def current(self) -> Map:
        """The present map; may block."""

    def shared(self, raw: bytes) -> Any:  # noqa: ANN401 an argument of calls to holders
        """Bytes as an argument for several holders."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call of a client, with checked arguments."""

    question: Question
    """Its version, share and timeout are filled in when it is sent."""
    deadline: float | None
    """When the caller gives up, by the monotonic clock."""
    timeout: float | None
    partial: bool = False
    pinned: int | None = None
    """The version that must answer; None for the current one."""
    future: Future[Any] = field(default_factory=Future)

    @property
    def together(self) -> tuple[Any, ...]:
        """Calls that are equal in this can go in one batch."""
        asked = self.question
        return (asked.k, asked.method, asked.threads, id(asked.filter), self.partial, self.pinned)


class Found(NamedTuple):
    """An answer, and what it lacks."""

    neighbours: Neighbours
    missing: tuple[Missing, ...]


class _State(NamedTuple):
    version: Version
    groups: tuple[HolderGroup, ...]

    def shards_of(self, group: int) -> tuple[int, ...]:
        return tuple(range(group, len(self.version.shards), len(self.groups)))

    def group_of(self, shard: int) -> HolderGroup:
        return self.groups[shard % len(self.groups)]

    def missing(self, shard: int, error: HolderLostError) -> Missing:
        return Missing(shard, self.version.shards[shard].rows, str(error))


class Coordinator:
    """Asks all groups of holders, and merges their answers."""

    def __init__(
        self,
        directory: Directory,
        patience: Patience | None = None,
        share_from: int = SHARE_FROM,
    ) -> None:
        """Read the map, and start the event loop."""
        self._directory = directory
        self._patience = patience or Patience()
        self._loop = asyncio.new_event_loop()
        self._waiting: deque[Wanted] = deque()
        self._queued = 0
        self._queued_bytes = 0
        self._woken = False
        self._lock = threading.Lock()
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._groups: dict[tuple[str, ...], HolderGroup] = {}
        self._older: dict[int, _State] = {}
        self._state = self._state_of(directory.current())
        self._shares = Shares(self._state.version.partition.samples_evenly, share_from)
        self.answered = 0
        self.batches = 0
        self._seconds_per_query = 1e-3
        self._thread = threading.Thread(target=self._run, name="bitweigh-coordinator", daemon=True)
        self._thread.start()

    @property
    def version(self) -> Version:
        """The version that new queries are begun with."""
        return self._state.version

    @property
    def second_rounds(self) -> int:
        """Queries for which some shard was asked again."""
        return self._shares.second_rounds

    @property
    def hedges(self) -> int:
        """Questions asked twice because an answer was slow."""
        return sum(group.hedges for group in self._groups.values())

    @property
    def failovers(self) -> int:
        """Questions asked again because a holder was lost."""
        return sum(group.failovers for group in self._groups.values())

    @property
    def queued(self) -> int:
        """Queries that wait."""
        return self._queued

    def holders(self) -> list[list[tuple[str, str]]]:
        """Name and state of each holder, by group."""
        return [group.status() for group in self._state.groups]

    def submit(self, wanted: Wanted) -> Future[Any]:
        """Hand over queries for their k nearest; raises OverloadedError if there is no room."""
        nq, n_bytes = len(wanted.question.costs), wanted.question.costs.nbytes
        with self._lock:
            full = (
                self._queued + nq > _MAX_QUEUED or self._queued_bytes + n_bytes > _MAX_QUEUED_BYTES
            )
            # One call may be larger than the queue, if nothing else waits.
            if full and self._queued:
                raise OverloadedError(max(0.01, self._queued * self._seconds_per_query))
            self._queued += nq
            self._queued_bytes += n_bytes
            self._waiting.append(wanted)
            wake, self._woken = not self._woken, True
        if wake:  # else the event loop is about to look anyway
            self._loop.call_soon_threadsafe(self._look)
        return wanted.future

    def begin(self, work: Awaitable[Any]) -> Future[Any]:
        """Let the event loop do work."""

        async def awaited() -> Any:  # noqa: ANN401 what `work` returns
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop)

    def run(self, work: Awaitable[Any]) -> Any:  # noqa: ANN401 what `work` returns
        """Wait for work of the event loop from another thread."""
        return self.begin(work).result()

    def refresh(self) -> None:
        """Read the map again."""
        self._state = self._state_of(self._directory.current())

    def close(self) -> None:
        """Stop the event loop; calls under way fail."""

        def stop() -> None:
            for group in self._groups.values():
                group.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)

        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(stop)
            self._thread.join(5)

    async def range_search(self, wanted: Wanted) -> tuple[RangeResult, tuple[Missing, ...]]:
        """All rows within a radius, of all shards that answer."""
        state = self._state_for(wanted)
        question = wanted.question._replace(
            version=state.version.number, timeout=_left(wanted.deadline, wanted.timeout)
        )
        answers, missing = await self._ask_groups(state, "range_search", question)
        _refuse_missing(missing, wanted.partial, state)
        found = list(answers.values())
        if not found:
            lims = np.zeros(len(question.costs) + 1, np.int64)
            return RangeResult(lims, np.empty(0), np.empty(0, np.int64)), missing
        return merge(found), missing

    async def ask_shard(self, shard: int, method: str, *arguments: Any) -> Any:  # noqa: ANN401
        """Ask the holders of one shard; raises IncompleteError if none can be reached."""
        state = self._state
        try:
            return await state.group_of(shard).ask(method, state.version.number, shard, *arguments)
        except HolderLostError as error:
            raise IncompleteError([state.missing(shard, error)], state.version.rows) from None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._spawn(self._refresh_forever())
        self._loop.run_forever()
        for wanted in self._waiting:
            wanted.future.cancel()
        self._loop.close()

    def _spawn(self, work: Any) -> None:  # noqa: ANN401 a coroutine
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refresh_forever(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await self._refresh_quietly()

    async def _refresh_quietly(self) -> None:
        """Read the map; where nobody knows it now, the last one stays."""
        try:
            found = await self._loop.run_in_executor(None, self._directory.current)
        except Exception:
            return
        self._state = self._state_of(found)

    def _state_of(self, found: Map) -> _State:
        names = tuple(tuple(replica.name for replica in group) for group in found.groups)
        for key, replicas in zip(names, found.groups, strict=True):
            if key not in self._groups:
                self._groups[key] = HolderGroup(replicas, self._patience)
        state = _State(found.version, tuple(self._groups[key] for key in names))
        self._older[state.version.number] = state
        while len(self._older) > _KNOWN_VERSIONS:
            self._older.pop(next(iter(self._older)))
        return state

    def _state_for(self, wanted: Wanted) -> _State:
        if wanted.pinned is None:
            return self._state
        state = self._older.get(wanted.pinned)
        if state is None:
            raise VersionGoneError(wanted.pinned)
        return state

    def _look(self) -> None:
        with self._lock:
            self._woken = False
        self._pump()

    def _pump(self) -> None:
        while self._waiting and self._under_way < _BATCHES:
            self._under_way += 1
            self._spawn(self._answer(self._next_batch()))

    def _next_batch(self) -> list[Wanted]:
        """The call that has waited longest, and others that can go with it."""
        first = self._waiting.popleft()
        batch, others = [first], []
        queries = len(first.question.costs)
        together = first.together
        while self._waiting and queries < _BATCH_QUERIES:
            wanted = self._waiting.popleft()
            if wanted.together == together:
                batch.append(wanted)
                queries += len(wanted.question.costs)
            else:
                others.append(wanted)
        self._waiting.extendleft(reversed(others))
        with self._lock:
            self._queued -= queries
            self._queued_bytes -= sum(wanted.question.costs.nbytes for wanted in batch)
        return batch

    async def _answer(self, batch: list[Wanted]) -> None:
        began = time.monotonic()
        try:
            batch = [wanted for wanted in batch if not _is_late(wanted)]
            if batch:
                try:
                    found = await self._nearest(batch)
                except VersionGoneError:
                    if batch[0].pinned is not None:
                        raise
                    await self._refresh_quietly()
                    found = await self._nearest(batch)
                _give(batch, found)
        except BaseException as error:
            for wanted in batch:
                if not wanted.future.done():
                    wanted.future.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            queries = sum(len(wanted.question.costs) for wanted in batch)
            self.answered += queries
            self.batches += 1
            if queries:
                taken = (time.monotonic() - began) / queries
                self._seconds_per_query += 0.1 * (taken - self._seconds_per_query)
            self._under_way -= 1
            self._pump()

    async def _nearest(self, batch: list[Wanted]) -> Found:
        """The answers to all queries of a batch, by one version."""
        first = batch[0]
        state = self._state_for(first)
        n_shards = len(state.version.shards)
        k = first.question.k
        share = self._shares.of(k, n_shards)
        costs = (
            first.question.costs
            if len(batch) == 1
            else np.concatenate([wanted.question.costs for wanted in batch])
        )
        lefts = [_left(wanted.deadline, wanted.timeout) for wanted in batch]
        question = first.question._replace(
            version=state.version.number,
            share=share,
            timeout=None if None in lefts else max(left for left in lefts if left is not None),
            costs=costs,
        )
        answers, missing = await self._ask_groups(state, "search", question)
        _refuse_missing(missing, first.partial, state)
        found = [unpack_answer(raw) for raw in answers.values()]
        merged = merged_of([each.found for each in found], len(costs), k)
        if share < k:
            doubts = _doubts(state, dict(zip(answers, found, strict=True)), merged)
            again = np.any(list(doubts.values()), axis=0) if doubts else None
            self._shares.note(len(costs), 0 if again is None else int(np.count_nonzero(again)))
            if doubts:
                merged = await self._second_round(state, question, doubts, merged)
        return Found(merged, missing)

    async def _second_round(
        self,
        state: _State,
        question: Question,
        doubts: dict[int, NDArray[np.bool_]],
        merged: Neighbours,
    ) -> Neighbours:
        """Ask the shards in doubt for all k, and merge what they add."""
        k, shards = question.k, list(doubts)

        async def ask(shard: int) -> Answer:
            asked = question._replace(share=k, costs=question.costs[doubts[shard]])
            raw = self._directory.shared(pack_question(asked))
            try:
                return unpack_answer(await state.group_of(shard).ask("search", raw, (shard,)))
            except HolderLostError as error:
                raise IncompleteError([state.missing(shard, error)], state.version.rows) from None

        answers = await asyncio.gather(*(ask(shard) for shard in shards))
        distances, ids = [merged.distances], [merged.ids]
        for shard, answer in zip(shards, answers, strict=True):
            shape = (len(merged.ids), answer.found.ids.shape[1])
            more_distances, more_ids = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
            more_distances[doubts[shard]], more_ids[doubts[shard]] = answer.found
            distances.append(more_distances)
            ids.append(more_ids)
        return Neighbours(
            *first_of(*_without_repeated(np.concatenate(distances, 1), np.concatenate(ids, 1)), k)
        )

    async def _ask_groups(
        self, state: _State, method: str, question: Question
    ) -> tuple[dict[int, Any], tuple[Missing, ...]]:
        """The answer of each group by number, and the shards of groups that cannot be reached."""
        numbers = [group for group in range(len(state.groups)) if state.shards_of(group)]
        raw = self._directory.shared(pack_question(question))

        async def ask(group: int) -> Any:  # noqa: ANN401
            return await state.groups[group].ask(method, raw, state.shards_of(group))

        results = await asyncio.gather(*map(ask, numbers), return_exceptions=True)
        answers: dict[int, Any] = {}
        missing: list[Missing] = []
        for group, result in zip(numbers, results, strict=True):
            if isinstance(result, HolderLostError):
                missing += [state.missing(shard, result) for shard in state.shards_of(group)]
            elif isinstance(result, BaseException):
                raise result
            else:
                answers[group] = result
        return answers, tuple(sorted(missing))


def _doubts(
    state: _State, answers: dict[int, Answer], merged: Neighbours
) -> dict[int, NDArray[np.bool_]]:
    """The shards that may have more rows to give, with the queries (nq,) for which they may."""
    doubts = {}
    for group, answer in answers.items():
        for place, shard in enumerate(state.shards_of(group)):
            doubtful = ~is_enough(answer.last_distances[place], answer.last_ids[place], merged)
            if doubtful.any():
                doubts[shard] = doubtful
    return doubts


def _without_repeated(distances: NDArray[np.float64], ids: Ids) -> tuple[NDArray[np.float64], Ids]:
    """Neighbours (nq, m) with each id once; the others become padding."""
    order = np.argsort(ids, axis=1, kind="stable")
    in_order = np.take_along_axis(ids, order, axis=1)
    repeated = np.zeros(ids.shape, dtype=np.bool_)
    repeated[:, 1:] = in_order[:, 1:] == in_order[:, :-1]
    dropped = np.empty_like(repeated)
    np.put_along_axis(dropped, order, repeated, axis=1)
    return np.where(dropped, np.inf, distances), np.where(dropped, -1, ids)


def _refuse_missing(missing: Sequence[Missing], partial: bool, state: _State) -> None:
    if missing and not partial:
        raise IncompleteError(missing, state.version.rows)


def _left(deadline: float | None, timeout: float | None) -> float | None:
    """Seconds until a deadline; raises DeadlineError if it has passed."""
    if deadline is None or timeout is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise DeadlineError(timeout, -left)
    return left


def _is_late(wanted: Wanted) -> bool:
    """Whether the caller has given up; then it is told so, and nothing is computed."""
    try:
        _left(wanted.deadline, wanted.timeout)
    except DeadlineError as error:
        wanted.future.set_exception(error)
        return True
    return False


def _give(batch: Sequence[Wanted], found: Found) -> None:
    """Hand each caller its part of the answers."""
    first = 0
    (distances, ids), missing = found
    for wanted in batch:
        last = first + len(wanted.question.costs)
        part = Neighbours(distances[first:last].copy(), ids[first:last].copy())
        if not wanted.future.done():
            wanted.future.set_result(Found(part, missing))
        first = last
