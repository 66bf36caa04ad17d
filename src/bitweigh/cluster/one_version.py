"""What searching vectors needs of one version of the shards, wherever they are.

The nearest codes of all shards are found first; then the shards rank exactly these by the vectors
they keep. Which vectors are compared with a query, and the distance of each, is then the same as in
one index of all rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.filters import Filter
from bitweigh._results import Neighbours, RangeResult
from bitweigh.cluster.as_one import CallClock
from bitweigh.cluster.errors import Missing, VersionGoneError
from bitweigh.cluster.templates import VectorTemplate
from bitweigh.typing import Codes, Ids, Metric

__all__ = [
    "Nearest",
    "OneVersion",
    "Place",
    "Ranking",
    "SearchLimits",
    "aby_one_version",
    "by_one_version",
    "joined",
    "one_or_all",
    "vectors_in_order",
]

Result = TypeVar("Result")


class SearchLimits(NamedTuple):
    """What is searched, with how many threads of each shard, and for how long."""

    clock: CallClock
    threads: int | None = None
    filter: Filter | None = None
    partial: bool = False
    """Whether shards that cannot be reached are left out, instead of being an error."""


class Ranking(NamedTuple):
    """The nearest of the codes found are to be ranked by their vectors."""

    rows: NDArray[np.float64]
    """The queries (nq, n_features), as vectors are compared with them."""
    k: int
    metric: Metric


class Nearest(NamedTuple):
    """The nearest codes or vectors, and what could not be asked."""

    found: Neighbours
    """(nq, k)."""
    missing: tuple[Missing, ...] = ()


class OneVersion(Protocol):
    """The shards of one version: all calls are answered by that version, or by none."""

    @property
    def template(self) -> VectorTemplate:
        """What rows are made into."""

    def __len__(self) -> int:
        """Rows of all shards."""

    def nearest(
        self,
        costs: NDArray[np.float64],
        ranking: Ranking | None,
        k: int,
        limits: SearchLimits,
    ) -> Nearest:
        """The k nearest codes of queries (nq, n_bits, 2), or the nearest vectors among them."""

    async def anearest(
        self,
        costs: NDArray[np.float64],
        ranking: Ranking | None,
        k: int,
        limits: SearchLimits,
    ) -> Nearest:
        """As `nearest`, for coroutines."""

    def codes_within(
        self,
        costs: NDArray[np.float64],
        radii: NDArray[np.float64],
        limit: int | None,
        limits: SearchLimits,
    ) -> RangeResult:
        """All codes within each query's radius."""

    def vectors_within(
        self,
        rows: NDArray[np.float64],
        radii: NDArray[np.float64],
        metric: Metric,
        limit: int | None,
        limits: SearchLimits,
    ) -> RangeResult:
        """All vectors within each query's radius."""

    def codes_in_order(
        self, costs: NDArray[np.float64], row_filter: Filter | None
    ) -> Iterator[tuple[float, int]]:
        """All codes as (distance, id), nearest first."""

    def codes_of(self, ids: Ids) -> Codes:
        """Codes by id; KeyError for the first unknown id."""

    def vectors_of(self, ids: Ids) -> NDArray[Any]:
        """Kept vectors by id; KeyError for the first unknown id."""

    def contains(self, ids: Ids) -> NDArray[np.bool_]:
        """Whether there are rows with these ids."""


class Place(Protocol):
    """Where shards are searched: this process, or a cluster."""

    def present(self) -> OneVersion:
        """The version that new calls are answered by; ValueError if its rows are only codes."""

    def refresh(self) -> None:
        """Find out which version that is now."""


def by_one_version(place: Place, call: Callable[[OneVersion], Result]) -> Result:
    """What the call returns for the present version; it begins again if that has gone meanwhile."""
    try:
        return call(place.present())
    except VersionGoneError:
        place.refresh()
        return call(place.present())


async def aby_one_version(place: Place, call: Callable[[OneVersion], Awaitable[Result]]) -> Result:
    """As `by_one_version`, for coroutines."""
    try:
        return await call(place.present())
    except VersionGoneError:
        await asyncio.to_thread(place.refresh)
        return await call(place.present())


def joined(parts: Sequence[Nearest], k: int) -> Nearest:
    """The answers to blocks of queries, one after the other."""
    distances = np.concatenate([np.empty((0, k)), *(part.found.distances for part in parts)])
    ids = np.concatenate([np.empty((0, k), np.int64), *(part.found.ids for part in parts)])
    missing = tuple(sorted({each for part in parts for each in part.missing}))
    return Nearest(Neighbours(distances, ids), missing)


def one_or_all(found: Neighbours, single: bool) -> Neighbours:
    """The answers to all queries (nq, k), or (k,) for a single query."""
    return Neighbours(found.distances[0], found.ids[0]) if single else found


def vectors_in_order(
    version: OneVersion,
    row: NDArray[np.float64],
    metric: Metric,
    row_filter: Filter | None,
) -> Iterator[tuple[float, int]]:
    """Yield all vectors as (distance, id), nearest first; the first one takes a pass over all."""
    everything = np.array([np.inf])
    limits = SearchLimits(CallClock(None), filter=row_filter)
    _, distances, ids = version.vectors_within(row, everything, metric, None, limits)
    yield from zip(distances.tolist(), ids.tolist(), strict=True)
