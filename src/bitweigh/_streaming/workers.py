"""Threads that do the parts of a stage, each with a workspace of its own."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from bitweigh import _core
from bitweigh._streaming.workspace import Workspace

__all__ = ["Workspaces", "do_parts"]

Part = TypeVar("Part")
Fact = TypeVar("Fact")


class Workspaces:
    """Workspaces that threads take turns with."""

    def __init__(self, count: int, rows: int, n_bytes: int, number_bytes: int) -> None:
        """Reserve them."""
        self._free: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for _ in range(count):
            self._free.put(Workspace(rows, n_bytes, number_bytes))

    def take(self) -> Workspace:
        """Wait for a free workspace."""
        return self._free.get()

    @contextlib.contextmanager
    def taken(self) -> Iterator[Workspace]:
        """Have a workspace for the time of a block."""
        workspace = self.take()
        try:
            yield workspace
        finally:
            self.give_back(workspace)

    def give_back(self, workspace: Workspace) -> None:
        """Let another thread have it."""
        self._free.put(workspace)


def do_parts(
    parts: Iterable[Part],
    work: Callable[[Part], Fact],
    threads: int,
    record: Callable[[Part, Fact], None],
    stop: _core.Stop,
) -> None:
    """Call work(part) for all parts on threads, and record(part, fact) on this one.

    What was finished when a part failed, or at Ctrl-C, is recorded too.
    """
    pending: dict[Future[Fact], Part] = {}

    def record_finished(futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            fact = future.result()
            record(pending.pop(future), fact)

    pool = ThreadPoolExecutor(threads)
    try:
        for part in parts:
            while len(pending) >= threads:
                record_finished(wait(pending, return_when=FIRST_COMPLETED).done)
            pending[pool.submit(work, part)] = part
        while pending:
            record_finished(wait(pending, return_when=FIRST_COMPLETED).done)
    except BaseException:
        # Only this thread sees Ctrl-C, so it stops the others.
        stop.set()
        pool.shutdown(cancel_futures=True)
        record_finished([f for f in pending if not f.cancelled() and f.exception() is None])
        raise
    finally:
        pool.shutdown(cancel_futures=True)
