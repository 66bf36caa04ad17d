"""Versions that differ in every answer, and which of them an answer is of."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cluster.codes import some_codes, some_costs
from bitweigh import Index, costs
from bitweigh.cluster import HashPartition

__all__ = ["KINDS", "Change", "Questions", "Versions", "skewed_codes"]

SHARDS = 4
# From 64 on, each shard is asked for its share only.
_MANY = 200
_SKEWED = 2
_SKEWED_ROWS = 300


class Questions(NamedTuple):
    """What is asked."""

    costs: NDArray[np.float32]
    """(nq, 64, 2); the rows nearest to the last ones are all in one shard."""
    radii: NDArray[np.float64]
    ids: NDArray[np.int64]
    """Rows that no version lacks."""

    @property
    def usual(self) -> int:
        """The number of queries whose share is enough."""
        return len(self.costs) - _SKEWED


def _iterated(found: Any, asked: Questions, number: int) -> tuple[Any, ...]:  # noqa: ANN401
    rows = list(itertools.islice(found.iterate(asked.costs[number]), 300))
    return (np.array([d for d, _ in rows]), np.array([i for _, i in rows]))


Ask = Callable[[Any, Questions, int], tuple[Any, ...]]

KINDS: dict[str, Ask] = {
    "search, k = 10": lambda found, asked, q: found.search(asked.costs[q], 10),
    f"search, k = {_MANY}": lambda found, asked, q: found.search(asked.costs[q], _MANY),
    "search, 8 queries": lambda found, asked, q: found.search(asked.costs[q : q + 8], 20),
    "range_search": lambda found, asked, q: found.range_search(asked.costs[q], asked.radii[q]),
    "search_with_ties": lambda found, asked, q: found.search_with_ties(asked.costs[q], 50),
    "search_by_id": lambda found, asked, q: found.search_by_id(asked.ids[q], 10),
    "iterate": _iterated,
}
"""How to ask a cluster, or an index, query number q."""


class Change(NamedTuple):
    """What `update` is to remove and add."""

    remove: NDArray[np.int64]
    codes: NDArray[np.uint8]
    ids: NDArray[np.int64]


class Versions:
    """The rows of the newest version, and the answers of all."""

    def __init__(self, codes: NDArray[np.uint8], queries: int = 24) -> None:
        """Begin with rows whose ids are their numbers, as version 1."""
        usual = some_costs(codes, queries)
        skewed = costs.hamming(codes[-_SKEWED:], 64).astype(np.float32)
        self._index = Index(64)
        self._index.add(codes)
        every = np.concatenate([usual, skewed])
        radii = self._index.search(every, 60).distances[:, -1].copy()
        kept = np.arange(len(codes) - 1000, len(codes) - 1000 + len(every))
        self.asked = Questions(every, radii, kept)
        self._of: dict[tuple[str, int, bytes], int] = {}
        self._next_id = len(codes)
        self._remember(1)

    def change(self, seed: int) -> Change:
        """A change of the newest version that changes every answer."""
        rng = np.random.default_rng(seed)
        found = [answer[-1] for kind in KINDS for answer in self._answers(kind)]
        removable = [ids[~np.isin(ids, self.asked.ids)] for ids in found]
        # The first row of every answer comes back with another id, a few of all others changed.
        first = np.unique([ids[0] for ids in removable])
        others = np.setdiff1d(rng.choice(np.concatenate(removable), 30), first)
        remove = np.concatenate([first, others])
        codes = self._index.codes_of(remove)
        codes[len(first) :, rng.integers(0, 8)] ^= 1
        ids = np.arange(self._next_id, self._next_id + len(remove))
        self._next_id += len(remove)
        return Change(remove, codes, ids)

    def made(self, number: int, change: Change) -> None:
        """Note that a version was made by this change."""
        self._index.remove(change.remove)
        self._index.add(change.codes, change.ids)
        self._remember(number)

    def version_of(self, kind: str, number: int, answer: tuple[Any, ...]) -> int | None:
        """The version that an answer is of, None if it is of none."""
        return self._of.get((kind, number, _bytes(answer)))

    def _remember(self, version: int) -> None:
        for kind in KINDS:
            for number, answer in enumerate(self._answers(kind)):
                key = (kind, number, _bytes(answer))
                if key in self._of:
                    raise RuntimeError(f"versions {self._of[key]} and {version} agree: {kind}")
                self._of[key] = version

    def _answers(self, kind: str) -> list[tuple[Any, ...]]:
        asked = self.asked
        return [KINDS[kind](self._index, asked, q) for q in range(len(asked.costs))]


def skewed_codes(rows: int) -> NDArray[np.uint8]:
    """Clustered codes; the rows nearest to each of the last ones are in one shard."""
    rng = np.random.default_rng(7)
    codes = some_codes(rows)
    in_first = np.flatnonzero(HashPartition(SHARDS).shard_of(np.arange(rows - 2000)) == 0)
    places = rng.permutation(in_first)[: _SKEWED * _SKEWED_ROWS].reshape(_SKEWED, -1)
    for centre, here in zip(range(rows - _SKEWED, rows), places, strict=True):
        codes[here] = codes[centre]
        codes[here, rng.integers(0, 8, len(here))] ^= rng.integers(1, 8, len(here), dtype=np.uint8)
    return codes


def _bytes(answer: tuple[Any, ...]) -> bytes:
    return b"".join(array.tobytes() for array in answer)
