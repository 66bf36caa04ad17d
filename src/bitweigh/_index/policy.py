"""When tails become segments, segments merge, and segments get bands. Affects speed only.

Every step makes a new state from an old one; whoever holds the old one keeps what they see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from bitweigh import _core
from bitweigh._index.bands import BandLayout, BandOptions, layout_of
from bitweigh._index.segments import Part, Segment, Unbanded
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, BuildMode, Codes, Ids

__all__ = ["SegmentPolicy"]

_LARGEST_ID = np.iinfo(np.int64).max

Rows = tuple[Codes, Ids]


@dataclass(slots=True)
class SegmentPolicy:
    """Sizes at which rows move on, and whether that builds bands."""

    n_bits: int
    bitorder: BitOrder
    band_options: BandOptions
    build: BuildMode = "auto"
    tail_rows: int = 1 << 10
    """Rows at which a tail becomes a segment."""
    segment_rows: int = _core.max_segment_rows - 1
    """Max rows of a segment."""
    banded_rows: int = 0
    """Min rows of a segment that gets bands without being asked for; fewer are soon scanned."""

    def __post_init__(self) -> None:
        """Build bands from a mebibyte of codes on, which takes 25 us to scan."""
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
            return State(state.segments, Part(self._unbanded(_joined(pieces), "small")), next_id)
        segments = list(state.segments)
        while segments and self._merges(segments[-1], rows):
            rows += len(segments[-1])
            pieces.append(segments.pop().codes_and_ids())
        made = self._sealed(_joined(pieces), _bytes_of(segments))
        return State((*segments, *made), None, next_id)

    def with_bands(
        self, state: State, *, rebuild: bool = False, threads: int | None = None
    ) -> State:
        """The state with bands for all parts, as far as there is memory.

        Parts that have bands keep them unless they are to be rebuilt.
        """
        parts = list(state.parts())
        total = _bytes_of(parts)
        for number, part in enumerate(parts):
            if rebuild or not part.segment.bands:
                others = total - part.memory().total
                parts[number] = self._banded(part, others, threads)
                total = others + parts[number].memory().total
        tail = None if state.tail is None else parts.pop(0)
        return State(tuple(parts), tail, state.next_id)

    def compacted(self, state: State) -> State:
        """The state in as few segments as can hold it, without what was removed."""
        parts = list(state.parts())
        if not parts or (len(parts) == 1 and not parts[0].removed_rows):
            return state
        had_bands = any(part.segment.bands for part in parts)
        # The tail is the youngest, and `_joined` wants those first.
        youngest_first = parts[:1] + parts[:0:-1] if state.tail else parts[::-1]
        pieces = [part.codes_and_ids() for part in youngest_first]
        made = self._sealed(_joined(pieces), 0, min_banded_rows=1 if had_bands else None)
        return State(made, None, state.next_id)

    def _merges(self, segment: Part, rows: int) -> bool:
        """Whether a segment is merged with as many younger rows.

        Merging neighbours of similar size copies each row O(log n) times, however small the adds.
        Bands take longer to build than rows to copy, so those are built again more rarely.
        """
        ratio = 1 if segment.segment.bands else 2
        return len(segment) <= ratio * rows and len(segment) + rows <= self.segment_rows

    def _sealed(
        self, rows: Rows, others: int, *, min_banded_rows: int | None = None
    ) -> tuple[Part, ...]:
        """Rows as segments, each as large as can be, with bands where that is the policy.

        `others` is how many bytes the rest of the state takes. A caller that wants bands for
        smaller segments, or in spite of `build`, says from how many rows on.
        """
        codes, ids = rows
        made: list[Part] = []
        for first in range(0, len(ids), self.segment_rows):
            cut = slice(first, first + self.segment_rows)
            piece = codes[cut], ids[cut]
            if min_banded_rows is None and self.build == "manual":
                segment = self._unbanded(piece, "manual")
            elif len(piece[1]) < (min_banded_rows or self.banded_rows):
                segment = self._unbanded(piece, "small")
            else:
                segment = self._with_bands(piece, others)
            made.append(Part(segment))
            others += made[-1].memory().total
        return tuple(made)

    def _unbanded(self, rows: Rows, reason: Unbanded) -> Segment:
        return Segment.build(*rows, self.n_bits, unbanded=reason)

    def _banded(self, part: Part, others: int, threads: int | None) -> Part:
        """A part with bands; the part itself where there is no room for any."""
        # Before the rows are unpacked: there may be no memory for that either.
        if self._shape(len(part), part.segment.largest_id, others)[0] == 0:
            if part.segment.bands:
                return part
            return replace(part, segment=replace(part.segment, unbanded=self._no_room))
        return Part(self._with_bands(part.codes_and_ids(), others, threads))

    def _with_bands(self, rows: Rows, others: int, threads: int | None = None) -> Segment:
        codes, ids = rows
        count, width = self._shape(len(ids), int(ids.max()), others)
        layout: BandLayout = ()
        if count:
            layout = layout_of(codes, self.n_bits, self.bitorder, count, width)
        return Segment.build(
            codes,
            ids,
            self.n_bits,
            layout,
            self.bitorder,
            unbanded=self._no_room,
            threads=threads,
        )

    def _shape(self, rows: int, largest_id: int, others: int) -> tuple[int, int]:
        """How many bands of how many bits there is room for beside so many other bytes."""
        return self.band_options.shape(rows, self.n_bits, 4 if largest_id < 2**32 else 8, others)

    @property
    def _no_room(self) -> Unbanded:
        return "free_memory" if self.band_options.memory_limit is None else "memory_limit"


def _bytes_of(parts: Iterable[Part]) -> int:
    return sum(part.memory().total for part in parts)


def _joined(youngest_first: list[Rows]) -> Rows:
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
