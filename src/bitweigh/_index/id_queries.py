"""Queries that are stored rows, named by their ids, and their neighbours without themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import MAX_K, as_ids, as_integer
from bitweigh._results import others
from bitweigh.typing import Ids

__all__ = ["IdQueries", "check_weights"]


class IdQueries:
    """The arguments of a `search_by_id`, checked."""

    def __init__(self, ids: ArrayLike, k: int, *, include_self: bool) -> None:
        """Check an id or ids (n,), and k."""
        # One more is asked for where the query itself will be dropped.
        self.extra = 0 if include_self else 1
        self.k = as_integer(k, "k", 1, MAX_K - self.extra)
        self.single = np.ndim(ids) == 0
        self.ids = as_ids([ids] if self.single else ids)

    @property
    def asked(self) -> int:
        """How many neighbours to ask for."""
        return self.k + self.extra

    def without_themselves(
        self, distances: NDArray[np.float64], found: Ids
    ) -> tuple[NDArray[np.float64], Ids]:
        """The k neighbours out of those (n, asked) that were found; (k,) for a single id."""
        if self.extra:
            kept = others(found, self.ids)
            distances = distances[kept].reshape(-1, self.k)
            found = found[kept].reshape(-1, self.k)
        return (distances[0], found[0]) if self.single else (distances, found)


def check_weights(weights: ArrayLike | None, n_bits: int) -> None:
    """Raise ValueError unless these are weights of all queries alike."""
    if weights is not None and np.shape(weights) != (n_bits,):
        raise ValueError(f"weights must have shape ({n_bits},), got {np.shape(weights)}")
