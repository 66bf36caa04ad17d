"""Ranges of keys that are merged at once: as many as fit into a workspace.

Where more rows share one key than fit, its rows are cut in the order of the runs: they need no
sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bitweigh import _core
from bitweigh._streaming.runs import Run, cut_bits

__all__ = ["Range", "cut_ranges"]


@dataclass(frozen=True, slots=True)
class Range:
    """Rows that are adjacent in a band, and where they are in its runs."""

    number: int
    first_key: int
    last_key: int
    """The first key after the range."""
    first_position: int
    rows: int
    slices: tuple[tuple[int, int, int], ...]
    """(run, first row, last row) for each run that has rows of the range, in the runs' order."""
    has_starts: bool
    """False if an earlier range has the first rows of its only key."""


def cut_ranges(
    runs: Sequence[Run], band: _core.LeanBand, key_bits: int, max_rows: int
) -> list[Range]:
    """All ranges of a band, in ascending key: together they have all keys and all rows."""
    ranges: list[Range] = []
    position = 0
    for first_key, last_key in _key_ranges(runs, band, key_bits, max_rows):
        slices = tuple(
            (i, run.count_below(band, first_key), run.count_below(band, last_key))
            for i, run in enumerate(runs)
        )
        has_starts = True
        for part in _parts(slices, max_rows if last_key == first_key + 1 else None):
            rows = sum(last - first for _, first, last in part)
            ranges.append(Range(len(ranges), first_key, last_key, position, rows, part, has_starts))
            has_starts = False
            position += rows
    return ranges


def _key_ranges(
    runs: Sequence[Run], band: _core.LeanBand, key_bits: int, max_rows: int
) -> Iterator[tuple[int, int]]:
    """Ranges of keys with at most `max_rows` rows, or a single key."""
    n_keys = 1 << key_bits
    step = n_keys >> cut_bits(key_bits)
    cuts = np.zeros(n_keys // step + 1, np.int64)
    for run in runs:
        cuts += run.cuts

    def below(key: int) -> int:
        if key % step == 0:
            return int(cuts[key // step])
        return sum(run.count_below(band, key) for run in runs)

    first = 0
    while first < n_keys:
        limit = below(first) + max_rows
        # The largest cut with at most max_rows rows before it, if there is one after `first`.
        last = (int(np.searchsorted(cuts, limit, side="right")) - 1) * step
        if last <= first:
            # The same by bisection among single keys; at least one key.
            last, too_far = first + 1, (first // step + 1) * step
            while too_far - last > 1:
                middle = (last + too_far) // 2
                last, too_far = (middle, too_far) if below(middle) <= limit else (last, middle)
        yield first, last
        first = last


def _parts(
    slices: tuple[tuple[int, int, int], ...], max_rows: int | None
) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Slices that are not empty, cut after each `max_rows` rows."""
    part: list[tuple[int, int, int]] = []
    room = max_rows
    for run, start, end in slices:
        first = start
        while first < end:
            if room == 0:
                yield tuple(part)
                part, room = [], max_rows
            last = end if room is None else min(end, first + room)
            part.append((run, first, last))
            room = None if room is None else room - (last - first)
            first = last
    yield tuple(part)
