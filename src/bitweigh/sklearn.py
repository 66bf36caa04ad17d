"""Nearest neighbours as a scikit-learn estimator: a `VectorIndex` behind scikit-learn's methods.

Needs scikit-learn, from the extra ``bitweigh[sklearn]``. `kneighbors` and the related methods take,
return and raise what those of scikit-learn's `NearestNeighbors` take, return and raise.
"""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

import numbers
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice, as_integer
from bitweigh._results import others
from bitweigh._system import MAX_THREADS
from bitweigh.hashers._base import Hasher
from bitweigh.index import Index
from bitweigh.typing import HasherChoice, Metric, VectorDtype, WeigherName
from bitweigh.vector_index import VectorIndex
from bitweigh.weighers._base import Weigher

try:
    from joblib import effective_n_jobs  # type: ignore[import-untyped, unused-ignore]
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        f"bitweigh.sklearn needs scikit-learn 1.6 or newer ({error}): "
        "pip install 'bitweigh[sklearn]'"
    ) from None

__all__ = ["WeightedHashNeighbors"]

Mode: TypeAlias = Literal["connectivity", "distance"]
Neighbours: TypeAlias = tuple[NDArray[Any], NDArray[Any]] | NDArray[Any]


class _IndexInMemory(VectorIndex):
    """An index of rows that the estimator keeps in memory anyway, so that pickles may have them."""

    _pickles_vectors = True


