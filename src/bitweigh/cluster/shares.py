"""The k nearest over shards, each asked for its share of k only, with a proof that it was enough.

Of the k nearest rows, a shard that is a random sample of all S shards has about k / S, give or take
the square root of that. So each is asked for k' = k / S + 4 sqrt(k / S) rows.

Proof. Let (d, i) be the last of the merged k by (distance, id), or +inf if fewer were merged. A
shard that returned fewer than k' rows has no others. A shard whose last row is not before (d, i)
has only rows behind that one, which is behind (d, i) or is it. Any other shard may have rows before
(d, i) that it did not return: it is asked again, for k. What the k nearest are is then certain: the
first round only ever puts (d, i) too far back, so no shard that was not asked again has rows to
add. Rows are counted, not padding: the ids of padding are -1.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitweigh._merging import first_of
from bitweigh._results import Neighbours
from bitweigh.typing import Ids

__all__ = ["SHARE_FROM", "Ask", "Shares", "is_enough", "merged_of", "nearest_of_shards", "share_of"]

SHARE_FROM = 64
"""Smaller k are asked for in full: 4 standard deviations are as many as k."""

# Shares are given up where more than one query in 20 of the last thousand needed a second round.
_REMEMBERED = 1000
_MAX_AGAIN = 0.05

Ask = Callable[[int, NDArray[np.bool_] | None, int], Neighbours]
"""Asks a shard, for the marked queries or all, for so many neighbours; returns (m, k) each."""


def share_of(k: int, shards: int) -> int:
    """How many neighbours to ask each shard for, if all are random samples."""
    mean = k / shards
    return min(k, math.ceil(mean + 4 * math.sqrt(mean)))


class Shares:
    """Decides whether to ask for shares, by how often that was not enough."""

    def __init__(self, sensible: bool, share_from: int = SHARE_FROM) -> None:
        """`sensible` says whether shards are random samples."""
        self._sensible = sensible
        self._share_from = share_from
        self._lock = threading.Lock()
        self._asked = 0.0
        self._again = 0.0
        self.second_rounds = 0
        """Queries that needed a second round."""

    def of(self, k: int, shards: int) -> int:
        """How many neighbours to ask each shard for."""
        if not self._sensible or k < self._share_from or shards < 2:
            return k
        with self._lock:
            too_often = self._asked >= _REMEMBERED and self._again > _MAX_AGAIN * self._asked
        return k if too_often else share_of(k, shards)

    def note(self, queries: int, again: int) -> None:
        """Count queries that were asked with shares, and those that needed a second round."""
        with self._lock:
            self.second_rounds += again
            self._asked += queries
            self._again += again
            if self._asked > 2 * _REMEMBERED:
                # The past counts half, and is forgotten in the end.
                self._asked /= 2
                self._again /= 2


def is_enough(
    last_distances: NDArray[np.float64],
    last_ids: Ids,
    merged: Neighbours,
) -> NDArray[np.bool_]:
    """Whether a shard whose last rows are these (nq,) has no row that belongs into `merged`."""
    worst = np.where(merged.ids[:, -1] >= 0, merged.distances[:, -1], np.inf)
    worst_ids = np.where(merged.ids[:, -1] >= 0, merged.ids[:, -1], np.iinfo(np.int64).max)
    behind = (last_distances > worst) | ((last_distances == worst) & (last_ids >= worst_ids))
    enough: NDArray[np.bool_] = (last_ids < 0) | behind
    return enough


def nearest_of_shards(
    ask: Ask, shards: Sequence[int], nq: int, k: int, shares: Shares
) -> Neighbours:
    """The k nearest of all shards, (nq, k)."""
    share = shares.of(k, len(shards))
    found = {shard: ask(shard, None, share) for shard in shards}
    merged = merged_of(list(found.values()), nq, k)
    if share == k:
        return merged
    again = np.zeros(nq, dtype=np.bool_)
    for shard, (distances, ids) in found.items():
        doubtful = ~is_enough(distances[:, -1], ids[:, -1], merged)
        if doubtful.any():
            again |= doubtful
            found[shard] = _replaced(found[shard], doubtful, ask(shard, doubtful, k))
    shares.note(nq, int(np.count_nonzero(again)))
    return merged_of(list(found.values()), nq, k) if again.any() else merged


def merged_of(parts: Sequence[Neighbours], nq: int, k: int) -> Neighbours:
    """The first k of all parts (nq, m) by (distance, id), padded to (nq, k)."""
    if not parts:
        return Neighbours(np.full((nq, k), np.inf), np.full((nq, k), -1, dtype=np.int64))
    distances = np.concatenate([part.distances for part in parts], axis=1)
    ids = np.concatenate([part.ids for part in parts], axis=1)
    return Neighbours(*first_of(distances, ids, k))


def _replaced(old: Neighbours, rows: NDArray[np.bool_], new: Neighbours) -> Neighbours:
    """Neighbours (nq, k) with those of some queries replaced; the others are padded."""
    distances = np.full((len(rows), new.distances.shape[1]), np.inf)
    ids = np.full(distances.shape, -1, dtype=np.int64)
    kept = old.ids.shape[1]
    distances[:, :kept], ids[:, :kept] = old.distances, old.ids
    distances[rows], ids[rows] = new
    return Neighbours(distances, ids)
