"""Cluster: the object through which a program searches shards that others hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_ids, as_integer, as_k, as_query_costs, as_radii
from bitweigh._index.code_queries import CodeQueries
from bitweigh._index.filters import Filter
from bitweigh._results import RangeResult, SearchResult
from bitweigh.cluster.as_one import AsOneIndex, CallClock, kept_filter
from bitweigh.cluster.embeddings import ClusterEmbeddings
from bitweigh.cluster.errors import Missing, VersionGoneError
from bitweigh.cluster.local_version import check_limit
from bitweigh.cluster.serving.coordinator import Coordinator, Found
from bitweigh.cluster.serving.queue import Wanted
from bitweigh.cluster.serving.remote_version import RemotePlace
from bitweigh.cluster.serving.reports import ClusterStatus, PartialResult
from bitweigh.cluster.serving.wire import Question
from bitweigh.cluster.templates import VectorTemplate
from bitweigh.cluster.vectors import ClusterVectors
from bitweigh.cluster.version import Version
from bitweigh.typing import BitOrder, Codes, Ids, Method

__all__ = ["Cluster", "Keeper"]

Result = TypeVar("Result")

# Rows that `iterate` asks for first, and the factor between one search and the next.
_FIRST_ITERATED = 64
_ITERATE_FACTOR = 4


class Keeper(NamedTuple):
    """How to reach the one who keeps the desired state."""

    publish: Callable[[int | None], int]
    scale: Callable[[int], None]
    stop: Callable[[], None]


class Cluster(AsOneIndex):
    """Shards that holders on other machines have open, searched as one index.

    :func:`bitweigh.cluster.start` and :func:`bitweigh.cluster.connect` return one. The methods and
    their arguments are those of :class:`bitweigh.Index`, and so are the answers, to the last bit;
    `threads` is the number of threads of each holder. Any number of threads and coroutines may use
    one.
    """

    def __init__(
        self, coordinator: Coordinator, keeper: Keeper, pinned: Version | None = None
    ) -> None:
        """Use a coordinator of this process; only a pinned version answers, if there is one."""
        self._coordinator = coordinator
        self._keeper = keeper
        self._pinned = pinned

    @property
    def version(self) -> Version:
        """The version that new queries are begun with."""
        return self._pinned or self._coordinator.version

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.version.n_bits

    @property
    def vectors(self) -> ClusterVectors:
        """The same shards, searched as one :class:`bitweigh.VectorIndex`, if rows are vectors."""
        return ClusterVectors(RemotePlace(self))

    @property
    def embeddings(self) -> ClusterEmbeddings:
        """The same shards, searched as one `BinaryEmbeddings`, if rows are embeddings."""
        return ClusterEmbeddings(RemotePlace(self))

    @property
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""
        return self.version.bitorder

    def __len__(self) -> int:
        """Return the number of codes."""
        return self.version.rows

    def __repr__(self) -> str:
        """Return a one-line summary."""
        version = self.version
        return (
            f"<bitweigh.cluster.Cluster: {version.rows} codes of {version.n_bits} bits in "
            f"{len(version.shards)} shards, version {version.number}>"
        )

    @overload
    def search(
        self,
        costs: ArrayLike,
        k: int,
        *,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,
        timeout: float | None = None,
        partial: Literal[False] = False,
    ) -> SearchResult: ...
    @overload
    def search(
        self,
        costs: ArrayLike,
        k: int,
        *,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,
        timeout: float | None = None,
        partial: Literal[True],
    ) -> PartialResult: ...
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
        partial: bool = False,
    ) -> SearchResult | PartialResult:
        """Find the k codes with the smallest distance, exactly, as `Index.search` does.

        With ``partial=True``, shards that cannot be reached are left out, and the result says
        which.

        Raises
        ------
        IncompleteError
            If no holder of a shard can be reached; the error names the shard.
        OverloadedError
            If too many queries are waiting.
        DeadlineError
            If the call takes longer than `timeout`.

        """
        checked = as_query_costs(costs, self.n_bits)
        row_filter = kept_filter(allow, deny, filter)
        wanted = _wanted(
            checked,
            as_k(k),
            threads,
            method,
            row_filter,
            timeout,
            partial=partial,
        )
        found = self._found(wanted)
        result = _as_result(found, checked.ndim == 2)
        if not partial:
            return result
        return PartialResult(*result, not found.missing, found.missing)

    async def asearch(
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
        """As `search`, for coroutines: other ones run meanwhile."""
        checked = as_query_costs(costs, self.n_bits)
        row_filter = kept_filter(allow, deny, filter)
        wanted = _wanted(checked, as_k(k), threads, method, row_filter, timeout)
        return _as_result(await self._afound(wanted), checked.ndim == 2)

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
        """Find the k codes nearest to packed queries, as `Index.search_codes` does."""
        clock = CallClock(timeout)
        checked = CodeQueries(queries, weights, self.n_bits, self.bitorder)
        row_filter = kept_filter(allow, deny, filter)

        def ask(one: Self) -> list[SearchResult]:
            return [
                one.search(
                    costs,
                    k,
                    threads=threads,
                    method=method,
                    filter=row_filter,
                    timeout=clock.left(),
                )
                for _, costs in checked.blocks(None)
            ]

        parts = self._by_one_version(ask)
        if not parts:
            return SearchResult(np.empty((0, as_k(k))), np.empty((0, k), np.int64))
        distances = np.concatenate([part.distances for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        if checked.single:
            return SearchResult(distances[0], ids[0])
        return SearchResult(distances, ids)

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
        """Find all codes whose distance is at most `radius`, as `Index.range_search` does."""
        checked = as_query_costs(costs, self.n_bits)
        radii = as_radii(radius, 1 if checked.ndim == 2 else len(checked))
        row_filter = kept_filter(allow, deny, filter)
        wanted = _wanted(checked, 1, threads, method, row_filter, timeout, radii=radii, limit=limit)
        found = self._within(wanted)
        check_limit(found, limit, "codes within its radius")
        return found

    def iterate(
        self,
        costs: ArrayLike,
        *,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all codes in ascending distance, of the version at the time of the call.

        Raises VersionGoneError if that version is closed before the end.
        """
        checked = as_query_costs(costs, self.n_bits)
        if checked.ndim != 2:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        return self.pinned()._iterated(checked, kept_filter(allow, deny, filter))

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are codes with these ids, bool (n,)."""
        n_bytes = (self.n_bits + 7) // 8
        return self._values_of("codes_of", as_ids(ids), np.dtype(np.uint8), n_bytes)[0]

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes), as `Index.codes_of` does."""
        wanted, n_bytes = as_ids(ids), (self.n_bits + 7) // 8
        found, codes = self._values_of("codes_of", wanted, np.dtype(np.uint8), n_bytes)
        if not found.all():
            raise KeyError(int(wanted[np.argmin(found)]))
        return codes

    def explain(self, costs: ArrayLike, k: int, *, method: Method = "auto") -> str:
        """How each shard searches for one query, and why."""
        query = np.ascontiguousarray(as_query_costs(costs, self.n_bits).reshape(self.n_bits, 2))
        asked = ("explain", query.tobytes(), as_k(k), method)
        parts = self._by_one_version(
            lambda one: [one._ask(shard, *asked) for shard in range(len(one.version.shards))]
        )
        return "\n".join(f"shard {shard}: {part}" for shard, part in enumerate(parts))

    def status(self) -> ClusterStatus:
        """The version, the holders, and what was asked by this process."""
        coordinator = self._coordinator
        version = coordinator.version
        return ClusterStatus(
            version.number,
            version.rows,
            len(version.shards),
            coordinator.holders(),
            coordinator.queued,
            coordinator.answered,
            coordinator.batches,
            coordinator.hedges,
            coordinator.failovers,
            coordinator.second_rounds,
        )

    def check(self) -> tuple[Missing, ...]:
        """Ask all shards for something; returns those that do not answer."""
        return self.search(np.zeros((self.n_bits, 2)), 1, partial=True).missing

    def publish(self, version: int | None = None) -> int:
        """Serve another version, by default the newest; returns its number.

        All holders open it before any query is begun with it. Queries that were begun with the
        version before end with it.
        """
        number = self._keeper.publish(version)
        self._coordinator.refresh()
        return number

    def rollback(self) -> int:
        """Serve the version that the present one was made from; returns its number."""
        parent = self.version.parent
        if parent is None:
            raise ValueError(f"version {self.version.number} has no version before it")
        return self.publish(parent)

    def scale(self, replicas: int) -> None:
        """Have so many holders for each group of shards."""
        self._keeper.scale(as_integer(replicas, "replicas", 1, 100))
        self._coordinator.refresh()

    def close(self) -> None:
        """Disconnect; the cluster goes on."""
        self._coordinator.close()

    def stop(self) -> None:
        """Stop all holders; what is stored stays."""
        self._keeper.stop()
        self.close()

    def pinned(self) -> Cluster:
        """The same cluster, of which only the present version answers.

        Once that is closed, calls raise VersionGoneError.
        """
        if self._pinned is not None:
            return self
        return Cluster(self._coordinator, self._keeper, self._coordinator.version)

    def _refresh(self) -> None:
        """Find out which version is served, which otherwise happens once a second."""
        self._coordinator.run(self._coordinator.refresh_quietly())

    def _template(self) -> VectorTemplate:
        """What rows are made into; ValueError if they are only codes."""
        return self._coordinator.template(self.version)

    def _found(self, wanted: Wanted) -> Found:
        """The answer to a call for the k nearest."""
        future = self._coordinator.submit(self._of_version(wanted))
        assert isinstance(future, Future)
        found: Found = _waited(future, wanted.clock)
        return found

    async def _afound(self, wanted: Wanted) -> Found:
        """As `found`, for coroutines."""
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._coordinator.submit(self._of_version(replace(wanted, future=future)))
        seconds = wanted.clock.wait()
        if seconds is None:
            return await future
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            raise wanted.clock.error() from None

    def _within(self, wanted: Wanted) -> RangeResult:
        """The answer to a call for all within a radius."""
        work = self._coordinator.range_search(self._of_version(wanted))
        found: RangeResult = _waited(self._coordinator.begin(work), wanted.clock)[0]
        return found

    def _values_of(
        self, method: str, ids: Ids, dtype: np.dtype[Any], width: int
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Which ids there are, and what holders have for those, (n, width); others are zeros."""

        def look_up(cluster: Cluster) -> tuple[NDArray[np.bool_], NDArray[Any]]:
            return cluster._looked_up(method, ids, dtype, width)

        return self._by_one_version(look_up)

    def _by_one_version(self, call: Callable[[Self], Result]) -> Result:
        """The result for the present version; it begins again if that has gone meanwhile."""
        try:
            return call(cast(Self, self.pinned()))
        except VersionGoneError:
            if self._pinned is not None:
                raise
            # Others have published twice since this process looked.
            self._refresh()
            return call(cast(Self, self.pinned()))

    def _of_version(self, wanted: Wanted) -> Wanted:
        return wanted if self._pinned is None else replace(wanted, pinned=self._pinned.number)

    def _ask(self, shard: int, method: str, *arguments: Any) -> Any:  # noqa: ANN401
        """What the holders of a shard answer, of the pinned or the present version."""
        version = self.version.number
        return self._coordinator.run(
            self._coordinator.ask_shard(version, shard, method, *arguments)
        )

    def _iterated(
        self, query: NDArray[np.float64], row_filter: Filter | None
    ) -> Iterator[tuple[float, int]]:
        k, done = _FIRST_ITERATED, 0
        while True:
            wanted = _wanted(query, k, 1, "auto", row_filter, None)
            distances, ids = self._found(wanted).neighbours
            for place in range(done, k):
                if ids[0, place] < 0:
                    return
                yield float(distances[0, place]), int(ids[0, place])
            done, k = k, k * _ITERATE_FACTOR

    def _looked_up(
        self, method: str, ids: Ids, dtype: np.dtype[Any], width: int
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        found = np.zeros(len(ids), dtype=np.bool_)
        values = np.zeros((len(ids), width), dtype)
        shard_of = self.version.partition.shard_of(ids)
        for shard in np.unique(shard_of).tolist():
            here = np.flatnonzero(shard_of == shard)
            has, packed = self._ask(shard, method, ids[here].tobytes())
            there = here[np.frombuffer(has, np.bool_)]
            found[there] = True
            values[there] = np.frombuffer(packed, dtype).reshape(len(there), width)
        return found, values


def _wanted(
    costs: NDArray[np.float64],
    k: int,
    threads: int | None,
    method: Method,
    row_filter: Filter | None,
    timeout: float | None,
    *,
    radii: NDArray[np.float64] | None = None,
    limit: int | None = None,
    partial: bool = False,
) -> Wanted:
    clock = CallClock(timeout)  # raises for what is no time
    queries = costs[np.newaxis] if costs.ndim == 2 else costs
    question = Question(0, k, k, clock.left(), method, threads, queries, radii, limit, row_filter)
    return Wanted(question, clock, partial)


def _waited(future: Future[Any], clock: CallClock) -> Any:  # noqa: ANN401 the future's result
    try:
        return future.result(clock.wait())
    except FutureTimeoutError:
        if future.done():
            raise
        raise clock.error() from None


def _as_result(found: Found, single: bool) -> SearchResult:
    distances, ids = found.neighbours
    return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)
