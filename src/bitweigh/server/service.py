"""The service: what all routes share, without HTTP."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh.server.asking import Asked, Found, answer_filtered, as_problem
from bitweigh.server.batching import Batcher
from bitweigh.server.changes import Change, Written
from bitweigh.server.collection import Collection
from bitweigh.server.jobs import Jobs
from bitweigh.server.metrics import Metrics
from bitweigh.server.problems import Problem, is_full
from bitweigh.server.settings import Limits, Settings
from bitweigh.server.store import Store

__all__ = ["Embedder", "Service"]

Embedder = Callable[[list[str]], Any]
Result = TypeVar("Result")
# Threads for whatever takes long or waits for the disk.
_THREADS = 8


class Service:
    """A store and what its requests have in common. Its methods are for the event loop."""

    def __init__(self, store: Store, settings: Settings, embedder: Embedder | None = None) -> None:
        """Start its threads."""
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

    def drain(self) -> None:
        """Be about to stop: not ready any more, but everything is answered."""
        if not self.draining:
            self.draining, self.draining_since = True, time.monotonic()

    @property
    def limits(self) -> Limits:
        """The limits of requests."""
        return self.settings.limits

    async def search(self, collection: Collection, asked: Asked) -> Found:
        """Answer a search, with others if there are any."""
        if asked.condition is None:
            found = await self._batcher(collection).search(asked)
        else:
            found = await self.in_thread(
                answer_filtered, collection, asked, self.settings.search_threads
            )
        if time.monotonic() > asked.deadline:
            raise Problem(504, "deadline", "the request took longer than its timeout")
        self.metrics.search(collection.name, len(asked.queries), found.rows, found.engine_us / 1e6)
        return found

    def _batcher(self, collection: Collection) -> Batcher:
        batcher = self._batchers.get(collection.name)
        if batcher is None or batcher.collection is not collection:
            batcher = self._batchers[collection.name] = Batcher(
                collection, self._searching, self.limits.waiting, self.settings.search_threads
            )
        return batcher

    async def in_thread(self, run: Callable[..., Result], *arguments: object) -> Result:
        """Do what takes long, in a thread; Problem 429 if too much waits."""
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
            return await loop.run_in_executor(self._threads, run, *arguments)
        except (ValueError, TypeError, KeyError, TimeoutError) as error:
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
