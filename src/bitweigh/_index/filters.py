"""Filters: which rows a search may return, from the ids or flags of the caller.

An integer array lists ids; those that the index does not have are ignored. A boolean array of
length L has a flag for each id from 0 to L - 1; ids from L on count as False.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh._checks import as_array
from bitweigh._index.state import State
from bitweigh.typing import Ids

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["AnyFilter", "Filter", "as_filter", "ids_among", "segments_of"]

NamedIds: TypeAlias = Ids | NDArray[np.bool_]
"""A finite set of ids, listed or flagged."""

# A flag takes one byte, so the flags of a dense set are smaller than its ids.
_ID_BYTES = 8
# Looking up an id takes about as long as reading the flags of this many rows.
_FLAGGED_SHARE = 16


@dataclass(frozen=True, slots=True, eq=False)
class AllowedIds:
    """The ids that a search may return: a finite set, or all ids outside it."""

    named: NamedIds
    deny: bool
    """Whether the named ids are excluded; otherwise only they are allowed."""

    def segments_of(self, state: State, deadline: _core.Deadline | None = None) -> _core.SegmentSet:
        """The rows of a state that a search may return."""
        named = _suited(self.named, state.rows)
        if _is_flags(named):
            return state.core.filtered_by_flags(named, self.deny, deadline)
        # The engine sorts ids that do not ascend, but NumPy is faster.
        return state.core.filtered_by_ids(np.sort(named), self.deny, deadline)

    def among(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids a search may return."""
        allowed: NDArray[np.bool_] = _is_named(self.named, ids) != self.deny
        return allowed


