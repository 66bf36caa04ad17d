"""How an index grows: rows go to the tail, tails become segments, segments merge and get bands.

Every step makes a new state from an old one; whoever holds the old one keeps what they see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bitweigh import _core
from bitweigh.bands import BandOptions
from bitweigh.checks import BitOrder, Codes, Ids
from bitweigh.segments import Segment, State

__all__ = ["Growth"]

_LARGEST_ID = np.iinfo(np.int64).max


@dataclass(slots=True)
class Growth:
    """The rules; the numbers never change an answer."""

    n_bits: int
    bitorder: BitOrder
    band_options: BandOptions
    tail_rows: int = 1 << 10
    """From so many rows on a tail becomes a segment."""
    segment_rows: int = _core.max_segment_rows - 1
    """Most rows of a segment."""
    banded_rows: int = 0
    """From so many rows on a segment gets bands without being asked; fewer are soon scanned."""

    def __post_init__(self) -> None:
        """By default bands are built for a mebibyte of codes, which takes 25 us to scan."""
        self.banded_rows = self.banded_rows or (1 << 20) // ((self.n_bits + 7) // 8)

    def with_rows(self, state: State, codes: Codes, ids: Ids | None) -> State:
        """The state with these rows added, n >= 1; without ids they get the next ones."""
        if ids is None:
            ids = _ids_from(state.next_id, len(codes))
        else:
            _refuse_repeated(ids, state)
        next_id = max(state.next_id, int(ids.max()) + 1)
        if state.tail is not None:
            codes = np.concatenate([state.tail.all_codes(), codes])
            ids = np.concatenate([state.tail.ids, ids])
        if len(ids) < min(self.tail_rows, self.segment_rows):
            return State(state.segments, Segment.build(codes, ids, self.n_bits), next_id)
        segments = list(state.segments)
        # Merging neighbours of like size copies each row O(log n) times, however small the adds.
        while (
            segments
            and len(segments[-1]) <= 2 * len(ids)
            and len(segments[-1]) + len(ids) <= self.segment_rows
        ):
            last = segments.pop()
            codes = np.concatenate([last.all_codes(), codes])
            ids = np.concatenate([last.ids, ids])
        for first in range(0, len(ids), self.segment_rows):
            part = slice(first, first + self.segment_rows)
            segments.append(Segment.build(codes[part], ids[part], self.n_bits))
        return State(tuple(segments), None, next_id)

    def with_bands(self, state: State, least_rows: int) -> State:
        """The state with bands for all parts of at least so many rows."""
        # A memory limit is the index's: what one part takes is missing for the next.
        total = sum(part.memory().total for part in state.parts())
        built = []
        for part in state.parts():
            others = total - part.memory().total
            built.append(self._banded(part, least_rows, others))
            total = others + built[-1].memory().total
        tail = None if state.tail is None else built.pop(0)
        return State(tuple(built), tail, state.next_id)

    def _banded(self, segment: Segment, least_rows: int, others: int) -> Segment:
        if not segment.wants_bands or len(segment) < least_rows:
            return segment
        codes = segment.all_codes()
        layout = self.band_options.layout(
            codes, self.n_bits, self.bitorder, segment.ids.itemsize, others
        )
        if not layout:
            return replace(segment, refused=True)
        return Segment.build(codes, segment.ids, self.n_bits, layout, self.bitorder)


def _ids_from(first: int, n: int) -> Ids:
    if first + n - 1 > _LARGEST_ID:
        raise ValueError(f"ids must be given: no {n} are left after the largest id {first - 1}")
    return np.arange(first, first + n, dtype=np.int64)


def _refuse_repeated(ids: Ids, state: State) -> None:
    """Raise ValueError for the first id that stands in `ids` before or is in the index."""
    repeated = np.ones(len(ids), dtype=np.bool_)
    repeated[np.unique(ids, return_index=True)[1]] = False
    for part in state.parts():
        repeated |= part.find(ids)[1]
    if repeated.any():
        place = int(np.argmax(repeated))
        first = int(np.argmax(ids == ids[place]))
        why = f"the same as ids[{first}]" if first < place else "in use"
        raise ValueError(f"ids must be new and distinct, but ids[{place}] = {ids[place]} is {why}")
