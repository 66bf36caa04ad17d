"""The writer: one thread that brings changes to the disk and then into the index.

Changes that wait are committed together, at most `_MAX_BATCH` calls by one transaction and one
fsync. A change is acknowledged when it is on the disk and the index has it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from bitweigh.server.changes import Change, Done, Item, Remove, RemoveMatching, Upsert, Written
from bitweigh.server.problems import Problem, is_full
from bitweigh.server.record import Record, Row

__all__ = ["Applies", "Writer", "refusal"]

_MAX_BATCH = 256
_LARGEST_ID = 2**63 - 1
_logger = logging.getLogger("bitweigh.server")


class Applies(Protocol):
    """Who has the index that a writer's changes go to."""

    def commit_and_apply(
        self, commit: Callable[[], None], values: dict[int, bytes | None], seq: int
    ) -> None:
        """Commit, then bring the new values, None for removed items, into the index."""


class _Submitted(NamedTuple):
    change: Change
    token: Any
    done: Done


class _Task(NamedTuple):
    """Something that only the thread with the record may do."""

    run: Callable[[], Any]
    result: queue.SimpleQueue[tuple[Any, BaseException | None]]


class Writer:
    """Writes changes in the order in which they come; `submit` is for any thread."""

    def __init__(self, name: str, record: Record, index: Applies, max_waiting: int) -> None:
        """Start the thread."""
        self._record = record
        self._index = index
        self._max_waiting = max_waiting
        self._queue: queue.SimpleQueue[_Submitted | _Task | None] = queue.SimpleQueue()
        # Held to put something in the queue, so that nothing comes after its end.
        self._putting = threading.Lock()
        self._closed = False
        self.disk_full = False
        self._thread = threading.Thread(target=self._run, name=f"write {name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """About how many changes wait."""
        return self._queue.qsize()

    def submit(self, change: Change, token: Any, done: Done) -> None:  # noqa: ANN401
        """Queue a change; `done` is called by the writer's thread, once for each batch."""
        if self._queue.qsize() >= self._max_waiting:
            raise Problem(
                429,
                "too-many-writes",
                f"{self._max_waiting} writes are waiting already",
                headers={"retry-after": "1"},
            )
        self._put(_Submitted(change, token, done))

    def _put(self, entry: _Submitted | _Task) -> None:
        with self._putting:
            if self._closed:
                raise Problem(503, "stopping", "the collection is being closed")
            self._queue.put(entry)

    def write(self, change: Change) -> Written:
        """Write a change, and wait until it is written."""
        answers: queue.SimpleQueue[Written | Exception] = queue.SimpleQueue()
        self.submit(change, None, lambda batch: answers.put(batch[0][1]))
        found = answers.get()
        if isinstance(found, Exception):
            raise found
        return found

    def do(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Have the writer's thread do something, after the changes that wait; return its result."""
        if threading.current_thread() is self._thread:
            return run()
        result: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._put(_Task(run, result))
        found, error = result.get()
        if error is not None:
            raise error
        return found

    def close(self) -> None:
        """Write what waits, then end the thread. Later changes are refused."""
        with self._putting:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            batch: list[_Submitted] = []
            task = None
            entry = self._queue.get()
            while True:
                if entry is None:
                    ending = True
                    break
                if isinstance(entry, _Task):
                    task = entry
                    break
                batch.append(entry)
                if len(batch) == _MAX_BATCH:
                    break
                try:
                    entry = self._queue.get_nowait()
                except queue.Empty:
                    break
            if batch:
                self._write(batch)
            if task is not None:
                _do(task)

    def _write(self, batch: list[_Submitted]) -> None:
        try:
            outcomes: Sequence[Written | Exception] = self._committed([one.change for one in batch])
            self.disk_full = False
        except Exception as error:
            if len(batch) > 1 and not is_full(error):
                # One of them is to blame: each by itself, so that the others are not refused.
                for one in batch:
                    self._write([one])
                return
            self.disk_full = is_full(error)
            if not isinstance(error, Problem) and not self.disk_full:
                _logger.exception("a change could not be written")
            outcomes = [refusal(error)] * len(batch)
        groups: dict[Done, list[tuple[Any, Written | Exception]]] = {}
        for one, outcome in zip(batch, outcomes, strict=True):
            groups.setdefault(one.done, []).append((one.token, outcome))
        for done, outcomes_of in groups.items():
            try:
                done(outcomes_of)
            except Exception:
                # Who asked is gone; the others still wait.
                _logger.exception("nobody could be told what became of a change")

    def _committed(self, changes: list[Change]) -> list[Written]:
        """Write changes by one transaction, and bring them into the index."""
        record = self._record
        writing = _Writing(record)
        try:
            record.begin()
            written = [writing.write(change) for change in changes]
            self._index.commit_and_apply(
                lambda: record.commit(writing.seq, writing.next_id), writing.values, writing.seq
            )
        except BaseException:
            record.rollback()
            raise
        return written


class _Writing:
    """One transaction: the numbers it gives out, and the last value of each item."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.seq = record.last_seq
        self.next_id = record.next_id
        self.values: dict[int, bytes | None] = {}

    def write(self, change: Change) -> Written:
        self.seq += 1
        if isinstance(change, Upsert):
            return self.upsert(change.items)
        if isinstance(change, Remove):
            return self.remove(change)
        if isinstance(change, RemoveMatching):
            return self.remove_ids(list(self.record.matching(*change.condition)))
        raise TypeError(f"no change: {change!r:.80}")

    def upsert(self, items: Sequence[Item]) -> Written:
        ids = self.ids_of(items)
        rows = [
            Row(id_, item.key, item.value, item.payload)
            for id_, item in zip(ids, items, strict=True)
        ]
        self.record.upsert(self.seq, rows)
        self.values.update((row.id, row.value) for row in rows)
        return Written(self.seq, len(rows), ids)

    def ids_of(self, items: Sequence[Item]) -> list[int]:
        keys = [item.key for item in items if item.key is not None]
        known = self.record.ids_of(keys) if keys else {}
        ids = []
        for item in items:
            if item.id is not None:
                id_ = item.id
            else:
                assert item.key is not None
                if item.key not in known and self.next_id == _LARGEST_ID:
                    raise Problem(422, "invalid-value", "no id is left for another key")
                id_ = known.setdefault(item.key, self.next_id)
            self.next_id = min(max(self.next_id, id_ + 1), _LARGEST_ID)
            ids.append(id_)
        return ids

    def remove(self, change: Remove) -> Written:
        ids = [*change.ids, *self.record.ids_of(change.keys).values()]
        there = self.record.payloads(ids)
        return self.remove_ids(list(there))

    def remove_ids(self, ids: list[int]) -> Written:
        self.record.remove(self.seq, ids)
        self.values.update(dict.fromkeys(ids))
        return Written(self.seq, len(ids))


def _do(task: _Task) -> None:
    try:
        task.result.put((task.run(), None))
    except BaseException as error:
        task.result.put((None, error))


def refusal(error: Exception) -> Exception:
    """What a change is refused with that could not be committed."""
    if is_full(error):
        return Problem(507, "disk-full", f"nothing was written: {error}")
    if isinstance(error, Problem):
        return error
    return Problem(500, "not-written", f"nothing was written: {error}")