class Filter:
    """The ids that a search may return, kept for many searches; `Index.filter` creates one too.

    Every search method takes it as ``filter=`` and answers as if it were given the same array as
    ``allow=`` or ``deny=``. A filter names ids, not rows: it works with any index, and after any
    change of it. The first search of an index applies the filter to its rows, and later ones take
    no time for that until the index changes. What was applied is kept as long as both the filter
    and the index in that state are.

    A filter never changes, and any number of threads may use it. ``a & b`` allows the ids that both
    allow, ``a | b`` those that at least one of them allows, and ``~a`` all those that a does not.

    Parameters
    ----------
    allow, deny : integers or booleans (L,)
        The ids to allow, or those to exclude; exactly one of the two. Integers are ids. Boolean i
        stands for id i; ids from L on count as False.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=8)
    >>> index.add(np.arange(10, dtype=np.uint8).reshape(-1, 1))
    >>> even = bitweigh.Filter(allow=np.arange(0, 1000, 2))
    >>> unseen = ~bitweigh.Filter(allow=[0, 2])
    >>> zeros = bitweigh.costs.hamming(np.array([0], dtype=np.uint8), 8)
    >>> index.search(zeros, k=2, filter=even & unseen).ids
    array([4, 8])

    """

    __slots__ = ("__weakref__", "_allowed", "_derived")

    def __init__(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> None:
        """Copy the ids."""
        allowed = _as_allowed(allow, deny)
        if allowed is None:
            raise ValueError("give allow= or deny=")
        self._start(_sorted(allowed.named), allowed.deny)

    def _start(self, named: NamedIds, deny: bool) -> None:
        named = _compact(named)
        named.flags.writeable = False
        self._allowed = AllowedIds(named, deny)
        # What the filter means for a state, as long as that state lives. Two threads may derive the
        # same at once; either result will do.
        self._derived: WeakKeyDictionary[State, _core.SegmentSet] = WeakKeyDictionary()

    @classmethod
    def _of(cls, named: NamedIds, deny: bool) -> Filter:
        """A filter of these ids, sorted and distinct, which nobody may change any more."""
        created = cls.__new__(cls)
        created._start(named, deny)
        return created

    def _segments_of(self, state: State, deadline: _core.Deadline | None) -> _core.SegmentSet:
        derived = self._derived.get(state)
        if derived is None:
            derived = self._allowed.segments_of(state, deadline)
            self._derived[state] = derived
        return derived

    @property
    def nbytes(self) -> int:
        """Bytes of memory: the ids, and what was derived from the indexes it was last used on.

        The ids take 8 bytes each or, where that is less, 1 byte for each number up to the largest.
        An index adds 1 bit a row or, if at most one row in 8 is allowed, a copy of these rows.
        """
        derived = sum(segments.filter_nbytes for segments in list(self._derived.values()))
        return self._allowed.named.nbytes + derived

    def __and__(self, other: object) -> Filter:
        """Allow the ids that both filters allow."""
        if not isinstance(other, Filter):
            return NotImplemented
        left, right = self._allowed, other._allowed
        if left.deny and right.deny:
            return Filter._of(_union(left.named, right.named), deny=True)
        if left.deny:
            left, right = right, left
        subset = _difference if right.deny else _intersection
        return Filter._of(subset(left.named, right.named), deny=False)

    def __or__(self, other: object) -> Filter:
        """Allow the ids that at least one of the filters allows."""
        if not isinstance(other, Filter):
            return NotImplemented
        return ~(~self & ~other)

    def __invert__(self) -> Filter:
        """Allow the ids that the filter does not allow, and no others."""
        return Filter._of(self._allowed.named, not self._allowed.deny)

    def __repr__(self) -> str:
        """Summarise the filter."""
        named = self._allowed.named
        count = int(np.count_nonzero(named)) if _is_flags(named) else len(named)
        return f"<bitweigh.Filter: {'all but ' if self._allowed.deny else ''}{count} ids>"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle the ids."""
        return Filter._of, (self._allowed.named, self._allowed.deny)


AnyFilter: TypeAlias = AllowedIds | Filter
"""The filter of a search, from its arguments."""


def as_filter(
    allow: ArrayLike | None, deny: ArrayLike | None, kept: Filter | None = None
) -> AnyFilter | None:
    """The filter for the arguments `allow`, `deny` and `filter`; None if all are None."""
    if kept is None:
        return _as_allowed(allow, deny)
    if not isinstance(kept, Filter):
        raise TypeError(
            f"filter must be a bitweigh.Filter, got {type(kept).__name__}; give ids or booleans as "
            "allow= or deny="
        )
    if allow is not None or deny is not None:
        raise ValueError("give allow=, deny= or filter=, only one of them")
    return kept


def segments_of(
    state: State, row_filter: AnyFilter | None, deadline: _core.Deadline | None = None
) -> _core.SegmentSet:
    """The rows of a state that a search with this filter may return."""
    if row_filter is None:
        return state.core
    if isinstance(row_filter, Filter):
        return row_filter._segments_of(state, deadline)
    return row_filter.segments_of(state, deadline)


def ids_among(ids: Ids, row_filter: AnyFilter | None) -> Ids:
    """Those of the ids that a search with this filter may return."""
    if row_filter is None:
        return ids
    allowed = row_filter._allowed if isinstance(row_filter, Filter) else row_filter
    return ids[allowed.among(ids)]


def _as_allowed(allow: ArrayLike | None, deny: ArrayLike | None) -> AllowedIds | None:
    if allow is None and deny is None:
        return None
    if allow is not None and deny is not None:
        raise ValueError("give allow= or deny=, not both")
    name = "allow" if deny is None else "deny"
    array = as_array(allow if deny is None else deny, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    return AllowedIds(_as_named(array, name), deny is not None)


def _as_named(array: NDArray[Any], name: str) -> NamedIds:
    """The ids or flags of an argument, C-contiguous; perhaps the caller's array itself."""
    kind = array.dtype.kind
    if kind == "b":
        return np.ascontiguousarray(array)
    if array.size and kind not in "iu":
        raise TypeError(f"{name} must be ids or booleans, got {array.dtype}")
    # Values that cannot be ids match nothing. The engine ignores those below 0.
    if kind == "u" and array.dtype.itemsize == _ID_BYTES:
        array = array[array <= np.iinfo(np.int64).max]
    return np.ascontiguousarray(array, np.int64)


def _is_flags(named: NamedIds) -> TypeIs[NDArray[np.bool_]]:
    return named.dtype.kind == "b"


def _suited(named: NamedIds, n_rows: int) -> NamedIds:
    """The same ids, listed or flagged, whichever is applied faster to so many rows."""
    if _is_flags(named):
        few = np.count_nonzero(named) * _FLAGGED_SHARE <= n_rows
        return np.flatnonzero(named) if few else named
    return named if len(named) * _FLAGGED_SHARE <= n_rows else _compact(named)


def _compact(named: NamedIds) -> NamedIds:
    """The same ids, listed or flagged, whichever is smaller."""
    if _is_flags(named):
        smaller = np.count_nonzero(named) * _ID_BYTES < len(named)
        return np.flatnonzero(named) if smaller else named
    ids = named[named >= 0]
    largest = int(ids.max(initial=-1))
    if largest >= len(ids) * _ID_BYTES:
        return named
    flags = np.zeros(largest + 1, np.bool_)
    flags[ids] = True
    return flags


def _sorted(named: NamedIds) -> NamedIds:
    """A copy; listed ids in ascending order, each once, without numbers below 0."""
    if _is_flags(named):
        return named.copy()
    ascending = named.copy() if (named[1:] > named[:-1]).all() else np.unique(named)
    return ascending[np.searchsorted(ascending, 0) :]


def _listed(named: NamedIds) -> Ids:
    return np.flatnonzero(named) if _is_flags(named) else named


def _is_named(named: NamedIds, ids: Ids) -> NDArray[np.bool_]:
    """Which of the ids are in the set."""
    if not _is_flags(named):
        return np.isin(ids, named)
    is_named = np.zeros(len(ids), np.bool_)
    within = ids < len(named)
    is_named[within] = named[ids[within]]
    return is_named


def _intersection(a: NamedIds, b: NamedIds) -> NamedIds:
    if _is_flags(a) and _is_flags(b):
        n = min(len(a), len(b))
        return a[:n] & b[:n]
    return _listed(a)[_is_named(b, _listed(a))]


def _difference(a: NamedIds, b: NamedIds) -> NamedIds:
    """The ids of a that are not in b."""
    if not _is_flags(a):
        return a[~_is_named(b, a)]
    difference = a.copy()
    if _is_flags(b):
        n = min(len(a), len(b))
        difference[:n] &= ~b[:n]
    else:
        difference[b[b < len(a)]] = False
    return difference


def _union(a: NamedIds, b: NamedIds) -> NamedIds:
    if not (_is_flags(a) and _is_flags(b)):
        return np.union1d(_listed(a), _listed(b))
    shorter, longer = sorted((a, b), key=len)
    union = longer.copy()
    union[: len(shorter)] |= shorter
    return union
