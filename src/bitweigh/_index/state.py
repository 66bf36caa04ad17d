"""Everything an index holds at one moment. A state is replaced whole, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.segments import Part, Rows
from bitweigh.typing import Ids

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

    __slots__ = ("bands_wait_until", "core", "next_id", "rows", "segments", "tail", "unbanded_rows")

    def __init__(
        self,
        segments: tuple[Part, ...] = (),
        tail: Part | None = None,
        next_id: int = 0,
        bands_wait_until: float = 0.0,
    ) -> None:
        """`next_id` is one more than the largest id ever used.

        The tail are the rows added last, too few for a segment of their own; copied by each small
        add. `bands_wait_until` is by the clock of `time.monotonic`: there was no memory for bands,
        and searches do not ask again before.
        """
        self.segments: Final = segments
        self.tail: Final = tail
        self.next_id: Final = next_id
        self.bands_wait_until: Final = bands_wait_until
        rows = unbanded = 0
        cores, removed = [], []
        for part in segments if tail is None else (tail, *segments):
            rows += len(part)
            if part.segment.wants_bands:
                unbanded = max(unbanded, len(part.segment))
            cores.append(part.segment.core)
            removed.append(part.removed)
        self.rows: Final = rows  # that are left, in all
        self.unbanded_rows: Final = unbanded  # of the largest part that could get bands, or 0
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

    def without(self, ids: Ids, may_miss: bool) -> State | None:
        """The state without these ids; None if it does not have one of them, unless that may be.

        Parts that have no row left are dropped.
        """
        removed = _core.remove_ids(self.core, ids, may_miss)
        if removed is None:
            return None
        parts = list(self.parts())
        for number, rows in removed:
            parts[number] = Part(parts[number].segment, rows)
        tail = None if self.tail is None else parts.pop(0)
        return State(
            tuple([part for part in parts if len(part)]),
            tail if tail is not None and len(tail) else None,
            self.next_id,
            self.bands_wait_until,
        )
