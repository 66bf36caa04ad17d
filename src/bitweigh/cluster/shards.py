"""Shards: all shards of a version in this process, searched as one index.

The answers are those of one `Index` of all rows, to the last bit. It needs no cluster, and it is
what the answers of a cluster are compared with.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_ids, as_k, as_query_costs, as_radii
from bitweigh._index.code_queries import CodeQueries
from bitweigh._index.explain import Explanation
from bitweigh._index.filters import Filter
from bitweigh._merging import merge
from bitweigh._results import Memory, Neighbours, RangeResult, SearchResult
from bitweigh._vectors.store import Vectors
from bitweigh.cluster.as_one import AsOneIndex, CallClock, kept_filter
from bitweigh.cluster.embeddings import ClusterEmbeddings
from bitweigh.cluster.local_version import LocalVersion
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.shares import SHARE_FROM, Shares, nearest_of_shards
from bitweigh.cluster.templates import VectorTemplate
from bitweigh.cluster.vectors import ClusterVectors
from bitweigh.cluster.version import Version
from bitweigh.errors import LimitError
from bitweigh.index import Index
from bitweigh.typing import BitOrder, Codes, Ids, Method

__all__ = ["ShardExplanation", "Shards"]


class ShardExplanation(NamedTuple):
    """How each shard was searched; ``print`` it."""

    shards: tuple[Explanation, ...]
    """The explanation of each shard, by number."""

    def __str__(self) -> str:
        """All explanations, each below the number of its shard."""
        return "\n".join(
            f"shard {number}: {explanation}" for number, explanation in enumerate(self.shards)
        )


class Shards(AsOneIndex):
    """All shards of a version in this process, searched as one index; `open` makes one.

    The methods and their arguments are those of :class:`bitweigh.Index`, and so are the answers,
    to the last bit. It does not change: a new version is opened anew.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh import cluster
    >>> codes = np.arange(200, dtype=np.uint8).reshape(-1, 1)  # (200, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, f"{folder}/shards", shards=3)
    ...     shards = cluster.open(f"{folder}/shards")
    >>> shards
    <bitweigh.cluster.Shards: 200 codes of 8 bits in 3 shards, version 1>
    >>> shards.search(bitweigh.costs.hamming(np.array([7], dtype=np.uint8), 8), k=3).ids
    array([7, 3, 5])

    """

    def __init__(
        self,
        indexes: Sequence[Index],
        partition: Partition,
        version: Version | None = None,
        *,
        share_from: int = SHARE_FROM,
        template: VectorTemplate | None = None,
        kept: Sequence[Vectors] = (),
    ) -> None:
        """Keep the indexes, at least one, whose ids must be as `partition` says.

        Shards of vectors and embeddings have a template, and the kept vectors of each if it keeps
        any.
        """
        self._indexes = tuple(indexes)
        self._partition = partition
        self._shares = Shares(partition.samples_evenly, share_from)
        self.version = version
        """The version; None for indexes that were never stored."""
        self._vectors = None
        if template is not None:
            self._vectors = LocalVersion(self, partition, kept, template)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._indexes[0].n_bits

    @property
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""
        return self._indexes[0].bitorder

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return np.sort(np.concatenate([index.ids for index in self._indexes]))

    @property
    def shards(self) -> tuple[Index, ...]:
        """The index of each shard; they must not be changed."""
        return self._indexes

    @property
    def vectors(self) -> ClusterVectors:
        """The same shards, searched as one :class:`bitweigh.VectorIndex`, if rows are vectors."""
        return ClusterVectors(self._with_vectors())

    @property
    def embeddings(self) -> ClusterEmbeddings:
        """The same shards, searched as one `BinaryEmbeddings`, if rows are embeddings."""
        return ClusterEmbeddings(self._with_vectors())

    @property
    def second_rounds(self) -> int:
        """Queries for which some shard was asked again, because its share was not enough."""
        return self._shares.second_rounds

    def __len__(self) -> int:
        """Return the number of codes."""
        return sum(map(len, self._indexes))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        shards = len(self._indexes)
        version = "" if self.version is None else f", version {self.version.number}"
        return (
            f"<bitweigh.cluster.Shards: {len(self)} codes of {self.n_bits} bits in "
            f"{shards} shard{'s' if shards > 1 else ''}{version}>"
        )

    def search(
        self,
        costs: ArrayLike,
        k: int,
        *,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """Find the k codes with the smallest distance, exactly, as `Index.search` does.

        For k from 64 on, each shard is asked for its share of k, and again where that may not have
        been enough.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> shards = Shards([Index(8), Index(8)], RangePartition((0, 10)))
        >>> shards.search(np.zeros((8, 2)), k=2).ids
        array([-1, -1])

        """
        clock = CallClock(timeout)
        checked = as_query_costs(costs, self.n_bits)
        k = as_k(k)
        row_filter = kept_filter(allow, deny, filter)
        queries = checked[np.newaxis] if checked.ndim == 2 else checked

        def ask(shard: int, chosen: NDArray[np.bool_] | None, count: int) -> Neighbours:
            return self._indexes[shard].search(
                queries if chosen is None else queries[chosen],
                count,
                threads=threads,
                method=method,
                filter=row_filter,
                timeout=clock.left(),
            )

        found = nearest_of_shards(ask, range(len(self._indexes)), len(queries), k, self._shares)
        return _as_result(found, checked.ndim == 2)

    def search_codes(
        self,
        queries: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """Find the k codes nearest to packed queries, as `Index.search_codes` does.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> shards = Shards([index, Index(8)], RangePartition((0, 10)))
        >>> shards.search_codes(np.array([3], dtype=np.uint8), k=1)
        SearchResult(distances=array([1.]), ids=array([0]))

        """
        clock = CallClock(timeout)
        CodeQueries(queries, weights, self.n_bits, self.bitorder)  # raises for what is wrong
        packed = np.array(queries)
        k = as_k(k)
        row_filter = kept_filter(allow, deny, filter)
        parts = [
            index.search_codes(
                packed,
                k,
                weights=weights,
                threads=threads,
                method=method,
                filter=row_filter,
                timeout=clock.left(),
            )
            for index in self._indexes
        ]
        return merge(parts, k)

    def range_search(
        self,
        costs: ArrayLike,
        radius: ArrayLike,
        *,
        limit: int | None = None,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> RangeResult:
        """Find all codes whose distance is at most `radius`, as `Index.range_search` does.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> shards = Shards([index, Index(8)], RangePartition((0, 10)))
        >>> shards.range_search(np.zeros((8, 2)), 0.5).ids
        array([0, 1])

        """
        clock = CallClock(timeout)
        checked = as_query_costs(costs, self.n_bits)
        radii = as_radii(radius, 1 if checked.ndim == 2 else len(checked))
        row_filter = kept_filter(allow, deny, filter)
        parts = [
            index.range_search(
                checked,
                radii,
                limit=limit,
                threads=threads,
                method=method,
                filter=row_filter,
                timeout=clock.left(),
            )
            for index in self._indexes
        ]
        found = merge(parts)
        counts = np.diff(found.lims)
        if limit is not None and (counts > limit).any():
            raise LimitError(int(np.argmax(counts > limit)), limit, "codes within its radius")
        return found

    def iterate(
        self,
        costs: ArrayLike,
        *,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all codes in ascending distance, searching only as far as it is consumed.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> shards = Shards([index, Index(8)], RangePartition((0, 10)))
        >>> list(shards.iterate(np.zeros((8, 2))))
        [(0.0, 0), (0.0, 1)]

        """
        row_filter = kept_filter(allow, deny, filter)
        return heapq.merge(*(index.iterate(costs, filter=row_filter) for index in self._indexes))

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes), as `Index.codes_of` does.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> Shards([index, Index(8)], RangePartition((0, 10))).codes_of([1])
        array([[2]], dtype=uint8)

        """
        wanted = as_ids(ids)
        missing = ~self.contains(wanted)
        if missing.any():
            # The same error as that of an index, for the first such id.
            self._indexes[0].codes_of(wanted[missing][:1])
        codes = np.empty((len(wanted), (self.n_bits + 7) // 8), np.uint8)
        shard_of = self._partition.shard_of(wanted)
        for number in np.unique(shard_of).tolist():
            here = shard_of == number
            codes[here] = self._indexes[number].codes_of(wanted[here])
        return codes

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are codes with these ids, bool (n,).

        Examples
        --------
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> Shards([Index(8), Index(8)], RangePartition((0, 10))).contains([3])
        array([False])

        """
        wanted = as_ids(ids)
        found = np.zeros(len(wanted), dtype=np.bool_)
        shard_of = self._partition.shard_of(wanted)
        for number in np.unique(shard_of).tolist():
            here = shard_of == number
            found[here] = self._indexes[number].contains(wanted[here])
        return found

    def explain(self, costs: ArrayLike, k: int, *, method: Method = "auto") -> ShardExplanation:
        """Search for one query, and report how each shard was searched and why.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> shards = Shards([Index(8), Index(8)], RangePartition((0, 10)))
        >>> [shard.plan for shard in shards.explain(np.zeros((8, 2)), 1).shards]
        ['scan', 'scan']

        """
        share = self._shares.of(as_k(k), len(self._indexes))
        return ShardExplanation(
            tuple(index.explain(costs, share, method=method) for index in self._indexes)
        )

    def memory(self) -> Memory:
        """Bytes of memory that the shards use, by purpose.

        Examples
        --------
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> Shards([Index(8)], RangePartition((0,))).memory().total
        0

        """
        parts = [index.memory() for index in self._indexes]
        total = Memory(*np.sum(parts, axis=0).tolist())
        total.layouts = tuple(layout for part in parts for layout in part.layouts)
        return total

    def _with_vectors(self) -> LocalVersion:
        if self._vectors is None:
            raise ValueError("the shards are of codes alone: build them with like= to keep more")
        return self._vectors


def _as_result(found: Neighbours, single: bool) -> SearchResult:
    distances, ids = found
    return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)