class WeightedHashNeighbors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Nearest neighbours by a weighted Hamming distance of binary codes, or by true distance.

    `fit` hashes the rows to `n_bits` bits each. A query keeps its real numbers, a weigher turns
    them into costs, and the rows with the smallest sum of costs are its neighbours. The search is
    exact for that distance, which itself is an estimate of how near two vectors are. With `rerank`
    the nearest codes are ranked by the distance of the vectors. Rows at equal distances are in
    ascending order. The parameters and their defaults are those of :class:`bitweigh.VectorIndex`.

    Parameters
    ----------
    n_neighbors : int
        Default number of neighbours of `kneighbors`; `transform` returns one more.
    radius : float
        Default radius of `radius_neighbors`, inclusive.
    n_bits : int, optional
        Bits of a code. By default "itq" has one per feature but at most 128, "lsh" 128, "sign" one
        per feature, "levels" 128, "scalar" four per feature and some for the norm, and a hasher
        object its own. With "auto" it is the maximum.
    hasher : "itq", "lsh", "sign", "scalar", "levels", "auto" or a hasher
        Turns vectors into codes. A copy of a hasher object is fitted, with its own parameters.
    weigher : "asym", "wh", "inner_product", "decoded" or a weigher, optional
        Turns queries into costs. A copy of a weigher object is fitted. Distances of "asym" and "wh"
        are never negative; those of "inner_product" are minus the inner product of the query's
        projections with the bits, and may be negative.
    metric : "euclidean", "cosine" or "inner_product"
        With "cosine" all vectors are divided by their length; zero vectors are refused.
    rerank : "float16" or "float32", optional
        Keep the vectors, rounded to this dtype. `kneighbors` then ranks the nearest codes, 10 for
        each neighbour and at least 100, by Euclidean distance or 1 - cosine. `radius_neighbors`
        compares all vectors with each query: it misses none, and takes a pass over the vectors.
    n_jobs : int, optional
        Threads of a search: 1 by default, -1 for all CPUs.
    random_state : int, RandomState or None
        Seed of a hasher or weigher given by name, and of the choice of rows to learn from.

    Attributes
    ----------
    hasher_, weigher_
        The fitted hasher and weigher.
    index_ : bitweigh.Index
        The codes; ids are row numbers.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.sklearn import WeightedHashNeighbors
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> neighbours = WeightedHashNeighbors(n_neighbors=3, rerank="float32").fit(X)
    >>> distances, rows = neighbours.kneighbors(X[:2])
    >>> rows.shape, rows[:, 0]
    ((2, 3), array([0, 1]))

    """

    n_samples_fit_: int
    n_features_in_: int

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        n_bits: int | None = None,
        hasher: HasherChoice | Hasher = "itq",
        weigher: WeigherName | Weigher | None = None,
        metric: Metric = "euclidean",
        rerank: VectorDtype | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.n_bits = n_bits
        self.hasher = hasher
        self.weigher = weigher
        self.metric = metric
        self.rerank = rerank
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 scikit-learn's
        """Fit the hasher and the weigher, and index the rows.

        Parameters
        ----------
        X : real numbers (n, n_features)
            The rows to search. They are kept, as queries for a later ``X=None``.
        y : ignored
            Only scikit-learn's pipelines pass it.

        Returns
        -------
        the estimator itself

        """
        rows: NDArray[Any] = validate_data(self, X, order="C")
        as_integer(self.n_neighbors, "n_neighbors", 1, 2**31)
        self._vectors: VectorIndex = _IndexInMemory(
            n_bits=self.n_bits,
            hasher=self.hasher,
            weigher=self.weigher,
            metric=self.metric,
            rerank=self.rerank,
            seed=self._seed(),
        ).fit(rows)
        self._vectors.add(rows)
        self._fit_X = rows
        self.n_samples_fit_ = self._n_features_out = len(rows)
        return self

    @property
    def hasher_(self) -> Hasher:
        """The fitted hasher."""
        return self._vectors.hasher

    @property
    def weigher_(self) -> Weigher:
        """The fitted weigher."""
        return self._vectors.weigher

    @property
    def index_(self) -> Index:
        """The codes; ids are row numbers."""
        return self._vectors.index

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> Neighbours:
        """Find the nearest rows of each query.

        Parameters
        ----------
        X : real numbers (nq, n_features), optional
            Queries. By default the fitted rows, none of which is then its own neighbour.
        n_neighbors : int, optional
            Number of neighbours; by default the parameter of the estimator.
        return_distance : bool
            Whether to return distances too.

        Returns
        -------
        distances float64 (nq, n_neighbors), only with `return_distance`
        rows int64 (nq, n_neighbors), nearest first, equal distances in ascending row

        """
        check_is_fitted(self)
        k = self._as_n_neighbors(n_neighbors)
        queries = self._as_queries(X)
        exclude_self = X is None
        if k + exclude_self > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors {'<' if exclude_self else '<='} n_samples_fit, but "
                f"n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, "
                f"n_samples = {len(queries)}"
            )
        distances, rows = self._vectors.search(queries, k + exclude_self, threads=self._threads())
        if exclude_self:
            kept = others(rows, np.arange(len(rows)))
            distances, rows = distances[kept].reshape(-1, k), rows[kept].reshape(-1, k)
        return (distances, rows) if return_distance else rows

    def radius_neighbors(
        self,
        X: ArrayLike | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Neighbours:
        """Find all rows within a radius of each query, inclusive.

        With `rerank` the radius is a Euclidean distance, or 1 - cosine, and all vectors are
        compared with each query. Otherwise it is a weighted distance of the codes.

        Parameters
        ----------
        X : real numbers (nq, n_features), optional
            Queries. By default the fitted rows, none of which is then its own neighbour.
        radius : float, optional
            The largest distance; by default the parameter of the estimator.
        return_distance : bool
            Whether to return distances too.
        sort_results : bool
            Only checked, as by scikit-learn: results are always nearest first.

        Returns
        -------
        distances, an array (nq,) of arrays float64, only with `return_distance`
        rows, an array (nq,) of arrays int64

        """
        check_is_fitted(self)
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True.")
        queries = self._as_queries(X)
        max_distance = self.radius if radius is None else radius
        distances = np.empty(len(queries), dtype=object)
        rows = np.empty(len(queries), dtype=object)
        lims, all_distances, all_rows = self._vectors.range_search(
            queries, max_distance, threads=self._threads()
        )
        for query in range(len(queries)):
            found = slice(lims[query], lims[query + 1])
            kept = all_rows[found] != (query if X is None else -1)
            distances[query] = all_distances[found][kept]
            rows[query] = all_rows[found][kept]
        return (distances, rows) if return_distance else rows

    def kneighbors_graph(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        mode: Mode = "connectivity",
    ) -> Any:  # noqa: ANN401 scipy has no types
        """Return the neighbours of `kneighbors` as a sparse matrix, (nq, n_samples_fit).

        Parameters
        ----------
        X, n_neighbors
            As in `kneighbors`.
        mode : "connectivity" or "distance"
            Whether an entry is 1 or the distance.

        Returns
        -------
        scipy.sparse.csr_matrix, float64; the entries of a row are in ascending distance

        """
        as_choice(mode, "mode", get_args(Mode))
        distances, rows = self.kneighbors(X, n_neighbors)
        nq, k = rows.shape
        return self._graph(distances.ravel(), rows.ravel(), np.arange(0, nq * k + 1, k), mode)

    def radius_neighbors_graph(
        self,
        X: ArrayLike | None = None,
        radius: float | None = None,
        mode: Mode = "connectivity",
        sort_results: bool = False,
    ) -> Any:  # noqa: ANN401 scipy has no types
        """Return the neighbours of `radius_neighbors` as a sparse matrix, (nq, n_samples_fit).

        Parameters
        ----------
        X, radius
            As in `radius_neighbors`.
        mode : "connectivity" or "distance"
            Whether an entry is 1 or the distance.
        sort_results : bool
            Only checked, as by scikit-learn: the entries of a row are always nearest first.

        Returns
        -------
        scipy.sparse.csr_matrix, float64

        """
        as_choice(mode, "mode", get_args(Mode))
        if sort_results and mode == "connectivity":
            raise ValueError("mode must be 'distance' if sort_results is True.")
        distances, rows = self.radius_neighbors(X, radius)
        starts = np.cumsum([0, *map(len, rows)])
        no_distances, no_rows = np.empty(0), np.empty(0, np.int64)
        return self._graph(
            np.concatenate([no_distances, *distances]),
            np.concatenate([no_rows, *rows]),
            starts,
            mode,
        )

    def _graph(
        self,
        distances: NDArray[np.float64],
        rows: NDArray[np.int64],
        starts: NDArray[np.int64],
        mode: Mode,
    ) -> Any:  # noqa: ANN401 scipy has no types
        entries = distances if mode == "distance" else np.ones_like(distances)
        return csr_matrix((entries, rows, starts), shape=(len(starts) - 1, self.n_samples_fit_))

    def transform(self, X: ArrayLike) -> Any:  # noqa: ANN401 scipy has no types
        """Return the graph of distances to the ``n_neighbors + 1`` nearest rows of each query.

        One more than `n_neighbors`, as in scikit-learn's `KNeighborsTransformer`: a fitted row
        usually finds itself. Estimators with ``metric="precomputed"`` accept the graph, unless
        distances are negative.

        Parameters
        ----------
        X : real numbers (nq, n_features)
            Queries.

        Returns
        -------
        scipy.sparse.csr_matrix (nq, n_samples_fit), float64

        """
        check_is_fitted(self)
        return self.kneighbors_graph(X, self._as_n_neighbors(None) + 1, mode="distance")

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _as_n_neighbors(self, n_neighbors: int | None) -> int:
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(k, numbers.Integral):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        return int(k)

    def _as_queries(self, X: ArrayLike | None) -> NDArray[Any]:
        if X is None:
            return self._fit_X
        queries: NDArray[Any] = validate_data(self, X, order="C", reset=False)
        return queries

    def _threads(self) -> int:
        return min(int(effective_n_jobs(self.n_jobs)), MAX_THREADS)
