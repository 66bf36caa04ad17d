"""Calls that wait, and the batches that they go in.

A batch has everything that waits when it is begun and can go together. So batches are as large as
the cluster is busy, and nothing waits when it is idle. What waits has a limit: above it, calls are
refused at once.

Any thread puts calls in; one thread, that of the event loop, takes batches out.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bitweigh.cluster.as_one import CallClock
from bitweigh.cluster.errors import OverloadedError
from bitweigh.cluster.one_version import Ranking
from bitweigh.cluster.serving.futures import AnyFuture, cancel
from bitweigh.cluster.serving.wire import Question

__all__ = ["CallQueue", "Wanted"]

# A batch has at most so many queries, unless one call has more.
_BATCH_QUERIES = 256
_MAX_QUERIES = 4096
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call of a client, with checked arguments."""

    question: Question
    """Its version, share and timeout are filled in when it is sent."""
    clock: CallClock
    """When the caller gives up."""
    partial: bool = False
    pinned: int | None = None
    """The version that must answer; None for the current one."""
    ranking: Ranking | None = None
    """How to rank the codes that are found by their vectors."""
    future: AnyFuture = field(default_factory=Future)

    @property
    def together(self) -> tuple[Any, ...]:
        """Calls that are equal in this can go in one batch."""
        asked = self.question
        ranked = None if self.ranking is None else (self.ranking.k, self.ranking.metric)
        options = (asked.k, asked.method, asked.threads, id(asked.filter), self.partial)
        return (*options, self.pinned, ranked)

    @property
    def n_bytes(self) -> int:
        """Bytes of the queries."""
        rows = 0 if self.ranking is None else self.ranking.rows.nbytes
        return self.question.costs.nbytes + rows


class CallQueue:
    """Calls in the order in which they came."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._waiting: deque[Wanted] = deque()
        self._bytes = 0
        self._announced = False
        self._closed = False
        self._seconds_per_query = 1e-3
        self.queries = 0
        """Queries that wait."""

    def __len__(self) -> int:
        """The number of calls."""
        return len(self._waiting)

    def put(self, wanted: Wanted) -> bool:
        """Let a call wait; raises OverloadedError if there is no room.

        Returns whether to wake the event loop: False if it is about to look anyway.
        """
        nq, n_bytes = len(wanted.question.costs), wanted.n_bytes
        with self._lock:
            if self._closed:
                raise RuntimeError("the connection to the cluster is closed")
            full = self.queries + nq > _MAX_QUERIES or self._bytes + n_bytes > _MAX_BYTES
            # One call may be larger than the queue, if nothing else waits.
            if full and self.queries:
                raise OverloadedError(max(0.01, self.queries * self._seconds_per_query))
            self.queries += nq
            self._bytes += n_bytes
            self._waiting.append(wanted)
            wake, self._announced = not self._announced, True
        return wake

    def look(self) -> None:
        """Note that the event loop looks now; the next call wakes it again."""
        with self._lock:
            self._announced = False

    def next_batch(self) -> list[Wanted]:
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
            self.queries -= queries
            self._bytes -= sum(wanted.n_bytes for wanted in batch)
        return batch

    def note(self, seconds: float, queries: int) -> None:
        """Note how long queries took, for those who are refused."""
        self._seconds_per_query += 0.1 * (seconds / queries - self._seconds_per_query)

    def close(self) -> None:
        """Nobody will take what waits, or comes."""
        with self._lock:
            self._closed = True
            for wanted in self._waiting:
                cancel(wanted.future)
