"""Cluster: the object through which a program searches shards that others hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_ids, as_integer, as_k, as_query_costs, as_radii
from bitweigh._index.code_queries import CodeQueries
from bitweigh._index.filters import Filter
from bitweigh._results import RangeResult, SearchResult
from bitweigh.cluster.as_one import AsOneIndex, CallClock, kept_filter
from bitweigh.cluster.errors import Missing
from bitweigh.cluster.serving.coordinator import Coordinator, Found, Wanted
from bitweigh.cluster.serving.wire import Question
from bitweigh.cluster.version import Version
from bitweigh.errors import DeadlineError, LimitError
from bitweigh.typing import BitOrder, Codes, Method

__all__ = ["Cluster", "ClusterStatus", "Keeper", "PartialResult"]

# Rows that `iterate` asks for first, and the factor between one search and the next.
_FIRST_ITERATED = 64
_ITERATE_FACTOR = 4


class PartialResult(NamedTuple):
    """The nearest codes in the shards that answered.

    ``distances`` and ``ids`` are as in :class:`bitweigh.SearchResult`.
    """

    distances: NDArray[np.float64]
    ids: NDArray[np.int64]
    complete: bool
    """Whether all shards answered, so that this is the exact answer."""
    missing: tuple[Missing, ...]
    """The shards that did not answer, their rows and the reasons."""


class ClusterStatus(NamedTuple):
    """The state of a cluster, as this process sees it; ``print`` it."""

    version: int
    rows: int
    shards: int
    holders: list[list[tuple[str, str]]]
    """Name and state ("open" or "suspect") of each holder, by group of shards."""
    queued: int
    """Queries of this process that wait."""
    answered: int
    """Queries of this process that were answered."""
    batches: int
    """Batches that they were asked in."""
    hedges: int
    """Questions asked twice because an answer was slow."""
    failovers: int
    """Questions asked again because a holder was lost."""
    second_rounds: int
    """Queries for which some shard was asked again, because its share was not enough."""

    def __str__(self) -> str:
        """Some lines for people."""
        groups = "\n".join(
            f"  group {number}: " + ", ".join(f"{name} {state}" for name, state in group)
            for number, group in enumerate(self.holders)
        )
        return (
            f"version {self.version}, {self.rows:,} rows in {self.shards} shards\n{groups}\n"
            f"  {self.answered:,} queries in {self.batches:,} batches, {self.queued:,} waiting; "
            f"{self.hedges:,} hedges, {self.failovers:,} failovers, "
            f"{self.second_rounds:,} second rounds"
        )


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

    def __init__(self, coordinator: Coordinator, keeper: Keeper) -> None:
        """Use a coordinator of this process."""
        self._coordinator = coordinator
        self._keeper = keeper

    @property
    def version(self) -> Version:
        """The version that new queries are begun with."""
        return self._coordinator.version

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.version.n_bits

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
        wanted = _wanted(checked, as_k(k), threads, method, row_filter, timeout, partial=partial)
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
        future = asyncio.wrap_future(self._coordinator.submit(wanted))
        try:
            found = await asyncio.wait_for(future, timeout)
        except TimeoutError:
            raise _late(wanted) from None
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
        """Find the k codes nearest to packed queries, as `Index.search_codes` does."""
        clock = CallClock(timeout)
        checked = CodeQueries(queries, weights, self.n_bits, self.bitorder)
        row_filter = kept_filter(allow, deny, filter)
        parts = [
            self.search(
                costs, k, threads=threads, method=method, filter=row_filter, timeout=clock.left()
            )
            for _, costs in checked.blocks(None)
        ]
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
        found, _ = self._run(self._coordinator.range_search(wanted), wanted)
        counts = np.diff(found.lims)
        if limit is not None and (counts > limit).any():
            raise LimitError(int(np.argmax(counts > limit)), limit, "codes within its radius")
        assert isinstance(found, RangeResult)
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
        return self._iterated(checked, kept_filter(allow, deny, filter), self.version)

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are codes with these ids, bool (n,)."""
        return self._looked_up(ids)[0]

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes), as `Index.codes_of` does."""
        found, codes = self._looked_up(ids)
        if not found.all():
            raise KeyError(f"id {as_ids(ids)[int(np.argmin(found))]} is not in the index")
        return codes

    def explain(self, costs: ArrayLike, k: int, *, method: Method = "auto") -> str:
        """How each shard searches for one query, and why."""
        query = np.ascontiguousarray(as_query_costs(costs, self.n_bits).reshape(self.n_bits, 2))
        parts = [
            self._coordinator.run(
                self._coordinator.ask_shard(shard, "explain", query.tobytes(), as_k(k), method)
            )
            for shard in range(len(self.version.shards))
        ]
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

    def _found(self, wanted: Wanted) -> Found:
        found: Found = _waited(self._coordinator.submit(wanted), wanted)
        return found

    def _run(self, work: Awaitable[Any], wanted: Wanted) -> Any:  # noqa: ANN401
        return _waited(self._coordinator.begin(work), wanted)

    def _iterated(
        self, query: NDArray[np.float64], row_filter: Filter | None, version: Version
    ) -> Iterator[tuple[float, int]]:
        k, done = _FIRST_ITERATED, 0
        while True:
            wanted = _wanted(query, k, 1, "auto", row_filter, None, pinned=version.number)
            distances, ids = self._found(wanted).neighbours
            for place in range(done, k):
                if ids[0, place] < 0:
                    return
                yield float(distances[0, place]), int(ids[0, place])
            done, k = k, k * _ITERATE_FACTOR

    def _looked_up(self, ids: ArrayLike) -> tuple[NDArray[np.bool_], Codes]:
        """Which ids there are, and the codes of those; other codes are zeros."""
        wanted = as_ids(ids)
        found = np.zeros(len(wanted), dtype=np.bool_)
        codes = np.zeros((len(wanted), (self.n_bits + 7) // 8), np.uint8)
        shard_of = self.version.partition.shard_of(wanted)
        for shard in np.unique(shard_of).tolist():
            here = np.flatnonzero(shard_of == shard)
            has, packed = self._coordinator.run(
                self._coordinator.ask_shard(shard, "codes_of", wanted[here].tobytes())
            )
            there = here[np.frombuffer(has, np.bool_)]
            found[there] = True
            codes[there] = np.frombuffer(packed, np.uint8).reshape(len(there), codes.shape[1])
        return found, codes


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
    pinned: int | None = None,
) -> Wanted:
    clock = CallClock(timeout)  # raises for what is no time
    queries = costs[np.newaxis] if costs.ndim == 2 else costs
    question = Question(0, k, k, clock.left(), method, threads, queries, radii, limit, row_filter)
    deadline = None if timeout is None else time.monotonic() + timeout
    return Wanted(question, deadline, timeout, partial, pinned)


def _waited(future: Future[Any], wanted: Wanted) -> Any:  # noqa: ANN401 the future's result
    if wanted.deadline is None:
        return future.result()
    try:
        return future.result(max(0.0, wanted.deadline - time.monotonic()))
    except FutureTimeoutError:
        if future.done():
            raise
        raise _late(wanted) from None


def _late(wanted: Wanted) -> DeadlineError:
    assert wanted.timeout is not None
    assert wanted.deadline is not None
    return DeadlineError(wanted.timeout, time.monotonic() - wanted.deadline)


def _as_result(found: Found, single: bool) -> SearchResult:
    distances, ids = found.neighbours
    return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)
