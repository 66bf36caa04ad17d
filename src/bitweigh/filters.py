"""Filters: which rows a search may return, from ids or flags that a caller gives.

An integer array names ids; those that the index does not have are ignored. A boolean array of
length L speaks of the ids 0 to L - 1 and names no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh.bands import BLOCK_ROWS
from bitweigh.checks import Ids, as_array, as_ids
from bitweigh.segments import Segment

__all__ = ["Filter", "as_filter"]

# With at most one row in so many allowed, only the blocks that have any are read.
SPARSE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Ids that are named, and whether those or all others are allowed."""

    ids: Ids | None
    """Ids named one by one, or"""
    flags: NDArray[np.bool_] | None
    """by id, from 0 on."""
    deny: bool

    def allowed(self, segment: Segment) -> _core.Allowed:
        """Which rows of a segment a search may return."""
        flags = self._flags(segment)
        count = int(np.count_nonzero(flags))
        padded = np.zeros(-(-len(segment) // BLOCK_ROWS) * BLOCK_ROWS, dtype=np.bool_)
        padded[: len(segment)] = flags
        masks = np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32, copy=False)
        blocks = None
        if count * SPARSE <= len(segment):
            blocks = np.flatnonzero(masks).astype(np.uint32)
        return _core.Allowed(masks, count, blocks)

    def _flags(self, segment: Segment) -> NDArray[np.bool_]:
        """By row: whether it is allowed."""
        named = np.zeros(len(segment), dtype=np.bool_)
        if self.flags is not None:
            if segment.largest_id < len(self.flags):
                named = self.flags[segment.ids]
            else:
                within = segment.ids < len(self.flags)
                named[within] = self.flags[segment.ids[within]]
        if self.ids is not None:
            rows, here = segment.find(self.ids)
            named[rows[here]] = True
        return ~named if self.deny else named


def as_filter(allow: ArrayLike | None, deny: ArrayLike | None) -> Filter | None:
    """The filter that a caller asks for, None for none."""
    if allow is not None and deny is not None:
        raise ValueError("allow and deny must not be given both")
    if allow is None and deny is None:
        return None
    name = "allow" if deny is None else "deny"
    array = as_array(allow if deny is None else deny, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if array.dtype == np.bool_:
        return Filter(None, array, deny is not None)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be ids or booleans, got {array.dtype}")
    # What no id can be names none.
    possible = array[(array >= 0) & (array <= np.iinfo(np.int64).max)]
    return Filter(as_ids(possible.astype(np.int64)), None, deny is not None)
