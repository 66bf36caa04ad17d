"""What a search of several shards has in common, wherever they are.

The methods here are made from a few that each kind of search has: `search`, `search_codes`,
`range_search` and `codes_of`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_deadline, as_integer
from bitweigh._index.filters import Filter, as_filter
from bitweigh._index.id_queries import IdQueries, check_weights
from bitweigh._results import RangeResult, SearchResult
from bitweigh.errors import DeadlineError
from bitweigh.index import Index
from bitweigh.typing import BitOrder, Codes, Method

__all__ = ["AsOneIndex", "CallClock", "kept_filter"]

Result = TypeVar("Result")


class CallClock:
    """The time that is left of a call."""

    def __init__(self, timeout: float | None) -> None:
        """Start the clock; None is no limit."""
        as_deadline(timeout)  # raises for what is no time
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    @property
    def is_late(self) -> bool:
        """Whether no time is left."""
        return self._end is not None and time.monotonic() >= self._end

    def left(self) -> float | None:
        """Seconds left, None without a limit; raises DeadlineError if none are."""
        if self.is_late:
            raise self.error()
        return self.wait()

    def wait(self) -> float | None:
        """Seconds that may be waited for something, None without a limit; 0 if none are left."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def error(self) -> DeadlineError:
        """What to raise when no time is left."""
        assert self._timeout is not None
        assert self._end is not None
        return DeadlineError(self._timeout, max(0.0, time.monotonic() - self._end))


class AsOneIndex(ABC):
    """Shards that are searched as one index."""

    @property
    @abstractmethod
    def n_bits(self) -> int:
        """Bits of a code."""

    @property
    @abstractmethod
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""

    @abstractmethod
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
        """Find the k codes with the smallest distance, exactly, as `Index.search` does."""

    @abstractmethod
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

    @abstractmethod
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

    @abstractmethod
    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are codes with these ids, bool (n,)."""

    @abstractmethod
    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes), as `Index.codes_of` does."""

    def _by_one_version(self, call: Callable[[Self], Result]) -> Result:
        """What a call of several steps returns, all of them answered by one version."""
        return call(self)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a code with this id."""
        try:
            number = as_integer(id, "id", 0, 2**63 - 1)
        except (TypeError, ValueError):
            return False
        return bool(self.contains([number])[0])

    def search_with_ties(
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
    ) -> RangeResult:
        """Find the k nearest codes and all others at the distance of the k-th.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> shards = Shards([index, Index(8)], RangePartition((0, 10)))
        >>> shards.search_with_ties(np.zeros((8, 2)), 1).ids
        array([0, 1])

        """
        clock = CallClock(timeout)
        row_filter = kept_filter(allow, deny, filter)

        def call(shards: Self) -> RangeResult:
            found = shards.search(
                costs, k, threads=threads, method=method, filter=row_filter, timeout=clock.left()
            )
            farthest = np.atleast_2d(found.distances)[:, -1].copy()
            return shards.range_search(
                costs,
                farthest,
                threads=threads,
                method=method,
                filter=row_filter,
                timeout=clock.left(),
            )

        return self._by_one_version(call)

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        include_self: bool = False,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """Find the k codes nearest to stored ones, as `Index.search_by_id` does.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> shards = Shards([index, Index(8)], RangePartition((0, 10)))
        >>> shards.search_by_id(0, k=1)
        SearchResult(distances=array([2.]), ids=array([1]))

        """
        clock = CallClock(timeout)
        queries = IdQueries(ids, k, include_self=include_self)
        check_weights(weights, self.n_bits)
        row_filter = kept_filter(allow, deny, filter)

        def call(shards: Self) -> SearchResult:
            return shards.search_codes(
                shards.codes_of(queries.ids),
                queries.asked,
                weights=weights,
                threads=threads,
                method=method,
                filter=row_filter,
                timeout=clock.left(),
            )

        found = self._by_one_version(call)
        return SearchResult(*queries.without_themselves(*found))

    def contributions(self, costs: ArrayLike, ids: ArrayLike) -> NDArray[np.float64]:
        """What each bit of these codes pays, float64 (n, n_bits), as `Index.contributions` does.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> index = Index(2)
        >>> index.add(np.array([[64]], dtype=np.uint8))
        >>> shards = Shards([index, Index(2)], RangePartition((0, 10)))
        >>> shards.contributions(np.array([[1.0, 2.0], [3.0, 4.0]]), [0])
        array([[1., 4.]])

        """
        codes = self.codes_of(ids)
        stored = Index(self.n_bits, bitorder=self.bitorder, build="manual")
        stored.add(codes)
        return stored.contributions(costs, np.arange(len(codes)))

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches, as `Index.filter` does.

        Examples
        --------
        >>> from bitweigh import Index
        >>> from bitweigh.cluster import RangePartition, Shards
        >>> shards = Shards([Index(8)], RangePartition((0,)))
        >>> rare = shards.filter(allow=[1, 2])

        """
        return Filter(allow=allow, deny=deny)


def kept_filter(
    allow: ArrayLike | None, deny: ArrayLike | None, given: Filter | None
) -> Filter | None:
    """The one filter that was given, as an object that all shards share; None for none."""
    as_filter(allow, deny, given)  # raises unless there is at most one, and it is right
    if given is not None or (allow is None and deny is None):
        return given
    return Filter(allow=allow, deny=deny)
