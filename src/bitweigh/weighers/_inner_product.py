"""InnerProduct: a bit counts by how far the query is from its threshold."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh.costs import inner_product
from bitweigh.hashers._estimator import Shape
from bitweigh.weighers._base import Weigher, as_projected

__all__ = ["InnerProduct"]


class InnerProduct(Weigher):
    """The inner product with the query: ``costs[k, v] = -v (g_k - t_k)``.

    These are `costs.inner_product` of the projections minus the thresholds, which are all that
    `fit` learns. With the hasher `Sign` it ranks quantised embeddings by the inner product with a
    float query.

    Attributes
    ----------
    thresholds_ : float64 (n_bits,)
    n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.weighers import InnerProduct
    >>> weigher = InnerProduct().fit(np.array([[-1.0, 1.0], [2.0, 3.0]]), np.array([0.0, 2.0]))
    >>> weigher.costs(np.array([0.5, -1.0]))
    array([[ 0. , -0.5],
           [ 0. ,  3. ]])

    """

    _learned: ClassVar[dict[str, Shape]] = {"thresholds_": ("n_bits_",)}

    def fit(self, projected: ArrayLike, thresholds: ArrayLike | None = None) -> Self:
        """Store the thresholds; nothing but the number of bits is learned from `projected`.

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
        >>> from bitweigh.weighers import InnerProduct
        >>> InnerProduct().fit(np.ones((1, 3))).thresholds_
        array([0., 0., 0.])

        """
        _, self.thresholds_ = as_projected(projected, thresholds)
        self.n_bits_ = len(self.thresholds_)
        return self

    def _costs_block(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        return inner_product(queries - self.thresholds_).astype(np.float64)
