"""Natural batching: searches that arrive while others are answered go together.

A single search that is expected to be short is answered on the event loop itself, since handing it
to a thread costs as much as the search. Several are answered by a thread, in one batch, while the
loop reads the next ones. There is no timer: nothing waits while nothing runs.
"""

from __future__ import annotations

import asyncio
import math
import time
from concurrent.futures import Executor

from bitweigh.server.asking import Asked, Found, answer
from bitweigh.server.collection import Collection
from bitweigh.server.problems import Problem

__all__ = ["Batcher"]

_MAX_BATCH = 256
# Seconds of a search up to which it may keep the event loop.
_SHORT = 0.5e-3


class Batcher:
    """Searches of one collection, without conditions. For the event loop alone."""

    def __init__(
        self, collection: Collection, executor: Executor, max_waiting: int, threads: int | None
    ) -> None:
        """Have nothing to do yet."""
        self.collection = collection
        self._executor = executor
        self._max_waiting = max_waiting
        self._threads = threads
        self._waiting: list[tuple[Asked, asyncio.Future[Found]]] = []
        self._scheduled = False
        self._busy = False
        self._seconds = math.inf  # of one query, about
        self.batches = 0

    @property
    def waiting(self) -> int:
        """Searches that wait for a batch to end."""
        return len(self._waiting)

    def search(self, asked: Asked) -> asyncio.Future[Found]:
        """Answer a search; raises Problem 429 if too many wait."""
        if len(self._waiting) >= self._max_waiting:
            raise Problem(
                429,
                "too-many-searches",
                f"{self._max_waiting} searches are waiting already",
                headers={"retry-after": "1"},
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Found] = loop.create_future()
        self._waiting.append((asked, future))
        if not self._scheduled and not self._busy:
            # Once all requests that have arrived are read.
            self._scheduled = True
            loop.call_soon(self._next)
        return future

    def _next(self) -> None:
        self._scheduled = False
        if self._busy or not self._waiting:
            return
        batch = self._waiting[:_MAX_BATCH]
        del self._waiting[:_MAX_BATCH]
        self.batches += 1
        searches = [asked for asked, future in batch if not future.done()]
        futures = [future for _, future in batch if not future.done()]
        n_queries = sum(len(asked.queries) for asked in searches)
        if n_queries <= 1 and self._seconds < _SHORT:
            self._give(futures, self._timed(searches))
            if self._waiting:
                self._scheduled = True
                asyncio.get_running_loop().call_soon(self._next)
            return
        self._busy = True
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._executor, self._timed, searches)
        running.add_done_callback(lambda done: self._ended(futures, done))

    def _ended(
        self,
        futures: list[asyncio.Future[Found]],
        done: asyncio.Future[list[Found | Exception]],
    ) -> None:
        self._busy = False
        self._give(futures, done.result())
        if self._waiting:
            self._next()

    def _timed(self, searches: list[Asked]) -> list[Found | Exception]:
        begin = time.perf_counter()
        try:
            return answer(self.collection, searches, None, self._threads)
        except Exception as error:
            return [error] * len(searches)
        finally:
            queries = sum(len(asked.queries) for asked in searches)
            self._remember((time.perf_counter() - begin) / max(1, queries))

    def _remember(self, seconds: float) -> None:
        """A slow one counts little by itself: the machine may have been busy."""
        known = self._seconds
        self._seconds = (
            seconds if known == math.inf else min(0.9 * known + 0.1 * seconds, 2 * known)
        )

    @staticmethod
    def _give(futures: list[asyncio.Future[Found]], found: list[Found | Exception]) -> None:
        for future, one in zip(futures, found, strict=True):
            if future.done():
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)
