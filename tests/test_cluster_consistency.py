"""One version for each call, callers that give up, and what holders are told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from cluster_cases import (
    CODES,
    COSTS,
    IDS,
    LocalReplica,
    Serve,
    Served,
    assert_equal,
    one_index,
    serving,
)

from bitweigh import Filter, cluster
from bitweigh.cluster.errors import VersionGoneError
from bitweigh.cluster.serving.wire import FilterCache, Question, unpack_question
from bitweigh.errors import DeadlineError, LimitError
from bitweigh.index import Index


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with serving(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def one() -> Index:
    return one_index()


def published_by_another(served: Served, *, closes: bool = True) -> None:
    """Publish the newest version as another process does, so that the coordinator is behind."""
    served.directory.publish(None)
    if closes:
        for replica in served.directory.all():
            replica.holder.keep([served.directory.version])


def before(replica: LocalReplica, method: str, action: Callable[[], None]) -> None:
    """Do something before a replica is asked with this method for the first time."""
    call = replica.call
    done = threading.Event()

    def called(name: str, *arguments: Any) -> Any:
        if name == method and not done.is_set():
            done.set()
            action()
        return call(name, *arguments)

    replica.call = called  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.search(COSTS, 5),
        lambda found: found.range_search(COSTS, -3.0),
        lambda found: found.search_with_ties(COSTS[0], 7),
        lambda found: found.search_by_id(IDS[1500:1509], 20),
        lambda found: found.search_codes(CODES[:3], 9),
        lambda found: (found.codes_of(IDS[1990:]), found.contains(IDS)),
    ],
    ids=["search", "range_search", "search_with_ties", "search_by_id", "search_codes", "codes_of"],
)
def test_a_version_that_is_closed_already_is_left_for_the_present_one(
    serve: Serve, ask: Callable[[Any], Any]
) -> None:
    served = serve(groups=2)
    cluster.update(served.directory.url, remove=IDS[:1000])
    published_by_another(served)
    assert served.coordinator.version.number == 1
    assert_equal(ask(cluster.open(served.directory.url)), ask(served.cluster))
    assert served.coordinator.version.number == 2


@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("search", lambda found: found.search_with_ties(COSTS[0], 7)),
        ("codes_of", lambda found: found.search_by_id(IDS[:9], 20)),
        ("codes_of", lambda found: (found.codes_of(IDS),)),
    ],
)
def test_a_call_of_several_questions_is_answered_by_one_version(
    serve: Serve, one: Index, method: str, ask: Callable[[Any], Any]
) -> None:
    served = serve(groups=2)
    url = served.directory.url
    cluster.update(url, remove=IDS[9::2])
    cluster.reshard(url, shards=3)

    def publish() -> None:
        threading.Thread(target=served.cluster.publish).start()
        while served.coordinator.version.number == 1:
            time.sleep(0.001)

    before(served.replica(1, 0), method, publish)
    expected = [ask(one), ask(served.cluster)]
    for a, b in zip(*expected, strict=True):
        assert a.tobytes() == b.tobytes()
    assert served.cluster.version.number == 3


def test_what_was_published_is_not_undone_by_a_map_that_was_read_before(serve: Serve) -> None:
    served = serve(groups=1)
    cluster.update(served.directory.url, remove=IDS[:1])
    read, go_on = threading.Event(), threading.Event()
    current = served.directory.current

    def slow() -> Any:
        found = current()
        if not read.is_set():
            read.set()
            go_on.wait(5)
        return found

    served.directory.current = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        stale = pool.submit(served.coordinator.refresh)
        assert read.wait(5)
        published = pool.submit(served.cluster.publish)
        wait([published], timeout=0.2)
        go_on.set()
        stale.result()
        assert published.result() == 2
    assert served.cluster.version.number == 2


def test_the_version_before_is_known_also_after_going_back(serve: Serve) -> None:
    served = serve(groups=1)
    url = served.directory.url
    for place in range(4):
        cluster.update(url, remove=IDS[place : place + 1])
    for number in (2, 3, 4, 1):
        served.cluster.publish(number)
    neighbours = served.cluster.iterate(COSTS[0])
    first = [next(neighbours)]
    served.cluster.publish(5)
    assert first + list(neighbours) == list(one_index().iterate(COSTS[0]))
    served.cluster.publish(4)
    assert served.coordinator.version_of(5).number == 5
    with pytest.raises(VersionGoneError):
        served.coordinator.version_of(2)


def test_a_coroutine_that_gave_up_fails_nobody_else(serve: Serve, one: Index) -> None:
    served = serve(groups=1)
    served.replica(0, 0).delay = 0.2

    async def all_at_once() -> Any:
        ask = served.cluster.asearch
        # The first two keep both batches busy; the others wait, and would go together.
        busy = [asyncio.create_task(ask(COSTS[0], k)) for k in (1, 2)]
        await asyncio.sleep(0.05)
        late = asyncio.create_task(ask(COSTS[1], 3, timeout=0.05))
        cancelled = asyncio.create_task(ask(COSTS[2], 3))
        patient = asyncio.create_task(ask(COSTS[3], 3))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(DeadlineError):
            await late
        await asyncio.gather(*busy)
        return await patient

    assert_equal(one.search(COSTS[3], 3), asyncio.run(all_at_once()))
    assert served.replica(0, 0).holder.status()["answered"] == 3


def test_one_who_is_late_does_not_fail_those_in_the_same_batch(serve: Serve, one: Index) -> None:
    served = serve(groups=1)
    replica = served.replica(0, 0)
    cluster.update(served.directory.url, add=CODES[:1], ids=[6000])
    cluster.update(served.directory.url, remove=[6000])
    replica.delay = 0.15
    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(served.cluster.search, COSTS[0], k) for k in (1, 2)]
        time.sleep(0.03)
        late = pool.submit(served.cluster.search, COSTS[1], 3, timeout=0.25)
        patient = pool.submit(served.cluster.search, COSTS[2], 3, timeout=10)
        for each in busy:
            each.result()
        # Their batch has begun, finds its version closed and begins again: one is late by then.
        published_by_another(served)
        with pytest.raises(DeadlineError):
            late.result()
        assert_equal(one.search(COSTS[2], 3), patient.result())


def test_a_closed_connection_refuses_every_call(serve: Serve) -> None:
    served = serve(groups=1)
    served.cluster.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            served.cluster.search(COSTS[0], 1)


def recorded_questions(served: Served) -> list[Question]:
    """The questions that holders are asked from now on."""
    questions: list[Question] = []

    def record(replica: LocalReplica) -> None:
        call = replica.call

        def called(method: str, *arguments: Any) -> Any:
            if method in ("search", "range_search"):
                questions.append(unpack_question(arguments[0], FilterCache()))
            return call(method, *arguments)

        replica.call = called  # type: ignore[method-assign]

    for each in served.directory.all():
        record(each)
    return questions


def test_holders_are_told_how_much_time_is_left_and_how_to_search(serve: Serve) -> None:
    served = serve(groups=1)
    questions = recorded_questions(served)
    served.cluster.search(COSTS[0], 3, timeout=5, threads=2, method="scan")
    served.cluster.range_search(COSTS[0], -3.0, timeout=5, threads=2, method="scan")
    served.cluster.search(COSTS[0], 3)
    for each in questions[:2]:
        assert each.timeout is not None
        assert 4 < each.timeout <= 5
        assert (each.threads, each.method) == (2, "scan")
    assert questions[2].timeout is None


def test_a_batch_may_take_as_long_as_its_most_patient_caller(serve: Serve) -> None:
    served = serve(groups=1)
    questions = recorded_questions(served)
    served.replica(0, 0).delay = 0.1
    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(served.cluster.search, COSTS[0], k) for k in (1, 2)]
        time.sleep(0.03)
        waits = [pool.submit(served.cluster.search, COSTS[1], 3, timeout=t) for t in (9, 5)]
        for each in (*busy, *waits):
            each.result()
    (together,) = [each for each in questions if each.k == 3]
    assert len(together.costs) == 2
    assert together.timeout is not None
    assert 8 < together.timeout < 9


def test_a_holder_searches_as_it_is_told(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(groups=1)
    told: list[dict[str, Any]] = []
    for name in ("search", "range_search"):
        plain = getattr(Index, name)

        def search(self: Index, *arguments: Any, plain: Any = plain, **options: Any) -> Any:
            told.append(options)
            return plain(self, *arguments, **options)

        monkeypatch.setattr(Index, name, search)
    some = Filter(allow=IDS[:50])
    options: dict[str, Any] = {"threads": 2, "method": "scan", "timeout": 5, "filter": some}
    served.cluster.search(COSTS[0], 3, **options)
    served.cluster.range_search(COSTS[0], -3.0, **options)
    assert len(told) == 10  # five shards, twice
    for each in told:
        assert (each["threads"], each["method"]) == (2, "scan")
        assert 0 < each["timeout"] <= 5
        assert each["filter"] is not None


def test_what_is_known_about_holders_outlives_a_version(serve: Serve) -> None:
    served = serve(groups=1, replicas=2)
    served.replica(0, 0).dead = True
    served.cluster.search(COSTS[0], 3)
    failovers = served.cluster.status().failovers
    assert failovers > 0
    cluster.update(served.directory.url, remove=IDS[:1])
    served.cluster.publish()
    assert served.cluster.status().failovers >= failovers
    assert ("0-0", "suspect") in served.cluster.status().holders[0]


def test_a_limit_is_that_of_all_shards_together(serve: Serve, one: Index) -> None:
    served = serve(groups=2)
    radius = one.search(COSTS[0], 30).distances[-1]
    within = len(one.range_search(COSTS[0], radius).ids)
    assert_equal(
        one.range_search(COSTS[0], radius, limit=within),
        served.cluster.range_search(COSTS[0], radius, limit=within),
    )
    with pytest.raises(LimitError):
        served.cluster.range_search(COSTS[0], radius, limit=within - 1)


def test_shards_that_stay_are_not_opened_again_after_older_versions_are_closed(
    serve: Serve,
) -> None:
    served = serve(groups=1, shards=4)
    holder = served.replica(0, 0).holder
    for place in range(2):
        cluster.update(served.directory.url, remove=IDS[place : place + 1])
    holder.open(2)
    holder.keep([2])
    before = holder._versions[2].shards
    holder.open(3)
    changed = int(cluster.HashPartition(4).shard_of(IDS[1:2])[0])
    same = [holder._versions[3].shards[shard] is before[shard] for shard in range(4)]
    assert same == [shard != changed for shard in range(4)]
    holder.keep([3])
    assert len(holder._by_folder) == 4
