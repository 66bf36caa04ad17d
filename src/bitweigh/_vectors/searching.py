"""What can be asked of an index of vectors: the nearest, and those within a radius."""
# ruff: noqa: N803 Q as X is scikit-learn's

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_array, as_choice, as_integer, as_k, as_radii
from bitweigh._index.filters import as_filter
from bitweigh._results import RangeResult, SearchResult
from bitweigh._system import MAX_THREADS
from bitweigh._vectors.progress import bar
from bitweigh._vectors.ranking import blocks_for, nearest, within
from bitweigh._vectors.state import VectorState
from bitweigh.hashers._vectors import as_vectors

__all__ = ["Searchable"]


class Searchable(ABC):
    """Searches whatever it is given to hold."""

    @abstractmethod
    def _now(self) -> VectorState:
        """What is held at this moment; raises if nothing was learned yet."""

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
    ) -> SearchResult:
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
                        near = nearest(kept, query, found.ids[number - first], k, held.metric)
                        distances[number, : len(near.ids)] = near.distances
                        ids[number, : len(near.ids)] = near.ids
                advance(len(block))
        return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)

    def range_search(
        self,
        Q: ArrayLike,
        radius: ArrayLike,
        *,
        by: Literal["vectors", "codes"] | None = None,
        limit: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
    ) -> RangeResult:
        """Find all vectors within a radius, by the same distances as `search`.

        With `rerank` the radius is a Euclidean distance, or 1 - cosine. Codes cannot tell which
        vectors are within it, so all of them are read, one block after the other: the answer is
        exact, and takes time in proportion to the vectors there are. Without `rerank` it is a
        weighted distance of the codes.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        radius : number or (nq,)
            The largest distance that counts, not NaN.
        by : "vectors" or "codes", optional
            What the radius is a distance of: "vectors" with `rerank`, else "codes". With `rerank`
            "codes" can be asked for; it is faster.
        limit, allow, deny
            As in `Index.range_search`.
        threads : int, optional
            As in `Index.range_search`; vectors are read by one.

        Returns
        -------
        RangeResult
            As `Index.range_search` returns it.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.range_search([1.0, 0.0, 0.0, 0.0], 0.5)
        RangeResult(lims=array([0, 1]), distances=array([0.]), ids=array([0]))
        >>> index.range_search(np.ones(4), np.inf, by="codes").lims
        array([0, 4])

        """
        held = self._now()
        queries, _ = _queries(held, Q)
        radii = as_radii(radius, len(queries))
        most = None if limit is None else as_integer(limit, "limit", 0, 2**62)
        if by is not None:
            as_choice(by, "by", ("vectors", "codes"))
        if by == "vectors" and held.vectors is None:
            raise ValueError("by='vectors' needs an index that keeps them, made with rerank=")
        if held.vectors is not None and by != "codes":
            if threads is not None:
                as_integer(threads, "threads", 1, MAX_THREADS)
            wanted = as_filter(allow, deny)
            return within(held, held.vectors, queries, radii, most, wanted)
        found = []
        for first, block in blocks_for(held, queries, "Q"):
            costs = held.weigher.costs(held.hasher.project(block))
            own = radii[first : first + len(block)]
            found.append(
                held.index.range_search(
                    costs, own, limit=most, threads=threads, allow=allow, deny=deny
                )
            )
        counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.lims) for one in found)])
        return RangeResult(
            np.cumsum(counts),
            np.concatenate([np.empty(0), *(one.distances for one in found)]),
            np.concatenate([np.empty(0, np.int64), *(one.ids for one in found)]),
        )


def _queries(held: VectorState, Q: ArrayLike) -> tuple[NDArray[Any], bool]:
    """Queries (nq, n_features), and whether a single one came."""
    array = as_array(Q, "Q")
    single = array.ndim == 1
    wanted = held.hasher.n_features_in_
    return as_vectors(
        array[np.newaxis] if single else array, "VectorIndex", wanted, name="Q"
    ), single
