"""A holder: opens its shards of some versions, and searches those that a question names.

It knows nothing of other holders. Any number of threads may call it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bitweigh._merging import first_of, merge
from bitweigh._results import Neighbours, RangeResult
from bitweigh.cluster.as_one import CallClock
from bitweigh.cluster.errors import VersionGoneError
from bitweigh.cluster.local_version import ranked, shards_of_candidates, vectors_within
from bitweigh.cluster.one_version import Ranking, SearchLimits
from bitweigh.cluster.opening import open_shard, open_template, read
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.serving.wire import (
    Answer,
    FilterCache,
    Question,
    pack_answer,
    unpack_question,
)
from bitweigh.cluster.shares import merged_of
from bitweigh.cluster.stores import open_store
from bitweigh.cluster.templates import Opened
from bitweigh.typing import Codes, Ids

__all__ = ["Holder"]


class Holder:
    """Every `of`-th shard, from number `first` on, of one or more versions."""

    def __init__(self, url: str, first: int, of: int, versions: Sequence[int] = ()) -> None:
        """Open the shards of these versions."""
        self._store = open_store(url)
        self._first = first
        self._of = of
        self._versions: dict[int, _HeldVersion] = {}
        self._by_folder: dict[str, Opened] = {}
        self._changing = threading.Lock()
        self._filters = FilterCache()
        self._answered = 0
        for number in versions:
            self.open(number)

    def open(self, number: int) -> None:
        """Open the shards of a version too; those that it shares with others are open already."""
        with self._changing:
            if number in self._versions:
                return
            version = read(self._store, number)
            template = open_template(self._store, version)
            opened = {}
            for shard in range(self._first, len(version.shards), self._of):
                folder = version.shards[shard].folder
                if folder not in self._by_folder:
                    self._by_folder[folder] = open_shard(self._store, version, template, shard)
                opened[shard] = self._by_folder[folder]
            held = _HeldVersion(version.partition, opened)
            self._versions = {**self._versions, number: held}

    def keep(self, numbers: Sequence[int]) -> None:
        """Close all versions but these; searches under way end as they began."""
        with self._changing:
            self._versions = {
                number: held for number, held in self._versions.items() if number in numbers
            }
            needed = {
                id(shard) for held in self._versions.values() for shard in held.shards.values()
            }
            self._by_folder = {
                folder: shard for folder, shard in self._by_folder.items() if id(shard) in needed
            }

    def search(self, raw: bytes, shards: Sequence[int]) -> bytes:
        """Answer a question for the k nearest in these shards."""
        question = unpack_question(raw, self._filters)
        return pack_answer(self._nearest(question, shards))

    def range_search(self, raw: bytes, shards: Sequence[int]) -> RangeResult:
        """Answer a question for all within a radius in these shards."""
        question = unpack_question(raw, self._filters)
        clock = CallClock(question.timeout)
        parts = [
            index.range_search(
                question.costs,
                question.radii if question.radii is not None else 0.0,
                limit=question.limit,
                threads=question.threads,
                method=question.method,
                filter=question.filter,
                timeout=clock.left(),
            )
            for index, _ in self._asked(question.version, shards)
        ]
        return merge(parts)

    def rank(self, raw: bytes, shards: Sequence[int]) -> bytes:
        """Answer a question for the k nearest vectors of the candidates in these shards."""
        question = unpack_question(raw, self._filters)
        assert question.candidates is not None
        limits = SearchLimits(CallClock(question.timeout), question.threads)
        held = self._held(question.version)
        shard_of = shards_of_candidates(held.partition, question.candidates)
        parts = []
        for shard, (_, vectors) in zip(shards, held.opened(shards), strict=True):
            assert vectors is not None
            here = np.where(shard_of == shard, question.candidates, -1)
            parts.append(ranked(vectors, here, _ranking(question), limits))
        found = merged_of(parts, len(question.candidates), question.k)
        none = np.empty((0, len(question.candidates)))
        return pack_answer(Answer(found, none, none.astype(np.int64)))

    def vectors_within(self, raw: bytes, shards: Sequence[int]) -> RangeResult:
        """Answer a question for all vectors within a radius in these shards."""
        question = unpack_question(raw, self._filters)
        assert question.radii is not None
        limits = SearchLimits(CallClock(question.timeout), question.threads, question.filter)
        rows, _, metric = _ranking(question)
        return merge(
            [
                vectors_within(shard, rows, question.radii, metric, question.limit, limits)
                for shard in self._asked(question.version, shards)
            ]
        )

    def vectors_of(self, version: int, shard: int, ids: bytes) -> tuple[bytes, bytes]:
        """Which of these ids a shard has, and the kept vectors of those that it has."""
        ((index, vectors),) = self._asked(version, (shard,))
        assert vectors is not None
        wanted: Ids = np.frombuffer(ids, np.int64)
        found = index.contains(wanted)
        return found.tobytes(), vectors.of(wanted[found]).tobytes()

    def codes_of(self, version: int, shard: int, ids: bytes) -> tuple[bytes, bytes]:
        """Which of these ids a shard has, and the codes of those that it has."""
        ((index, _),) = self._asked(version, (shard,))
        wanted: Ids = np.frombuffer(ids, np.int64)
        found = index.contains(wanted)
        codes: Codes = index.codes_of(wanted[found])
        return found.tobytes(), codes.tobytes()

    def explain(self, version: int, shard: int, costs: bytes, k: int, method: Any) -> str:  # noqa: ANN401
        """How one query is searched in a shard, and why."""
        ((index, _),) = self._asked(version, (shard,))
        query = np.frombuffer(costs).reshape(index.n_bits, 2)
        return str(index.explain(query, k, method=method))

    def status(self) -> dict[str, Any]:
        """What is open, and what was done."""
        versions = self._versions
        return {
            "versions": sorted(versions),
            "shards": sorted({shard for held in versions.values() for shard in held.shards}),
            "rows": {number: held.rows for number, held in versions.items()},
            "answered": self._answered,
            "process": os.getpid(),
        }

    def ping(self) -> int:
        """Show that the holder is alive."""
        return self._answered

    def _nearest(self, question: Question, shards: Sequence[int]) -> Answer:
        clock = CallClock(question.timeout)
        parts: list[Neighbours] = [
            index.search(
                question.costs,
                question.share,
                threads=question.threads,
                method=question.method,
                filter=question.filter,
                timeout=clock.left(),
            )
            for index, _ in self._asked(question.version, shards)
        ]
        distances = np.concatenate([part.distances for part in parts], axis=1)
        ids = np.concatenate([part.ids for part in parts], axis=1)
        kept = min(question.k, distances.shape[1])
        found = Neighbours(*first_of(distances, ids, kept))
        self._answered += len(question.costs)
        return Answer(
            found,
            np.array([part.distances[:, -1] for part in parts]),
            np.array([part.ids[:, -1] for part in parts]),
        )

    def _asked(self, version: int, shards: Sequence[int]) -> list[Opened]:
        return self._held(version).opened(shards)

    def _held(self, version: int) -> _HeldVersion:
        held = self._versions.get(version)
        if held is None:
            raise VersionGoneError(version)
        return held


class _HeldVersion(NamedTuple):
    """The shards of a version that a holder has open, by number."""

    partition: Partition
    shards: dict[int, Opened]

    @property
    def rows(self) -> int:
        return sum(len(shard.codes) for shard in self.shards.values())

    def opened(self, shards: Sequence[int]) -> list[Opened]:
        return [self.shards[shard] for shard in shards]


def _ranking(question: Question) -> Ranking:
    assert question.rows is not None
    assert question.metric is not None
    return Ranking(question.rows, question.k, question.metric)
