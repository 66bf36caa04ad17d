"""When tails become segments, segments merge, and segments get bands. Affects speed only.

Every step returns a new state; whoever holds the old one keeps seeing the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from bitweigh import _core
from bitweigh._index.band_choice import MIN_GAIN, best_for_sample, gain_of
from bitweigh._index.bands import BandChoice, BandOptions, fits_in_free_memory, layout_of
from bitweigh._index.evidence import (
    CostsOfCodes,
    Evidence,
    from_codes,
    from_decoded,
    weights_of,
)
from bitweigh._index.segments import LiveSegment, Segment, Unbanded
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, BuildMode, Codes, Ids

__all__ = ["SegmentPolicy"]

_LARGEST_ID = np.iinfo(np.int64).max

# Fewer rows are scanned faster than probing is prepared, whatever the queries are.
_MIN_DECIDED_ROWS = 1 << 12

CodesAndIds = tuple[Codes, Ids]


@dataclass(slots=True)
class SegmentPolicy:
    """Sizes at which tails become segments and segments get bands, and whether they do."""

    n_bits: int
    bitorder: BitOrder
    band_options: BandOptions
    build: BuildMode = "auto"
    tail_rows: int = 1 << 10
    """Rows at which a tail becomes a segment."""
    segment_rows: int = _core.max_segment_rows - 1
    """The most rows of a segment."""
    min_gain: float = MIN_GAIN
    """How many times as fast as the scan bands must be; 0 builds all of them without asking."""
    banded_rows: int = 0
    """The fewest rows of a segment that gets bands automatically; fewer are scanned quickly."""
    minds_free_memory: bool = True
    """Whether bands that the caller did not ask for must leave enough of the free memory."""
    costs_of_codes: CostsOfCodes | None = None
    """Makes queries from codes whose bits differ in weight; bands take those that weigh most."""

    def __post_init__(self) -> None:
        """Set the default of `banded_rows`: a mebibyte of codes, which takes 25 us to scan."""
        self.banded_rows = self.banded_rows or (1 << 20) // ((self.n_bits + 7) // 8)

    def with_rows(
        self, state: State, codes: Codes, ids: Ids | None, *, threads: int | None = None
    ) -> State:
        """The state with these rows added, n >= 1; without ids they are numbered from `next_id`.

        The ids must be distinct, and none may be in the state.
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
            return State(
                state.segments, LiveSegment(self._unbanded(_joined(pieces), "small")), next_id
            )
        segments = list(state.segments)
        while segments and self._merges(segments[-1], rows):
            rows += len(segments[-1])
            pieces.append(segments.pop().codes_and_ids())
        new_segments = self._sealed(_joined(pieces), _bytes_of(segments), threads=threads)
        return State((*segments, *new_segments), None, next_id)

    def with_bands(
        self,
        state: State,
        *,
        evidence: Evidence | None = None,
        rebuild: bool = False,
        threads: int | None = None,
    ) -> State:
        """The state with the bands that pay, as far as memory allows.

        Parts that have bands keep them unless `rebuild`.
        """
        parts = list(state.parts())
        total = _bytes_of(parts)
        for number, part in enumerate(parts):
            # Without other queries a decision would be the same again.
            decided = part.segment.choice is not None and evidence is None
            if rebuild or not (part.segment.bands or decided):
                other_bytes = total - part.memory().total
                parts[number] = self._banded(part, other_bytes, evidence, threads)
                total = other_bytes + parts[number].memory().total
        if parts == list(state.parts()):
            return state
        tail = None if state.tail is None else parts.pop(0)
        return State(tuple(parts), tail, state.next_id)

    def compacted(self, state: State, evidence: Evidence | None = None) -> State:
        """The state in as few segments as possible, without the removed rows."""
        parts = list(state.parts())
        if not parts:
            return state
        if len(parts) == 1 and not parts[0].removed_rows:
            builds = self.build == "auto" and len(parts[0]) >= self.banded_rows
            return self.with_bands(state, evidence=evidence) if builds else state
        had_bands = any(part.segment.bands for part in parts)
        # `parts` begins with the tail, which is the youngest; the segments follow oldest first.
        youngest_first = parts[:1] + parts[:0:-1] if state.tail else parts[::-1]
        pieces = [part.codes_and_ids() for part in youngest_first]
        segments = self._sealed(
            _joined(pieces), 0, min_banded_rows=1 if had_bands else None, evidence=evidence
        )
        return State(segments, None, state.next_id)

    def _merges(self, segment: LiveSegment, rows: int) -> bool:
        """Whether a segment is merged with this number of younger rows.

        Merging neighbours of similar size copies each row O(log n) times, however small the adds.
        Building bands takes longer than copying rows, so segments with bands merge more rarely.
        Lean ones may be too large to be copied into memory; only `Index.compact` merges them.
        """
        if segment.segment.lean_order is not None:
            return False
        ratio = 1 if segment.segment.bands else 2
        return len(segment) <= ratio * rows and len(segment) + rows <= self.segment_rows

    def _sealed(
        self,
        rows: CodesAndIds,
        other_bytes: int,
        *,
        min_banded_rows: int | None = None,
        evidence: Evidence | None = None,
        threads: int | None = None,
    ) -> tuple[LiveSegment, ...]:
        """Rows as segments, each as large as possible, with bands where the policy builds them.

        `other_bytes` is the memory of the rest of the state. `min_banded_rows` overrides both
        `banded_rows` and `build`.
        """
        codes, ids = rows
        segments: list[LiveSegment] = []
        for first in range(0, len(ids), self.segment_rows):
            cut = slice(first, first + self.segment_rows)
            piece = codes[cut], ids[cut]
            if min_banded_rows is None and self.build == "manual":
                segment = self._unbanded(piece, "manual")
            else:
                segment = self.segment_of(
                    piece,
                    other_bytes,
                    min_banded_rows=min_banded_rows,
                    evidence=evidence,
                    threads=threads,
                )
            segments.append(LiveSegment(segment))
            other_bytes += segments[-1].memory().total
        return tuple(segments)

    def segment_of(
        self,
        rows: CodesAndIds,
        other_bytes: int = 0,
        *,
        min_banded_rows: int | None = None,
        evidence: Evidence | None = None,
        threads: int | None = None,
    ) -> Segment:
        """A segment of these rows, n >= 1, with bands if there are enough rows and bands pay."""
        if len(rows[1]) < (min_banded_rows or self.banded_rows):
            return self._unbanded(rows, "small")
        return self._with_bands(rows, other_bytes, evidence, threads)

    def _unbanded(
        self, rows: CodesAndIds, reason: Unbanded, choice: BandChoice | None = None
    ) -> Segment:
        return Segment.build(*rows, self.n_bits, unbanded=reason, choice=choice)

    def _banded(
        self,
        part: LiveSegment,
        other_bytes: int,
        evidence: Evidence | None,
        threads: int | None,
    ) -> LiveSegment:
        """The part with the bands that pay; if it stays without any, its rows are not copied."""
        # Checked before the rows are unpacked: there may be no memory for that either.
        if self._shape(len(part), part.segment.largest_id, other_bytes)[0] == 0:
            if part.segment.bands:
                return part
            return replace(part, segment=replace(part.segment, unbanded="memory_limit"))
        rows = part.codes_and_ids()
        segment = self._with_bands(rows, other_bytes, evidence, threads)
        if segment.bands or part.segment.bands:
            return LiveSegment(segment)
        reason, choice = segment.unbanded, segment.choice
        return replace(part, segment=replace(part.segment, unbanded=reason, choice=choice))

    def _with_bands(
        self,
        rows: CodesAndIds,
        other_bytes: int,
        evidence: Evidence | None = None,
        threads: int | None = None,
    ) -> Segment:
        """A segment with the bands that were asked for or, by default, that pay."""
        codes, ids = rows
        count, width = self._shape(len(ids), int(ids.max()), other_bytes)
        if count == 0:
            return self._unbanded(rows, "memory_limit")
        options = self.band_options
        choice = weights = None
        if self.costs_of_codes is not None:
            decoded = from_decoded(codes, self.costs_of_codes)
            weights, evidence = weights_of(decoded), evidence or decoded
        if options.bands is None and self.min_gain > 0:
            if len(ids) < _MIN_DECIDED_ROWS:
                return self._unbanded(rows, "small")
            if evidence is None:
                evidence = from_codes(codes, self.n_bits, self.bitorder)
            choice = best_for_sample(
                codes, self.n_bits, self.bitorder, options, count, evidence, weights
            )
            if choice.gain < self.min_gain:
                return self._unbanded(rows, "no_gain", choice)
            count, width = choice.bands, choice.band_bits
        if (
            self.minds_free_memory
            and options.bands is None
            and not fits_in_free_memory(len(ids), self.n_bits, count, width)
        ):
            return self._unbanded(rows, "free_memory")
        layout = layout_of(codes, self.n_bits, self.bitorder, count, width, weights)
        segment = Segment.build(codes, ids, self.n_bits, layout, self.bitorder, threads=threads)
        if choice is None or evidence is None:
            return segment
        choice = choice._replace(gain=gain_of(segment, self.bitorder, evidence))
        if choice.gain < self.min_gain:
            return self._unbanded(rows, "no_gain", choice)
        return replace(segment, choice=choice)

    def _shape(self, rows: int, largest_id: int, other_bytes: int) -> tuple[int, int]:
        """The most bands, and bits of each, that the memory limit allows beside `other_bytes`."""
        id_bytes = 4 if largest_id < 2**32 else 8
        return self.band_options.shape(rows, self.n_bits, id_bytes, other_bytes)


def _bytes_of(parts: Iterable[LiveSegment]) -> int:
    return sum(part.memory().total for part in parts)


def _joined(youngest_first: list[CodesAndIds]) -> CodesAndIds:
    if len(youngest_first) == 1:
        return youngest_first[0]
    oldest_first = youngest_first[::-1]
    return (
        np.concatenate([codes for codes, _ in oldest_first]),
        np.concatenate([ids for _, ids in oldest_first]),
    )


def _ids_from(first: int, n: int) -> Ids:
    if first + n - 1 > _LARGEST_ID:
        raise ValueError(
            f"ids must be given: int64 has no room for {n} more after the largest id {first - 1}"
        )
    return np.arange(first, first + n, dtype=np.int64)
