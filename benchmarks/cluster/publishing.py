"""Publishing while callers ask without pause: every answer must be that of one version.

The shards are in S3, as moto answers it. Versions are served forwards and back, made by updates,
made by two publishers at once, and not made because the store fails. All versions differ in every
answer. A caller of the process that publishes must see what was published; one that is connected
from elsewhere notices within a second or so.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Self
from unittest import mock

import numpy as np

from benchmarks.cluster.ray_cluster import Served, served
from benchmarks.cluster.s3 import failing_writes, s3_bucket
from benchmarks.cluster.versions import KINDS, SHARDS, Change, Versions, skewed_codes
from bitweigh import cluster
from bitweigh.cluster import PublishConflictError, VersionGoneError
from bitweigh.cluster.object_store import ObjectStore

__all__ = ["Callers", "run_publishing"]

_CALLERS = 4
# So rarely that shares are not given up: one query in 20 may need a second round.
_SKEWED_EVERY = 15 * len(KINDS)


class Callers:
    """Threads that ask without pause, and compare every answer."""

    def __init__(self, own: cluster.Cluster, other: cluster.Cluster, versions: Versions) -> None:
        """Half of them use each connection."""
        self._connections = (own, other)
        self._versions = versions
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(caller,)) for caller in range(_CALLERS)
        ]
        self.publishing: list[int] = [1]
        """All versions whose publishing has begun, in order."""
        self.published = 1
        """How many of these are published."""
        self.by_kind: Counter[str] = Counter()
        self.by_version: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.outdated = 0
        """Answers of a version that was not served any more when they were asked for."""
        self.gone = 0
        """Iterations that were told that their version is closed."""
        self.longest = 0.0

    @property
    def answers(self) -> int:
        """All answers that were compared."""
        return self.by_kind.total()

    def __enter__(self) -> Self:
        """Start them."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def publish(self, number: int) -> None:
        """Have the cluster serve a version."""
        self.publishing.append(number)
        assert self._connections[0].publish(number) == number
        self.published = len(self.publishing)

    def _ask(self, caller: int) -> None:
        asked = self._versions.asked
        kinds = itertools.cycle(KINDS)
        for count in itertools.count(caller):
            if self._stop.is_set():
                return
            kind = next(kinds)
            query = count % asked.usual
            if "200" in kind and count % _SKEWED_EVERY < len(KINDS):
                query = asked.usual + count % 2
            self._ask_one(caller, kind, query)

    def _ask_one(self, caller: int, kind: str, query: int) -> None:
        first = self.published - 1
        began = time.monotonic()
        try:
            found = KINDS[kind](self._connections[caller % 2], self._versions.asked, query)
        except Exception as error:
            with self._lock:
                if kind == "iterate" and isinstance(error, VersionGoneError):
                    self.gone += 1
                else:
                    self.errors[f"{kind}: {type(error).__name__}: {error}"] += 1
            return
        taken = time.monotonic() - began
        served_meanwhile = self.publishing[first:]
        version = self._versions.version_of(kind, query, found)
        with self._lock:
            self.longest = max(self.longest, taken)
            self.by_kind[kind] += 1
            if version is None:
                self.wrong[kind] += 1
            else:
                self.by_version[version] += 1
                self.outdated += caller % 2 == 0 and version not in served_meanwhile


