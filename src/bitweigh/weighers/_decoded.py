"""Decoded: distances between a query and the vector that a code stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._terms import BitTerms
from bitweigh.typing import Metric
from bitweigh.weighers._base import Weigher

if TYPE_CHECKING:
    from bitweigh.hashers._base import Hasher

__all__ = ["Decoded"]


class Decoded(Weigher):
    """The distance between a query and the vector that a code stands for, decoded from its bits.

    For hashers that say what that vector is: `Scalar` and `Levels`. The costs of bit k are linear
    in the query's projection ``g_k``, apart from its square, which is the same for all codes::

        costs[k, 0] = squares_k g_k^2 + slopes_k g_k + constants_k
        costs[k, 1] = costs[k, 0] + gains_k g_k + extras_k

    With the metric "euclidean" they add up to the squared distance, with "inner_product" to minus
    the inner product, and with "cosine" to 1 minus the inner product, or with `Levels` to half the
    squared distance, which is the same for vectors of length 1.

    Attributes
    ----------
    squares_, slopes_, constants_, gains_, extras_ : float64 (n_bits,)
    n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import Scalar
    >>> from bitweigh.weighers import Decoded
    >>> vectors = np.random.default_rng(1).standard_normal((500, 8))  # (500, 8)
    >>> hasher = Scalar(4).fit(vectors)
    >>> weigher = Decoded().fit_hasher(hasher)
    >>> weigher.costs(hasher.project(vectors[:3])).shape == (3, hasher.n_bits_, 2)
    True

    """

    squares_: NDArray[np.float64]
    slopes_: NDArray[np.float64]
    constants_: NDArray[np.float64]
    gains_: NDArray[np.float64]
    extras_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {f"{name}_": ("n_bits_",) for name in BitTerms._fields}

    def __init__(self) -> None:
        """Create a weigher without parameters."""

    def fit(self, projected: ArrayLike, thresholds: ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Raise TypeError: projections do not say what a code stands for, see `fit_hasher`.

        Examples
        --------
        >>> from bitweigh.weighers import Decoded
        >>> Decoded().fit([[1.0]])
        Traceback (most recent call last):
        ...
        TypeError: Decoded learns from a hasher: call fit_hasher

        """
        raise TypeError("Decoded learns from a hasher: call fit_hasher")

    def fit_hasher(self, hasher: Hasher, metric: Metric = "euclidean") -> Self:
        """Take what codes stand for from a fitted hasher.

        Parameters
        ----------
        hasher : Scalar or Levels
            Fitted.
        metric : "euclidean", "cosine" or "inner_product"
            What the costs add up to.

        Returns
        -------
        the weigher itself

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.hashers import Scalar
        >>> from bitweigh.weighers import Decoded
        >>> hasher = Scalar(2, rotation=None, norm_bits=0).fit(np.array([[0.0], [3.0]]))
        >>> Decoded().fit_hasher(hasher, "inner_product").gains_
        array([-2., -1.])

        """
        as_choice(metric, "metric", ("euclidean", "cosine", "inner_product"))
        hasher._need_fitted()
        terms = hasher._terms_of_bits(metric)
        if terms is None:
            raise TypeError(f"{hasher} does not say what its codes stand for: use Scalar or Levels")
        for name, values in terms._asdict().items():
            setattr(self, f"{name}_", np.ascontiguousarray(values, np.float64))
        self.n_bits_ = hasher.n_bits_
        return self

    def _costs_block(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        costs = np.empty((*queries.shape, 2))
        costs[..., 0] = (self.squares_ * queries + self.slopes_) * queries + self.constants_
        costs[..., 1] = costs[..., 0] + (self.gains_ * queries + self.extras_)
        return costs
