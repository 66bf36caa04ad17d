"""Holders and a coordinator without Ray: exact answers, batches, hedges, faults, versions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_cases import CODES, COSTS, IDS, Serve, Served, assert_equal, one_index, serving

import bitweigh
from bitweigh import cluster
from bitweigh.cluster.errors import IncompleteError, OverloadedError, VersionGoneError
from bitweigh.cluster.serving import queue as queues
from bitweigh.errors import DeadlineError, LimitError
from bitweigh.index import Index


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with serving(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def one() -> Index:
    return one_index()


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_a_cluster_answers_as_one_index_in_every_byte(
    serve: Serve, one: Index, groups: int
) -> None:
    found = serve(groups=groups).cluster
    some = bitweigh.Filter(allow=IDS[::3])
    for k in (1, 10, 100, 3000):
        assert_equal(one.search(COSTS, k), found.search(COSTS, k))
        assert_equal(one.search(COSTS[0], k, filter=some), found.search(COSTS[0], k, filter=some))
    assert_equal(one.search(COSTS, 5, deny=IDS[:100]), found.search(COSTS, 5, deny=IDS[:100]))
    assert_equal(one.range_search(COSTS, -3.0), found.range_search(COSTS, -3.0))
    assert_equal(one.search_with_ties(COSTS[0], 7), found.search_with_ties(COSTS[0], 7))
    assert_equal(one.search_by_id(IDS[:9], 20), found.search_by_id(IDS[:9], 20))
    assert_equal(one.search_codes(CODES[:3], 9), found.search_codes(CODES[:3], 9))
    assert np.array_equal(one.codes_of(IDS[::-1]), found.codes_of(IDS[::-1]))
    assert list(one.iterate(COSTS[1])) == list(found.iterate(COSTS[1]))
    assert np.array_equal(found.contains([IDS[0], 5001]), [True, False])
    assert len(found) == 2000
    assert "shard 4: scan" in found.explain(COSTS[0], 3)


def test_a_shard_whose_share_was_not_enough_is_asked_again(tmp_path: Path) -> None:
    # All rows of one shard are nearer than all others.
    ids = np.arange(3000)
    shard_of = cluster.HashPartition(3).shard_of(ids)
    codes = np.where(shard_of[:, np.newaxis] == 1, 0, 255).astype(np.uint8)
    codes[:, 1:] = 0
    codes = np.repeat(codes, 8, axis=1)
    one = Index(64)
    one.add(codes, ids)
    cluster.build(codes, tmp_path / "skewed", shards=3)
    served = Served(tmp_path / "skewed", groups=2, replicas=1)
    try:
        costs = bitweigh.costs.hamming(np.zeros((4, 8), np.uint8), 64)
        assert_equal(one.search(costs, 500), served.cluster.search(costs, 500))
        assert served.cluster.status().second_rounds == 4
    finally:
        served.close()


def test_queries_that_arrive_meanwhile_go_together(serve: Serve, one: Index) -> None:
    served = serve(groups=2)
    for replica in served.directory.all():
        replica.delay = 0.03
    expected = one.search(COSTS, 10).ids
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda q: served.cluster.search(COSTS[q], 10).ids, range(40)))
    assert np.array_equal(found, expected)
    status = served.cluster.status()
    assert status.answered == 40
    assert status.batches <= 6


def test_coroutines_search_too(serve: Serve, one: Index) -> None:
    served = serve()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(served.cluster.asearch(query, 3) for query in COSTS))

    expected = one.search(COSTS, 3).ids
    assert np.array_equal([found.ids for found in asyncio.run(all_at_once())], expected)


@pytest.mark.parametrize("fault", ["dead", "hangs", "slow"])
def test_with_two_replicas_a_fault_is_not_seen(serve: Serve, one: Index, fault: str) -> None:
    served = serve(groups=2, replicas=2)
    expected = one.search(COSTS, 10)
    assert_equal(expected, served.cluster.search(COSTS, 10))
    victim = served.replica(0, 0)
    if fault == "dead":
        victim.dead = True
    elif fault == "hangs":
        victim.hangs.clear()
    else:
        victim.delay = 0.5
    times = []
    for _ in range(30):
        began = time.monotonic()
        assert_equal(expected, served.cluster.search(COSTS, 10))
        times.append(time.monotonic() - began)
    assert max(times) < 0.5
    status = served.cluster.status()
    assert status.hedges + status.failovers > 0
    if fault != "slow":  # a slow holder answers pings, and is trusted again
        assert ("0-0", "suspect") in status.holders[0]
    victim.dead, victim.delay = False, 0.0
    victim.hangs.set()
    deadline = time.monotonic() + 5
    while ("0-0", "open") not in served.cluster.status().holders[0]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_hedges_are_limited_where_everything_is_slow(serve: Serve) -> None:
    served = serve(groups=1, replicas=2)
    for replica in served.directory.all():
        replica.delay = 0.08
    for _ in range(40):
        served.cluster.search(COSTS[0], 1)
    # 10 may be saved up, and one in 20 is earned.
    assert 1 <= served.cluster.status().hedges <= 12


def test_a_missing_shard_is_named_and_partial_answers_say_so(serve: Serve) -> None:
    served = serve(groups=2, shards=4)
    served.replica(1, 0).dead = True
    began = time.monotonic()
    with pytest.raises(IncompleteError, match=r"shard 1 \(\d+ of 2,000 rows\): 1-0") as error:
        served.cluster.search(COSTS, 10)
    assert time.monotonic() - began < 2
    assert [missing.shard for missing in error.value.missing] == [1, 3]
    found = served.cluster.search(COSTS, 10, partial=True)
    assert not found.complete
    assert [missing.shard for missing in found.missing] == [1, 3]
    rest = Index(64)
    here = np.isin(cluster.HashPartition(4).shard_of(IDS), [0, 2])
    rest.add(CODES[here], IDS[here])
    assert_equal(rest.search(COSTS, 10), found[:2])
    served.replica(1, 0).dead = False
    assert served.cluster.search(COSTS, 10, partial=True).complete


def test_an_error_of_the_caller_is_raised_to_the_caller_alone(serve: Serve) -> None:
    served = serve()
    with pytest.raises(ValueError, match="costs"):
        served.cluster.search(np.zeros((3, 2)), 1)
    with pytest.raises(LimitError):
        served.cluster.range_search(COSTS, 1e9, limit=3)
    with pytest.raises(KeyError, match="5001"):
        served.cluster.codes_of([5001])
    assert served.cluster.search(COSTS[0], 1).ids.shape == (1,)


def test_a_deadline_is_kept_also_where_a_holder_hangs(serve: Serve) -> None:
    served = serve(groups=1)
    served.replica(0, 0).hangs.clear()
    began = time.monotonic()
    with pytest.raises(DeadlineError):
        served.cluster.search(COSTS, 10, timeout=0.1)
    assert time.monotonic() - began < 0.3


def test_a_query_past_its_deadline_is_not_computed(serve: Serve) -> None:
    served = serve(groups=1)
    replica = served.replica(0, 0)
    replica.delay = 0.2
    with ThreadPoolExecutor(3) as pool:
        # The first two keep both batches busy; the third waits behind them.
        busy = [pool.submit(served.cluster.search, COSTS[:1], k) for k in (1, 2)]
        time.sleep(0.05)
        with pytest.raises(DeadlineError):
            served.cluster.search(COSTS[0], 3, timeout=0.05)
        for each in busy:
            each.result()
    time.sleep(0.3)
    assert replica.calls.count("search") == 2


def test_too_many_queries_are_refused_with_a_time_to_wait(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_MAX_QUERIES", 4)
    served = serve(groups=1)
    served.replica(0, 0).delay = 0.1
    refused, answered = [], []

    def ask(_: int) -> None:
        try:
            answered.append(served.cluster.search(COSTS[0], 1))
        except OverloadedError as error:
            refused.append(error.retry_after)

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(ask, range(30)))
    assert refused
    assert answered
    assert all(0 < seconds < 60 for seconds in refused)


def test_publishing_under_load_never_mixes_versions(serve: Serve) -> None:
    served = serve(groups=3, replicas=2, shards=6)
    url = served.directory.url
    answers: dict[int, bytes] = {}

    def remember(number: int) -> None:
        opened = cluster.open(url, version=number)
        answers[number] = opened.search(COSTS, 20).ids.tobytes()

    remember(1)
    for number in range(2, 6):
        near = cluster.open(url).search(COSTS, 20).ids
        cluster.update(url, remove=np.unique(near[:, ::2]))
        remember(number)
    assert len(set(answers.values())) == 5
    stop = threading.Event()
    seen: list[bytes] = []

    def search() -> None:
        while not stop.is_set():
            seen.append(served.cluster.search(COSTS, 20).ids.tobytes())

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2, 6):
        time.sleep(0.05)
        assert served.cluster.publish(number) == number
    time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert set(seen) <= set(answers.values())
    assert answers[1] in seen
    assert seen[-1] == answers[5]
    assert served.cluster.rollback() == 4
    assert served.cluster.search(COSTS, 20).ids.tobytes() == answers[4]


def test_a_version_that_one_holder_has_closed_restarts_nothing(serve: Serve, one: Index) -> None:
    served = serve(groups=1, replicas=2)
    served.replica(0, 0).holder.keep([])
    for _ in range(4):
        assert_equal(one.search(COSTS, 10), served.cluster.search(COSTS, 10))


def test_a_version_that_all_holders_have_closed_is_read_again(serve: Serve) -> None:
    served = serve(groups=1)
    cluster.update(served.directory.url, remove=IDS[:1])
    # Somebody else publishes, twice, and this coordinator has not noticed.
    served.directory.publish(2)
    served.replica(0, 0).holder.keep([2])
    assert served.coordinator.version.number == 1
    assert IDS[0] not in served.cluster.search(COSTS, 2000).ids
    assert served.coordinator.version.number == 2


def test_iterating_never_changes_version(serve: Serve, one: Index) -> None:
    served = serve(groups=2)
    neighbours = served.cluster.iterate(COSTS[0])
    first = [next(neighbours) for _ in range(3)]
    cluster.update(served.directory.url, remove=IDS[:1000])
    served.cluster.publish()
    assert first + list(neighbours) == list(one.iterate(COSTS[0]))
    neighbours = served.cluster.iterate(COSTS[0])
    next(neighbours)
    for _ in range(2):
        cluster.update(served.directory.url, remove=cluster.open(served.directory.url).ids[:1])
        served.cluster.publish()
    with pytest.raises(VersionGoneError, match="version 2 is not open any more"):
        list(neighbours)


def test_shards_that_two_versions_share_are_opened_once(serve: Serve) -> None:
    served = serve(groups=1, shards=4)
    cluster.update(served.directory.url, remove=IDS[:1])
    holder = served.replica(0, 0).holder
    holder.open(2)
    versions = holder._versions
    same = [versions[1].shards[shard] is versions[2].shards[shard] for shard in range(4)]
    changed = int(cluster.HashPartition(4).shard_of(IDS[:1])[0])
    assert same == [shard != changed for shard in range(4)]


def test_many_callers_get_their_own_answers(serve: Serve, one: Index) -> None:
    served = serve(groups=2, replicas=2)
    expected = {k: one.search(COSTS, k) for k in (1, 10, 100)}
    some = bitweigh.Filter(allow=IDS[::2])
    filtered = one.search(COSTS, 10, filter=some)

    def ask(number: int) -> None:
        query = number % len(COSTS)
        k = (1, 10, 100)[number % 3]
        found = served.cluster.search(COSTS[query], k)
        assert_equal((expected[k].distances[query], expected[k].ids[query]), found)
        found = served.cluster.search(COSTS[query], 10, filter=some)
        assert_equal((filtered.distances[query], filtered.ids[query]), found)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(300)))
