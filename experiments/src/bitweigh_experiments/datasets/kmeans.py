"""Seeded k-means by Lloyd's algorithm, limited to what the generator needs."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh.typing import Ids

__all__ = ["cluster", "means_by", "nearest"]

Rows: TypeAlias = NDArray[np.float32]

_ROWS_AT_ONCE = 8192  # so that the distances to 512 centres stay in cache


def cluster(rows: Rows, n_clusters: int, rounds: int, rng: np.random.Generator) -> Ids:
    """Return the cluster (n,) of each row, from 0, after at most `rounds` of Lloyd's algorithm.

    It starts from random rows. A cluster that loses all its rows moves to one of the rows farthest
    from their centres.
    """
    centres = rows[rng.choice(len(rows), n_clusters, replace=False)]
    members, distances = nearest(rows, centres)
    for _ in range(rounds):
        sizes = np.bincount(members, minlength=n_clusters)
        centres = means_by(rows, members, n_clusters)
        empty = np.flatnonzero(sizes == 0)
        centres[empty] = rows[np.argsort(distances)[::-1][: len(empty)]]
        before = members
        members, distances = nearest(rows, centres)
        if np.array_equal(members, before):
            break
    return members


def nearest(rows: Rows, centres: Rows) -> tuple[Ids, Rows]:
    """Return the nearest centre (n,) of each row, and the squared distance (n,) to it."""
    members = np.empty(len(rows), dtype=np.int64)
    distances = np.empty(len(rows), dtype=np.float32)
    half_norms = np.square(centres).sum(axis=1) / 2
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE]
        # |x - c|^2 / 2 less |x|^2 / 2, which is the same for all centres.
        gaps = half_norms - block @ centres.T
        closest = gaps.argmin(axis=1)
        members[first : first + len(block)] = closest
        distances[first : first + len(block)] = 2 * gaps[
            np.arange(len(block)), closest
        ] + np.square(block).sum(axis=1)
    return members, distances


def means_by(rows: Rows, members: Ids, n_clusters: int) -> Rows:
    """Return the mean (n_clusters, d) of the rows of each cluster, 0 for an empty one."""
    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members, minlength=n_clusters)
    filled = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[filled]
    means = np.zeros((n_clusters, rows.shape[1]), dtype=np.float32)
    means[filled] = np.add.reduceat(rows[order], starts, axis=0)
    means /= np.maximum(sizes, 1).astype(np.float32)[:, np.newaxis]
    return means
