"""The base class of weighers: checks of projections and thresholds, one query or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_floats, as_n_bits
from bitweigh.hashers._estimator import Estimator
from bitweigh.typing import Floats

__all__ = ["Weigher", "as_projected"]


class Weigher(Estimator, ABC):
    """The base class: subclasses define `fit` and `_costs_block`."""

    n_bits_: int
    thresholds_: NDArray[np.float64]

    @abstractmethod
    def fit(self, projected: ArrayLike, thresholds: ArrayLike | None = None) -> Self:
        """Learn from a hasher's projections (n, n_bits) and its thresholds."""

    def costs(self, projected_queries: ArrayLike) -> NDArray[np.float64]:
        """Compute the costs of queries, as `Index.search` takes them.

        Parameters
        ----------
        projected_queries : float32 or float64 (n_bits,) or (nq, n_bits)
            A hasher's projections of the queries.

        Returns
        -------
        float64 (n_bits, 2) for a single query, (nq, n_bits, 2) for several

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.weighers import Asym
        >>> weigher = Asym().fit(np.array([[-1.0], [-3.0], [2.0], [4.0]]))
        >>> weigher.costs(np.array([1.0]))  # means -2 and 3
        array([[9., 4.]])

        """
        self._need_fitted()
        queries = as_floats(projected_queries, "projected_queries")
        if queries.ndim not in (1, 2) or queries.shape[-1] != self.n_bits_:
            raise ValueError(
                f"projected_queries must have shape ({self.n_bits_},) or (nq, {self.n_bits_}), got "
                f"{queries.shape}"
            )
        _need_finite(queries, "projected_queries")
        costs = self._costs_block(np.atleast_2d(queries).astype(np.float64))
        return costs[0] if queries.ndim == 1 else costs

    @abstractmethod
    def _costs_block(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Costs (nq, n_bits, 2) of checked projected queries (nq, n_bits)."""

    def _where_bits_differ(
        self, queries: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Costs that are `weights` (nq, n_bits) where a code's bit is not the query's, else 0."""
        bits = queries > self.thresholds_
        return np.stack([np.where(bits, weights, 0.0), np.where(bits, 0.0, weights)], axis=-1)


def as_projected(
    projected: ArrayLike, thresholds: ArrayLike | None
) -> tuple[Floats, NDArray[np.float64]]:
    """Checked projections ``(n, n_bits)`` and thresholds ``(n_bits,)``, zeros for None."""
    array = as_floats(projected, "projected")
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(f"projected must have shape (n, n_bits) with n > 0, got {array.shape}")
    n_bits = as_n_bits(array.shape[1])
    _need_finite(array, "projected")
    if thresholds is None:
        return array, np.zeros(n_bits)
    checked = as_floats(thresholds, "thresholds")
    if checked.shape != (n_bits,):
        raise ValueError(f"thresholds must have shape ({n_bits},), got {checked.shape}")
    _need_finite(checked, "thresholds")
    return array, checked.astype(np.float64)


def _need_finite(array: Floats, name: str) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
