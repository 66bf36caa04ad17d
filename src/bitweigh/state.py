"""Everything an index holds at one moment. A state is replaced whole, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.checks import Ids
from bitweigh.segments import Part, Rows

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


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The parts of an index. No id is in two of them, among the rows that are left."""

    segments: tuple[Part, ...] = ()
    tail: Part | None = None
    """The rows added last, too few for a segment of their own; copied by each small add."""
    next_id: int = 0
    """One more than the largest id ever used."""
    rows: int = field(init=False)
    """How many are left in all."""
    unbanded_rows: int = field(init=False)
    """Of the largest part that could get bands; 0 if there is none."""
    core: _core.SegmentList = field(init=False)
    """What a search hands to the engine: made once, since a search may take microseconds."""

    def __post_init__(self) -> None:
        """Count the rows, list the parts."""
        parts = list(self.parts())
        object.__setattr__(self, "rows", sum([len(part) for part in parts]))
        unbanded = [len(part.segment) for part in parts if part.segment.wants_bands]
        object.__setattr__(self, "unbanded_rows", max(unbanded, default=0))
        core = _core.SegmentList(
            [part.segment.core for part in parts], [part.removed for part in parts]
        )
        object.__setattr__(self, "core", core)

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

    def without(self, places: Places) -> State:
        """The state without these rows; parts that have none left are dropped."""
        parts = list(self.parts())
        for number in _distinct(places.numbers):
            if number >= 0:
                parts[number] = parts[number].without(places.rows[places.numbers == number])
        tail = None if self.tail is None else parts.pop(0)
        return replace(
            self,
            segments=tuple([part for part in parts if len(part)]),
            tail=tail if tail is not None and len(tail) else None,
        )


def _distinct(numbers: NDArray[np.int32]) -> list[int]:
    # The usual case, a single id, must take microseconds.
    return [int(numbers[0])] if len(numbers) == 1 else np.unique(numbers).tolist()
