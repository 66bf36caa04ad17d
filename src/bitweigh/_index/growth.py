"""How an index changes: rows go to the tail, tails become segments, segments merge and get bands.

Every step makes a new state from an old one; whoever holds the old one keeps what they see.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.bands import BandOptions, layout_of
from bitweigh._index.segments import Part, Segment, is_ascending
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = ["Growth", "first_repeated"]

_LARGEST_ID = np.iinfo(np.int64).max
# Where there is no memory for bands, searches ask for it so seldom that they do not notice.
_SECONDS_BETWEEN_ASKING = 5.0


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
        """The state with these rows added, n >= 1; without ids they get the next ones.

        Ids are distinct and none is in the state.
        """
        if ids is None:
            ids = _ids_from(state.next_id, len(codes))
        next_id = max(state.next_id, int(ids.max()) + 1)
        pieces = [(codes, ids)]
        rows = len(ids)
        if state.tail is not None:
            pieces.append(state.tail.codes_and_ids())
            rows += len(state.tail)
        if rows < min(self.tail_rows, self.segment_rows):
            tail = Part(self._segment(*_joined(pieces)))
            return State(state.segments, tail, next_id, state.bands_wait_until)
        segments = list(state.segments)
        # Merging neighbours of like size copies each row O(log n) times, however small the adds.
        while (
            segments
            and len(segments[-1]) <= 2 * rows
            and len(segments[-1]) + rows <= self.segment_rows
        ):
            rows += len(segments[-1])
            pieces.append(segments.pop().codes_and_ids())
        made = self._cut(*_joined(pieces))
        return State((*segments, *made), None, next_id, state.bands_wait_until)

    def with_bands(self, state: State, least_rows: int) -> State:
        """The state with bands for all parts of at least so many rows, if there is memory."""
        # A memory limit is the index's: what one part takes is missing for the next.
        total = sum(part.memory().total for part in state.parts())
        built = []
        for part in state.parts():
            others = total - part.memory().total
            built.append(self._banded(part, least_rows, others))
            total = others + built[-1].memory().total
        refused = any(
            part.segment.wants_bands and len(part.segment) >= least_rows for part in built
        )
        tail = None if state.tail is None else built.pop(0)
        wait_until = time.monotonic() + _SECONDS_BETWEEN_ASKING if refused else 0.0
        return State(tuple(built), tail, state.next_id, wait_until)

    def compacted(self, state: State) -> State:
        """The state in as few segments as can hold it, without what was removed."""
        parts = list(state.parts())
        if not parts or (len(parts) == 1 and not parts[0].removed_rows):
            return state
        # The tail is the youngest, and `_joined` wants those first.
        youngest_first = parts[:1] + parts[:0:-1] if state.tail else parts[::-1]
        pieces = [part.codes_and_ids() for part in youngest_first]
        return State(self._cut(*_joined(pieces)), None, state.next_id)

    def _segment(self, codes: Codes, ids: Ids) -> Segment:
        return Segment.build(codes, ids, self.n_bits)

    def _cut(self, codes: Codes, ids: Ids) -> tuple[Part, ...]:
        """Rows as segments, each as large as may be."""
        starts = range(0, len(ids), self.segment_rows)
        slices = [slice(first, first + self.segment_rows) for first in starts]
        return tuple([Part(self._segment(codes[own], ids[own])) for own in slices])

    def _banded(self, part: Part, least_rows: int, others: int) -> Part:
        segment = part.segment
        if not segment.wants_bands or len(segment) < least_rows:
            return part
        id_bytes = 4 if segment.largest_id < 2**32 else 8
        # Before the rows are unpacked: there may be no memory for that either.
        count, width = self.band_options.shape(len(part), self.n_bits, id_bytes, others)
        if count == 0:
            return part
        codes, ids = part.codes_and_ids()
        layout = layout_of(codes, self.n_bits, self.bitorder, count, width)
        return Part(Segment.build(codes, ids, self.n_bits, layout, self.bitorder))


def _joined(youngest_first: list[tuple[Codes, Ids]]) -> tuple[Codes, Ids]:
    if len(youngest_first) == 1:
        return youngest_first[0]
    oldest_first = youngest_first[::-1]
    return (
        np.concatenate([codes for codes, _ in oldest_first]),
        np.concatenate([ids for _, ids in oldest_first]),
    )


def _ids_from(first: int, n: int) -> Ids:
    if first + n - 1 > _LARGEST_ID:
        raise ValueError(f"ids must be given: no {n} are left after the largest id {first - 1}")
    return np.arange(first, first + n, dtype=np.int64)


def first_repeated(ids: Ids) -> tuple[int, int] | None:
    """The first place whose id stands in an earlier one too, and that one; None if all differ."""
    if is_ascending(ids):
        return None
    by_id: NDArray[np.uint32] = np.empty(len(ids), dtype=np.uint32)
    _core.sort_ids(ids, by_id)
    in_order = ids[by_id]
    again = np.flatnonzero(in_order[1:] == in_order[:-1]) + 1
    if not len(again):
        return None
    place = int(by_id[again].min())
    return place, int(np.argmax(ids == ids[place]))
