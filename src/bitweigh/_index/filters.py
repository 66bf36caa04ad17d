"""Filters: which rows a search may return, from the ids or flags of the caller.

An integer array lists ids; those that the index does not have are ignored. A boolean array of
length L has a flag for each id from 0 to L - 1; ids from L on count as False.
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
    """A set of ids, and whether a search may return those or all others."""

    ids: Ids | None
    """Ids listed explicitly, or None."""
    flags: NDArray[np.bool_] | None
    """flags[i] is the flag of id i; None if ids are listed."""
    deny: bool
    """Whether the set is excluded; otherwise only the set is allowed."""

    def applied_to(
        self, segments: _core.SegmentSet, deadline: _core.Deadline | None = None
    ) -> _core.SegmentSet:
        """The segments restricted to the rows that a search may return."""
        if self.ids is not None:
            return segments.filtered_by_ids(self.ids, self.deny, deadline)
        assert self.flags is not None
        return segments.filtered_by_flags(self.flags, self.deny, deadline)

    def among(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids a search may return."""
        if self.ids is not None:
            in_set = np.isin(ids, self.ids)
        else:
            assert self.flags is not None
            in_set = np.zeros(len(ids), dtype=np.bool_)
            within = ids < len(self.flags)
            in_set[within] = self.flags[ids[within]]
        allowed: NDArray[np.bool_] = in_set != self.deny
        return allowed


def as_filter(allow: ArrayLike | None, deny: ArrayLike | None) -> Filter | None:
    """The filter for the arguments `allow` and `deny`; None if both are None."""
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
