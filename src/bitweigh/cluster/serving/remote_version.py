"""The vectors of shards that holders on other machines have open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.filters import Filter
from bitweigh._results import RangeResult
from bitweigh.cluster.local_version import check_limit
from bitweigh.cluster.one_version import Nearest, Ranking, SearchLimits
from bitweigh.cluster.serving.queue import Wanted
from bitweigh.cluster.serving.wire import Question
from bitweigh.cluster.templates import VectorTemplate
from bitweigh.typing import Codes, Ids, Metric

if TYPE_CHECKING:
    from bitweigh.cluster.serving.client import Cluster

__all__ = ["RemotePlace", "RemoteVersion"]


class RemotePlace:
    """A cluster, whose version may change at any time."""

    def __init__(self, cluster: Cluster) -> None:
        """Keep the cluster."""
        self._cluster = cluster

    def present(self) -> RemoteVersion:
        """The version that new calls are answered by."""
        return RemoteVersion(self._cluster.pinned())

    def refresh(self) -> None:
        """Find out which version that is now."""
        self._cluster._refresh()


class RemoteVersion:
    """A cluster that answers by one version."""

    def __init__(self, cluster: Cluster) -> None:
        """Keep a cluster that is pinned to a version."""
        self._cluster = cluster
        self.template: VectorTemplate = cluster._template()

    def __len__(self) -> int:
        """Rows of all shards."""
        return len(self._cluster)

    def nearest(
        self, costs: NDArray[np.float64], ranking: Ranking | None, k: int, limits: SearchLimits
    ) -> Nearest:
        """The k nearest codes, or the nearest vectors among them."""
        found = self._cluster._found(self._wanted(costs, ranking, k, limits))
        return Nearest(found.neighbours, found.missing)

    async def anearest(
        self, costs: NDArray[np.float64], ranking: Ranking | None, k: int, limits: SearchLimits
    ) -> Nearest:
        """As `nearest`, for coroutines."""
        found = await self._cluster._afound(self._wanted(costs, ranking, k, limits))
        return Nearest(found.neighbours, found.missing)

    def codes_within(
        self,
        costs: NDArray[np.float64],
        radii: NDArray[np.float64],
        limit: int | None,
        limits: SearchLimits,
    ) -> RangeResult:
        """All codes within each query's radius."""
        return self._cluster.range_search(
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
        question = Question(
            0,
            1,
            1,
            None,
            "auto",
            limits.threads,
            np.empty((len(rows), 0, 2)),
            radii,
            limit,
            limits.filter,
            rows,
            metric,
        )
        found = self._cluster._within(Wanted(question, limits.clock))
        check_limit(found, limit, "vectors within its radius")
        return found

    def codes_in_order(
        self, costs: NDArray[np.float64], row_filter: Filter | None
    ) -> Iterator[tuple[float, int]]:
        """All codes as (distance, id), nearest first."""
        return self._cluster.iterate(costs, filter=row_filter)

    def codes_of(self, ids: Ids) -> Codes:
        """Codes by id."""
        return self._cluster.codes_of(ids)

    def contains(self, ids: Ids) -> NDArray[np.bool_]:
        """Whether there are rows with these ids."""
        return self._cluster.contains(ids)

    def vectors_of(self, ids: Ids) -> NDArray[Any]:
        """Kept vectors by id; KeyError for the first unknown id."""
        empty = self.template.empty_vectors
        assert empty is not None
        found, vectors = self._cluster._values_of("vectors_of", ids, empty.dtype, empty.n_features)
        if not found.all():
            raise KeyError(int(ids[np.argmin(found)]))
        return vectors

    def _wanted(
        self, costs: NDArray[np.float64], ranking: Ranking | None, k: int, limits: SearchLimits
    ) -> Wanted:
        question = Question(0, k, k, None, "auto", limits.threads, costs, filter=limits.filter)
        return Wanted(question, limits.clock, limits.partial, ranking=ranking)
