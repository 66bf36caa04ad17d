"""Asym: the squared difference of the query's projection and the value a bit stands for."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh.hashers._estimator import Shape
from bitweigh.weighers._base import Weigher, as_projected

__all__ = ["Asym"]


class Asym(Weigher):
    """Asymmetric distances (Gordo et al. 2014): the query keeps its real numbers g.

    - "expectation": ``costs[k, v] = (g_k - beta_k(v))^2``, where ``beta_k(v)`` is the mean of g_k
      over the training rows whose bit k is v. A side without training rows has the threshold as
      its mean: the nearest value that a row could have.
    - "lower_bound" (reconstructed): ``costs[k, v] = 0`` if v is the query's own bit k, else
      ``(g_k - t_k)^2``: no row on the other side of the threshold t_k is nearer.

    The paper does not say which of the two it ran.

    Parameters
    ----------
    variant : "expectation" or "lower_bound"

    Attributes
    ----------
    variant_ : str
        The variant that was fitted.
    means_ : float64 (n_bits, 2)
        The beta of both bit values; only with "expectation".
    thresholds_ : float64 (n_bits,)
    n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.weighers import Asym
    >>> projected = np.array([[-1.0], [-3.0], [2.0], [4.0]])  # (4, 1)
    >>> Asym().fit(projected).means_
    array([[-2.,  3.]])
    >>> Asym("lower_bound").fit(projected).costs(np.array([1.5]))
    array([[2.25, 0.  ]])

    """

    means_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {"thresholds_": ("n_bits_",)}

    def __init__(self, variant: Literal["expectation", "lower_bound"] = "expectation") -> None:
        """Store the parameter; `fit` checks it."""
        self.variant = variant

    def fit(self, projected: ArrayLike, thresholds: ArrayLike | None = None) -> Self:
        """Learn the means from a hasher's projections.

        Parameters
        ----------
        projected : float32 or float64 (n, n_bits)
            Projections of training rows.
        thresholds : float32 or float64 (n_bits,), optional
            The hasher's ``thresholds_``; zeros if not given.

        Returns
        -------
        the weigher itself

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.weighers import Asym
        >>> Asym().fit(np.array([[1.0], [2.0], [6.0]]), np.array([1.5])).means_
        array([[1., 4.]])

        """
        if self.variant not in ("expectation", "lower_bound"):
            raise ValueError(
                f"variant must be 'expectation' or 'lower_bound', got {self.variant!r}"
            )
        rows, checked_thresholds = as_projected(projected, thresholds)
        if self.variant == "expectation":
            ones = rows > checked_thresholds
            sides = [_mean_where(rows, side, checked_thresholds) for side in (~ones, ones)]
            self.means_ = np.stack(sides, axis=-1)
        elif hasattr(self, "means_"):
            del self.means_  # of an earlier fit
        self.thresholds_ = checked_thresholds
        self.n_bits_ = len(checked_thresholds)
        return self

    @property
    def variant_(self) -> str:
        """The variant that was fitted; `set_params` may have changed the parameter since."""
        return "expectation" if hasattr(self, "means_") else "lower_bound"

    def _fitted_params(self) -> dict[str, Any]:
        return {"variant": self.variant_}

    def _sizes(self) -> dict[str, Shape]:
        variant = self.variant_ if hasattr(self, "thresholds_") else self.variant
        means: dict[str, Shape] = {"means_": ("n_bits_", 2)}
        return {**self._learned, **(means if variant == "expectation" else {})}

    def _costs_block(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.variant_ == "expectation":
            gaps: NDArray[np.float64] = queries[:, :, np.newaxis] - self.means_
            return gaps**2
        return self._where_bits_differ(queries, (queries - self.thresholds_) ** 2)


def _mean_where(
    rows: NDArray[np.floating], side: NDArray[np.bool_], otherwise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of each column where `side` holds, and `otherwise` where it never does."""
    counts = side.sum(axis=0)
    sums = np.sum(rows, axis=0, where=side, dtype=np.float64)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)
