"""The service: what all routes share, without HTTP."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh.cluster import IncompleteError, VersionGoneError
from bitweigh.errors import OverloadedError
from bitweigh.server.asking import (
    Asked,
    AskedRange,
    Found,
    answer_filtered,
    answer_within,
    as_problem,
)
from bitweigh.server.batching import Batcher
from bitweigh.server.changes import Change, Written
from bitweigh.server.clusters import ClusterCollection, ClusterSource, opened_clusters
from bitweigh.server.collection import Collection
from bitweigh.server.jobs import Jobs
from bitweigh.server.metrics import Metrics
from bitweigh.server.problems import Problem, is_full
from bitweigh.server.settings import Limits, Settings
from bitweigh.server.store import Store

__all__ = ["Embedder", "Searched", "Service"]

Searched: TypeAlias = Collection | ClusterCollection
"""What can be searched."""
Embedder = Callable[[list[str]], Any]
Result = TypeVar("Result")
# Threads for whatever takes long or waits for the disk.
_THREADS = 8
# What the library refuses, and `as_problem` knows.
_REFUSED = (
    ValueError,
    TypeError,
    KeyError,
    TimeoutError,
    IncompleteError,
    OverloadedError,
    VersionGoneError,
)


class Service:
    """A store and what its requests have in common. Its methods are for the event loop."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        embedder: Embedder | None = None,
        clusters: Mapping[str, ClusterSource] | None = None,
    ) -> None:
        """Open its clusters, and start its threads."""
        taken = [one.name for one in store.collections()]
        self.clusters = opened_clusters(clusters or {}, taken)
        self.store = store
        self.settings = settings
        self.embedder = embedder
        self.metrics = Metrics(store)
        self.started = time.time()
        self.draining = False
        self.draining_since = 0.0
        self.closes_connections = False
        """Whether each connection is closed after the answer to what it sent last."""
        self._searching = ThreadPoolExecutor(2, "search")
        self._threads = ThreadPoolExecutor(_THREADS, "work")
        self._batchers: dict[str, Batcher] = {}
        self._in_threads = 0
        self.jobs = Jobs(store)

    @classmethod
    def of_folder(
        cls,
        folder: Path,
        settings: Settings,
        embedder: Embedder | None,
        clusters: Mapping[str, ClusterSource] | None,
    ) -> Self:
        """Open a folder and clusters; if one of these cannot be opened, the folder is given up."""
        store = Store(folder, settings)
        try:
            return cls(store, settings, embedder, clusters)
        except BaseException:
            store.close()
            raise

    def __getitem__(self, name: str) -> Searched:
        """The cluster or collection of a name; Problem 404 if there is none."""
        return self.clusters.get(name) or self.store[name]

    def searched(self) -> list[Searched]:
        """All clusters and collections, by name."""
        everything: list[Searched] = [*self.clusters.values(), *self.store.collections()]
        return sorted(everything, key=lambda one: one.name)

    def drain(self) -> None:
        """Be about to stop: not ready any more, but everything is answered."""
        if not self.draining:
            self.draining, self.draining_since = True, time.monotonic()

    @property
    def limits(self) -> Limits:
        """The limits of requests."""
        return self.settings.limits

    async def search(self, collection: Searched, asked: Asked) -> Found:
        """Answer a search, with others if there are any."""
        if isinstance(collection, ClusterCollection):
            threads = self.settings.search_threads
            found = await self.in_thread(collection.search, asked, threads, pool=collection.pool)
        elif asked.condition is None:
            found = await self._batcher(collection).search(asked)
        else:
            found = await self.in_thread(
                answer_filtered, collection, asked, self.settings.search_threads
            )
        if time.monotonic() > asked.deadline:
            raise Problem(504, "deadline", "the request took longer than its timeout")
        self.metrics.search(collection.name, len(asked.queries), found.rows, found.engine_us / 1e6)
        return found

    async def within(self, collection: Searched, asked: AskedRange) -> Found:
        """Answer a range search."""
        if isinstance(collection, ClusterCollection):
            threads = self.settings.search_threads
            return await self.in_thread(collection.within, asked, threads, pool=collection.pool)
        return await self.in_thread(answer_within, collection, asked)

    def _batcher(self, collection: Collection) -> Batcher:
        batcher = self._batchers.get(collection.name)
        if batcher is None or batcher.collection is not collection:
            batcher = self._batchers[collection.name] = Batcher(
                collection, self._searching, self.limits.waiting, self.settings.search_threads
            )
        return batcher

    async def in_thread(
        self, run: Callable[..., Result], *arguments: object, pool: Executor | None = None
    ) -> Result:
        """Do what takes long, in a thread of its own pool or of all; 429 if too much waits."""
        if self._in_threads >= self.limits.waiting:
            raise Problem(
                429,
                "too-many-requests",
                f"{self.limits.waiting} requests are waiting already",
                headers={"retry-after": "1"},
            )
        self._in_threads += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool or self._threads, run, *arguments)
        except _REFUSED as error:
            raise as_problem(error) from error
        except (OSError, sqlite3.OperationalError) as error:
            if is_full(error):
                raise Problem(507, "disk-full", f"there is no room: {error}") from error
            raise
        finally:
            self._in_threads -= 1

    async def write(self, collection: Collection, change: Change) -> Written:
        """Write a change; it is on the disk when this returns."""
        if self.settings.read_only:
            raise Problem(403, "read-only", "this server is read-only")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Written] = loop.create_future()
        collection.writer.submit(change, (loop, future), _tell)
        return await future

    async def embedded(self, texts: list[str]) -> NDArray[np.float32]:
        """Texts as vectors; Problem 422 if the operator gave no embedder."""
        if self.embedder is None:
            raise Problem(422, "no-embedder", "this server has no embedder for texts")
        embedder = self.embedder

        def run() -> NDArray[np.float32]:
            try:
                found = np.asarray(embedder(texts), np.float32)
            except Exception as error:
                raise Problem(500, "embedder", f"the embedder failed: {error}") from error
            if found.ndim != 2 or len(found) != len(texts):
                raise Problem(500, "embedder", f"the embedder returned an array {found.shape}")
            return found

        return await self.in_thread(run)

    def close(self) -> None:
        """End jobs and threads, then save everything."""
        self.jobs.close()
        self._searching.shutdown()
        self._threads.shutdown()
        for cluster in self.clusters.values():
            cluster.close()
        self.store.close()


def _tell(outcomes: Sequence[tuple[Any, Written | Exception]]) -> None:
    """Tell the event loops what became of a batch of changes; called by a writer's thread."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Any, Written | Exception]]] = {}
    for (loop, future), outcome in outcomes:
        loops.setdefault(loop, []).append((future, outcome))
    for loop, told in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, told)


def _resolve(told: list[tuple[asyncio.Future[Written], Written | Exception]]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
