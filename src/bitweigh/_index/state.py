"""Everything an index holds at one moment. A state is replaced whole, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.segments import Part, Rows
from bitweigh._results import Memory
from bitweigh.typing import Codes, Ids

__all__ = ["Places", "State"]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where rows are."""

    numbers: NDArray[np.int32]
    """Of the parts, as `State.parts` lists them; -1 where there is no such row."""
    rows: Rows

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which there are."""
        return self.numbers >= 0


class State:
    """The parts of an index. No id is in two of them, among the rows that are left."""

    __slots__ = ("core", "next_id", "rows", "segments", "tail")

    def __init__(
        self,
        segments: tuple[Part, ...] = (),
        tail: Part | None = None,
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
        self.rows: Final = rows  # not counting those that were removed
        # What a search hands to the engine: made once, since a search may take microseconds.
        self.core: Final = _core.SegmentList(cores, removed)

    def parts(self) -> Iterator[Part]:
        """Tail and segments, in the order in which a search reads them."""
        if self.tail is not None:
            yield self.tail
        yield from self.segments

    def locate(self, ids: Ids) -> Places:
        """Where the rows of the given ids are."""
        numbers, rows = np.empty(len(ids), np.int32), np.empty(len(ids), np.uint32)
        _core.locate(self.core, ids, numbers, rows)
        return Places(numbers, rows)

    def without(self, ids: Ids, may_miss: bool = False) -> State:
        """The state without the rows of these ids; parts that have no row left are dropped.

        Raises KeyError for the first id that is not in the state, unless that may be.
        """
        removed = _core.remove_ids(self.core, ids, may_miss)
        if removed is None:
            raise KeyError(int(ids[np.argmin(self.locate(ids).found)]))
        parts = list(self.parts())
        for number, rows in removed:
            parts[number] = Part(parts[number].segment, rows)
        tail = None if self.tail is None else parts.pop(0)
        return State(
            tuple([part for part in parts if len(part)]),
            tail if tail is not None and len(tail) else None,
            self.next_id,
        )

    def codes_of(self, ids: Ids, n_bits: int) -> Codes:
        """The codes of these ids, (n, n_bytes); KeyError for the first that is not in the state."""
        places = self.locate(ids)
        if not places.found.all():
            raise KeyError(int(ids[np.argmin(places.found)]))
        codes = np.empty((len(ids), (n_bits + 7) // 8), dtype=np.uint8)
        for number, part in enumerate(self.parts()):
            here = places.numbers == number
            codes[here] = part.segment.codes(places.rows[here])
        return codes

    def memory(self) -> Memory:
        """Bytes by part, of all segments together."""
        total = Memory(*[0] * len(Memory._fields))
        for part in self.parts():
            total = Memory(*map(sum, zip(total, part.memory(), strict=True)))
        return total
