"""What can be asked of an index: the nearest codes, those within a radius, one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core, _system
from bitweigh._checks import as_costs, as_integer, as_k, as_radii
from bitweigh._index.filters import allowed_in, as_filter
from bitweigh._index.state import State
from bitweigh._results import RangeResult, SearchResult, SearchStats
from bitweigh.errors import LimitError
from bitweigh.frames._output import AsFrame, check_as_frame, framed
from bitweigh.frames._sources import Frame
from bitweigh.typing import BitOrder, Method

__all__ = ["METHODS", "Method", "Searchable", "nearest"]

METHODS = get_args(Method)
Ties: TypeAlias = Literal["cut", "all"]
# What the engine is asked with, in the order of its parameters: segments, the rows allowed in each,
# costs, whether they are of a single query, bit order, method, kernel, threads, whether fewer will
# do, tuning.
Ask: TypeAlias = tuple[
    _core.SegmentList,
    list[_core.Allowed] | None,
    NDArray[np.float64],
    bool,
    BitOrder,
    Method,
    str,
    int,
    bool,
    _core.Tuning,
]
_N_COUNTERS = len(SearchStats._fields)
_NO_LIMIT = 2**62
_FIRST_NEIGHBOURS = 16


class Searchable(ABC):
    """Searches over whatever state it is given."""

    _n_bits: int
    _bitorder: BitOrder
    # What never changes an answer; tests set it so that few rows reach every path.
    _kernel: str
    _tuning: _core.Tuning

    @abstractmethod
    def _state_for(self, method: Method) -> State:
        """The state, with the bands that the method uses; checks the method."""

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
        ties: Literal["cut"] = "cut",
        stats: Literal[False] = False,
        as_frame: Literal[False] = False,
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
        ties: Literal["all"],
        stats: Literal[False] = False,
        as_frame: Literal[False] = False,
    ) -> RangeResult: ...
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
        ties: Literal["cut"] = "cut",
        stats: Literal[True],
        as_frame: Literal[False] = False,
    ) -> tuple[SearchResult, SearchStats]: ...
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
        ties: Literal["cut"] = "cut",
        stats: bool,
        as_frame: Literal[False] = False,
    ) -> SearchResult | tuple[SearchResult, SearchStats]: ...
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
        ties: Ties = "cut",
        stats: Literal[False] = False,
        as_frame: AsFrame,
    ) -> Frame: ...
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
        ties: Literal["cut"] = "cut",
        stats: Literal[False] = False,
        as_frame: bool | AsFrame,
    ) -> SearchResult | Frame: ...
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
        ties: Ties = "cut",
        stats: bool = False,
        as_frame: bool | AsFrame = False,
    ) -> SearchResult | RangeResult | tuple[SearchResult, SearchStats] | Frame: ...
    def search(
        self,
        costs: ArrayLike,
        k: int,
        *,
        threads: int | None = None,
        method: Method = "auto",
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        ties: Ties = "cut",
        stats: bool = False,
        as_frame: bool | AsFrame = False,
    ) -> SearchResult | RangeResult | tuple[SearchResult, SearchStats] | Frame:
        """Find the k codes with the smallest distance, exactly.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
            ``costs[i, v]`` is paid by a code whose bit i is v. Any finite numbers.
        k : int
            How many neighbours, at least 1.
        threads : int, optional
            Threads to use. By default as many as the work is worth, at most the CPUs that this
            process may use, or ``BITWEIGH_THREADS``.
        method : "auto", "scan" or "probe"
            How to search; never changes the answer. "auto" probes bands where there are any, and
            scans where that turns out to be cheaper. "probe" never scans what has bands.
        allow, deny : integers or booleans (L,), optional
            One of them: only these codes, or all but these. Integers are ids, and ids that are not
            in the index are ignored; booleans speak of the ids 0 to L - 1 and name no other.
        ties : "cut" or "all"
            Which of several codes that are as far as the k-th to return: those with the lowest
            ids, so that there are k in all, or all of them.
        stats : bool
            Also return what the search did; not with ``ties="all"`` or `as_frame`.
        as_frame : bool or "pandas", "polars", "arrow", "dict"
            Return a table instead, with the columns query, rank, id and distance; True is pandas.

        Returns
        -------
        SearchResult
            ``distances`` float64 (nq, k) and ``ids`` int64 (nq, k), nearest first, equal distances
            in ascending id; ``(k,)`` for a single query. If there are fewer than k codes, the rest
            is +inf and -1. With ``stats=True`` a pair of that and :class:`SearchStats`. With
            ``ties="all"`` a :class:`RangeResult` instead, without padding.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or a cost is not finite, or the absolute
            values of a query's costs add up to more than 2**1020.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=3)
        >>> index.add(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), ids=[7, 3])
        >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), k=3)
        SearchResult(distances=array([-0.5,  4.5,  inf]), ids=array([ 7,  3, -1]))

        """
        checked, single = as_costs(costs, self._n_bits)
        k = as_k(k)
        if ties not in ("cut", "all") or (ties == "all" and stats):
            raise ValueError(f"ties must be 'cut', or 'all' without stats, got {ties!r}")
        if as_frame is not False:
            check_as_frame(as_frame)
            if stats:
                raise ValueError("as_frame and stats must not be given both")
        ask = self._ask(checked, single, threads, method, allow, deny)
        result, counters = nearest(ask, k, stats)
        if ties == "all":
            all_ties = _within(ask, result.distances.reshape(-1, k)[:, -1].copy(), None)
            return framed(all_ties, as_frame) if as_frame else all_ties
        if as_frame:
            return framed(result, as_frame)
        return result if counters is None else (result, counters)

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
    ) -> RangeResult:
        """Find all codes whose distance is at most `radius`, exactly.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
            As in `search`.
        radius : number or (nq,)
            The largest distance that counts, not NaN.
        limit : int, optional
            Most codes of one query; more raise `LimitError`, and nothing is cut off.
        threads, method, allow, deny
            As in `search`.

        Returns
        -------
        RangeResult
            ``lims`` int64 (nq + 1,), ``distances`` float64 and ``ids`` int64 of all queries, one
            after the other; within a query nearest first, equal distances in ascending id.

        Raises
        ------
        LimitError
            A query has more than `limit` codes within its radius.
        TypeError, ValueError
            As in `search`, or the radius is NaN or of another shape.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=3)
        >>> index.add(np.packbits([[0, 0, 1], [1, 0, 1], [1, 1, 1]], axis=1))
        >>> hamming = bitweigh.costs.hamming(np.packbits([1, 0, 1]), 3)
        >>> index.range_search(hamming, 0.5)
        RangeResult(lims=array([0, 1]), distances=array([0.]), ids=array([1]))

        """
        checked, single = as_costs(costs, self._n_bits)
        radii = as_radii(radius, len(checked))
        if limit is not None:
            limit = as_integer(limit, "limit", 0, _NO_LIMIT)
        ask = self._ask(checked, single, threads, method, allow, deny)
        return _within(ask, radii, limit)

    def iterate(
        self, costs: ArrayLike, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None
    ) -> Iterator[tuple[float, int]]:
        """Go through all codes in ascending distance, doing only the work that is asked for.

        What is added later is not seen.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        allow, deny
            As in `search`.

        Yields
        ------
        (distance, id), nearest first, equal distances in ascending id

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=3)
        >>> index.add(np.packbits([[0, 0, 1], [1, 0, 1], [1, 1, 1]], axis=1))
        >>> neighbours = index.iterate(bitweigh.costs.hamming(np.packbits([1, 0, 1]), 3))
        >>> next(neighbours)
        (0.0, 1)

        """
        checked, single = as_costs(costs, self._n_bits)
        if not single:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        return _neighbours(self._ask(checked, True, 1, "auto", allow, deny))

    def _ask(
        self,
        costs: NDArray[np.float64],
        single: bool,
        threads: int | None,
        method: Method,
        allow: ArrayLike | None,
        deny: ArrayLike | None,
        state: State | None = None,
    ) -> Ask:
        """What to ask the engine; `state` is what to search in, by default what there is now."""
        wanted = None if allow is None and deny is None else as_filter(allow, deny)
        if state is None:
            state = self._state_for(method)
        if threads is None:
            workers = _system.default_threads()
        else:
            workers = as_integer(threads, "threads", 1, _system.MAX_THREADS)
        return (
            state.core,
            None if wanted is None else allowed_in(wanted, state),
            costs,
            single,
            self._bitorder,
            method,
            self._kernel,
            workers,
            threads is None,
            self._tuning,
        )


def nearest(ask: Ask, k: int, stats: bool = False) -> tuple[SearchResult, SearchStats | None]:
    """The k nearest codes, and what was done for them if `stats` are wanted."""
    nq, single = len(ask[2]), ask[3]
    shape = (k,) if single else (nq, k)
    distances, ids = np.empty(shape), np.empty(shape, np.int64)
    counters = np.empty((nq, _N_COUNTERS), np.int64) if stats else None
    _core.search(*ask, k, distances, ids, counters)
    result = SearchResult(distances, ids)
    if counters is None:
        return result, None
    return result, SearchStats(*(counters[0].tolist() if single else counters.T))


def _neighbours(ask: Ask) -> Iterator[tuple[float, int]]:
    # A longer answer begins with the shorter one, so each search goes on where the last ended.
    # Asking for four times as many each time costs little more than the last search alone.
    done, k = 0, _FIRST_NEIGHBOURS
    while True:
        distances, ids = np.empty(k), np.empty(k, np.int64)
        _core.search(*ask, k, distances, ids, None)
        found = int(np.count_nonzero(ids >= 0))
        yield from zip(distances[done:found].tolist(), ids[done:found].tolist(), strict=True)
        if found < k:
            return
        done, k = k, 4 * k


def _within(ask: Ask, radii: NDArray[np.float64], limit: int | None) -> RangeResult:
    lims = np.empty(len(radii) + 1, dtype=np.int64)
    most = _NO_LIMIT if limit is None else limit
    try:
        distances, ids = _core.range_search(*ask, radii, most, lims, None)
    except _core.TooManyRowsError:
        raise LimitError(f"more than limit = {limit} codes are within the radius") from None
    # Of C's long long, which NumPy tells from int64 although the two are the same.
    return RangeResult(lims, distances, ids.view(np.int64))
