"""ClusterEmbeddings: shards of embeddings, searched as one `BinaryEmbeddings`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import (
    as_ids,
    as_integer,
    as_k,
    as_min_scores,
    as_optional_integer,
    as_query_costs,
)
from bitweigh._embeddings.inputs import as_queries, one_query, signs_of
from bitweigh._embeddings.scoring import TOO_MANY, as_scores, folded, n_to_rescore, refuse_signed
from bitweigh._embeddings.state import EmbeddingsState
from bitweigh._index.filters import Filter
from bitweigh._index.id_queries import IdQueries
from bitweigh._index.request import MAX_LIMIT
from bitweigh._results import ScoredRangeResult, ScoredResult
from bitweigh._vectors.codes_and_vectors import ranks_by_vectors
from bitweigh.cluster.as_one import CallClock, kept_filter
from bitweigh.cluster.one_version import (
    OneVersion,
    Place,
    Ranking,
    SearchLimits,
    aby_one_version,
    by_one_version,
    one_or_all,
    vectors_in_order,
)
from bitweigh.cluster.templates import EmbeddingsTemplate
from bitweigh.costs import inner_product
from bitweigh.errors import LimitError
from bitweigh.typing import By, Codes, Floats, RescoreDtype

__all__ = ["ClusterEmbeddings"]


class ClusterEmbeddings:
    """Shards of embeddings, searched as one collection.

    ``cluster.open(url).embeddings`` and ``cluster.start(url).embeddings`` return one. The methods
    and their arguments are those of :class:`bitweigh.embeddings.BinaryEmbeddings`, and so are the
    answers, to the last bit. `threads` is the number of threads for each shard.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> from bitweigh.embeddings import BinaryEmbeddings
    >>> x = np.random.default_rng(0).standard_normal((500, 64)).astype(np.float32)
    >>> like = BinaryEmbeddings(dim=64, rescore="int8", calibration=x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(x, folder, like=like, shards=3)
    ...     embeddings = cluster.open(folder).embeddings
    ...     embeddings.search(x[7], k=1).ids
    array([7])

    """

    def __init__(self, place: Place) -> None:
        """Search the shards there."""
        self._place = place
        _state_of(place.present())  # raises unless rows are embeddings

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return _state_of(self._place.present()).index.n_bits

    @property
    def rescore(self) -> RescoreDtype | None:
        """How vectors are kept; None if they are not."""
        return _state_of(self._place.present()).rescore

    def __len__(self) -> int:
        """Return the number of embeddings."""
        return len(self._place.present())

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is an embedding with this id."""
        try:
            number = as_integer(id, "id", 0, 2**63 - 1)
        except (TypeError, ValueError):
            return False
        return bool(self.contains([number])[0])

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return (
            f"<bitweigh.cluster.ClusterEmbeddings: {len(self)} embeddings of {self.dim} dimensions>"
        )

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """Find the k embeddings with the largest scores, as `BinaryEmbeddings.search` does.

        The `rescore_from` best of all shards by their bits are found first, and these are rescored.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     cluster.open(folder).embeddings.search(np.ones(8), k=2)
        ScoredResult(scores=array([8., 4.]), ids=array([0, 1]))

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))

        def call(version: OneVersion) -> ScoredResult:
            asked = _Asked.checked(version, queries, k, rescore_from, signed)
            return asked.result(version.nearest(*asked.question, limits).found)

        return by_one_version(self._place, call)

    async def asearch(
        self,
        queries: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """As `search`, for coroutines: other ones run meanwhile.

        Examples
        --------
        >>> import asyncio
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     asyncio.run(cluster.open(folder).embeddings.asearch(np.ones(8), k=1)).ids
        array([0])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))

        async def call(version: OneVersion) -> ScoredResult:
            asked = _Asked.checked(version, queries, k, rescore_from, signed)
            return asked.result((await version.anearest(*asked.question, limits)).found)

        return await aby_one_version(self._place, call)

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        include_self: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """Find the k embeddings most like stored ones, as `BinaryEmbeddings.search_by_id` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[240], [15], [248]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     cluster.open(folder).embeddings.search_by_id(0, k=1).ids
        array([2])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))
        by_id = IdQueries(ids, k, include_self=include_self)

        def call(version: OneVersion) -> ScoredResult:
            state = _state_of(version)
            queries: NDArray[np.float64]
            if state.vectors is None:
                queries = signs_of(version.codes_of(by_id.ids), state.index.n_bits)
            else:
                queries = _vectors_of(version, by_id.ids).astype(np.float64)
            rows = len(version)
            n_rescored = n_to_rescore(state, by_id.k, rescore_from, by_id.extra, rows)
            asked = _Asked.of(state, queries, by_id.asked, n_rescored, signed=False)
            found = asked.result(version.nearest(*asked.question, limits).found)
            return ScoredResult(*by_id.without_themselves(*found))

        return by_one_version(self._place, call)

    def range_search(
        self,
        queries: ArrayLike,
        min_score: ArrayLike,
        *,
        by: By | None = None,
        limit: int | None = None,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredRangeResult:
        """Find all scores of at least `min_score`, as `BinaryEmbeddings.range_search` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     cluster.open(folder).embeddings.range_search(np.ones(8), min_score=4).ids
        array([0, 1])

        """
        limits = SearchLimits(CallClock(timeout), threads, kept_filter(allow, deny, filter))
        limit = as_optional_integer(limit, "limit", 0, MAX_LIMIT)

        def call(version: OneVersion) -> ScoredRangeResult:
            state = _state_of(version)
            checked = as_queries(queries, state.index.n_bits)
            nq = 1 if checked.ndim == 1 else len(checked)
            radii = 0.0 - as_min_scores(min_score, nq)
            try:
                if ranks_by_vectors(state, by, "rescore"):
                    refuse_signed(signed, "by='codes'")
                    rows = folded(state, checked)
                    found = version.vectors_within(rows, radii, "inner_product", limit, limits)
                else:
                    costs = _costs(state, checked, signed)
                    found = version.codes_within(costs, radii, limit, limits)
            except LimitError as error:
                raise LimitError(error.query, error.limit, TOO_MANY) from None
            return as_scores(found)

        return by_one_version(self._place, call)

    def iterate(
        self,
        query: ArrayLike,
        *,
        by: By | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all embeddings in descending score, as `BinaryEmbeddings.iterate` does.

        The version is that of the time of the call.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     next(cluster.open(folder).embeddings.iterate(np.ones(8)))
        (8.0, 0)

        """
        version = self._place.present()
        state = _state_of(version)
        checked = one_query(query, state.index.n_bits)
        row_filter = kept_filter(allow, deny, filter)
        if ranks_by_vectors(state, by, "rescore"):
            rows = folded(state, checked)
            found = vectors_in_order(version, rows, "inner_product", row_filter)
        else:
            found = version.codes_in_order(_costs(state, checked, signed=False)[0], row_filter)
        # Not -distance, which would turn 0.0 into -0.0.
        return ((0.0 - distance, id_) for distance, id_ in found)

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches, as `BinaryEmbeddings.filter` does.

        Examples
        --------
        >>> from bitweigh.cluster import ClusterEmbeddings
        >>> rare = ClusterEmbeddings.filter(None, allow=[1, 2])

        """
        return Filter(allow=allow, deny=deny)

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are embeddings with these ids, bool (n,).

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     cluster.open(folder).embeddings.contains([2, 3])
        array([ True, False])

        """
        wanted = as_ids(ids)
        return by_one_version(self._place, lambda version: version.contains(wanted))

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return packed bits by id, uint8 (n, n_bytes), as `BinaryEmbeddings.codes_of` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> codes = np.array([[255], [15], [1]], dtype=np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     version = cluster.build(codes, folder, like=BinaryEmbeddings(dim=8), shards=2)
        ...     cluster.open(folder).embeddings.codes_of([1])
        array([[15]], dtype=uint8)

        """
        wanted = as_ids(ids)
        return by_one_version(self._place, lambda version: version.codes_of(wanted))

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Return vectors by id as they are kept, as `BinaryEmbeddings.vectors_of` does.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh import cluster
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> x = np.array([[0.5, -1.0]], dtype=np.float32)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     like = BinaryEmbeddings(dim=2, rescore="float16")
        ...     version = cluster.build(x, folder, like=like, shards=2)
        ...     cluster.open(folder).embeddings.vectors_of([0])
        array([[ 0.5, -1. ]], dtype=float16)

        """
        wanted = as_ids(ids)

        def call(version: OneVersion) -> NDArray[Any]:
            state = _state_of(version)
            if state.vectors is None:
                raise ValueError("only shards of embeddings created with rescore= keep vectors")
            vectors = _vectors_of(version, wanted)
            return vectors.astype(np.float32) if state.rescore == "int8" else vectors

        return by_one_version(self._place, call)


def _state_of(version: OneVersion) -> EmbeddingsState:
    """What the embeddings of all shards have in common; ValueError if rows are something else."""
    template = version.template
    if not isinstance(template, EmbeddingsTemplate):
        raise ValueError(f"the shards are of {template.kind}, not of embeddings")
    return template.state


def _vectors_of(version: OneVersion, ids: NDArray[np.int64]) -> NDArray[Any]:
    """Kept vectors by id, int8 as float64."""
    scales = _state_of(version).scales
    vectors = version.vectors_of(ids)
    return vectors if scales is None else vectors * scales


def _costs(state: EmbeddingsState, queries: Floats, signed: bool) -> NDArray[np.float64]:
    """The costs of queries (dim,) or (nq, dim), as (nq, dim, 2)."""
    costs = as_query_costs(inner_product(queries, signed=signed), state.index.n_bits)
    return costs[np.newaxis] if costs.ndim == 2 else costs


class _Asked(NamedTuple):
    """A search with checked arguments."""

    question: tuple[NDArray[np.float64], Ranking | None, int]
    """The costs, how to rank what is found, and how many to find."""
    single: bool

    @classmethod
    def checked(
        cls, version: OneVersion, queries: object, k: object, rescore_from: object, signed: bool
    ) -> _Asked:
        """The search that a caller means."""
        state = _state_of(version)
        checked = as_queries(queries, state.index.n_bits)
        number = as_k(k)
        n_rescored = n_to_rescore(state, number, rescore_from, rows=len(version))
        return cls.of(state, checked, number, n_rescored, signed)

    @classmethod
    def of(
        cls, state: EmbeddingsState, queries: Floats, k: int, n_rescored: int, signed: bool
    ) -> _Asked:
        """The search for the k best, of `n_rescored` if any are rescored."""
        single = queries.ndim == 1
        costs = _costs(state, queries, signed)
        if not n_rescored:
            return cls((costs, None, k), single)
        refuse_signed(signed, "rescore_from=0")
        return cls((costs, Ranking(folded(state, queries), k, "inner_product"), n_rescored), single)

    def result(self, found: Any) -> ScoredResult:  # noqa: ANN401 Neighbours
        """Distances as scores."""
        distances, ids = one_or_all(found, self.single)
        # Not -distances, which would turn 0.0 into -0.0.
        return ScoredResult(0.0 - distances, ids)
