"""Wh: a bit counts by how sure it is that a near neighbour shares it."""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_integer
from bitweigh._euclidean import euclidean_top
from bitweigh.hashers._estimator import Shape
from bitweigh.weighers._base import Weigher, as_projected

__all__ = ["Wh"]

# The least sigma of a bit, as a share of the standard deviation of its projections.
SIGMA_SHARE = 1e-3


class Wh(Weigher):
    """WhRank (Zhang et al., CVPR 2013), reconstructed: weights adapted to data and query.

    A neighbour p of a query q is taken to have ``g_k(p) = g_k(q) + s``, s from N(0, sigma_k^2).
    With ``z = |g_k(q) - t_k| / sigma_k`` its bit k differs with the chance ``P_k = Phi(-z)``, and
    ``costs[k, v] = log((1 - P_k) / P_k)`` if v is not the query's own bit k, else 0. Up to a
    constant the distance is the negative log-likelihood of the code.

    sigma_k is the root mean square of ``g_k(p) - g_k(q)`` over the nearest neighbours p, among all
    training rows, of `n_rows` training rows q. It is at least 0.001 of the standard deviation of
    g_k, and 1 where g_k does not vary at all.

    Parameters
    ----------
    n_neighbours : int
        Near neighbours of each row, itself not counted; fewer where there are not as many.
    n_rows : int
        Rows whose neighbours are looked for.
    seed : int
        Draws those rows.

    Attributes
    ----------
    sigmas_ : float64 (n_bits,)
    thresholds_ : float64 (n_bits,)
    n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import LSH
    >>> from bitweigh.weighers import Wh
    >>> vectors = np.random.default_rng(1).standard_normal((500, 8))  # (500, 8)
    >>> projected = LSH(32).fit(vectors).project(vectors)  # (500, 32)
    >>> weigher = Wh().fit(projected, vectors=vectors)
    >>> weigher.costs(projected[:3]).shape, weigher.costs(projected[0]).shape
    ((3, 32, 2), (32, 2))

    """

    sigmas_: NDArray[np.float64]

    _learned: ClassVar[dict[str, Shape]] = {"sigmas_": ("n_bits_",), "thresholds_": ("n_bits_",)}

    def __init__(self, *, n_neighbours: int = 10, n_rows: int = 2000, seed: int = 0) -> None:
        """Store the parameters; `fit` checks them."""
        self.n_neighbours = n_neighbours
        self.n_rows = n_rows
        self.seed = seed

    def fit(
        self,
        projected: ArrayLike,
        thresholds: ArrayLike | None = None,
        *,
        vectors: ArrayLike | None = None,
    ) -> Self:
        """Learn how far apart the projections of near neighbours are.

        Parameters
        ----------
        projected : float32 or float64 (n, n_bits)
            A hasher's projections of training rows, n >= 2.
        thresholds : float32 or float64 (n_bits,), optional
            The hasher's ``threshold_``; zeros if not given.
        vectors : real numbers (n, d), optional
            The same rows before hashing, in which neighbours are looked for; the projections
            themselves if not given. The time taken is that of ``n_rows * n`` distances.

        Returns
        -------
        the weigher itself

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.weighers import Wh
        >>> Wh(n_neighbours=1).fit(np.array([[-3.0], [-2.0], [2.0], [3.0]])).sigmas_
        array([1.])

        """
        array, own = as_projected(projected, thresholds)
        near = array if vectors is None else np.asarray(vectors)
        if len(array) < 2 or near.ndim != 2 or len(near) != len(array):
            raise ValueError(
                "projected and vectors must have shapes (n, n_bits) and (n, d) with n >= 2, got "
                f"{array.shape} and {near.shape}"
            )
        most = as_integer(self.n_neighbours, "n_neighbours", 1, 2**31)
        n_rows = min(as_integer(self.n_rows, "n_rows", 1, 2**63 - 1), len(array))
        generator = np.random.default_rng(as_integer(self.seed, "seed", 0, 2**63 - 1))
        rows = np.sort(generator.choice(len(array), n_rows, replace=False))
        pairs = _neighbours(near, rows, min(most, len(array) - 1))
        self.sigmas_ = np.maximum(_root_mean_square(array, rows, pairs), _least_sigmas(array))
        self.thresholds_ = own
        self.n_bits_ = len(own)
        return self

    def _costs(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = log_odds(np.abs(queries - self.thresholds_) / self.sigmas_)
        return self._where_bits_differ(queries, weights)


def log_odds(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log(Phi(z) / Phi(-z))`` of the normal distribution Phi, for z >= 0, to 1e-13 relative.

    With x = z / sqrt(2) the ratio is 1 + 2 erf(x) / erfc(x), which loses nothing near z = 0. Far
    out, where erfc would underflow, Phi(z) is 1 and Phi(-z) has its asymptotic series.

    Examples
    --------
    >>> import numpy as np
    >>> log_odds(np.array([0.0, 1.0, 100.0])).round(3).tolist()
    [0.0, 1.668, 5005.524]

    """
    far = z > 20.0
    near = np.where(far, 0.0, z / math.sqrt(2.0)).ravel().tolist()
    odds = np.array([2.0 * math.erf(x) / math.erfc(x) for x in near]).reshape(z.shape)
    tail = np.where(far, z, 20.0)
    inverse = 1.0 / tail**2
    series = np.zeros_like(tail)
    for odd in range(15, 0, -2):  # 1 - 1/z^2 + 1*3/z^4 - 1*3*5/z^6 ..., by Horner's rule
        series = -odd * inverse * (1.0 + series)
    tails = 0.5 * tail**2 + np.log(tail * math.sqrt(2.0 * math.pi)) - np.log1p(series)
    return np.where(far, tails, np.log1p(odds))


def _neighbours(
    vectors: NDArray[np.floating], rows: NDArray[np.int64], k: int
) -> NDArray[np.int64]:
    """The k nearest neighbours of some rows among all of them, themselves left out: (n_rows, k)."""
    found = euclidean_top(vectors, vectors[rows], k + 1)
    other = found != rows[:, np.newaxis]
    # Among more than k copies of itself a row may be missing: then the last one found goes.
    other[other.all(axis=1), -1] = False
    neighbours: NDArray[np.int64] = found[other].reshape(len(rows), k)
    return neighbours


def _root_mean_square(
    array: NDArray[np.floating], rows: NDArray[np.int64], pairs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The root mean square gap of each bit between rows and their neighbours: (n_bits,)."""
    total = np.zeros(array.shape[1])
    for column in pairs.T:  # one neighbour of every row at a time
        total += ((array[column].astype(np.float64) - array[rows]) ** 2).sum(axis=0)
    return np.sqrt(total / pairs.size)


def _least_sigmas(array: NDArray[np.floating]) -> NDArray[np.float64]:
    """A share of each bit's spread; where that is nothing but rounding, 1."""
    spread = array.std(axis=0, dtype=np.float64)
    rounding = 1e-12 * np.abs(array).max(axis=0)
    return np.where(spread > rounding, SIGMA_SHARE * spread, 1.0)
