"""bitweigh as an algorithm of ann-benchmarks: fit once, then answer queries singly or in a batch.

Needs neither ann-benchmarks nor its files; docs/ann-benchmarks.md says how to use it there. Results
are row numbers without padding: the runner uses them as rows of its training set.
"""
# ruff: noqa: N803 X is the runner's name

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice, as_integer, as_k, as_n_bits
from bitweigh.costs import hamming
from bitweigh.hashers._vectors import as_vectors
from bitweigh.index import Index
from bitweigh.typing import HasherName
from bitweigh.vector_index import VectorIndex

__all__ = ["Bitweigh", "BitweighHamming"]


def _base() -> type:
    """The runner's base class, or `object` if it is not installed."""
    try:
        from ann_benchmarks.algorithms.base.module import (  # type: ignore[import-not-found, unused-ignore]
            BaseANN,
        )
    except ImportError:
        return object
    base: type = BaseANN
    return base


_BaseANN: Any = _base()


class _Algorithm(_BaseANN):  # type: ignore[misc, unused-ignore]
    """What both algorithms share: single queries on one thread, batches on all."""

    _index: Index | VectorIndex | None = None
    _results: list[NDArray[np.int64]]

    def query(self, q: ArrayLike, n: int) -> NDArray[np.int64]:
        """Find the n rows nearest to one query, nearest first, on one thread."""
        return self._answers(np.asarray(q)[np.newaxis], n, 1)[0]

    def batch_query(self, X: ArrayLike, n: int) -> None:
        """Find the n rows nearest to each query on all threads, for `get_batch_results`."""
        self._results = self._answers(np.asarray(X), n, None)

    def get_batch_results(self) -> list[NDArray[np.int64]]:
        """The rows that the last `batch_query` found, for each query."""
        return self._results

    def get_memory_usage(self) -> float:
        """The size of the index in kilobytes; 0 before `fit`."""
        return 0.0 if self._index is None else self._index.memory().total / 1024

    def done(self) -> None:
        """Release the index."""
        self._index = None

    def _answers(
        self, queries: NDArray[Any], n: int, threads: int | None
    ) -> list[NDArray[np.int64]]:
        raise NotImplementedError

    def _not_fitted(self) -> ValueError:
        return ValueError(f"{self} has no data: call fit first")


class Bitweigh(_Algorithm):
    """Float vectors: hashed, searched exactly by weighted distance, and reranked.

    Parameters
    ----------
    metric : "angular" or "euclidean"
        The runner's distance.
    n_bits : int
        Bits of a code.
    hasher : "auto", "itq" or "lsh"
        "auto" is ITQ if there are at least as many dimensions as bits, else LSH.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.ann_benchmarks import Bitweigh
    >>> X = np.random.default_rng(0).standard_normal((1000, 32)).astype(np.float32)
    >>> algorithm = Bitweigh("euclidean", 64)
    >>> algorithm.fit(X)
    >>> algorithm.set_query_arguments(10)
    >>> algorithm.query(X[7], 3)[0]
    np.int64(7)
    >>> str(algorithm)
    'bitweigh(metric=euclidean, n_bits=64, hasher=auto, rerank=10)'

    """

    _index: VectorIndex | None = None

    def __init__(self, metric: str, n_bits: int, hasher: str = "auto") -> None:
        """Store and check the arguments."""
        self._metric = as_choice(metric, "metric", ("angular", "euclidean"))
        self._n_bits = as_n_bits(n_bits)
        self._hasher_name = as_choice(hasher, "hasher", ("auto", "itq", "lsh"))
        self._rerank = 1

    def fit(self, X: ArrayLike) -> None:
        """Hash the rows and index their codes. The rows are kept, for reranking."""
        rows = self._as_rows(X)
        use_itq = self._hasher_name == "itq" or (
            self._hasher_name == "auto" and self._n_bits <= rows.shape[1]
        )
        hasher: HasherName = "itq" if use_itq else "lsh"
        index = VectorIndex(n_bits=self._n_bits, hasher=hasher, rerank="float32").fit(rows)
        index.add(rows)
        index.build()
        self._index = index

    def set_query_arguments(self, rerank: int) -> None:
        """Rank the ``rerank * n`` rows with the nearest codes by true distance, and return n."""
        self._rerank = as_integer(rerank, "rerank", 1, 2**31)

    def get_additional(self) -> dict[str, Any]:
        """Values that the runner stores with the results."""
        return {"n_bits": self._n_bits, "rerank": self._rerank}

    def __str__(self) -> str:
        """The name of this algorithm and its arguments, as the runner stores it."""
        return (
            f"bitweigh(metric={self._metric}, n_bits={self._n_bits}, hasher={self._hasher_name}, "
            f"rerank={self._rerank})"
        )

    def get_memory_usage(self) -> float:
        """The size of codes and vectors in kilobytes; 0 before `fit`."""
        if self._index is None:
            return 0.0
        vector_bytes = len(self._index) * self._index.n_features * np.dtype(np.float32).itemsize
        return super().get_memory_usage() + vector_bytes / 1024

    def _as_rows(self, X: ArrayLike) -> NDArray[np.float32]:
        """Rows as float32; for "angular" of length 1, so that Euclidean distances rank by angle."""
        rows = np.asarray(as_vectors(X, "Bitweigh"), np.float32)
        if self._metric == "euclidean":
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
        lengths[lengths == 0] = 1
        units: NDArray[np.float32] = rows / lengths
        return units

    def _answers(
        self, queries: NDArray[Any], n: int, threads: int | None
    ) -> list[NDArray[np.int64]]:
        if self._index is None:
            raise self._not_fitted()
        k = min(as_k(n), len(self._index))
        found = self._index.search(
            self._as_rows(queries), k, rerank_from=k * self._rerank, threads=threads
        )
        return list(found.ids)


