"""Exact Euclidean neighbours of rows in memory or mapped: the truth that answers are judged by."""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_integer
from bitweigh.typing import Ids

__all__ = ["euclidean_top"]

# Rows of X and of queries that are compared at a time: 16 MB of distances.
ROWS, QUERIES = 4096, 512


def euclidean_top(X: ArrayLike, queries: ArrayLike, k: int) -> Ids:
    """Find the k rows nearest to each query in Euclidean distance, equal distances in ascending id.

    Exact for the squared distance ``((x - q) ** 2).sum()`` in float64. A matrix product finds the
    candidates, allowing for its rounding, and that sum orders them.

    Parameters
    ----------
    X : real numbers (n, d)
        Rows, finite. Read block by block, so a memory map will do.
    queries : real numbers (nq, d)
        Queries, finite.
    k : int
        From 1 to n.

    Returns
    -------
    int64 (nq, k), nearest first

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import evaluation
    >>> rows = np.array([[0.0], [1.0], [3.0], [1.0]])
    >>> evaluation.euclidean_top(rows, np.array([[0.9]]), 3)
    array([[1, 3, 0]])

    """
    rows, checked_queries = np.asarray(X), np.asarray(queries)
    if rows.dtype.kind not in "fiu" or checked_queries.dtype.kind not in "fiu":
        raise TypeError(
            f"X and queries must be real numbers, got {rows.dtype} and {checked_queries.dtype}"
        )
    if rows.ndim != 2 or checked_queries.ndim != 2 or rows.shape[1] != checked_queries.shape[1]:
        raise ValueError(
            "X and queries must have shapes (n, d) and (nq, d), got "
            f"{rows.shape} and {checked_queries.shape}"
        )
    k = as_integer(k, "k", 1, len(rows))
    top = np.empty((len(checked_queries), k), dtype=np.int64)
    for first, block in _blocks(checked_queries, QUERIES, "queries"):
        for number, candidates in enumerate(_candidates(rows, block, k)):
            distances = ((rows[candidates].astype(np.float64) - block[number]) ** 2).sum(axis=1)
            order = np.lexsort((candidates, distances))[:k]
            top[first + number] = candidates[order]
    return top


def _blocks(rows: NDArray[Any], step: int, name: str) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Finite float64 blocks of rows, each with the number of its first row."""
    for start in range(0, len(rows), step):
        block = rows[start : start + step].astype(np.float64)
        if not (np.abs(block) < 1e150).all():  # squares and their sums stay finite
            raise ValueError(f"{name} must be finite and below 1e150, see row {start} and after")
        yield start, block


def _candidates(rows: NDArray[Any], queries: NDArray[np.float64], k: int) -> list[Ids]:
    """For each query every row that may be among its k nearest, in ascending id.

    Proof: |x|^2 - 2 x.q + |q|^2 and the final sum are each within 2 (d + 8) u S of the true
    distance, u = 2^-53, S = |x|^2 + |q|^2. A row farther than the k-th nearest by four such errors
    (both ways, both rows) has k rows nearer to the query in the final sum, too.
    """
    lengths = (queries**2).sum(axis=1)[:, np.newaxis]
    nearest = np.full((len(queries), k), np.inf)
    longest = 0.0
    limit = np.empty(len(queries))
    found: list[list[tuple[Ids, NDArray[np.float64]]]] = [[] for _ in queries]
    for first, block in _blocks(rows, ROWS, "X"):
        squares = (block**2).sum(axis=1)
        longest = max(longest, float(squares.max()))
        distances = squares - 2.0 * (queries @ block.T) + lengths
        nearest = np.partition(np.hstack([nearest, distances]), k - 1, axis=1)[:, :k]
        slack = 8 * (rows.shape[1] + 8) * 2.0**-53 * (longest + lengths[:, 0]) + 1e-290
        limit = nearest[:, k - 1] + slack
        for number, to_rows in enumerate(distances):
            near = np.flatnonzero(to_rows <= limit[number])
            found[number].append((near + first, to_rows[near]))
    return [
        np.concatenate([ids[distances <= limit[number]] for ids, distances in parts])
        for number, parts in enumerate(found)
    ]
