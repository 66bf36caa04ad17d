"""How good and how fast an answer is: precision, recall, the Euclidean truth, times.

Ids are row numbers here: id i is row i of the labels or vectors given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_integer
from bitweigh._euclidean import euclidean_top
from bitweigh.typing import Ids

__all__ = ["Timing", "euclidean_top", "precision_at_k", "recall_at_k", "speed_up", "time_queries"]

Truth: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]


class Timing(NamedTuple):
    """Seconds per query, over `n` timed calls."""

    mean: float
    median: float
    best: float
    p10: float
    p90: float
    n: int


def precision_at_k(found_ids: ArrayLike, truth: Truth) -> float:
    """The share of the k ids found that are true, averaged over the queries.

    Parameters
    ----------
    found_ids : integers (nq, k)
        What a search returned. The padding id -1 counts as wrong.
    truth : (labels, labels) or integers (nq, t)
        A tuple of the queries' labels ``(nq,)`` and the rows' labels ``(n,)``: true is what has the
        query's label. Or the true ids of each query; -1 is padding.

    Returns
    -------
    float

    Examples
    --------
    >>> from bitweigh import evaluation
    >>> evaluation.precision_at_k([[0, 1], [2, 0]], ([7, 8], [7, 8, 8]))
    0.5
    >>> evaluation.precision_at_k([[0, 1]], [[1, 5, 6]])
    0.5

    """
    hits, _ = _judge(found_ids, truth)
    return float(hits.mean())


def recall_at_k(found_ids: ArrayLike, truth: Truth) -> float:
    """The share of the true ids that are among the k found, averaged over the queries.

    Parameters
    ----------
    found_ids : integers (nq, k)
        What a search returned; -1 is padding.
    truth : (labels, labels) or integers (nq, t)
        As in `precision_at_k`. Every query needs at least one true row.

    Returns
    -------
    float

    Examples
    --------
    >>> from bitweigh import evaluation
    >>> evaluation.recall_at_k([[0, 1, 2, 3]], [[1, 5]])
    0.5

    """
    hits, totals = _judge(found_ids, truth)
    if not totals.all():
        raise ValueError(
            f"truth must have a true row for every query, query {totals.argmin()} none"
        )
    return float((hits.sum(axis=1) / totals).mean())


def speed_up(base_seconds: ArrayLike, seconds: ArrayLike) -> NDArray[np.float64] | np.float64:
    """How many times faster than the base: ``base_seconds / seconds``, element by element.

    Parameters
    ----------
    base_seconds, seconds : positive numbers
        Numbers or arrays of matching shapes.

    Returns
    -------
    float64

    Examples
    --------
    >>> from bitweigh import evaluation
    >>> float(evaluation.speed_up(3.0, 0.5))
    6.0

    """
    base, timed = np.asarray(base_seconds, np.float64), np.asarray(seconds, np.float64)
    if not (np.all(base > 0) and np.all(timed > 0)):
        raise ValueError("base_seconds and seconds must be positive")
    ratio: NDArray[np.float64] | np.float64 = base / timed
    return ratio


def time_queries(
    search: Callable[[Any], object],
    queries: Sequence[Any] | NDArray[Any],
    *,
    warm_up: int = 10,
    rounds: int = 3,
) -> Timing:
    """Time a search, one query at a time.

    Parameters
    ----------
    search : function of one query
        What it returns is thrown away.
    queries : sequence
        Each element, or row of an array, is one query.
    warm_up : int
        Calls before the timing starts.
    rounds : int
        How often all queries are timed, one round after the other.

    Returns
    -------
    Timing
        Mean, median, best, 10th and 90th percentile of ``rounds * len(queries)`` calls, in seconds.

    Examples
    --------
    >>> from bitweigh import evaluation
    >>> evaluation.time_queries(abs, [-1, -2], rounds=5).n
    10

    """
    if len(queries) == 0:
        raise ValueError("queries must not be empty")
    rounds = as_integer(rounds, "rounds", 1, 2**31)
    for number in range(as_integer(warm_up, "warm_up", 0, 2**31)):
        search(queries[number % len(queries)])
    seconds = []
    for _ in range(rounds):
        for query in queries:
            start = time.perf_counter()
            search(query)
            seconds.append(time.perf_counter() - start)
    p10, median, p90 = np.percentile(seconds, [10, 50, 90]).tolist()
    mean = float(np.mean(seconds))
    return Timing(mean, median, min(seconds), p10, p90, len(seconds))


def _judge(found_ids: ArrayLike, truth: Truth) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which ids found are true (nq, k), and how many true rows each query has (nq,)."""
    found = _as_id_rows(found_ids, "found_ids")
    if found.size == 0:
        raise ValueError(f"found_ids must not be empty, got shape {found.shape}")
    if isinstance(truth, tuple):
        wanted, rows = (np.asarray(labels) for labels in truth)
        if wanted.shape != (len(found),) or rows.ndim != 1:
            raise ValueError(
                f"truth must be labels of shapes ({len(found)},) and (n,), got {wanted.shape} and "
                f"{rows.shape}"
            )
        if found.max() >= len(rows):
            raise ValueError(f"found_ids has id {found.max()}, the truth has {len(rows)} rows")
        kinds, counts = np.unique(rows, return_counts=True)
        hits = (rows[found] == wanted[:, np.newaxis]) & (found >= 0)
        totals = (counts * (wanted[:, np.newaxis] == kinds)).sum(axis=1)
        return hits, totals
    true = _as_id_rows(truth, "truth")
    if len(true) != len(found):
        raise ValueError(f"truth must have {len(found)} rows, got {len(true)}")
    hits = np.array([np.isin(a, b[b >= 0]) for a, b in zip(found, true, strict=True)])
    return hits, (true >= 0).sum(axis=1)


def _as_id_rows(ids: object, name: str) -> Ids:
    """Ids (nq, k), none twice in a row, -1 excepted."""
    array = np.asarray(ids)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must have shape (nq, k), got {array.shape}")
    ordered = np.sort(array, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        raise ValueError(f"{name}[{row}] has the id {ordered[row, place]} twice")
    return array.astype(np.int64)
