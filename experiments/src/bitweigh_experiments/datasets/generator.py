"""Rows like real ones, as many as wanted: a Gaussian mixture fitted on real rows.

Uniform vectors and a single Gaussian are far from real data: their hash buckets are many times
fuller or emptier. A mixture of some hundred Gaussians with full covariances is close.

Rows are drawn in chunks of a fixed size, chunk i from a random stream that only the seed and i
decide, so chunk i is the same for any n, and chunks can be made in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh.typing import Ids
from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.kmeans import cluster, means_by, nearest
from bitweigh_experiments.datasets.splits import as_seed

__all__ = ["MixtureGenerator"]

Rows: TypeAlias = NDArray[np.float32]

_MOST_ROWS = 2**48
_FITTED_ROWS = 100_000
_ROUNDS = 12
_LARGEST = 1e15  # sums of squares must fit in float32
_LEAST_ROWS = 8  # a cluster with fewer is merged into its neighbours
# A cluster of n rows has the weight n / (n + this) in its covariance, the pooled one has the rest.
_POOLED_ROWS = 8
# Streams of random numbers, the highest word of Philox's counter.
_FIT, _CHUNK, _FRESH, _PERTURBED = range(4)


class MixtureGenerator:
    """Draws any number of rows from a Gaussian mixture that is fitted on real rows.

    A cluster's covariance is that of its rows, drawn towards the covariance of all rows about their
    centres where the cluster has few rows. Covariances may be singular: dimensions that are always
    0, as in padded rows, stay 0.

    The same seed and rows give the same rows again on one machine. Another one's BLAS may round
    differently, so for data that must be the same everywhere save what was drawn.

    Fit it on projected rows to draw in the projected space, which is cheaper for 10^8 rows and
    more.

    Parameters
    ----------
    n_clusters : int
        Clusters to look for; there may be fewer, see `n_clusters_`.
    seed : int
        Decides the fit and every row.
    chunk_rows : int
        Rows of a chunk. Other sizes give other rows.

    Attributes
    ----------
    n_clusters_ : int
        Clusters found, each with at least 8 of the rows that were fitted.
    n_features_in_ : int
        Dimensions.
    weights_ : float64 (n_clusters_,)
        The share of each cluster.
    means_ : float32 (n_clusters_, d)
        The centres.
    factors_ : list of float32 (r, d)
        A row of cluster c is ``means_[c]`` plus standard normal numbers times ``factors_[c]``, and
        ``pooled_scales_[c]`` times others times ``pooled_factor_``.
    pooled_factor_ : float32 (r, d)
        For all clusters.
    pooled_scales_ : float32 (n_clusters_,)
        How much of it each has.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 8)) + rng.choice([-9, 9], (2000, 1))
    >>> generator = datasets.MixtureGenerator(n_clusters=4, seed=1).fit(rows)
    >>> generator.sample(50_000).shape
    (50000, 8)
    >>> bool(np.array_equal(generator.sample(100), generator.sample(50_000)[:100]))
    True
    >>> generator.queries(10).shape
    (10, 8)

    """

    def __init__(self, n_clusters: int = 512, seed: int = 0, *, chunk_rows: int = 16_384) -> None:
        """Only store the arguments; `fit` checks them."""
        self.n_clusters = n_clusters
        self.seed = seed
        self.chunk_rows = chunk_rows

    def fit(self, rows: NDArray[Any]) -> Self:
        """Fit the mixture on at most 100,000 of the rows, a seeded sample.

        Parameters
        ----------
        rows : integers or floats (n, d)
            Real rows; they may be memory-mapped.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            `rows` are not numbers, not ``(n, d)`` with at least 2 rows, not finite or too large.

        """
        wanted = as_integer(self.n_clusters, "n_clusters", 1, 2**20)
        as_integer(self.chunk_rows, "chunk_rows", 1, 2**24)
        rng = self._stream(_FIT, 0)
        sample = _sampled(rows, rng)
        # In float32 the products of k-means lose digits if the rows lie far from 0.
        middle = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        sample -= middle
        members = _merged(
            sample, cluster(sample, min(wanted, max(1, len(sample) // _LEAST_ROWS)), _ROUNDS, rng)
        )
        sizes = np.bincount(members)
        means = means_by(sample, members, len(sizes))
        self.n_clusters_ = len(sizes)
        self.n_features_in_ = sample.shape[1]
        self.weights_ = sizes / sizes.sum()
        self.means_: Rows = means + middle
        self._fit_spreads(sample - means[members], members, sizes)
        return self

    def _fit_spreads(self, centred: Rows, members: Ids, sizes: NDArray[np.int64]) -> None:
        """Factors F of the covariances F'F, by QR: no covariance needs to be regular for it."""
        self.pooled_factor_: Rows = _factor(centred, len(centred) - len(sizes))
        pooled_variance = np.square(self.pooled_factor_).sum(dtype=np.float64)
        order = np.argsort(members, kind="stable")
        self.factors_: list[Rows] = []
        scales = np.zeros(len(sizes), dtype=np.float32)
        for number, own in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            factor = _factor(centred[own], len(own) - 1)
            pooled_share = _POOLED_ROWS / (_POOLED_ROWS + len(own))
            # The pooled covariance is scaled to the cluster's variance: clusters keep their size.
            if pooled_variance > 0:
                variance = np.square(factor).sum(dtype=np.float64)
                scales[number] = np.sqrt(pooled_share * variance / pooled_variance)
            self.factors_.append(factor * np.float32(np.sqrt(1 - pooled_share)))
        self.pooled_scales_ = scales

    def sample(self, n: int) -> Rows:
        """The first n rows of the endless sequence that seed and fit decide.

        Parameters
        ----------
        n : int
            Rows.

        Returns
        -------
        float32 (n, d)

        """
        self._check_fitted()
        rows = np.empty((as_integer(n, "n", 0, _MOST_ROWS), self.n_features_in_), dtype=np.float32)
        for number, drawn in enumerate(self.chunks(n)):
            first = number * self.chunk_rows
            rows[first : first + len(drawn)] = drawn
        return rows

    def chunks(self, n: int) -> Iterator[Rows]:
        """The rows of ``sample(n)``, a chunk at a time.

        Parameters
        ----------
        n : int
            Rows in all.

        Yields
        ------
        float32 (chunk_rows, d), the last one shorter where n is no multiple

        """
        self._check_fitted()
        rows = as_integer(n, "n", 0, _MOST_ROWS)
        for number in range(-(-rows // self.chunk_rows)):
            # A matrix product may round differently for other shapes, so a part of a chunk is cut
            # from the whole of it.
            yield self.chunk(number)[: rows - number * self.chunk_rows]

    def chunk(self, number: int) -> Rows:
        """Chunk `number` of the sequence, from 0, whole.

        Parameters
        ----------
        number : int
            Which chunk.

        Returns
        -------
        float32 (chunk_rows, d)

        """
        self._check_fitted()
        own = self._stream(_CHUNK, as_integer(number, "number", 0, _MOST_ROWS))
        return self._drawn(own, self.chunk_rows)[0]

    def queries(
        self, n: int, *, perturbed: float = 0.5, noise: float = 0.8, among: int | None = None
    ) -> Rows:
        """Queries: fresh rows, and rows of ``sample`` with noise added.

        Fresh rows are up to 12 % farther from their nearest neighbours than held-out rows of real
        data are. With half of the queries perturbed by the default noise the mean distance is as
        in dense SIFT and GloVe, to 2 %.

        Parameters
        ----------
        n : int
            Queries.
        perturbed : float, from 0 to 1
            The share that are rows of ``sample(among)`` with noise.
        noise : float, not negative
            The size of the noise, as a share of the spread of a row's cluster.
        among : int, optional
            The rows to choose from are the first `among`, by default a chunk: pass the number of
            rows of your base if it is smaller.

        Returns
        -------
        float32 (n, d), in random order

        """
        self._check_fitted()
        count = as_integer(n, "n", 0, _MOST_ROWS)
        if not 0 <= perturbed <= 1:
            raise ValueError(f"perturbed must be from 0 to 1, got {perturbed}")
        if not 0 <= noise < np.inf:
            raise ValueError(f"noise must be finite and not negative, got {noise}")
        limit = self.chunk_rows if among is None else as_integer(among, "among", 1, _MOST_ROWS)
        near = round(count * perturbed)
        rows = np.empty((count, self.n_features_in_), dtype=np.float32)
        rng = self._stream(_PERTURBED, 0)
        picked = rng.choice(limit, near, replace=near > limit)
        for number in np.unique(picked // self.chunk_rows):
            own = np.flatnonzero(picked // self.chunk_rows == number)
            drawn, clusters = self._drawn(self._stream(_CHUNK, int(number)), self.chunk_rows)
            places = picked[own] - number * self.chunk_rows
            scatter = self._scattered(clusters[places], rng)
            rows[own] = drawn[places] + np.float32(noise) * scatter
        rows[near:] = self._drawn(self._stream(_FRESH, 0), count - near)[0]
        return rng.permutation(rows)

    def _drawn(self, rng: np.random.Generator, n: int) -> tuple[Rows, Ids]:
        """Rows (n, d) and their clusters (n,)."""
        ends = np.cumsum(self.weights_)[:-1]
        clusters = np.searchsorted(ends, rng.random(n), side="right")
        return self._scattered(clusters, rng) + self.means_[clusters], clusters

    def _scattered(self, clusters: Ids, rng: np.random.Generator) -> Rows:
        """For each of the clusters named a row of it less its centre."""
        rank = max(len(factor) for factor in self.factors_)
        pooled = rng.standard_normal((len(clusters), len(self.pooled_factor_)), dtype=np.float32)
        within = rng.standard_normal((len(clusters), rank), dtype=np.float32)
        rows: Rows = pooled @ self.pooled_factor_
        rows *= self.pooled_scales_[clusters][:, np.newaxis]
        order = np.argsort(clusters, kind="stable")
        ends = np.cumsum(np.bincount(clusters, minlength=self.n_clusters_))
        for factor, own in zip(self.factors_, np.split(order, ends[:-1]), strict=True):
            rows[own] += within[own, : len(factor)] @ factor
        return rows

    def _stream(self, purpose: int, number: int) -> np.random.Generator:
        # The key is the seed and the number; no purpose can count up to the next one's numbers.
        key = np.array([as_seed(self.seed), number], dtype=np.uint64)
        counter = np.array([0, 0, 0, purpose], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))

    def _check_fitted(self) -> None:
        if not hasattr(self, "factors_"):
            raise ValueError("this MixtureGenerator is not fitted yet: call fit(rows) first")


def _sampled(rows: NDArray[Any], rng: np.random.Generator) -> Rows:
    """At most _FITTED_ROWS of the rows, as float32, all finite and not too large."""
    array = np.asarray(rows)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"rows must be integers or floats, got {array.dtype}")
    if array.ndim != 2 or len(array) < 2 or array.shape[1] == 0:
        raise ValueError(f"rows must have shape (n, d) with n > 1 and d > 0, got {array.shape}")
    if len(array) > _FITTED_ROWS:
        array = array[np.sort(rng.choice(len(array), _FITTED_ROWS, replace=False))]
    with np.errstate(over="ignore"):
        sample = array.astype(np.float32)
    largest = np.abs(sample).max()
    if not largest < _LARGEST:  # also if it is NaN
        raise ValueError(f"rows must be finite and below {_LARGEST:g} in size, got {largest:g}")
    return sample


def _merged(rows: Rows, members: Ids) -> Ids:
    """Clusters numbered from 0, the rows of too small ones given to the nearest of the others."""
    sizes = np.bincount(members)
    kept = np.flatnonzero(sizes >= _LEAST_ROWS)
    if kept.size == 0:
        return np.zeros_like(members)
    centres = means_by(rows, members, len(sizes))[kept]
    homeless = sizes[members] < _LEAST_ROWS
    merged = np.searchsorted(kept, members)
    merged[homeless] = nearest(rows[homeless], centres)[0]
    return merged


def _factor(centred: Rows, freedom: int) -> Rows:
    """F (r, d) with F'F the covariance of centred rows, r at most their number."""
    scaled = centred.astype(np.float64) / np.sqrt(max(freedom, 1))
    factor: Rows = np.asarray(np.linalg.qr(scaled, mode="r"), dtype=np.float32)
    return factor
