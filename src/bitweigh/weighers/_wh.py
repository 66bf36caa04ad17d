"""Wh: a bit counts by how sure it is that a near neighbour shares it."""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_integer
from bitweigh._euclidean import euclidean_top
from bitweigh._results import others
from bitweigh.hashers._estimator import Shape
from bitweigh.weighers._base import Weigher, as_projected

__all__ = ["Wh"]

# The minimum sigma of a bit, relative to the standard deviation of its projections.
MIN_RELATIVE_SIGMA = 1e-3


class Wh(Weigher):
    """WhRank (Zhang et al., CVPR 2013), reconstructed: weights adapted to data and query.

    A neighbour p of a query q is assumed to have ``g_k(p) = g_k(q) + s``, s from N(0, sigma_k^2).
    With ``z = |g_k(q) - t_k| / sigma_k`` its bit k differs with probability ``P_k = Phi(-z)``, and
    ``costs[k, v] = log((1 - P_k) / P_k)`` if v is not the query's own bit k, else 0. Up to a
    constant the distance is the negative log-likelihood of the code.

    sigma_k is the root mean square of ``g_k(p) - g_k(q)`` over the nearest neighbours p, among all
    training rows, of `n_rows` training rows q. It is at least 0.001 of the standard deviation of
    g_k, and 1 where g_k does not vary at all.

    Parameters
    ----------
    n_neighbours : int
        Nearest neighbours of each row, not counting itself; all other rows if they are fewer.
    n_rows : int
        Rows whose neighbours are searched for.
    seed : int
        Random seed of the choice of those rows.

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
            The hasher's ``thresholds_``; zeros if not given.
        vectors : real numbers (n, d), optional
            The same rows before hashing, among which neighbours are searched for; by default the
            projections. Takes the time of ``n_rows * n`` distances.

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
        array, checked_thresholds = as_projected(projected, thresholds)
        points = array if vectors is None else np.asarray(vectors)
        if len(array) < 2 or points.ndim != 2 or len(points) != len(array):
            raise ValueError(
                "projected and vectors must have shapes (n, n_bits) and (n, d) with n >= 2, got "
                f"{array.shape} and {points.shape}"
            )
        n_neighbours = as_integer(self.n_neighbours, "n_neighbours", 1, 2**31)
        n_rows = min(as_integer(self.n_rows, "n_rows", 1, 2**63 - 1), len(array))
        generator = np.random.default_rng(as_integer(self.seed, "seed", 0, 2**63 - 1))
        rows = np.sort(generator.choice(len(array), n_rows, replace=False))
        neighbours = _neighbours(points, rows, min(n_neighbours, len(array) - 1))
        sigmas = _root_mean_square(array, rows, neighbours)
        self.sigmas_ = np.maximum(sigmas, _min_sigmas(array))
        self.thresholds_ = checked_thresholds
        self.n_bits_ = len(checked_thresholds)
        return self

    def _costs_block(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = log_odds(np.abs(queries - self.thresholds_) / self.sigmas_)
        return self._where_bits_differ(queries, weights)


def log_odds(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log(Phi(z) / Phi(-z))`` of the normal distribution Phi, for z >= 0, to 1e-13 relative.

    With x = z / sqrt(2) the ratio is 1 + 2 erf(x) / erfc(x), which loses no digits near
    z = 0. Beyond z = 20, well before erfc underflows, Phi(z) is 1 in float64 and Phi(-z) is
    computed from its asymptotic series.

    Examples
    --------
    >>> import numpy as np
    >>> log_odds(np.array([0.0, 1.0, 100.0])).round(3).tolist()
    [0.0, 1.668, 5005.524]

    """
    far = z > 20.0
    near = np.where(far, 0.0, z / math.sqrt(2.0)).ravel().tolist()
    odds_minus_1 = np.array([2.0 * math.erf(x) / math.erfc(x) for x in near]).reshape(z.shape)
    far_z = np.where(far, z, 20.0)
    inverse = 1.0 / far_z**2
    series = np.zeros_like(far_z)
    for odd in range(15, 0, -2):  # 1 - 1/z^2 + 1*3/z^4 - 1*3*5/z^6 ..., by Horner's rule
        series = -odd * inverse * (1.0 + series)
    far_log_odds = 0.5 * far_z**2 + np.log(far_z * math.sqrt(2.0 * math.pi)) - np.log1p(series)
    return np.where(far, far_log_odds, np.log1p(odds_minus_1))


def _neighbours(
    vectors: NDArray[np.floating], rows: NDArray[np.int64], k: int
) -> NDArray[np.int64]:
    """The k nearest neighbours of these rows among all rows but themselves: (n_rows, k)."""
    found = euclidean_top(vectors, vectors[rows], k + 1)
    neighbours: NDArray[np.int64] = found[others(found, rows)].reshape(len(rows), k)
    return neighbours


def _root_mean_square(
    array: NDArray[np.floating], rows: NDArray[np.int64], neighbours: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The root mean square difference between rows and neighbours, for each bit: (n_bits,)."""
    total = np.zeros(array.shape[1])
    for column in neighbours.T:  # one neighbour of every row at a time
        total += ((array[column].astype(np.float64) - array[rows]) ** 2).sum(axis=0)
    return np.sqrt(total / neighbours.size)


def _min_sigmas(array: NDArray[np.floating]) -> NDArray[np.float64]:
    """The minimum sigma of each bit; 1 where the projections differ by rounding at most."""
    spread = array.std(axis=0, dtype=np.float64)
    rounding = 1e-12 * np.abs(array).max(axis=0)
    return np.where(spread > rounding, MIN_RELATIVE_SIGMA * spread, 1.0)
