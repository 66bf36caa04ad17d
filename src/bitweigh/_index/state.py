"""The contents of an index at one moment. A state is replaced as a whole, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._checks import id_in_use_error
from bitweigh._index.bands import BLOCK_ROWS
from bitweigh._index.segments import LiveSegment, Rows
from bitweigh._results import Memory
from bitweigh.typing import Codes, Ids

__all__ = ["RowLocations", "State"]

# Rows of a shared segment whose ids are looked up at a time.
_LOCATED_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RowLocations:
    """The parts and row numbers of ids."""

    part_numbers: NDArray[np.int32]
    """Positions in `State.parts`; -1 for an id that the state does not have."""
    rows: Rows
    """Rows within those parts."""

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which of the ids the state has."""
        return self.part_numbers >= 0


class State:
    """The parts of an index. No two rows that were not removed have the same id."""

    __slots__ = ("__weakref__", "core", "next_id", "rows", "segments", "tail")

    def __init__(
        self,
        segments: tuple[LiveSegment, ...] = (),
        tail: LiveSegment | None = None,
        next_id: int = 0,
    ) -> None:
        """`next_id` is one more than the largest id ever used.

        `tail` holds the most recently added rows until there are enough for a segment; a small
        `add` rebuilds it.
        """
        self.segments: Final = segments
        self.tail: Final = tail
        self.next_id: Final = next_id
        rows = 0
        cores, removed = [], []
        for part in segments if tail is None else (tail, *segments):
            rows += len(part)
            cores.append(part.segment.core)
            removed.append(part.removed)
        self.rows: Final = rows  # without removed rows
        # For the engine. Built once per state, since a search may take only microseconds.
        self.core: Final = _core.SegmentSet(cores, removed)

    def parts(self) -> Iterator[LiveSegment]:
        """Tail and segments, in the order in which a search reads them."""
        if self.tail is not None:
            yield self.tail
        yield from self.segments

    def ids(self) -> Ids:
        """All ids in ascending order."""
        parts = [part.segment.ids_of(part.rows()) for part in self.parts()]
        ids = np.concatenate([np.empty(0, np.int64), *parts])
        if (ids[1:] > ids[:-1]).all():  # most often, and checked much faster than sorted
            return ids
        ids.sort()
        return ids

    def locate(self, ids: Ids) -> RowLocations:
        """Find the rows of these ids."""
        numbers, rows = np.empty(len(ids), np.int32), np.empty(len(ids), np.uint32)
        self.core.locate(ids, numbers, rows)
        return RowLocations(numbers, rows)

    def without(self, ids: Ids, ignore_missing: bool = False) -> State:
        """The state without the rows of these ids; parts that would be empty are dropped.

        Raises KeyError for the first id that is not in the state, unless `ignore_missing`.
        """
        parts = list(self.parts())
        for number, removed in self.core.remove(ids, ignore_missing):
            parts[number] = LiveSegment(parts[number].segment, removed)
        tail = None if self.tail is None else parts.pop(0)
        return State(
            tuple([part for part in parts if len(part)]),
            tail if tail is not None and len(tail) else None,
            self.next_id,
        )

    def with_shared(self, part: LiveSegment, replacing: bool) -> State:
        """The state with a part of another state as its first segment.

        Rows with ids that the part has, too, are removed if `replacing`, else raise ValueError.
        """
        state = self
        first_id = int(np.min(np.asarray(part.segment.ids)))
        if first_id < self.next_id:
            for first in range(0, len(part.segment), _LOCATED_ROWS):
                ids = part.segment.ids_of(part.rows(first, first + _LOCATED_ROWS))
                used = state.locate(ids).found
                if used.any():
                    if not replacing:
                        raise id_in_use_error(ids, used, "code")
                    state = state.without(ids[used])
        next_id = max(self.next_id, part.segment.largest_id + 1)
        return State((part, *state.segments), state.tail, next_id)

    def with_rebuilt(self, before: State, after: State) -> State:
        """Replace the parts of `before` by those of `after`, one for one.

        `before` is an earlier state, and `after` was built from it. Parts that were replaced since
        stay as they are, and rows that were removed since are not brought back.
        """
        rebuilt = {
            id(old.segment): (old, new)
            for old, new in zip(before.parts(), after.parts(), strict=True)
            if old.segment is not new.segment
        }
        if not rebuilt:
            return self

        def present(part: LiveSegment) -> tuple[LiveSegment, ...]:
            if id(part.segment) not in rebuilt:
                return (part,)
            old, new = rebuilt[id(part.segment)]
            return State((new,)).without(_ids_removed_since(old, part)).segments

        tail = () if self.tail is None else present(self.tail)
        segments = chain.from_iterable(map(present, self.segments))
        return State(tuple(segments), tail[0] if tail else None, self.next_id)

    def with_compacted(self, before: State, after: State) -> State | None:
        """Put the segments of `after` in place of all parts of `before`.

        None if not all of these are still there. Rows that were removed since stay removed.
        """
        if after is before:
            return self
        now = {id(part.segment): part for part in self.parts()}
        if not all(id(part.segment) in now for part in before.parts()):
            return None
        removed = [_ids_removed_since(part, now.pop(id(part.segment))) for part in before.parts()]
        no_ids = np.empty(0, np.int64)
        compacted = State(tuple(after.parts())).without(np.concatenate([no_ids, *removed]))
        newer = [part for part in self.segments if id(part.segment) in now]
        tail = self.tail if self.tail is not None and id(self.tail.segment) in now else None
        return State((*compacted.segments, *newer), tail, self.next_id)

    def codes_of(self, ids: Ids, n_bits: int) -> Codes:
        """The codes of these ids, (n, n_bytes); KeyError for the first that is not in the state."""
        locations = self.locate(ids)
        if not locations.found.all():
            raise KeyError(int(ids[np.argmin(locations.found)]))
        codes = np.empty((len(ids), (n_bits + 7) // 8), dtype=np.uint8)
        for number, part in enumerate(self.parts()):
            here = locations.part_numbers == number
            codes[here] = part.segment.codes(locations.rows[here])
        return codes

    def memory(self) -> Memory:
        """Bytes of memory by purpose, of all parts together."""
        total = Memory(*[0] * len(Memory._fields))
        for part in self.parts():
            total = Memory(*map(sum, zip(total, part.memory(), strict=True)))
        total.layouts = tuple([part.segment.layout for part in self.parts()])
        return total


def _ids_removed_since(before: LiveSegment, now: LiveSegment) -> Ids:
    """The ids of rows that `now` lacks and `before`, an earlier part of the same segment, has."""
    if now.removed is before.removed:
        return np.empty(0, np.int64)
    masks = now.removed_masks() & ~before.removed_masks()
    changed = np.flatnonzero(masks)
    flags = np.unpackbits(masks[changed].astype("<u4").view(np.uint8), bitorder="little")
    rows = (changed[:, np.newaxis] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).ravel()[flags != 0]
    return now.segment.ids_of(rows.astype(np.uint32))
