"""Any number of realistic rows: a Gaussian mixture fitted on real rows.

Uniform vectors and a single Gaussian are far from real data: their hash buckets are many times
fuller or emptier. A mixture of a few hundred Gaussians with full covariances is close.

Rows are drawn in chunks of a fixed size. Chunk i comes from a random stream that depends only on
the seed and on i, so it is the same for any n, and chunks can be drawn in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh.typing import Ids
from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.kmeans import cluster, means_by, nearest
from bitweigh_experiments.datasets.streams import Purpose, stream

__all__ = ["MixtureGenerator"]

Rows: TypeAlias = NDArray[np.float32]

_MAX_ROWS = 2**48
_MAX_FIT_ROWS = 100_000
_ROUNDS = 12
_MAX_VALUE = 1e15  # sums of squares must fit in float32
_MIN_CLUSTER_ROWS = 8  # a cluster with fewer is merged into its neighbours
# A cluster of n rows mixes its covariance, with weight n / (n + this), with the pooled one.
_POOLED_ROWS = 8


class MixtureGenerator:
    """Draw any number of rows from a Gaussian mixture fitted on real rows.

    A cluster's covariance is that of its rows, shrunk towards the pooled covariance of all rows
    about their centres; the fewer rows, the more. Covariances may be singular: dimensions that are
    always 0, as in padded rows, stay 0.

    On one machine the same seed and the same fit give the same rows. BLAS on another machine may
    round differently, so data that must be identical everywhere should be saved once drawn.

    Fit it on projected rows to draw in the projected space, which is cheaper for 10^8 rows and
    more.

    Parameters
    ----------
    n_clusters : int
        Clusters to look for; there may be fewer, see `n_clusters_`.
    seed : int
        Determines the fit and every row.
    chunk_rows : int
        Rows per chunk. A different size gives different rows.

    Attributes
    ----------
    n_clusters_ : int
        Clusters found, each with at least 8 of the fitted rows.
    n_features_in_ : int
        Dimensions.
    weights_ : float64 (n_clusters_,)
        The share of each cluster.
    means_ : float32 (n_clusters_, d)
        The centres.
    factors_ : list of float32 (r, d)
        A row of cluster c is ``means_[c]`` plus ``x @ factors_[c]`` plus
        ``pooled_scales_[c] * (y @ pooled_factor_)``, with x and y standard normal.
    pooled_factor_ : float32 (r, d)
        The factor that all clusters share.
    pooled_scales_ : float32 (n_clusters_,)
        Its scale in each cluster.

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
        """Store the arguments; `fit` checks them."""
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
        n_clusters = as_integer(self.n_clusters, "n_clusters", 1, 2**20)
        as_integer(self.chunk_rows, "chunk_rows", 1, 2**24)
        rng = stream(self.seed, Purpose.FIT, 0)
        sample = _fit_sample(rows, rng)
        # In float32 the products of k-means lose digits if the rows lie far from 0.
        middle = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
        sample -= middle
        n_clusters = min(n_clusters, max(1, len(sample) // _MIN_CLUSTER_ROWS))
        members = _merge_small(sample, cluster(sample, n_clusters, _ROUNDS, rng))
        sizes = np.bincount(members)
        means = means_by(sample, members, len(sizes))
        self.n_clusters_ = len(sizes)
        self.n_features_in_ = sample.shape[1]
        self.weights_ = sizes / sizes.sum()
        self.means_: Rows = means + middle
        self._fit_spreads(sample - means[members], members, sizes)
        return self

    def _fit_spreads(self, centred: Rows, members: Ids, sizes: NDArray[np.int64]) -> None:
        """Find factors F of the covariances F'F by QR, which also works for singular ones."""
        self.pooled_factor_: Rows = _factor(centred, len(centred) - len(sizes))
        pooled_variance = np.square(self.pooled_factor_).sum(dtype=np.float64)
        order = np.argsort(members, kind="stable")
        self.factors_: list[Rows] = []
        scales = np.zeros(len(sizes), dtype=np.float32)
        for number, rows_of_cluster in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            factor = _factor(centred[rows_of_cluster], len(rows_of_cluster) - 1)
            pooled_share = _POOLED_ROWS / (_POOLED_ROWS + len(rows_of_cluster))
            # Scaling the pooled covariance to the cluster's variance preserves the latter.
            if pooled_variance > 0:
                variance = np.square(factor).sum(dtype=np.float64)
                scales[number] = np.sqrt(pooled_share * variance / pooled_variance)
            self.factors_.append(factor * np.float32(np.sqrt(1 - pooled_share)))
        self.pooled_scales_ = scales

    def sample(self, n: int) -> Rows:
        """Draw the first n rows of the endless sequence that the seed and the fit determine.

        Parameters
        ----------
        n : int
            Rows.

        Returns
        -------
        float32 (n, d)

        """
        self._check_fitted()
        rows = np.empty((as_integer(n, "n", 0, _MAX_ROWS), self.n_features_in_), dtype=np.float32)
        for number, drawn in enumerate(self.chunks(n)):
            first = number * self.chunk_rows
            rows[first : first + len(drawn)] = drawn
        return rows

    def chunks(self, n: int) -> Iterator[Rows]:
        """Yield the rows of ``sample(n)``, a chunk at a time.

        Parameters
        ----------
        n : int
            Rows in all.

        Yields
        ------
        float32 (chunk_rows, d), the last one shorter where n is no multiple

        """
        self._check_fitted()
        rows = as_integer(n, "n", 0, _MAX_ROWS)
        for number in range(-(-rows // self.chunk_rows)):
            # A matrix product may round differently for other shapes, so part of a chunk is sliced
            # from the whole chunk.
            yield self.chunk(number)[: rows - number * self.chunk_rows]

    def chunk(self, number: int) -> Rows:
        """Draw the whole chunk `number` of the sequence, counted from 0.

        Parameters
        ----------
        number : int
            Which chunk.

        Returns
        -------
        float32 (chunk_rows, d)

        """
        self._check_fitted()
        rng = stream(self.seed, Purpose.CHUNK, as_integer(number, "number", 0, _MAX_ROWS))
        return self._draw(rng, self.chunk_rows)[0]

    def queries(
        self, n: int, *, perturbed: float = 0.5, noise: float = 0.8, among: int | None = None
    ) -> Rows:
        """Draw queries: fresh rows, and rows of ``sample`` with noise added.

        Fresh rows are up to 12 % farther from their nearest neighbours than held-out rows of real
        data are. With half of the queries perturbed by the default noise the mean distance is as
        in dense SIFT and GloVe, to 2 %.

        Parameters
        ----------
        n : int
            Queries.
        perturbed : float, from 0 to 1
            The share of queries that are rows of ``sample(among)`` with noise.
        noise : float, not negative
            The size of the noise, as a share of the spread of a row's cluster.
        among : int, optional
            Perturbed queries start from the first `among` rows, by default the first chunk. Pass
            the number of rows in your base if that is smaller.

        Returns
        -------
        float32 (n, d), in random order

        """
        self._check_fitted()
        count = as_integer(n, "n", 0, _MAX_ROWS)
        if not 0 <= perturbed <= 1:
            raise ValueError(f"perturbed must be from 0 to 1, got {perturbed}")
        if not 0 <= noise < np.inf:
            raise ValueError(f"noise must be finite and not negative, got {noise}")
        limit = self.chunk_rows if among is None else as_integer(among, "among", 1, _MAX_ROWS)
        near = round(count * perturbed)
        rows = np.empty((count, self.n_features_in_), dtype=np.float32)
        rng = stream(self.seed, Purpose.PERTURBED, 0)
        picked = rng.choice(limit, near, replace=near > limit)
        for number in np.unique(picked // self.chunk_rows):
            positions = np.flatnonzero(picked // self.chunk_rows == number)
            drawn, clusters = self._draw(
                stream(self.seed, Purpose.CHUNK, int(number)), self.chunk_rows
            )
            offsets = picked[positions] - number * self.chunk_rows
            scatter = self._deviations(clusters[offsets], rng)
            rows[positions] = drawn[offsets] + np.float32(noise) * scatter
        rows[near:] = self._draw(stream(self.seed, Purpose.FRESH, 0), count - near)[0]
        return rng.permutation(rows)

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Rows, Ids]:
        """Return random rows (n, d) and their clusters (n,)."""
        ends = np.cumsum(self.weights_)[:-1]
        clusters = np.searchsorted(ends, rng.random(n), side="right")
        return self._deviations(clusters, rng) + self.means_[clusters], clusters

    def _deviations(self, clusters: Ids, rng: np.random.Generator) -> Rows:
        """Draw, for each entry of `clusters`, a row of that cluster less its centre."""
        rank = max(len(factor) for factor in self.factors_)
        pooled = rng.standard_normal((len(clusters), len(self.pooled_factor_)), dtype=np.float32)
        within = rng.standard_normal((len(clusters), rank), dtype=np.float32)
        rows: Rows = pooled @ self.pooled_factor_
        rows *= self.pooled_scales_[clusters][:, np.newaxis]
        order = np.argsort(clusters, kind="stable")
        ends = np.cumsum(np.bincount(clusters, minlength=self.n_clusters_))
        for factor, positions in zip(self.factors_, np.split(order, ends[:-1]), strict=True):
            rows[positions] += within[positions, : len(factor)] @ factor
        return rows

    def _check_fitted(self) -> None:
        if not hasattr(self, "factors_"):
            raise ValueError("this MixtureGenerator is not fitted yet: call fit(rows) first")


def _fit_sample(rows: NDArray[Any], rng: np.random.Generator) -> Rows:
    """Return at most _MAX_FIT_ROWS of the rows as float32, checked to be finite and in range."""
    array = np.asarray(rows)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"rows must be integers or floats, got {array.dtype}")
    if array.ndim != 2 or len(array) < 2 or array.shape[1] == 0:
        raise ValueError(f"rows must have shape (n, d) with n > 1 and d > 0, got {array.shape}")
    if len(array) > _MAX_FIT_ROWS:
        array = array[np.sort(rng.choice(len(array), _MAX_FIT_ROWS, replace=False))]
    with np.errstate(over="ignore"):
        sample = array.astype(np.float32)
    largest = np.abs(sample).max()
    if not largest < _MAX_VALUE:  # also if it is NaN
        raise ValueError(f"rows must be finite and below {_MAX_VALUE:g} in size, got {largest:g}")
    return sample


def _merge_small(rows: Rows, members: Ids) -> Ids:
    """Move the rows of too small clusters to the nearest other one; renumber clusters from 0."""
    sizes = np.bincount(members)
    large = np.flatnonzero(sizes >= _MIN_CLUSTER_ROWS)
    if large.size == 0:
        return np.zeros_like(members)
    centres = means_by(rows, members, len(sizes))[large]
    is_small = sizes[members] < _MIN_CLUSTER_ROWS
    merged = np.searchsorted(large, members)
    merged[is_small] = nearest(rows[is_small], centres)[0]
    return merged


def _factor(centred: Rows, freedom: int) -> Rows:
    """Return F (r, d) such that F'F is the covariance of the centred rows; r <= their number."""
    scaled = centred.astype(np.float64) / np.sqrt(max(freedom, 1))
    factor: Rows = np.asarray(np.linalg.qr(scaled, mode="r"), dtype=np.float32)
    return factor
