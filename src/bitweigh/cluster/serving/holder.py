"""A holder: opens its shards of some versions, and searches those that a question names.

It knows nothing of other holders. Any number of threads may call it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from bitweigh._merging import first_of, merge
from bitweigh._results import Neighbours, RangeResult
from bitweigh.cluster.as_one import CallClock
from bitweigh.cluster.errors import VersionGoneError
from bitweigh.cluster.opening import open_shard, read
from bitweigh.cluster.serving.wire import (
    Answer,
    FilterCache,
    Question,
    pack_answer,
    unpack_question,
)
from bitweigh.cluster.stores import open_store
from bitweigh.index import Index
from bitweigh.typing import Codes, Ids

__all__ = ["Holder"]


class Holder:
    """Every `of`-th shard, from number `first` on, of one or more versions."""

    def __init__(self, url: str, first: int, of: int, versions: Sequence[int] = ()) -> None:
        """Open the shards of these versions."""
        self._store = open_store(url)
        self._first = first
        self._of = of
        self._versions: dict[int, dict[int, Index]] = {}
        self._by_folder: dict[str, Index] = {}
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
            opened = {}
            for shard in range(self._first, len(version.shards), self._of):
                folder = version.shards[shard].folder
                if folder not in self._by_folder:
                    self._by_folder[folder] = open_shard(self._store, version, shard)
                opened[shard] = self._by_folder[folder]
            self._versions = {**self._versions, number: opened}

    def keep(self, numbers: Sequence[int]) -> None:
        """Close all versions but these; searches under way end as they began."""
        with self._changing:
            self._versions = {
                number: shards for number, shards in self._versions.items() if number in numbers
            }
            needed = {id(index) for shards in self._versions.values() for index in shards.values()}
            self._by_folder = {
                folder: index for folder, index in self._by_folder.items() if id(index) in needed
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
            for index in self._asked(question.version, shards)
        ]
        return merge(parts)

    def codes_of(self, version: int, shard: int, ids: bytes) -> tuple[bytes, bytes]:
        """Which of these ids a shard has, and the codes of those that it has."""
        (index,) = self._asked(version, (shard,))
        wanted: Ids = np.frombuffer(ids, np.int64)
        found = index.contains(wanted)
        codes: Codes = index.codes_of(wanted[found])
        return found.tobytes(), codes.tobytes()

    def explain(self, version: int, shard: int, costs: bytes, k: int, method: Any) -> str:  # noqa: ANN401
        """How one query is searched in a shard, and why."""
        (index,) = self._asked(version, (shard,))
        query = np.frombuffer(costs).reshape(index.n_bits, 2)
        return str(index.explain(query, k, method=method))

    def status(self) -> dict[str, Any]:
        """What is open, and what was done."""
        versions = self._versions
        return {
            "versions": sorted(versions),
            "shards": sorted({shard for shards in versions.values() for shard in shards}),
            "rows": {number: sum(map(len, shards.values())) for number, shards in versions.items()},
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
            for index in self._asked(question.version, shards)
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

    def _asked(self, version: int, shards: Sequence[int]) -> list[Index]:
        opened = self._versions.get(version)
        if opened is None:
            raise VersionGoneError(version)
        return [opened[shard] for shard in shards]
