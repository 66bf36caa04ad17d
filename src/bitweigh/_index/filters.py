"""Filters: which rows a search may return, from ids or flags that a caller gives.

An integer array names ids; those that the index does not have are ignored. A boolean array of
length L speaks of the ids 0 to L - 1 and names no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh._checks import as_array, as_ids
from bitweigh._index.bands import BLOCK_ROWS
from bitweigh._index.segments import Part, Segment
from bitweigh._index.state import Places, State
from bitweigh.typing import Ids

__all__ = ["Filter", "allowed_in", "as_filter"]

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

    def among(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids a search may return."""
        if self.ids is not None:
            named = np.isin(ids, self.ids)
        else:
            assert self.flags is not None
            named = _flagged(self.flags, ids)
        allowed: NDArray[np.bool_] = named != self.deny
        return allowed

    def allowed(self, part: Part, places: Places | None, number: int) -> _core.Allowed:
        """Which rows of a part a search may return.

        `places` are those of the ids, if ids are named, and `number` is the part's.
        """
        segment = part.segment
        n_blocks = -(-len(segment) // BLOCK_ROWS)
        # What lies beyond the last row is denied.
        denied = np.ones(n_blocks * BLOCK_ROWS, dtype=np.bool_)
        denied[: len(segment)] = self._named(segment, places, number) == self.deny
        masks = np.packbits(denied, bitorder="little").view("<u4").astype(np.uint32, copy=False)
        if part.removed_rows:
            masks = masks | part.removed_masks()
        rows = _core.DeniedRows(len(segment), masks)
        blocks = None
        if (len(segment) - rows.count) * SPARSE <= len(segment):
            blocks = np.flatnonzero(~masks).astype(np.uint32)
        return _core.Allowed(rows, blocks)

    def _named(self, segment: Segment, places: Places | None, number: int) -> NDArray[np.bool_]:
        """By row: whether it is named."""
        named = np.zeros(len(segment), dtype=np.bool_)
        if places is not None:
            named[places.rows[places.numbers == number]] = True
        if self.flags is not None:
            ids = segment.ids
            if isinstance(ids, range):
                flags = self.flags[ids.start : ids.stop]
                named[: len(flags)] = flags
            elif segment.largest_id < len(self.flags):
                named = self.flags[ids]
            else:
                named = _flagged(self.flags, ids)
        return named


def _flagged(flags: NDArray[np.bool_], ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each id has a flag; those beyond the last have none."""
    flagged = np.zeros(len(ids), dtype=np.bool_)
    within = ids < len(flags)
    flagged[within] = flags[ids[within]]
    return flagged


def allowed_in(wanted: Filter, state: State) -> list[_core.Allowed]:
    """Which rows of each part of a state a search may return."""
    places = None if wanted.ids is None else state.locate(wanted.ids)
    return [wanted.allowed(part, places, number) for number, part in enumerate(state.parts())]


def as_filter(allow: ArrayLike | None, deny: ArrayLike | None) -> Filter | None:
    """The filter that a caller asks for, None for none."""
    if allow is not None and deny is not None:
        raise ValueError("give allow= or deny=, not both")
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
