"""The queue of calls: what goes together, in which order, and how much may wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bitweigh._index.filters import Filter
from bitweigh.cluster.as_one import CallClock
from bitweigh.cluster.errors import OverloadedError
from bitweigh.cluster.serving import queue as queues
from bitweigh.cluster.serving.queue import CallQueue, Wanted
from bitweigh.cluster.serving.wire import Question


def call(queries: int = 1, k: int = 1, *, n_bits: int = 8, **options: Any) -> Wanted:
    fields = {"method": "auto", "threads": None, "filter": None}
    given = {name: options.pop(name, value) for name, value in fields.items()}
    question = Question(0, k, k, None, costs=np.zeros((queries, n_bits, 2)), **given)
    return Wanted(question, CallClock(None), **options)


def queue_of(*calls: Wanted) -> CallQueue:
    found = CallQueue()
    for each in calls:
        found.put(each)
    return found


SOME, OTHERS = Filter(allow=[1]), Filter(allow=[1])


@pytest.mark.parametrize(
    "options",
    [
        {"k": 2},
        {"method": "scan"},
        {"threads": 2},
        {"filter": SOME},
        {"partial": True},
        {"pinned": 1},
    ],
    ids=str,
)
def test_calls_that_differ_in_more_than_their_queries_go_apart(options: dict[str, Any]) -> None:
    usual, other, same = call(), call(**options), call()
    queue = queue_of(usual, other, same)
    assert queue.next_batch() == [usual, same]
    assert queue.next_batch() == [other]
    assert len(queue) == 0


def test_only_calls_with_the_same_filter_go_together() -> None:
    first, other, same = call(filter=SOME), call(filter=OTHERS), call(filter=SOME)
    assert queue_of(first, other, same).next_batch() == [first, same]


def test_what_waits_keeps_its_order() -> None:
    calls = [call(k=k) for k in (1, 2, 3, 1, 2)]
    queue = queue_of(*calls)
    batches = [queue.next_batch() for _ in range(3)]
    assert batches == [[calls[0], calls[3]], [calls[1], calls[4]], [calls[2]]]


def test_a_batch_has_a_limit_that_only_one_call_may_exceed() -> None:
    calls = [call(200), call(100), call(1), call(255), call(1)]
    queue = queue_of(*calls)
    assert [queue.next_batch() for _ in range(2)] == [calls[:2], calls[2:4]]
    assert queue.next_batch() == calls[4:]
    queue = queue_of(call(1000), call(1))
    assert [len(queue.next_batch()) for _ in range(2)] == [1, 1]


def test_too_many_queries_are_refused_until_some_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queues, "_MAX_QUERIES", 10)
    queue = queue_of(call(6), call(4))
    assert queue.queries == 10
    queue.note(2.0, 4)
    with pytest.raises(OverloadedError) as error:
        queue.put(call(1))
    assert 0.01 < error.value.retry_after < 10 * 0.5
    queue.next_batch()
    assert queue.queries == 0
    queue.put(call(10))


def test_too_many_bytes_are_refused_until_some_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_MAX_BYTES", 4096)
    queue = queue_of(call(n_bits=256))
    for _ in range(3):
        with pytest.raises(OverloadedError):
            queue.put(call())
        queue.next_batch()
        queue.put(call(n_bits=256))
    queue.next_batch()
    for _ in range(3):  # nothing is counted that was taken
        queue.put(call())


def test_a_call_that_is_larger_than_the_queue_waits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "_MAX_QUERIES", 10)
    large = call(100)
    queue = queue_of(large)
    with pytest.raises(OverloadedError):
        queue.put(call())
    assert queue.next_batch() == [large]
    queue.put(call())


def test_the_event_loop_is_woken_once_until_it_looks() -> None:
    queue = CallQueue()
    assert [queue.put(call()) for _ in range(3)] == [True, False, False]
    queue.look()
    assert [queue.put(call()) for _ in range(2)] == [True, False]


def test_a_queue_that_is_closed_cancels_what_waits() -> None:
    waits = call()
    queue = queue_of(waits)
    queue.close()
    assert waits.future.cancelled()
    with pytest.raises(RuntimeError, match="closed"):
        queue.put(call())
