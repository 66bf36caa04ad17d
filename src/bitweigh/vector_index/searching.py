"""What can be asked of an index of vectors: the nearest, and those within a radius.

The distance to a query is a sum in float64 over the features, one vector at a time: it does not
depend on what else is ranked.
"""
# ruff: noqa: N803 Q as X is scikit-learn's

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh.checks import Ids, as_array, as_integer, as_k, as_radii
from bitweigh.frames.output import AsFrame, check_as_frame, framed
from bitweigh.frames.sources import Frame
from bitweigh.hashers.vectors import as_vectors, blocks, unit_rows
from bitweigh.results import CorruptIndexError, RangeResult, SearchResult
from bitweigh.vector_index.files import Held
from bitweigh.vector_index.manifest import Metric
from bitweigh.vector_index.progress import bar
from bitweigh.vector_index.store import Vectors

__all__ = ["Searchable", "blocks_for"]


class Searchable(ABC):
    """Searches whatever it is given to hold."""

    @abstractmethod
    def _now(self) -> Held:
        """What is held at this moment; raises if nothing was learned yet."""

    @overload
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        candidates: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        progress: bool = False,
        as_frame: Literal[False] = False,
    ) -> SearchResult: ...
    @overload
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        candidates: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        progress: bool = False,
        as_frame: AsFrame,
    ) -> Frame: ...
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        candidates: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        progress: bool = False,
        as_frame: AsFrame | Literal[False] = False,
    ) -> SearchResult | Frame:
        """Find the k nearest vectors, by their codes and, with `rerank`, by themselves.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        k : int
            How many neighbours, at least 1.
        candidates : int, optional
            With `rerank`: how many of the nearest codes are ranked by true distance, at least k; by
            default ``max(10 * k, 100)``.
        threads, allow, deny
            As in `Index.search`.
        progress : bool
            Show a progress bar; needs rich.
        as_frame : bool or "pandas", "polars", "arrow", "dict"
            As in `Index.search`.

        Returns
        -------
        SearchResult
            ``distances`` float64 (nq, k) and ``ids`` int64 (nq, k), nearest first, equal distances
            in ascending id; ``(k,)`` for a single query. Distances are the weighted ones of the
            codes, or, with `rerank`, Euclidean ones or 1 - cosine. If there are fewer than k
            vectors, the rest is +inf and -1.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.search([0.0, 0.0, 3.0, 0.0], k=1)
        SearchResult(distances=array([2.]), ids=array([2]))

        """
        if as_frame is not False:
            check_as_frame(as_frame)
        held = self._now()
        queries, single = _queries(held, Q)
        k = as_k(k)
        kept = held.vectors
        if kept is None and candidates is not None:
            raise ValueError("candidates needs an index that keeps vectors, made with rerank=")
        wanted = k
        if kept is not None:
            wanted = max(10 * k, 100)
            if candidates is not None:
                wanted = as_integer(candidates, "candidates", k, 2**32)
            wanted = max(1, min(wanted, len(held.index)))
        distances = np.full((len(queries), k), np.inf)
        ids = np.full((len(queries), k), -1, dtype=np.int64)
        with bar(progress, "searching", len(queries)) as advance:
            for first, block in blocks_for(held, queries, "Q"):
                costs = held.weigher.costs(held.hasher.project(block))
                found = held.index.search(costs, wanted, threads=threads, allow=allow, deny=deny)
                own = slice(first, first + len(block))
                if kept is None:
                    distances[own], ids[own] = found
                else:
                    for number, query in enumerate(block, first):
                        near = _nearest(kept, query, found.ids[number - first], k, held.metric)
                        distances[number, : len(near.ids)] = near.distances
                        ids[number, : len(near.ids)] = near.ids
                advance(len(block))
        result = SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)
        return framed(result, as_frame) if as_frame else result

    def range_search(
        self,
        Q: ArrayLike,
        radius: ArrayLike,
        *,
        limit: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
    ) -> RangeResult:
        """Find all vectors whose codes are within a radius by weighted distance, reranked or not.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        radius, limit, threads, allow, deny
            As in `Index.range_search`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.range_search(np.ones(4), np.inf).lims
        array([0, 4])

        """
        held = self._now()
        queries, _ = _queries(held, Q)
        radii = as_radii(radius, len(queries))
        found = []
        for first, block in blocks_for(held, queries, "Q"):
            costs = held.weigher.costs(held.hasher.project(block))
            own = radii[first : first + len(block)]
            found.append(
                held.index.range_search(
                    costs, own, limit=limit, threads=threads, allow=allow, deny=deny
                )
            )
        counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.lims) for one in found)])
        return RangeResult(
            np.cumsum(counts),
            np.concatenate([np.empty(0), *(one.distances for one in found)]),
            np.concatenate([np.empty(0, np.int64), *(one.ids for one in found)]),
        )


def blocks_for(
    held: Held, vectors: NDArray[Any], name: str
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The rows in blocks as the hasher takes them, each with the number of its first row."""
    for first, block in blocks(vectors, held.index.n_bits, name=name):
        yield first, unit_rows(block, first, name=name) if held.metric == "cosine" else block


def _queries(held: Held, Q: ArrayLike) -> tuple[NDArray[Any], bool]:
    """Queries (nq, n_features), and whether a single one came."""
    array = as_array(Q, "Q")
    single = array.ndim == 1
    wanted = held.hasher.n_features_in_
    return as_vectors(
        array[np.newaxis] if single else array, "VectorIndex", wanted, name="Q"
    ), single


def _nearest(
    kept: Vectors, query: NDArray[np.float64], candidates: Ids, k: int, metric: Metric
) -> SearchResult:
    """The k nearest of some candidates, fewer if there are not as many."""
    ids = np.sort(candidates[candidates >= 0])
    try:
        vectors = kept.of(ids).astype(np.float64)
    except KeyError as error:
        raise CorruptIndexError("vectors", f"the id {error} has no vector") from None
    distances = _distances(vectors, query, metric)
    # The sort is stable and the ids ascend: equal distances go to the lowest id.
    order = np.argsort(distances, kind="stable")[:k]
    return SearchResult(distances[order], ids[order])


def _distances(
    vectors: NDArray[np.float64], query: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """Euclidean, or 1 - cosine for a query of length 1; float64 (n,)."""
    if metric == "euclidean":
        euclidean: NDArray[np.float64] = np.sqrt(((vectors - query) ** 2).sum(axis=1))
        return euclidean
    lengths = np.sqrt((vectors**2).sum(axis=1))
    cosines: NDArray[np.float64] = (vectors * query).sum(axis=1) / lengths
    return np.clip(1.0 - cosines, 0.0, 2.0)
