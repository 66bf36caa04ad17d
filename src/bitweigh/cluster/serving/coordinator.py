"""The coordinator: batches of queries to all groups of holders, merged into exact answers.

A batch names the version it was begun with, in both rounds and in every hedge, so an answer is that
of one version.

All state belongs to one event loop, on a thread of its own. Other threads hand queries over.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh._merging import first_of, merge
from bitweigh._results import Neighbours, RangeResult
from bitweigh.cluster.errors import IncompleteError, Missing, VersionGoneError
from bitweigh.cluster.opening import open_template
from bitweigh.cluster.serving.futures import AnyFuture, deliver
from bitweigh.cluster.serving.maps import Directory, KnownMaps, State
from bitweigh.cluster.serving.queue import CallQueue, Wanted
from bitweigh.cluster.serving.replicas import HolderLostError, Patience
from bitweigh.cluster.serving.wire import Answer, Question, pack_question, unpack_answer
from bitweigh.cluster.shares import SHARE_FROM, Shares, is_enough, merged_of
from bitweigh.cluster.stores import open_store
from bitweigh.cluster.templates import CodesTemplate, VectorTemplate
from bitweigh.cluster.version import Version
from bitweigh.typing import Ids

__all__ = ["Coordinator", "Found"]

# Batches under way: while one is merged here, the holders answer the next.
_BATCHES = 2
_REFRESH_SECONDS = 1.0

_Answered = TypeVar("_Answered")


class Found(NamedTuple):
    """An answer, and what it lacks."""

    neighbours: Neighbours
    missing: tuple[Missing, ...]


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
        self._loop = asyncio.new_event_loop()
        self._queue = CallQueue()
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._templates: dict[str, VectorTemplate] = {}
        self._refreshing = threading.Lock()
        self._maps = KnownMaps(directory.current(), patience or Patience())
        self._shares = Shares(self.version.partition.samples_evenly, share_from)
        self.answered = 0
        self.batches = 0
        self._thread = threading.Thread(target=self._run, name="bitweigh-coordinator", daemon=True)
        self._thread.start()

    @property
    def version(self) -> Version:
        """The version that new queries are begun with."""
        return self._maps.present.version

    def version_of(self, number: int | None) -> Version:
        """A version by its number, None for the present one; raises VersionGoneError."""
        return self._maps.of(number).version

    @property
    def second_rounds(self) -> int:
        """Queries for which some shard was asked again."""
        return self._shares.second_rounds

    @property
    def hedges(self) -> int:
        """Questions asked twice because an answer was slow."""
        return self._maps.hedges

    @property
    def failovers(self) -> int:
        """Questions asked again because a holder was lost."""
        return self._maps.failovers

    @property
    def queued(self) -> int:
        """Queries that wait."""
        return self._queue.queries

    def template(self, version: Version) -> VectorTemplate:
        """What rows of a version are made into; ValueError if they are only codes."""
        if version.template is None:
            raise ValueError("the shards are of codes alone: build them with like= to keep more")
        found = self._templates.get(version.template)
        if found is None:
            loaded = open_template(open_store(self._maps.present.url), version)
            assert not isinstance(loaded, CodesTemplate)
            self._templates = {version.template: loaded}
            return loaded
        return found

    def holders(self) -> list[list[tuple[str, str]]]:
        """Name and state of each holder, by group."""
        return [group.status() for group in self._maps.present.groups]

    def submit(self, wanted: Wanted) -> AnyFuture:
        """Hand over queries for their k nearest; raises OverloadedError if there is no room."""
        if self._queue.put(wanted):
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
        # Maps are taken in the order in which they were read: what `publish` has read stays.
        with self._refreshing:
            self._maps.take(self._directory.current())

    def close(self) -> None:
        """Stop the event loop; calls under way fail."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

    async def range_search(self, wanted: Wanted) -> tuple[RangeResult, tuple[Missing, ...]]:
        """All rows within a radius, of all shards that answer."""

        async def ask(state: State) -> tuple[RangeResult, tuple[Missing, ...]]:
            question = wanted.question._replace(
                version=state.version.number, timeout=wanted.clock.left()
            )
            method = "range_search" if question.rows is None else "vectors_within"
            answers, missing = await self._ask_groups(state, method, question)
            _refuse_missing(missing, wanted.partial, state)
            found = list(answers.values())
            if not found:
                lims = np.zeros(len(question.costs) + 1, np.int64)
                return RangeResult(lims, np.empty(0), np.empty(0, np.int64)), missing
            return merge(found), missing

        return await self._by_one_version(wanted.pinned, ask)

    async def ask_shard(self, version: int, shard: int, method: str, *arguments: Any) -> Any:  # noqa: ANN401
        """Ask the holders of one shard; raises IncompleteError if none can be reached."""
        state = self._maps.of(version)
        try:
            return await state.group_of(shard).ask(method, state.version.number, shard, *arguments)
        except HolderLostError as error:
            raise IncompleteError([state.missing(shard, error)], state.version.rows) from None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._spawn(self._refresh_forever())
        self._loop.run_forever()
        self._queue.close()
        self._maps.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _spawn(self, work: Any) -> None:  # noqa: ANN401 a coroutine
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refresh_forever(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await self.refresh_quietly()

    async def refresh_quietly(self) -> None:
        """Read the map again; where nobody knows it now, the last one stays."""
        with contextlib.suppress(Exception):
            await self._loop.run_in_executor(None, self.refresh)

    async def _by_one_version(
        self, pinned: int | None, ask: Callable[[State], Awaitable[_Answered]]
    ) -> _Answered:
        """Ask by the map of one version, and once more if that one is not open any more."""
        try:
            return await ask(self._maps.of(pinned))
        except VersionGoneError:
            if pinned is not None:
                raise
            await self.refresh_quietly()
            return await ask(self._maps.present)

    def _look(self) -> None:
        self._queue.look()
        self._pump()

    def _pump(self) -> None:
        while self._queue and self._under_way < _BATCHES:
            self._under_way += 1
            self._spawn(self._answer(self._queue.next_batch()))

    async def _answer(self, batch: list[Wanted]) -> None:
        began = time.monotonic()
        try:
            batch = [wanted for wanted in batch if _is_awaited(wanted)]
            if batch:
                found = await self._by_one_version(
                    batch[0].pinned, lambda state: self._nearest(state, batch)
                )
                _give(batch, found)
        except BaseException as error:
            deliver((wanted.future, error) for wanted in batch)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            queries = sum(len(wanted.question.costs) for wanted in batch)
            self.answered += queries
            self.batches += 1
            if queries:
                self._queue.note(time.monotonic() - began, queries)
            self._under_way -= 1
            self._pump()

    async def _nearest(self, state: State, batch: list[Wanted]) -> Found:
        """The answers to all queries of a batch, by one version."""
        first = batch[0]
        n_shards = len(state.version.shards)
        k = first.question.k
        share = self._shares.of(k, n_shards)
        costs = (
            first.question.costs
            if len(batch) == 1
            else np.concatenate([wanted.question.costs for wanted in batch])
        )
        question = first.question._replace(
            version=state.version.number,
            share=share,
            timeout=_time_left(batch),
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
                question = question._replace(timeout=_time_left(batch))
                merged = await self._second_round(state, question, doubts, merged)
        if first.ranking is None:
            return Found(merged, missing)
        return await self._ranked(state, batch, merged.ids, missing)

    async def _ranked(
        self, state: State, batch: list[Wanted], candidates: Ids, missing: tuple[Missing, ...]
    ) -> Found:
        """The nearest vectors of the codes that were found."""
        rankings = [wanted.ranking for wanted in batch if wanted.ranking is not None]
        rows = np.concatenate([ranking.rows for ranking in rankings])
        question = batch[0].question._replace(
            version=state.version.number,
            k=rankings[0].k,
            timeout=_time_left(batch),
            costs=np.empty((len(rows), 0, 2)),
            filter=None,  # it has had its say
            rows=rows,
            metric=rankings[0].metric,
            candidates=candidates,
        )
        answers, more_missing = await self._ask_groups(state, "rank", question)
        _refuse_missing(more_missing, batch[0].partial, state)
        parts = [unpack_answer(raw).found for raw in answers.values()]
        found = merged_of(parts, len(rows), rankings[0].k)
        return Found(found, tuple(sorted({*missing, *more_missing})))

    async def _second_round(
        self,
        state: State,
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
        self, state: State, method: str, question: Question
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
    state: State, answers: dict[int, Answer], merged: Neighbours
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


def _refuse_missing(missing: Sequence[Missing], partial: bool, state: State) -> None:
    if missing and not partial:
        raise IncompleteError(missing, state.version.rows)


def _is_awaited(wanted: Wanted) -> bool:
    """Whether a caller still waits; one that is late is told so, and nothing is computed."""
    if wanted.clock.is_late:
        deliver([(wanted.future, wanted.clock.error())])
        return False
    return not wanted.future.done()


def _time_left(batch: Sequence[Wanted]) -> float | None:
    """The most seconds that a caller has left; raises DeadlineError if none has any."""
    # One that is late must not fail the others.
    waits = [wanted.clock.wait() for wanted in batch]
    longest = None if None in waits else max(wait for wait in waits if wait is not None)
    if longest == 0:
        raise batch[0].clock.error()
    return longest


def _give(batch: Sequence[Wanted], found: Found) -> None:
    """Hand each caller its part of the answers."""
    first = 0
    (distances, ids), missing = found
    parts = []
    for wanted in batch:
        last = first + len(wanted.question.costs)
        part = Neighbours(distances[first:last].copy(), ids[first:last].copy())
        parts.append((wanted.future, Found(part, missing)))
        first = last
    deliver(parts)
