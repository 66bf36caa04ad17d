"""Quality and speed of answers: precision, recall, true Euclidean neighbours, times.

Ids are row numbers here: id i is row i of the labels or vectors.
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
    """Compute the share of the k ids found that are true, averaged over the queries.

    Parameters
    ----------
    found_ids : integers (nq, k)
        The ids that a search returned. The padding id -1 counts as wrong.
    truth : (labels, labels) or integers (nq, t)
        A tuple of the queries' labels ``(nq,)`` and the rows' labels ``(n,)``: true are the rows
        with the query's label. Or the true ids of each query; -1 is padding.

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
    """Compute the share of the true ids that are among the k found, averaged over the queries.

    Parameters
    ----------
    found_ids : integers (nq, k)
        The ids that a search returned; -1 is padding.
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
            f"truth must have a true row for every query, query {totals.argmin()} has none"
        )
    return float((hits.sum(axis=1) / totals).mean())


def speed_up(base_seconds: ArrayLike, seconds: ArrayLike) -> NDArray[np.float64] | np.float64:
    """Compute how many times faster than the base: ``base_seconds / seconds``, element by element.

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
        Its result is discarded.
    queries : sequence
        Each element, or row of an array, is one query.
    warm_up : int
        Calls before the timing starts.
    rounds : int
        Number of times that all queries are timed, one round after the other.

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
        query_labels, row_labels = (np.asarray(labels) for labels in truth)
        if query_labels.shape != (len(found),) or row_labels.ndim != 1:
            raise ValueError(
                f"truth must be labels of shapes ({len(found)},) and (n,), got "
                f"{query_labels.shape} and {row_labels.shape}"
            )
        if found.max() >= len(row_labels):
            raise ValueError(
                f"found_ids has id {found.max()}, but truth has only {len(row_labels)} rows"
            )
        distinct, counts = np.unique(row_labels, return_counts=True)
        hits = (row_labels[found] == query_labels[:, np.newaxis]) & (found >= 0)
        totals = (counts * (query_labels[:, np.newaxis] == distinct)).sum(axis=1)
        return hits, totals
    true = _as_id_rows(truth, "truth")
    if len(true) != len(found):
        raise ValueError(f"truth must have {len(found)} rows, got {len(true)}")
    hits = np.array([np.isin(row, ids[ids >= 0]) for row, ids in zip(found, true, strict=True)])
    return hits, (true >= 0).sum(axis=1)


def _as_id_rows(ids: object, name: str) -> Ids:
    """Ids (nq, k), distinct within each row except for padding."""
    array = np.asarray(ids)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must have shape (nq, k), got {array.shape}")
    ordered = np.sort(array, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        raise ValueError(f"{name}[{row}] has the id {ordered[row, column]} twice")
    return array.astype(np.int64)
