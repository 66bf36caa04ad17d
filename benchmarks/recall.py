"""The recall of an answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitweigh import reference


def recall(
    codes: NDArray[np.uint8],
    costs: NDArray[np.float32],
    found: NDArray[np.int64],
    exact: NDArray[np.int64],
) -> float:
    """Return the share of the exact neighbours found, over all queries.

    Rows are compared by distance, as :mod:`bitweigh.reference` defines it, so any of several rows
    at the same distance will do. Which rows tie is thus decided in float64.

    `codes` is (n, n_bytes), `costs` (nq, n_bits, 2), `found` and `exact` are row numbers (nq, k).
    Raises RuntimeError if a found row is nearer than the exact ones, which then were not exact.
    """
    hits = 0
    for own_costs, own_found, own_exact in zip(costs, found, exact, strict=True):
        real = np.unique(own_found[own_found >= 0])
        distances = reference.distances(
            codes[np.concatenate([own_exact, real])], own_costs, bitorder="little"
        )
        nearest = np.sort(distances[: len(own_exact)])
        answered = np.sort(distances[len(own_exact) :])
        if (answered < nearest[: len(answered)]).any():
            raise RuntimeError("a peer found a nearer row than bitweigh: its answer is not exact")
        hits += int((answered <= nearest[-1]).sum())
    return hits / exact.size
