"""Filters: which rows a search may return, from ids or flags that a caller gives.

An integer array names ids; those that the index does not have are ignored. A boolean array of
length L is about the ids 0 to L - 1 and names no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh._checks import as_array, as_ids
from bitweigh.typing import Ids

__all__ = ["Filter", "as_filter"]


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Ids that are named, and whether those or all others are allowed."""

    ids: Ids | None
    """Ids listed explicitly, or None."""
    flags: NDArray[np.bool_] | None
    """flags[i] is about id i; None where ids are listed."""
    deny: bool

    def applied_to(self, segments: _core.SegmentSet) -> _core.SegmentSet:
        """The segments with only those rows that a search may return."""
        if self.ids is not None:
            return segments.filtered_by_ids(self.ids, self.deny)
        assert self.flags is not None
        return segments.filtered_by_flags(self.flags, self.deny)

    def among(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids a search may return."""
        if self.ids is not None:
            named = np.isin(ids, self.ids)
        else:
            assert self.flags is not None
            named = np.zeros(len(ids), dtype=np.bool_)
            within = ids < len(self.flags)
            named[within] = self.flags[ids[within]]
        allowed: NDArray[np.bool_] = named != self.deny
        return allowed


def as_filter(allow: ArrayLike | None, deny: ArrayLike | None) -> Filter | None:
    """The filter that a caller asks for, None for none."""
    if allow is None and deny is None:
        return None
    if allow is not None and deny is not None:
        raise ValueError("give allow= or deny=, not both")
    name = "allow" if deny is None else "deny"
    array = as_array(allow if deny is None else deny, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if array.dtype == np.bool_:
        return Filter(None, array, deny is not None)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be ids or booleans, got {array.dtype}")
    # Values that cannot be ids match nothing.
    possible = array[(array >= 0) & (array <= np.iinfo(np.int64).max)]
    return Filter(as_ids(possible.astype(np.int64)), None, deny is not None)