class BitweighHamming(_Algorithm):
    """Unpacked bits: searched exactly by Hamming distance.

    Parameters
    ----------
    metric : "hamming"
        The runner's distance.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.ann_benchmarks import BitweighHamming
    >>> X = np.random.default_rng(0).random((1000, 100)) < 0.5  # bool, as in the runner's files
    >>> algorithm = BitweighHamming()
    >>> algorithm.fit(X)
    >>> algorithm.query(X[7], 3)[0]
    np.int64(7)

    """

    _index: Index | None = None

    def __init__(self, metric: str = "hamming") -> None:
        """Check the argument."""
        as_choice(metric, "metric", ("hamming",))

    def fit(self, X: ArrayLike) -> None:
        """Pack the bits and index them."""
        bits = self._as_bits(X)
        index = Index(bits.shape[1])
        index.add(np.packbits(bits, axis=1))
        index.build()
        self._index = index

    def set_query_arguments(self) -> None:
        """Accept no arguments: the answer is exact."""

    def get_additional(self) -> dict[str, Any]:
        """Values that the runner stores with the results."""
        if self._index is None:
            raise self._not_fitted()
        return {"n_bits": self._index.n_bits}

    def __str__(self) -> str:
        """The name of this algorithm, as the runner stores it."""
        return "bitweigh(metric=hamming)"

    def _answers(
        self, queries: NDArray[Any], n: int, threads: int | None
    ) -> list[NDArray[np.int64]]:
        if self._index is None:
            raise self._not_fitted()
        packed = np.packbits(self._as_bits(queries), axis=1)
        found = self._index.search(hamming(packed, self._index.n_bits), n, threads=threads).ids
        return [ids[ids >= 0] for ids in found]

    def _as_bits(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Unpacked bits (n, n_bits), from booleans or integers 0 and 1."""
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind not in "biu":
            raise TypeError(
                f"X must be unpacked bits, bool (n, n_bits), got {array.dtype} {array.shape}"
            )
        if array.dtype != np.bool_ and array.size and (array.min() < 0 or array.max() > 1):
            raise ValueError(
                f"X must be unpacked bits, 0 or 1, got {array.min()} to {array.max()}; unpack "
                "bytes with np.unpackbits(X, axis=1)"
            )
        return array.astype(np.bool_)
