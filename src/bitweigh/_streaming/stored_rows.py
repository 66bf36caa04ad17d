"""The rows of an index as a source: read from its segments piece by piece, without removed ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from bitweigh._index.segments import LiveSegment
from bitweigh._index.state import State
from bitweigh._streaming.sources import BATCH_ROWS, Batch, RowSource

__all__ = ["StoredRows"]

# Rows that are sampled next to each other: a few hundred places, all over the segments.
_SAMPLED_ROWS = 1 << 10


class StoredRows(RowSource):
    """The rows of a state that were not removed, oldest segment first, each in its order."""

    has_ids = True

    def __init__(self, state: State) -> None:
        """Count the rows; nothing is read yet."""
        tail = () if state.tail is None else (state.tail,)
        self._parts = [_CountedPart(part) for part in (*state.segments, *tail)]
        self._firsts = [0, *accumulate(part.rows for part in self._parts)]
        self.rows = self._firsts[-1]

    def fingerprint(self) -> Any:  # noqa: ANN401
        """The number of rows: no build from stored rows is resumed."""
        return {"stored rows": self.rows}

    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last`, in batches."""
        number = bisect_right(self._firsts, first) - 1
        while first < last:
            start, end = self._firsts[number], min(last, self._firsts[number + 1])
            yield from self._parts[number].read(first - start, end - start)
            first = end
            number += 1

    def sample(self, max_rows: int) -> Iterator[Batch]:
        """Rows from places spread evenly: neighbours have similar codes, being sorted."""
        places = max(1, max_rows // _SAMPLED_ROWS)
        step = max(_SAMPLED_ROWS, -(-self.rows // places))
        for first in range(0, self.rows, step):
            yield from self.read(first, min(self.rows, first + _SAMPLED_ROWS))


class _CountedPart:
    """A part, with the number of its rows before each chunk of `BATCH_ROWS` stored rows."""

    def __init__(self, part: LiveSegment) -> None:
        self._part = part
        self.rows = len(part)
        stored = len(part.segment)
        self._before = list(range(0, stored, BATCH_ROWS))
        if part.removed_rows:
            counts = (len(part.rows(first, first + BATCH_ROWS)) for first in self._before)
            self._before = list(accumulate(counts, initial=0))

    def read(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from `first` to before `last` among those that were not removed."""
        segment = self._part.segment
        number = bisect_right(self._before, first) - 1
        while first < last:
            before, start = self._before[number], number * BATCH_ROWS
            rows = self._part.rows(start, start + BATCH_ROWS)[first - before : last - before]
            if len(rows):
                yield segment.codes(rows), segment.ids_of(rows)
            first += len(rows)
            number += 1
