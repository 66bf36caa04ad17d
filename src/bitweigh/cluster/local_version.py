"""The vectors of shards that are open in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_deadline
from bitweigh._index.filters import Filter, ids_among
from bitweigh._merging import merge
from bitweigh._results import Neighbours, RangeResult
from bitweigh._vectors.ranking import all_within, rank
from bitweigh._vectors.store import Vectors
from bitweigh.cluster.one_version import Nearest, Ranking, SearchLimits
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.shares import merged_of
from bitweigh.cluster.templates import Opened, VectorTemplate
from bitweigh.errors import LimitError
from bitweigh.typing import Codes, Ids, Metric

if TYPE_CHECKING:
    from bitweigh.cluster.shards import Shards

__all__ = ["LocalVersion", "check_limit", "ranked", "shards_of_candidates", "vectors_within"]


class LocalVersion:
    """The shards of a version, all open in this process; it never changes."""

    def __init__(
        self,
        shards: Shards,
        partition: Partition,
        kept: Sequence[Vectors],
        template: VectorTemplate,
    ) -> None:
        """Keep the codes, and the vectors of each shard; none if only codes are kept."""
        self._shards = shards
        self._partition = partition
        self._kept = kept
        self.template = template

    def __len__(self) -> int:
        """Rows of all shards."""
        return len(self._shards)

    def present(self) -> LocalVersion:
        """Itself."""
        return self

    def refresh(self) -> None:
        """Do nothing."""

    def nearest(
        self, costs: NDArray[np.float64], ranking: Ranking | None, k: int, limits: SearchLimits
    ) -> Nearest:
        """The k nearest codes, or the nearest vectors among them."""
        codes = self._shards.search(
            costs, k, threads=limits.threads, filter=limits.filter, timeout=limits.clock.left()
        )
        if ranking is None:
            return Nearest(Neighbours(codes.distances, codes.ids))
        shard_of = shards_of_candidates(self._partition, codes.ids)
        parts = [
            ranked(vectors, np.where(shard_of == shard, codes.ids, -1), ranking, limits)
            for shard, vectors in enumerate(self._kept)
        ]
        return Nearest(merged_of(parts, len(costs), ranking.k))

    async def anearest(
        self, costs: NDArray[np.float64], ranking: Ranking | None, k: int, limits: SearchLimits
    ) -> Nearest:
        """As `nearest`, in another thread."""
        return await asyncio.to_thread(self.nearest, costs, ranking, k, limits)

    def codes_within(
        self,
        costs: NDArray[np.float64],
        radii: NDArray[np.float64],
        limit: int | None,
        limits: SearchLimits,
    ) -> RangeResult:
        """All codes within each query's radius."""
        return self._shards.range_search(
            costs,
            radii,
            limit=limit,
            threads=limits.threads,
            filter=limits.filter,
            timeout=limits.clock.left(),
        )

    def vectors_within(
        self,
        rows: NDArray[np.float64],
        radii: NDArray[np.float64],
        metric: Metric,
        limit: int | None,
        limits: SearchLimits,
    ) -> RangeResult:
        """All vectors within each query's radius."""
        opened = map(Opened, self._shards.shards, self._kept)
        parts = [vectors_within(shard, rows, radii, metric, limit, limits) for shard in opened]
        found = merge(parts)
        check_limit(found, limit, "vectors within its radius")
        return found

    def codes_in_order(
        self, costs: NDArray[np.float64], row_filter: Filter | None
    ) -> Iterator[tuple[float, int]]:
        """All codes as (distance, id), nearest first."""
        return self._shards.iterate(costs, filter=row_filter)

    def codes_of(self, ids: Ids) -> Codes:
        """Codes by id."""
        return self._shards.codes_of(ids)

    def contains(self, ids: Ids) -> NDArray[np.bool_]:
        """Whether there are rows with these ids."""
        return self._shards.contains(ids)

    def vectors_of(self, ids: Ids) -> NDArray[Any]:
        """Kept vectors by id; KeyError for the first unknown id."""
        there = self._shards.contains(ids)
        if not there.all():
            raise KeyError(int(ids[np.argmin(there)]))
        shard_of = self._partition.shard_of(ids)
        empty = self._kept[0]
        found = np.empty((len(ids), empty.n_features), empty.dtype)
        for shard in np.unique(shard_of).tolist():
            here = shard_of == shard
            found[here] = self._kept[shard].of(ids[here])
        return found


def shards_of_candidates(partition: Partition, candidates: Ids) -> NDArray[np.int64]:
    """The shard of each candidate (nq, m); any for padding."""
    flat = np.maximum(candidates, 0).reshape(-1)
    return partition.shard_of(flat).reshape(candidates.shape)


def ranked(vectors: Vectors, candidates: Ids, ranking: Ranking, limits: SearchLimits) -> Neighbours:
    """The nearest candidates (nq, m) of each query that one shard has; the others are -1."""
    shape = (len(candidates), ranking.k)
    distances, ids = np.empty(shape), np.empty(shape, np.int64)
    rank(
        vectors,
        ranking.rows,
        candidates,
        ranking.metric,
        limits.threads,
        distances,
        ids,
        as_deadline(limits.clock.left()),
    )
    return Neighbours(distances, ids)


def vectors_within(
    shard: Opened,
    rows: NDArray[np.float64],
    radii: NDArray[np.float64],
    metric: Metric,
    limit: int | None,
    limits: SearchLimits,
) -> RangeResult:
    """All vectors of one shard within each query's radius."""
    assert shard.vectors is not None
    ids = ids_among(shard.codes.ids, limits.filter)
    return all_within(
        shard.vectors,
        ids,
        rows,
        metric,
        radii,
        limit,
        limits.threads,
        as_deadline(limits.clock.left()),
    )


def check_limit(found: RangeResult, limit: int | None, what: str) -> None:
    """Raise LimitError if a query has more results than the limit."""
    counts = np.diff(found.lims)
    if limit is not None and (counts > limit).any():
        raise LimitError(int(np.argmax(counts > limit)), limit, what)
