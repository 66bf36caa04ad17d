"""Clusters without Ray: holders in this process that can be told to be slow, to hang or to die."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

from bitweigh import cluster
from bitweigh.cluster.opening import read
from bitweigh.cluster.serving.client import Cluster, Keeper
from bitweigh.cluster.serving.coordinator import Coordinator
from bitweigh.cluster.serving.holder import Holder
from bitweigh.cluster.serving.maps import Map
from bitweigh.cluster.serving.replicas import HolderLostError, Patience
from bitweigh.cluster.stores import open_store
from bitweigh.index import Index

RNG = np.random.default_rng(1)
CODES = RNG.integers(0, 4, (2000, 8), dtype=np.uint8)
IDS = RNG.permutation(5000)[:2000]
COSTS = RNG.standard_normal((40, 64, 2)).astype(np.float32)
PATIENCE = Patience(hedge_after=0.05, ping=0.05, lost=0.4, retry=0.02)


class LocalReplica:
    """A holder in this process that can be told to be slow, to hang or to die."""

    def __init__(self, name: str, holder: Holder) -> None:
        self.name = name
        self.holder = holder
        self.dead = False
        self.hangs = threading.Event()
        self.hangs.set()  # set means: does not hang
        self.delay = 0.0
        self.calls: list[str] = []
        self._pool = ThreadPoolExecutor(8)

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        self.calls.append(method)
        if self.dead:
            failed: Future[Any] = Future()
            failed.set_exception(HolderLostError("its holder has died"))
            return failed
        return self._pool.submit(self._called, method, *arguments)

    def _called(self, method: str, *arguments: Any) -> Any:
        self.hangs.wait()
        if method != "ping":
            time.sleep(self.delay)
        return getattr(self.holder, method)(*arguments)

    def close(self) -> None:
        self.hangs.set()
        self._pool.shutdown(wait=False)


class LocalDirectory:
    """Groups of such holders, and the version that is current."""

    def __init__(self, url: Path, groups: int, replicas: int) -> None:
        self.url = str(url)
        self.version = read(open_store(url)).number
        self.replicas = [
            [
                LocalReplica(f"{group}-{replica}", Holder(self.url, group, groups, [self.version]))
                for replica in range(replicas)
            ]
            for group in range(groups)
        ]

    def current(self) -> Map:
        version = read(open_store(self.url), self.version)
        return Map(version, tuple(tuple(group) for group in self.replicas), self.url)

    def shared(self, raw: bytes) -> bytes:
        return raw

    def all(self) -> list[LocalReplica]:
        return [replica for group in self.replicas for replica in group]

    def publish(self, number: int | None) -> int:
        version = read(open_store(self.url), number).number
        for replica in self.all():
            replica.holder.open(version)
        before, self.version = self.version, version
        for replica in self.all():
            replica.holder.keep([before, version])
        return version

    def drop(self, version: int) -> None:
        """Have all holders close a version."""
        for replica in self.all():
            kept = [number for number in replica.holder.status()["versions"] if number != version]
            replica.holder.keep(kept)


class Served:
    """A cluster in this process, and its holders."""

    def __init__(self, url: Path, groups: int, replicas: int, share_from: int = 64) -> None:
        self.directory = LocalDirectory(url, groups, replicas)
        self.coordinator = Coordinator(self.directory, PATIENCE, share_from)
        keeper = Keeper(self.directory.publish, lambda _: None, lambda: None)
        self.cluster = Cluster(self.coordinator, keeper)

    def replica(self, group: int, replica: int) -> LocalReplica:
        return self.directory.replicas[group][replica]

    def close(self) -> None:
        for replica in self.directory.all():
            replica.close()
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Serve = Callable[..., Served]


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Serve]:
    """A function that serves the codes of this module, until the end."""
    opened: list[Served] = []

    def started(groups: int = 2, replicas: int = 1, shards: int = 5, **options: Any) -> Served:
        url = folder / f"shards-{len(opened)}"
        cluster.build(CODES, url, ids=IDS, shards=shards)
        opened.append(Served(url, groups, replicas, **options))
        return opened[-1]

    try:
        yield started
    finally:
        for each in opened:
            each.close()


def one_index() -> Index:
    """The index that answers as a cluster must."""
    index = Index(64)
    index.add(CODES, IDS)
    return index


def assert_equal(expected: Any, found: Any) -> None:
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
