"""ClusterVectors: shards of vectors, searched as one `VectorIndex`."""
# ruff: noqa: N803 Q goes with scikit-learn's X

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_ids, as_integer, as_k, as_optional_integer, as_radii
from bitweigh._index.code_queries import CodeQueries
from bitweigh._index.filters import Filter
from bitweigh._index.id_queries import IdQueries
from bitweigh._index.request import MAX_LIMIT
from bitweigh._results import RangeResult, SearchResult
from bitweigh._vectors.codes_and_vectors import n_candidates, ranks_by_vectors
from bitweigh._vectors.hashing import as_queries, cost_blocks, costs_of, one_query, row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh.cluster.as_one import CallClock, kept_filter
from bitweigh.cluster.one_version import (
    OneVersion,
    Place,
    Ranking,
    SearchLimits,
    aby_one_version,
    by_one_version,
    joined,
    one_or_all,
    vectors_in_order,
)
from bitweigh.cluster.serving.reports import PartialResult
from bitweigh.cluster.templates import VectorsTemplate
from bitweigh.errors import LimitError
from bitweigh.hashers._base import Hasher
from bitweigh.typing import By, Codes, Metric, VectorDtype
from bitweigh.weighers._base import Weigher

__all__ = ["ClusterVectors"]


class ClusterVectors:
    """Shards of vectors, searched as one index.

    ``cluster.open(url).vectors`` and ``cluster.start(url).vectors`` return one. The methods and
    their arguments are those of :class:`bitweigh.VectorIndex`, and so are the answers, to the last
    bit. `threads` is the number of threads for each shard.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh import cluster
    >>> vectors = np.random.default_rng(0).standard_normal((500, 16))
    >>> like = bitweigh.VectorIndex(n_bits=16, rerank="float32").fit(vectors)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(vectors, folder, like=like, shards=3)
    ...     shards = cluster.open(folder).vectors
    ...     shards.search(vectors[7], k=1).ids
    array([7])

    """

    def __init__(self, place: Place) -> None:
        """Search the shards there."""
        self._place = place
        _state_of(place.present())  # raises unless rows are vectors

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._state.index.n_bits

    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
        return self._state.hasher.n_features_in_

    @property
    def metric(self) -> Metric:
        """The distance of vectors."""
        return self._state.metric

    @property
    def rerank(self) -> VectorDtype | None:
        """How vectors are kept; None if they are not."""
        return self._state.rerank

    @property
    def hasher(self) -> Hasher:
        """What turns vectors into codes."""
        return self._state.hasher

    @property
    def weigher(self) -> Weigher:
        """What turns queries into costs."""
        return self._state.weigher

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._place.present())

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a vector with this id."""
        try:
            number = as_integer(id, "id", 0, 2**63 - 1)
        except (TypeError, ValueError):
            return False
        return bool(self.contains([number])[0])

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return (
            f"<bitweigh.cluster.ClusterVectors: {len(self)} vectors of {self.n_features} features, "
            f"{self.n_bits} bits>"
        )

    @overload
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,
        timeout: float | None = None,
        partial: Literal[False] = False,
    ) -> SearchResult: ...
    @overload
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,
        timeout: float | None = None,
        partial: Literal[True],
    ) -> PartialResult: ...
    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
        partial: bool = False,
    ) -> SearchResult | PartialResult:
        """Find the k nearest vectors, as `VectorIndex.search` does.

        The `rerank_from` nearest codes of all shards are found first, and these are ranked.
        `partial` is as in `Cluster.search`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.search([0.0, 0.0, 3.0, 0.0], k=1)
        SearchResult(distances=array([2.]), ids=array([2]))

        """
        limits = SearchLimits(
            CallClock(timeout), threads, kept_filter(allow, deny, filter), partial
        )

        def call(version: OneVersion) -> SearchResult | PartialResult:
            asked = _Asked.checked(version, Q, k, rerank_from)
            parts = [version.nearest(*block, asked.n_codes, limits) for block in asked.blocks()]
            nearest = joined(parts, asked.k)
            result = SearchResult(*one_or_all(nearest.found, asked.single))
            if not partial:
                return result
            return PartialResult(*result, not nearest.missing, nearest.missing)

        return by_one_version(self._place, call)

    async def asearch(
        self,
        Q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """As `search`, for coroutines: other ones run meanwhile.

        Examples
        --------
        >>> import asyncio
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     asyncio.run(cluster.open(folder).vectors.asearch([0.0, 0.0, 3.0, 0.0], k=1)).ids
        array([2])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))

        async def call(version: OneVersion) -> SearchResult:
            asked = _Asked.checked(version, Q, k, rerank_from)
            parts = [
                await version.anearest(*block, asked.n_codes, limits) for block in asked.blocks()
            ]
            return SearchResult(*one_or_all(joined(parts, asked.k).found, asked.single))

        return await aby_one_version(self._place, call)

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        include_self: bool = False,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """Find the k vectors nearest to stored ones, as `VectorIndex.search_by_id` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.diag([1.0, 5, 3, 9]), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.search_by_id(0, k=1).ids
        array([2])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))
        asked = IdQueries(ids, k, include_self=include_self)

        def call(version: OneVersion) -> SearchResult:
            state = _state_of(version)
            n_codes = n_candidates(
                state, asked.k, rerank_from, "rerank", asked.extra, rows=len(version)
            )
            blocks: Iterator[tuple[NDArray[np.float64], Ranking | None]]
            if n_codes:
                vectors = version.vectors_of(asked.ids)
                blocks = _ranked_blocks(state, vectors, asked.asked)
            else:
                n_codes = asked.asked
                codes = CodeQueries(
                    version.codes_of(asked.ids), None, state.index.n_bits, state.index.bitorder
                )
                blocks = ((costs, None) for _, costs in codes.blocks(None))
            parts = [version.nearest(*block, n_codes, limits) for block in blocks]
            return SearchResult(*asked.without_themselves(*joined(parts, asked.asked).found))

        return by_one_version(self._place, call)

    def range_search(
        self,
        Q: ArrayLike,
        radius: ArrayLike,
        *,
        by: By | None = None,
        limit: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> RangeResult:
        """Find all vectors within a radius, as `VectorIndex.range_search` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.range_search([1.0, 0.0, 0.0, 0.0], 0.5).ids
        array([0])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))
        limit = as_optional_integer(limit, "limit", 0, MAX_LIMIT)

        def call(version: OneVersion) -> RangeResult:
            state = _state_of(version)
            queries, _ = as_queries(state, Q)
            radii = as_radii(radius, len(queries))
            if ranks_by_vectors(state, by, "rerank"):
                blocks = (block for _, block in row_blocks(state, queries, "Q"))
                rows = np.concatenate([np.empty((0, queries.shape[1])), *blocks])
                return version.vectors_within(rows, radii, state.metric, limit, limits)
            return _codes_within(version, state, queries, radii, limit, limits)

        return by_one_version(self._place, call)

    def iterate(
        self,
        q: ArrayLike,
        *,
        by: By | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all vectors in ascending distance, as `VectorIndex.iterate` does.

        The version is that of the time of the call.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     next(cluster.open(folder).vectors.iterate([0.0, 0.0, 3.0, 0.0]))
        (2.0, 2)

        """
        version = self._place.present()
        state = _state_of(version)
        row = one_query(state, q)
        row_filter = kept_filter(allow, deny, filter)
        if ranks_by_vectors(state, by, "rerank"):
            return vectors_in_order(version, row, state.metric, row_filter)
        return version.codes_in_order(costs_of(state, row)[0], row_filter)

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches, as `VectorIndex.filter` does.

        Examples
        --------
        >>> from bitweigh.cluster import ClusterVectors
        >>> rare = ClusterVectors.filter(None, allow=[1, 2])

        """
        return Filter(allow=allow, deny=deny)

    def costs(self, Q: ArrayLike) -> NDArray[np.float64]:
        """Compute the costs of queries, float64 (nq, n_bits, 2), as `VectorIndex.costs` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.costs(np.ones((3, 4))).shape
        (3, 8, 2)

        """
        state = self._state
        queries, single = as_queries(state, Q)
        costs = np.empty((len(queries), state.index.n_bits, 2))
        for block, _, values in cost_blocks(state, queries):
            costs[block] = values
        return costs[0] if single else costs

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes), as `VectorIndex.codes_of` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(hasher="sign").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.codes_of([3])
        array([[16]], dtype=uint8)

        """
        wanted = as_ids(ids)
        return by_one_version(self._place, lambda version: version.codes_of(wanted))

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are vectors with these ids, bool (n,).

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(hasher="sign").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.contains([3, 4])
        array([ True, False])

        """
        wanted = as_ids(ids)
        return by_one_version(self._place, lambda version: version.contains(wanted))

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Return vectors by id as they are kept, as `VectorIndex.vectors_of` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> from bitweigh import cluster
        >>> like = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float16").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(np.eye(4), folder, like=like, shards=2)
        ...     cluster.open(folder).vectors.vectors_of([2])
        array([[0., 0., 1., 0.]], dtype=float16)

        """
        wanted = as_ids(ids)

        def call(version: OneVersion) -> NDArray[Any]:
            if _state_of(version).vectors is None:
                raise ValueError("only shards of an index created with rerank= keep vectors")
            return version.vectors_of(wanted)

        return by_one_version(self._place, call)

    @property
    def _state(self) -> VectorState:
        return _state_of(self._place.present())


def _state_of(version: OneVersion) -> VectorState:
    """What the vectors of all shards have in common; ValueError if rows are something else."""
    template = version.template
    if not isinstance(template, VectorsTemplate):
        raise ValueError(f"the shards are of {template.kind}, not of vectors")
    return template.state


class _Asked(NamedTuple):
    """A search with checked arguments."""

    state: VectorState
    queries: NDArray[Any]
    single: bool
    k: int
    n_codes: int

    @classmethod
    def checked(cls, version: OneVersion, Q: object, k: object, rerank_from: object) -> _Asked:
        """The search that a caller means."""
        state = _state_of(version)
        queries, single = as_queries(state, Q)
        k = as_k(k)
        n_codes = n_candidates(state, k, rerank_from, "rerank", rows=len(version)) or k
        return cls(state, queries, single, k, n_codes)

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], Ranking | None]]:
        """The costs of a few queries at a time, and how to rank what is found."""
        if self.state.vectors is not None:
            return _ranked_blocks(self.state, self.queries, self.k)
        return ((costs, None) for _, _, costs in cost_blocks(self.state, self.queries))


def _ranked_blocks(
    state: VectorState, queries: NDArray[Any], k: int
) -> Iterator[tuple[NDArray[np.float64], Ranking | None]]:
    for _, rows, costs in cost_blocks(state, queries):
        yield costs, Ranking(rows, k, state.metric)


def _codes_within(
    version: OneVersion,
    state: VectorState,
    queries: NDArray[Any],
    radii: NDArray[np.float64],
    limit: int | None,
    limits: SearchLimits,
) -> RangeResult:
    """All vectors whose codes are within each query's radius."""
    parts = []
    for block, _, costs in cost_blocks(state, queries):
        try:
            parts.append(version.codes_within(costs, radii[block], limit, limits))
        except LimitError as error:
            query = block.start + error.query
            raise LimitError(query, error.limit, "codes within its radius") from None
    counts = [np.diff(part.lims) for part in parts]
    return RangeResult(
        np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts])),
        np.concatenate([np.empty(0), *(part.distances for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)]),
    )
