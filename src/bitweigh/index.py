"""Index: packed codes in, the exact nearest codes out.

Methods check their arguments and call plain functions of a `State`. An index holds one immutable
state and replaces it as a whole: readers never wait, and see the state before or after a change.
A lock serialises changes.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core, _storage, _system
from bitweigh._checks import (
    as_bitorder,
    as_choice,
    as_deadline,
    as_ids,
    as_integer,
    as_k,
    as_n_bits,
    as_optional_integer,
    as_query_costs,
    as_radii,
    as_rows,
    id_in_use_error,
)
from bitweigh._forks import renew_lock_after_fork
from bitweigh._index.bands import BandOptions
from bitweigh._index.code_queries import CodeQueries
from bitweigh._index.evidence import Evidence, RecentQueries, from_queries
from bitweigh._index.explain import Explanation, explanation_of
from bitweigh._index.filters import Filter, as_filter, segments_of
from bitweigh._index.id_queries import IdQueries, check_weights
from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.request import (
    Request,
    in_order,
    nearest,
    nearest_to_codes,
    search_options,
    within,
)
from bitweigh._index.state import State
from bitweigh._results import Memory, RangeResult, SearchResult
from bitweigh.hashers import Hasher
from bitweigh.typing import (
    Batches,
    BitOrder,
    BuildMode,
    Codes,
    Ids,
    Method,
    OnDuplicate,
    OnMissing,
    RowLayout,
)

__all__ = ["Index"]

_LARGEST_ID = 2**63 - 1
# Times that `compact` starts again because others have changed the index, before it keeps them out.
_MAX_ATTEMPTS = 3
# Ids looked up between two checks of a deadline: a few milliseconds at most.
_LOCATED_IDS = 2**14

AnyIndex = TypeVar("AnyIndex", bound="Index")


class Index:
    """Exact nearest binary codes under a weighted Hamming distance.

    A query is an array of costs: ``costs[i, v]`` is paid by a code whose bit i is v, and the
    distance is the sum. :mod:`bitweigh.costs` makes costs from bit weights, from float queries or
    for plain Hamming distance. Answers are exact for any finite costs, ties go to the lowest id,
    and the result is the same to the last bit on every CPU and for any number of threads.

    Any number of threads may search while others change or save the index; each search sees one
    state. Searching never changes an index: bands, which let a search skip most codes, are built by
    `add`, `compact` and `build`.

    Parameters
    ----------
    n_bits : int
        Bits of a code, 1 to 8192.
    bitorder : "big" or "little"
        Order of the bits inside a byte, as in ``np.packbits``.
    bands : int, optional
        How many times the rows are stored, each time sorted by different bits of the code, so that
        a search can skip most of them; 0 for none. By default as many as make searches faster, if
        any do: see `build`. At most 16, in at most half of the free memory.
    band_bits : int, optional
        Bits that each band is sorted by, at most 28. By default such that about 16 rows share their
        values, or 4 if codes are long.
    memory_limit : int, optional
        Bytes of memory that the index may use. Fewer bands are built if more would not fit.
    build : "auto" or "manual"
        Whether `add` and `compact` build bands for segments large enough to need them, or only
        `build` does. "manual" is for many small adds followed by one ``build()``.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=4)
    >>> index.add(np.packbits([[0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]], axis=1))
    >>> query = np.array([0.9, -0.2, 0.1, -0.8])
    >>> distances, ids = index.search(bitweigh.costs.inner_product(query), k=2)
    >>> ids
    array([2, 1])

    """

    _base_attributes: ClassVar[frozenset[str]]
    """Names of the attributes of every index; a derived class may add others."""

    def __init__(
        self,
        n_bits: int,
        *,
        bitorder: BitOrder = "big",
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
        build: BuildMode = "auto",
    ) -> None:
        """Create an empty index."""
        n_bits = as_n_bits(n_bits)
        options = BandOptions(
            as_optional_integer(bands, "bands", 0, n_bits),
            as_optional_integer(band_bits, "band_bits", 1, _core.max_band_bits),
            as_optional_integer(memory_limit, "memory_limit", 0, 2**62),
        )
        if bands == 0:
            # As files of format 1 say it.
            options = BandOptions(None, options.band_bits, 0)
        as_choice(build, "build", get_args(BuildMode))
        self._start(SegmentPolicy(n_bits, as_bitorder(bitorder), options, build), State())

    def _start(
        self,
        policy: SegmentPolicy,
        state: State,
        source: _storage.Source | None = None,
        note: str = _storage.NO_NOTE,
    ) -> None:
        """Set the attributes that every index has."""
        self._policy = policy
        self._state = state
        self._source = source
        self._recent = RecentQueries(policy.n_bits)
        self._note = note
        # To reach every path, tests set its kernel and tuning, which never change an answer.
        self._engine = _core.Engine(policy.n_bits, policy.bitorder, _system.KERNEL)
        self._renew_lock()

    def _renew_lock(self) -> None:
        self._writing = threading.Lock()
        renew_lock_after_fork(self)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._policy.n_bits

    @property
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""
        return self._policy.bitorder

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._state.ids()

    @property
    def note(self) -> dict[str, Any]:
        """The note that was saved or loaded last, as a copy; ``{}`` if there is none.

        ``save(path, note={...})`` sets it. Changes of the index keep it, and so do copies and
        pickles.
        """
        return _storage.note_from(self._note)

    def __len__(self) -> int:
        """Return the number of codes."""
        return self._state.rows

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether the index has a code with this id."""
        try:
            number = as_integer(id, "id", 0, _LARGEST_ID)
        except (TypeError, ValueError):
            return False
        return bool(self._state.locate(np.array([number])).found[0])

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<bitweigh.Index: {len(self)} codes of {self.n_bits} bits, {self.bitorder}>"

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
        stats: bool = False,
    ) -> SearchResult:
        """Find the k codes with the smallest distance, exactly.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
            ``costs[i, v]`` is paid by a code whose bit i is v. Any finite numbers.
        k : int
            Number of neighbours, at least 1.
        threads : int, optional
            Threads to use. By default as many as the work is worth, at most the CPUs that this
            process may use, or ``BITWEIGH_THREADS``.
        method : "auto", "scan" or "probe"
            How to search; never changes the answer. "auto" probes bands if there are any, and scans
            where that turns out to be cheaper. "probe" never scans segments that have bands.
        allow, deny : integers or booleans (L,), optional
            Search only these codes, or all but these. Integers are ids, and those that are not in
            the index are ignored. Boolean i stands for id i; ids from L on count as False.
        filter : Filter, optional
            The same as an object for many searches. Give at most one of `allow`, `deny` and
            `filter`.
        timeout : float, optional
            Seconds that the call may take; after that `DeadlineError` is raised, and there is no
            answer. By default there is no limit.
        stats : bool
            Whether to count the work of the search in ``result.stats``, a :class:`SearchStats`.

        Returns
        -------
        SearchResult
            ``distances`` float64 (nq, k) and ``ids`` int64 (nq, k), nearest first, equal distances
            in ascending id; ``(k,)`` for a single query. If there are fewer than k codes, the rest
            is +inf and -1. ``result.to_frame()`` returns a table.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, a cost is not finite, or the absolute
            values of a query's costs add up to more than 2**1020.
        DeadlineError
            If the call takes longer than `timeout`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=3)
        >>> index.add(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), ids=[7, 3])
        >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), k=3)
        SearchResult(distances=array([-0.5,  4.5,  inf]), ids=array([ 7,  3, -1]))

        """
        deadline = as_deadline(timeout)
        checked = as_query_costs(costs, self._policy.n_bits, deadline)
        k = as_k(k)
        options = search_options(method, threads, deadline=deadline)
        return self._nearest(checked, k, options, allow, deny, filter, stats)

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
        stats: bool = False,
    ) -> RangeResult:
        """Find the k nearest codes and all others at the distance of the k-th.

        The arguments are those of `search`.

        Returns
        -------
        RangeResult
            At least k codes for each query, or all codes if there are fewer, as `range_search`
            returns them.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> index.search_with_ties(bitweigh.costs.hamming(np.array([0], np.uint8), 8), k=1).ids
        array([0, 1])

        """
        deadline = as_deadline(timeout)
        checked = as_query_costs(costs, self._policy.n_bits, deadline)
        k = as_k(k)
        options = search_options(method, threads, deadline=deadline)
        request = self._request(options, allow, deny, filter)
        found = nearest(request, checked, k, stats)
        farthest = found.distances.reshape(-1, k)[:, -1].copy()
        result = within(request, checked, farthest, stats)
        if found._counters is not None and result._counters is not None:
            result._counters += found._counters
        return result

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
        stats: bool = False,
    ) -> RangeResult:
        """Find all codes whose distance is at most `radius`, exactly.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
            As in `search`.
        radius : number or (nq,)
            The largest distance to return, not NaN.
        limit : int, optional
            The most codes allowed for one query. More raise `LimitError`; nothing is cut off.
        threads, method, allow, deny, filter, timeout, stats
            As in `search`.

        Returns
        -------
        RangeResult
            ``lims`` int64 (nq + 1,), ``distances`` float64 and ``ids`` int64 of all queries, one
            query after the other; within a query nearest first, equal distances in ascending id.

        Raises
        ------
        LimitError
            If a query has more than `limit` codes within its radius.
        DeadlineError
            If the call takes longer than `timeout`.
        TypeError, ValueError
            As in `search`, or if the radius is NaN or has the wrong shape.

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
        deadline = as_deadline(timeout)
        checked = as_query_costs(costs, self._policy.n_bits, deadline)
        radii = as_radii(radius, 1 if checked.ndim == 2 else len(checked))
        options = search_options(method, threads, limit, deadline)
        return within(self._request(options, allow, deny, filter), checked, radii, stats)

    def iterate(
        self,
        costs: ArrayLike,
        *,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all codes in ascending distance, searching only as far as it is consumed.

        Later changes of the index are not seen.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        allow, deny, filter
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
        options = search_options(threads=1)
        return in_order(self._request(options, allow, deny, filter), self._one_query(costs))

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
        """Find the k codes nearest to codes of the index by weighted Hamming distance.

        Parameters
        ----------
        ids : int or int64 (n,)
            Ids of the codes whose neighbours to find.
        k : int
            Number of neighbours, at least 1.
        weights : float (n_bits,), optional
            Cost of each differing bit; 1 by default.
        include_self : bool
            Whether a code counts as its own neighbour.
        threads, method, allow, deny, filter, timeout
            As in `search`.

        Returns
        -------
        SearchResult
            As `search` returns it; ``(k,)`` for a single id.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[0], [255], [1]], dtype=np.uint8))
        >>> index.search_by_id(0, k=1)
        SearchResult(distances=array([1.]), ids=array([2]))

        """
        deadline = as_deadline(timeout)
        n_bits = self._policy.n_bits
        asked = IdQueries(ids, k, include_self=include_self)
        check_weights(weights, n_bits)
        state = self._state
        step = max(1, len(asked.ids)) if deadline is None else _LOCATED_IDS
        codes = np.empty((len(asked.ids), (n_bits + 7) // 8), np.uint8)
        for first in range(0, len(asked.ids), step):
            if deadline is not None:
                deadline.check()
            block = slice(first, first + step)
            codes[block] = state.codes_of(asked.ids[block], n_bits)
        queries = CodeQueries(codes, weights, n_bits, self.bitorder)
        options = search_options(method, threads, deadline=deadline)
        request = self._request(options, allow, deny, filter, state)
        found = nearest_to_codes(request, queries, asked.asked)
        return SearchResult(*asked.without_themselves(*found))

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
        stats: bool = False,
    ) -> SearchResult:
        """Find the k codes nearest to packed queries by weighted Hamming distance, exactly.

        The answer is that of `search` with the costs of :func:`bitweigh.costs.hamming` or
        :func:`bitweigh.costs.from_weights`, to the last bit. The costs, 16 bytes for each bit of
        each query, are computed a few queries at a time.

        Parameters
        ----------
        queries : uint8 (n_bytes,) or (nq, n_bytes)
            Packed queries, in the index's order of bits.
        k : int
            Number of neighbours, at least 1.
        weights : float32 or float64 (n_bits,), (n_bits, 2) or (nq, n_bits, 2), optional
            Cost of each differing bit, or of agreeing and differing bits, as in
            :func:`bitweigh.costs.from_weights`; by default 1 for each differing bit.
        threads, method, allow, deny, filter, timeout, stats
            As in `search`.

        Returns
        -------
        SearchResult
            As `search` returns it; ``(k,)`` for a single query.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[0], [255], [1]], dtype=np.uint8))
        >>> index.search_codes(np.array([[0], [254]], dtype=np.uint8), k=1)
        SearchResult(distances=array([[0.],
               [1.]]), ids=array([[0],
               [1]]))

        """
        deadline = as_deadline(timeout)
        checked = CodeQueries(queries, weights, self._policy.n_bits, self._policy.bitorder)
        k = as_k(k)
        options = search_options(method, threads, deadline=deadline)
        return nearest_to_codes(self._request(options, allow, deny, filter), checked, k, stats)

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches: only these codes, or all but these.

        The answers are those of the same argument of `search`, also after the index has changed.
        The first search with the filter, and the first after a change, apply it; the searches after
        that take no time for it.

        Parameters
        ----------
        allow, deny : integers or booleans (L,)
            As in `search`; exactly one of the two.

        Returns
        -------
        Filter
            An argument of the search methods. ``&``, ``|`` and ``~`` combine filters.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(10, dtype=np.uint8).reshape(-1, 1))
        >>> odd = index.filter(allow=[1, 3, 5, 7, 9])
        >>> index.remove([1])
        1
        >>> zeros = bitweigh.costs.hamming(np.array([0], dtype=np.uint8), 8)
        >>> index.search(zeros, k=2, filter=odd).ids
        array([3, 5])
        >>> index.search(zeros, k=2, filter=odd & index.filter(deny=[3])).ids
        array([5, 9])

        """
        return Filter(allow=allow, deny=deny)

    def explain(
        self,
        costs: ArrayLike,
        k: int,
        *,
        method: Method = "auto",
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> Explanation:
        """Search for one query, and report how it was searched and why.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        k, method, filter, timeout
            As in `search`.

        Returns
        -------
        Explanation
            The plan, its reason, the predicted times, the counters, and what was found. ``print``
            it, or call ``as_dict()``.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> index.explain(np.ones((8, 2)), 3).plan
        'scan'

        """
        deadline = as_deadline(timeout)
        query = self._one_query(costs)
        k = as_k(k)
        state = self._state
        options = search_options(method, 1, deadline=deadline)
        request = self._request(options, filter=filter, state=state)
        pages = _core.PageCounter()
        found = nearest(request, query, k, stats=True, pages=pages)
        return explanation_of(state, self._policy, self._engine, method, k, found, pages)

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id.

        Parameters
        ----------
        ids : int64 (n,)
            Ids in any order, repeated or not.

        Returns
        -------
        uint8 (n, n_bytes)

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> index.codes_of([2, 0])
        array([[3],
               [1]], dtype=uint8)

        """
        return self._state.codes_of(as_ids(ids), self._policy.n_bits)

    def contributions(self, costs: ArrayLike, ids: ArrayLike) -> NDArray[np.float64]:
        """What each bit of these codes pays: how the distances to one query come about.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        ids : int64 (n,)
            Ids in any order, repeated or not.

        Returns
        -------
        float64 (n, n_bits)
            Row j has ``costs[i, v]`` for each bit i of the code of ``ids[j]``, v being its value.
            Added up in groups of 8 bits, as :mod:`bitweigh.reference` does, a row gives the
            distance to the last bit; added up otherwise, up to rounding.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id.
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or a cost is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=3)
        >>> index.add(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), ids=[7, 3])
        >>> costs = np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]])
        >>> index.contributions(costs, [3, 7])
        array([[ 5. ,  0.5, -1. ],
               [ 0. ,  0.5, -1. ]])

        """
        query = self._one_query(costs)
        if not np.isfinite(query).all():
            bit, value = np.argwhere(~np.isfinite(query))[0].tolist()
            raise ValueError(
                f"costs[{bit}, {value}] is {query[bit, value]}, every cost must be finite"
            )
        n_bits = self._policy.n_bits
        codes = self._state.codes_of(as_ids(ids), n_bits)
        bits = np.unpackbits(codes, axis=1, count=n_bits, bitorder=self._policy.bitorder)
        paid: NDArray[np.float64] = np.where(bits, query[:, 1], query[:, 0])
        return paid

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether the index has codes with these ids, bool (n,); ``id in index`` tests a single id.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8), ids=[10, 20])
        >>> index.contains([20, 30])
        array([ True, False])
        >>> 10 in index
        True

        """
        return self._state.locate(as_ids(ids)).found

    def memory(self) -> Memory:
        """Bytes of memory that the index uses, by purpose.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=64)
        >>> index.add(np.zeros((320, 8), dtype=np.uint8))
        >>> index.memory().codes
        2560
        >>> index.memory().total
        2560

        """
        return self._state.memory()

    def add(
        self,
        codes: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        on_duplicate: OnDuplicate = "error",
    ) -> None:
        """Add codes: all of them, or none if it raises.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes, ``np.packbits(bits, axis=1, bitorder=...)``; n_bytes is n_bits / 8
            rounded up. Unused bits of the last byte must be 0.
        ids : int64 (n,), optional
            Distinct ids, none negative. By default the codes are numbered on from the largest id
            ever used, or from 0.
        on_duplicate : "error" or "replace"
            What to do if an id is already in the index: raise and add nothing, or replace the code
            with that id.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or an id is negative, repeated or in use.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=16)
        >>> index.add(np.zeros((3, 2), dtype=np.uint8))
        >>> index.add(np.ones((1, 2), dtype=np.uint8), ids=[1000])
        >>> len(index)
        4

        """
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        packed, row_ids = as_rows(codes, ids, self._policy.n_bits, self._policy.bitorder)
        if len(packed) == 0:
            return
        with self._writing:
            self._state = self._with_rows(self._state, packed, row_ids, replacing)

    def replace(self, codes: ArrayLike, ids: ArrayLike) -> None:
        """Replace the codes of ids that are in the index, all in one step.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes, as in `add`.
        ids : int64 (n,)
            Distinct ids.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id, and nothing is
            replaced.
        TypeError, ValueError
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8), ids=[10, 20])
        >>> index.replace(np.array([[5]], dtype=np.uint8), ids=[20])
        >>> index.codes_of([10, 20])
        array([[1],
               [5]], dtype=uint8)

        """
        packed, row_ids = as_rows(codes, ids, self._policy.n_bits, self._policy.bitorder)
        if row_ids is None:
            raise TypeError("ids must be those of the codes to replace, got None; `add` adds codes")
        if len(row_ids) == 0:
            return
        with self._writing:
            remaining = self._state.without(row_ids)
            self._state = self._policy.with_rows(remaining, packed, row_ids)

    def remove(self, ids: ArrayLike, *, on_missing: OnMissing = "error") -> int:
        """Remove codes by id; all other ids stay. Takes microseconds for a few codes.

        Their memory is freed by `compact`, or when later adds merge their segments.

        Parameters
        ----------
        ids : int64 (n,)
            Ids in any order.
        on_missing : "error" or "ignore"
            What to do if an id is not in the index.

        Returns
        -------
        int
            Number of codes removed.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id, and nothing is removed.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> index.remove([1])
        1
        >>> index.ids
        array([0, 2])

        """
        ignore_missing = as_choice(on_missing, "on_missing", get_args(OnMissing)) == "ignore"
        removed_ids = as_ids(ids)
        with self._writing:
            before = self._state
            self._state = before.without(removed_ids, ignore_missing)
            return before.rows - self._state.rows

    def merge(self, other: Index, *, on_duplicate: OnDuplicate = "error") -> None:
        """Add all codes of another index, with their ids, in one step.

        Parameters
        ----------
        other : Index
            An index with the same `n_bits` and `bitorder`; it does not change.
        on_duplicate : "error" or "replace"
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index, more = bitweigh.Index(n_bits=8), bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> more.add(np.array([[3]], dtype=np.uint8), ids=[7])
        >>> index.merge(more)
        >>> index.ids
        array([0, 1, 7])

        """
        if not isinstance(other, Index):
            raise TypeError(f"other must be an Index, got {type(other).__name__}")
        if (other.n_bits, other.bitorder) != (self.n_bits, self.bitorder):
            raise ValueError(
                f"other must have codes of {self.n_bits} bits, {self.bitorder}, got "
                f"{other.n_bits} bits, {other.bitorder}"
            )
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        parts = list(other._state.parts())
        lean = [part for part in parts if part.segment.lean_order is not None]
        copied = [part.codes_and_ids() for part in parts if part.segment.lean_order is None]
        with self._writing:
            state = self._state
            for part in lean:
                state = state.with_shared(part, replacing)
            if copied:
                codes, ids = (np.concatenate(arrays) for arrays in zip(*copied, strict=True))
                state = self._with_rows(state, codes, ids, replacing)
            self._state = state

    def reset(self) -> None:
        """Remove everything: the index is like a new one, and numbers codes from 0 again.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> index.reset()
        >>> len(index)
        0

        """
        with self._writing:
            self._state = State()

    def compact(
        self, *, build_memory: int = 2**30, threads: int | None = None, progress: bool = False
    ) -> None:
        """Put all codes into as few segments as possible, and free the memory of removed codes.

        Worth it after many removals or small adds. Decides about bands as `build` does. Other
        threads can search and change the index meanwhile. Needs memory for a second copy of the
        index while it runs.

        A mapped index built by `from_batches` is compacted on disk, as it was built: it may be
        larger than memory. The new files are in a folder ``<path>.compacting-...`` beside that of
        the index, until `save` moves them to where they belong or nothing uses them any more.

        Parameters
        ----------
        build_memory : int
            Bytes of memory to use for compacting on disk, at least 128 MiB.
        threads : int, optional
            Threads for that; by default the CPUs that this process may use, or
            ``BITWEIGH_THREADS``.
        progress : bool
            Show a progress bar for that; needs rich.

        Raises
        ------
        OSError
            If the disk is full; the index stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> index.remove(range(90))
        90
        >>> index.compact()
        >>> index.memory().removed
        0

        """
        evidence = self._recent.evidence()

        def compacted(state: State) -> State:
            if not self._is_compacted_on_disk(state):
                return self._policy.compacted(state, evidence)
            return self._streamed(state, build_memory, threads, progress)

        for _ in range(_MAX_ATTEMPTS):
            before = self._state
            after = compacted(before)
            with self._writing:
                # None if an `add` has merged some of the segments meanwhile.
                merged = self._state.with_compacted(before, after)
                if merged is not None:
                    self._state = merged
                    return
        with self._writing:
            self._state = compacted(self._state)

    def build(
        self,
        *,
        sample_costs: ArrayLike | None = None,
        k: int | None = None,
        rebuild: bool = False,
        threads: int | None = None,
    ) -> None:
        """Build bands for segments that have none, if they make searches faster.

        Whether they do, and how many, is decided by what searches for queries like yours would do:
        for `sample_costs`, or the last queries that the index was asked, or queries made from
        stored codes. Bands that make these less than 1.3 times as fast as scanning are not built,
        and `explain` says so. An index with a fixed number of ``bands=`` gets these.

        Other threads can search and change the index meanwhile.

        Parameters
        ----------
        sample_costs : float32 or float64 (nq, n_bits, 2), optional
            Queries like those to come; a hundred are enough. All bands are decided again by them.
        k : int, optional
            How many neighbours `sample_costs` are searched for; by default 10.
        rebuild : bool
            Whether to decide again about segments that have bands, for instance because of the
            queries asked since.
        threads : int, optional
            Threads to use; by default the CPUs that this process may use, or ``BITWEIGH_THREADS``.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=16)
        >>> index.add(np.arange(5000, dtype=">u2").view(np.uint8).reshape(-1, 2))
        >>> index.build()

        """
        threads = as_optional_integer(threads, "threads", 1, _system.MAX_THREADS)
        evidence = self._evidence(sample_costs, k)
        rebuild = rebuild or sample_costs is not None
        before = self._state
        after = self._policy.with_bands(before, evidence=evidence, rebuild=rebuild, threads=threads)
        with self._writing:
            self._state = self._state.with_rebuilt(before, after)

    def copy(self) -> Self:
        """An independent index with the same codes; changing one does not change the other.

        Takes microseconds: the two share everything that neither has changed. The copy has the
        class of this index, and the attributes that a derived class has added.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> other = index.copy()
        >>> index.reset()
        >>> len(other)
        2

        """
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._policy = dataclasses.replace(self._policy)
        other._recent = self._recent.copy()
        other._renew_lock()
        return other

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Save the index to a folder; files that it already contains are not written again.

        Whenever the program or the machine stops, the folder holds the index it held before or this
        one. Other threads can search and change the index meanwhile; the state at the time of the
        call is saved. docs/file-format.md describes the files.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds an index, which is replaced.
        note : dict, optional
            A small JSON object to keep with the index, such as the model that the codes come from:
            objects, lists, strings, finite numbers, booleans and None, at most 64 KiB as text. It
            is saved in the same step as the codes. None keeps `note` as it is, ``{}`` removes it.

        Raises
        ------
        TypeError, ValueError
            If the note is not such an object; the error says where. Nothing is saved.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder, note={"model": "v2"})
        ...     bitweigh.Index.load(folder).note
        {'model': 'v2'}

        """
        content = self._content()
        if note is not None:
            content = dataclasses.replace(content, note=_storage.note_text(note))
        _storage.save(content, path)
        if note is not None:
            self._note = content.note

    @classmethod
    def from_batches(
        cls,
        source: Batches,
        path: str | os.PathLike[str],
        *,
        n_bits: int | None = None,
        bitorder: BitOrder | None = None,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
        layout: RowLayout | None = None,
        hasher: Hasher | None = None,
        ids: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        column: str | None = None,
        id_column: str | None = None,
        build_memory: int = 2**30,
        threads: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Build an index of more codes than fit into memory, in a folder, and load it mapped.

        A build from files that was ended, whatever ended it, is resumed by the same call: what it
        has finished is in the folder ``<path>.building``. docs/large.md says how much disk a build
        needs, and how rows are stored.

        Parameters
        ----------
        source : path, list of paths, array or iterable of arrays
            Files of packed codes (npy, bvecs, u8bin, parquet) or a folder of them, or batches of
            codes uint8 (n, n_bytes), or of (codes, ids). A build from batches cannot be resumed.
            Without ids codes are numbered from 0. With a hasher, vectors in place of codes.
        path : str or path
            The folder, which must not exist or be empty.
        n_bits : int, optional
            Bits of a code; by default those of the hasher, or 8 for each byte.
        bitorder, bands, band_bits, memory_limit
            As in :class:`Index`. By default, `bitorder` is that of the hasher, or "big"; lean rows
            have one or two bands.
        layout : "plain" or "lean", optional
            Store whole codes, or only the bits that their position does not imply. By default
            lean for 2**24 codes or more of at most 64 bits, or where `memory_limit` leaves more
            room for bands that way; else plain.
        hasher : Hasher, optional
            A fitted hasher of :mod:`bitweigh.hashers`, which turns vectors into codes.
        ids : path or list of paths, optional
            Files npy with the ids of all rows, for codes or vectors in files that are not parquet.
        column, id_column : str, optional
            Columns of parquet files: of the codes or vectors, by default "code" or "vector", and of
            the ids.
        build_memory : int
            Bytes of memory that the build may use for itself, at least 128 MiB. Plain rows are in
            more segments if it is small, which makes searches slower, and in one if it is large.
        threads : int, optional
            Threads to use; by default the CPUs that this process may use, or ``BITWEIGH_THREADS``.
        progress : bool
            Show a progress bar; needs rich.

        Raises
        ------
        OSError
            If the disk is full. What is finished stays, and the same call resumes.
        ValueError
            If rows or options are wrong, an id occurs twice, or `build_memory` is too small: the
            error says how much is needed.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> codes = np.arange(50_000, dtype=">u4").view(np.uint8).reshape(-1, 4)  # (50000, 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     batches = (codes[first : first + 10_000] for first in range(0, 50_000, 10_000))
        ...     index = bitweigh.Index.from_batches(batches, f"{folder}/index")
        ...     index.search(bitweigh.costs.hamming(codes[7], 32), k=1).ids
        array([7])

        """
        from bitweigh._streaming.batches import BuildRequest, build_index, code_format
        from bitweigh._streaming.sources import as_source

        if layout is not None:
            as_choice(layout, "layout", get_args(RowLayout))
        rows = as_source(source, ids=ids, hasher=hasher, column=column, id_column=id_column)
        bits, order = code_format(rows, hasher, n_bits, bitorder)
        # Raises for options that no index would accept.
        empty = Index(bits, bands=bands, band_bits=band_bits, memory_limit=memory_limit)
        request = BuildRequest(bits, order, empty._policy.band_options, layout)
        build_index(
            rows, path, request, build_memory=build_memory, threads=threads, progress=progress
        )
        return cls.load(path, mmap=True)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = False,
        *,
        verify: bool | None = None,
        build: BuildMode = "auto",
    ) -> Self:
        """Load an index from the folder it was saved to.

        Parameters
        ----------
        path : str or path
            The folder.
        mmap : bool
            Whether to leave the codes in their files and read them when needed, rather than read
            everything now. Takes milliseconds for an index of any size, and processes that map the
            same folder share the memory. The index can still be changed; the files stay as they
            are.
        verify : bool, optional
            Whether to check every file against its checksum; by default only if not mapped. Without
            it a damaged file may lead to wrong answers, but to nothing worse.
        build : "auto" or "manual"
            As in :class:`Index`.

        Raises
        ------
        CorruptFileError
            If a file is damaged or missing; the error names it.
        FileNotFoundError
            If there is no index in that folder.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder)
        ...     mapped = bitweigh.Index.load(folder, mmap=True)
        >>> len(mapped)
        2

        """
        as_choice(build, "build", get_args(BuildMode))
        content, source = _storage.load(path, mmap, (not mmap) if verify is None else verify)
        return cls._of(content, source, build)

    def verify(self) -> None:
        """Check that all parts of the index agree, and that no data read from files has changed.

        Takes about as long as building the index.

        Raises
        ------
        CorruptFileError
            If a file or a part of the index is damaged; the error names it.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> index.verify()

        """
        _storage.verify(
            self._content(), Path("index") if self._source is None else self._source.folder
        )

    def __copy__(self) -> Self:
        """Return a copy."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a copy, with deep copies of the attributes that a derived class has added."""
        other = self.copy()
        memo[id(self)] = other
        for name, value in self._added_attributes().items():
            setattr(other, name, copy.deepcopy(value, memo))
        return other

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle the contents of its files or, for an unchanged mapped index, its folder's path."""
        source = self._source
        about = (type(self), self._policy.build, self._added_attributes())
        is_as_mapped = (
            source is not None and self._state is source.mapped and self._note == source.note
        )
        if source is not None and is_as_mapped and source.is_still_there():
            return _from_source, (str(source.folder), source.checksum, *about)
        return _from_files, (_storage.to_files(self._content()), *about)

    def _request(
        self,
        options: _core.SearchOptions,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        state: State | None = None,
    ) -> Request:
        """The request to search `state`, by default the present one."""
        searched = self._state if state is None else state
        row_filter = as_filter(allow, deny, filter)
        if row_filter is None:
            return Request(self._engine, searched.core, options)
        return Request(self._engine, segments_of(searched, row_filter, options.deadline), options)

    def _nearest(
        self,
        costs: NDArray[np.float64],
        k: int,
        options: _core.SearchOptions,
        allow: ArrayLike | None,
        deny: ArrayLike | None,
        filter: Filter | None,  # noqa: A002
        stats: bool = False,
    ) -> SearchResult:
        """Search for checked queries, and remember them for the choice of bands."""
        if allow is None and deny is None and filter is None:
            self._recent.add(costs, k)
        return nearest(self._request(options, allow, deny, filter), costs, k, stats)

    def _is_compacted_on_disk(self, state: State) -> bool:
        """Whether a state is that of a mapped index with lean segments, which may be large."""
        is_mapped = self._source is not None and self._source.mapped is not None
        return is_mapped and any(part.segment.lean_order is not None for part in state.parts())

    def _streamed(
        self, state: State, build_memory: int, threads: int | None, progress: bool
    ) -> State:
        """The state compacted on disk; the same if it is compact already."""
        from bitweigh._streaming.compacting import streamed

        parts = list(state.parts())
        if len(parts) == 1 and not parts[0].removed_rows:
            return state
        assert self._source is not None
        policy = self._policy
        return streamed(
            state,
            self._source.folder,
            policy.n_bits,
            policy.bitorder,
            policy.band_options,
            build_memory,
            threads,
            progress,
        )

    def _with_rows(self, state: State, codes: Codes, ids: Ids | None, replacing: bool) -> State:
        """A state with checked rows added, which replace those with the same ids if allowed."""
        if ids is not None:
            used = state.locate(ids).found
            if used.any():
                if not replacing:
                    raise id_in_use_error(ids, used, "code")
                state = state.without(ids, ignore_missing=True)
        return self._policy.with_rows(state, codes, ids)

    def _evidence(self, sample_costs: ArrayLike | None, k: int | None) -> Evidence | None:
        """The queries to choose bands by; None to make them from stored codes."""
        if sample_costs is None:
            if k is not None:
                raise ValueError("k goes with sample_costs")
            return self._recent.evidence()
        costs = as_query_costs(sample_costs, self._policy.n_bits)
        if costs.ndim == 2:
            costs = costs[np.newaxis]
        if not len(costs):
            raise ValueError("sample_costs must have at least one query")
        return from_queries(costs, None if k is None else as_k(k))

    def _one_query(self, costs: ArrayLike) -> NDArray[np.float64]:
        """The costs of a single query, (n_bits, 2)."""
        checked = as_query_costs(costs, self._policy.n_bits)
        if checked.ndim != 2:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        return checked

    def _content(self) -> _storage.Content:
        policy = self._policy
        return _storage.Content(
            policy.n_bits, policy.bitorder, policy.band_options, self._state, self._note
        )

    @classmethod
    def _of(
        cls,
        content: _storage.Content,
        source: _storage.Source | None = None,
        build: BuildMode = "auto",
        added_attributes: Mapping[str, Any] = MappingProxyType({}),
    ) -> Self:
        """An index with these contents.

        `__init__` of a derived class may take any arguments, so it is not called.
        """
        index = cls.__new__(cls)
        vars(index).update(added_attributes)
        policy = SegmentPolicy(content.n_bits, content.bitorder, content.options, build)
        index._start(policy, content.state, source, content.note)
        return index

    def _added_attributes(self) -> dict[str, Any]:
        """Attributes that a derived class has added."""
        return {
            name: value for name, value in vars(self).items() if name not in self._base_attributes
        }


Index._base_attributes = frozenset(vars(Index(1)))


def _from_source(
    folder: str, checksum: str, cls: type[AnyIndex], build: BuildMode, added: dict[str, Any]
) -> AnyIndex:
    content, source = _storage.load_codes(folder, mapped=True, verify=False)
    if source.checksum != checksum:
        raise ValueError(f"{folder} has another index than when this one was pickled")
    return cls._of(content, source, build, added)


def _from_files(
    files: dict[str, bytes], cls: type[AnyIndex], build: BuildMode, added: dict[str, Any]
) -> AnyIndex:
    return cls._of(_storage.from_files(files), None, build, added)
