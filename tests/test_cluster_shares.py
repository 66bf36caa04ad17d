"""Shares of k: when a shard has given enough, and what is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_cases import LocalReplica, Served, assert_equal

import bitweigh
from bitweigh import cluster
from bitweigh._results import Neighbours
from bitweigh.cluster.serving import wire
from bitweigh.cluster.shares import is_enough
from bitweigh.index import Index

HAMMING = bitweigh.costs.hamming(np.zeros((4, 8), np.uint8), 64)
END = np.iinfo(np.int64).max


def merged(distance: float, id_: int) -> Neighbours:
    return Neighbours(np.array([[0.0, distance]]), np.array([[0, id_]]))


@pytest.mark.parametrize(
    ("last", "worst", "enough"),
    [
        ((2.0, 5), (1.0, 9), True),  # behind by its distance
        ((1.0, 9), (1.0, 9), True),  # it is the last one itself
        ((1.0, 10), (1.0, 9), True),  # behind by its id
        ((1.0, 8), (1.0, 9), False),  # the next may have the same distance, and an id below 9
        ((0.5, 99), (1.0, 9), False),
        ((np.inf, -1), (1.0, 9), True),  # it has no more rows
        ((np.inf, -1), (np.inf, -1), True),
        ((7.0, 5), (np.inf, -1), False),  # fewer than k rows were merged, and it may have more
        ((1e308, END), (np.inf, -1), False),
    ],
)
def test_a_shard_has_given_enough_if_its_last_row_is_not_before_the_last_of_all(
    last: tuple[float, int], worst: tuple[float, int], enough: bool
) -> None:
    found = is_enough(np.array([last[0]]), np.array([last[1]]), merged(*worst))
    assert found.tolist() == [enough]


Search = Callable[[Path], Any]


@pytest.fixture(params=[0, 1, 2], ids=["here", "1 group", "2 groups"])
def opened(request: pytest.FixtureRequest) -> Iterator[Search]:
    """A function that opens shards, in this process or by holders."""
    served: list[Served] = []

    def by_holders(url: Path) -> Any:
        served.append(Served(url, groups=request.param, replicas=1))
        return served[-1].cluster

    yield cluster.open if request.param == 0 else by_holders
    for each in served:
        each.close()


def ids_by_shard(shards: int, count: int) -> list[Any]:
    ids = np.arange(count)
    shard_of = cluster.HashPartition(shards).shard_of(ids)
    return [ids[shard_of == shard] for shard in range(shards)]


def second_rounds(found: Any) -> int:
    return int(found.status().second_rounds if hasattr(found, "status") else found.second_rounds)


def test_of_equal_codes_those_with_the_lowest_ids_are_found(opened: Search, tmp_path: Path) -> None:
    # The lowest ids are all in shard 1, and all rows are equally near: only ids tell them apart.
    first, low, last = ids_by_shard(3, 3000)
    ids = np.concatenate([low[:400], first[first > low[400]], last[last > low[400]]])
    codes = np.zeros((len(ids), 8), np.uint8)
    one = Index(64)
    one.add(codes, ids)
    cluster.build(codes, tmp_path / "equal", ids=ids, shards=3)
    found = opened(tmp_path / "equal")
    assert_equal(one.search(HAMMING, 300), found.search(HAMMING, 300))
    assert second_rounds(found) == 4


def test_a_second_round_has_the_filter_of_the_first(opened: Search, tmp_path: Path) -> None:
    ids = np.arange(3000)
    near = cluster.HashPartition(3).shard_of(ids) == 1
    codes = np.where(near[:, np.newaxis], np.uint8(0), np.uint8(255)).repeat(8, axis=1)
    codes[:, 0] = np.arange(3000) % 5
    one = Index(64)
    one.add(codes, ids)
    cluster.build(codes, tmp_path / "skewed", shards=3)
    found = opened(tmp_path / "skewed")
    some = ids[ids % 10 > 0]
    assert_equal(one.search(HAMMING, 500, allow=some), found.search(HAMMING, 500, allow=some))
    assert_equal(one.search(HAMMING, 500, deny=some), found.search(HAMMING, 500, deny=some))
    assert second_rounds(found) == 4  # denied, a shard has less than its share


def test_shards_that_have_no_more_rows_are_not_asked_again(opened: Search, tmp_path: Path) -> None:
    codes = np.random.default_rng(2).integers(0, 256, (90, 8), dtype=np.uint8)
    one = Index(64)
    one.add(codes)
    cluster.build(codes, tmp_path / "few", shards=3)
    found = opened(tmp_path / "few")
    assert_equal(one.search(HAMMING, 200), found.search(HAMMING, 200))
    assert second_rounds(found) == 0


def test_only_shards_in_doubt_are_asked_again(tmp_path: Path) -> None:
    ids = np.arange(3000)
    near = cluster.HashPartition(4).shard_of(ids) == 2
    codes = np.where(near[:, np.newaxis], np.uint8(0), np.uint8(255)).repeat(8, axis=1)
    cluster.build(codes, tmp_path / "skewed", shards=4)
    served = Served(tmp_path / "skewed", groups=2, replicas=1)
    asked: list[tuple[int, tuple[int, ...]]] = []

    def recorded(replica: LocalReplica) -> None:
        call = replica.call

        def called(method: str, *arguments: Any) -> Any:
            if method == "search":
                question = wire.unpack_question(arguments[0], wire.FilterCache())
                asked.append((question.share, arguments[1]))
            return call(method, *arguments)

        replica.call = called  # type: ignore[method-assign]

    try:
        for replica in served.directory.all():
            recorded(replica)
        served.cluster.search(HAMMING, 400)
    finally:
        served.close()
    assert sorted(asked) == [(140, (0, 2)), (140, (1, 3)), (400, (2,))]


def test_shares_are_given_up_where_they_are_often_not_enough(tmp_path: Path) -> None:
    ids = np.arange(3000)
    near = cluster.HashPartition(3).shard_of(ids) == 1
    codes = np.where(near[:, np.newaxis], np.uint8(0), np.uint8(255)).repeat(8, axis=1)
    cluster.build(codes, tmp_path / "skewed", shards=3)
    served = Served(tmp_path / "skewed", groups=1, replicas=1)
    try:
        many = np.repeat(HAMMING, 250, axis=0)
        served.cluster.search(many, 200)
        assert served.cluster.status().second_rounds == 1000
        served.cluster.search(many, 200)
        assert served.cluster.status().second_rounds == 1000
    finally:
        served.close()