class _Publishers:
    """Make versions, publish them, and count what happened."""

    def __init__(self, run: Served, versions: Versions, callers: Callers) -> None:
        self._url = str(run.url)
        self._versions = versions
        self._callers = callers
        self._seeds = itertools.count(1)
        self.conflicts = 0
        self.double_wins = 0
        self.failed_writes = 0
        self.failed_updates = 0
        self.damaged = 0
        """Times that the newest version was another one after an update that failed."""

    def update(self) -> int:
        """Make a version, and serve it."""
        change = self._versions.change(next(self._seeds))
        return self._serve(self._updated(change).number, change)

    def two_at_once(self) -> None:
        """Two updates of the same version: one wins."""
        changes = [self._versions.change(next(self._seeds)) for _ in range(2)]
        together = threading.Barrier(2, timeout=60)
        create = ObjectStore.create_version

        def create_together(store: ObjectStore, number: int, content: bytes) -> None:
            together.wait()
            create(store, number, content)

        def attempt(change: Change) -> int | None:
            try:
                return self._updated(change).number
            except PublishConflictError:
                return None

        with (
            mock.patch.object(ObjectStore, "create_version", create_together),
            ThreadPoolExecutor(2) as pool,
        ):
            numbers = list(pool.map(attempt, changes))
        self.conflicts += numbers.count(None)
        self.double_wins += numbers.count(None) != 1
        for number, change in zip(numbers, changes, strict=True):
            if number is not None:
                self._serve(number, change)

    def failing(self, nth: int) -> None:
        """Update while every `nth` write fails; then the version before is the newest."""
        before = cluster.versions(self._url)
        change = self._versions.change(next(self._seeds))
        with failing_writes(nth) as failures:
            try:
                number = self._updated(change).number
            except OSError:
                number = None
            self.failed_writes += failures()
        if number is not None:
            self._serve(number, change)
            return
        self.failed_updates += 1
        self.damaged += cluster.versions(self._url) != before
        self.damaged += cluster.verify(self._url).number != before[-1]

    def _updated(self, change: Change) -> cluster.Version:
        return cluster.update(self._url, add=change.codes, ids=change.ids, remove=change.remove)

    def _serve(self, number: int, change: Change) -> int:
        self._versions.made(number, change)
        self._callers.publish(number)
        return number


def run_publishing(answers: int, rows: int = 20_000) -> bool:
    """Publish until so many answers were compared; return whether all promises were kept."""
    codes = skewed_codes(rows)
    versions = Versions(codes)
    with (
        s3_bucket() as url,
        served(codes, shards=SHARDS, url=url) as run,
        contextlib.closing(cluster.connect(run.name)) as other,
    ):
        began = time.monotonic()
        with Callers(run.cluster, other, versions) as callers:
            publishers = _Publishers(run, versions, callers)
            rng = np.random.default_rng(0)
            rounds = 0
            while callers.answers < answers or rounds < 3:
                _one_round(publishers, callers, rng)
                rounds += 1
        seconds = time.monotonic() - began
        statuses = [run.cluster.status(), other.status()]
    _report(callers, publishers, seconds)
    second_rounds = sum(status.second_rounds for status in statuses)
    print(f"second rounds: {second_rounds:,}")
    return _kept(callers, publishers, answers) and second_rounds > 0


def _one_round(publishers: _Publishers, callers: Callers, rng: np.random.Generator) -> None:
    """Forwards, back and forwards again, with and without faults."""
    numbers = [publishers.update() for _ in range(2)]
    for number in (numbers[0], numbers[1], callers.publishing[0], numbers[1]):
        time.sleep(rng.uniform(0.05, 1.5))
        callers.publish(number)
    for nth in (int(rng.integers(2, 5)), int(rng.integers(5, 30))):
        publishers.failing(nth)
    publishers.two_at_once()


def _report(callers: Callers, publishers: _Publishers, seconds: float) -> None:
    print(
        f"{callers.answers:,} answers of {_CALLERS} callers in {seconds:.0f} s, "
        f"longest {callers.longest:.2f} s"
    )
    for kind, count in callers.by_kind.items():
        print(f"  {kind}: {count:,}")
    by_version = sorted(callers.by_version.items())
    counts = ", ".join(f"{number}: {count:,}" for number, count in by_version)
    print(f"published {len(callers.publishing) - 1} times; answers by version: {counts}")
    print(
        f"wrong: {callers.wrong.total()}, of a version not served any more: {callers.outdated}, "
        f"errors: {callers.errors.total()}, iterations told that their version is closed: "
        f"{callers.gone}"
    )
    for error, count in callers.errors.most_common(5):
        print(f"    {count} x {error}")
    print(
        f"two publishers: {publishers.conflicts} times one of them got PublishConflictError, "
        f"{publishers.double_wins} times not exactly one"
    )
    print(
        f"failing store: {publishers.failed_writes} writes and {publishers.failed_updates} updates "
        f"failed, {publishers.damaged} times the version before did not stay"
    )


def _kept(callers: Callers, publishers: _Publishers, answers: int) -> bool:
    return (
        callers.answers >= answers
        and not callers.wrong
        and not callers.errors
        and not callers.outdated
        and publishers.conflicts > 0
        and publishers.failed_updates > 0
        and not publishers.double_wins
        and not publishers.damaged
    )
