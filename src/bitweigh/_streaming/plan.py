"""What a build decides before it begins: the bits of each band, and rows at a time.

The layout depends on the rows and the options alone. How many rows are sorted at a time depends on
`build_memory`, and changes no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitweigh import _core
from bitweigh._index.bands import BandLayout, layout_of
from bitweigh._index.row_layout import lean_width
from bitweigh._streaming.sources import Source, loaded_bytes
from bitweigh._streaming.workspace import row_bytes
from bitweigh.typing import BitOrder, Codes

__all__ = [
    "MAX_LEAN_BITS",
    "MIN_BUILD_MEMORY",
    "OTHER_BYTES",
    "SAMPLE_ROWS",
    "Plan",
    "choose_layout",
    "max_workers",
    "rows_at_once",
]

MAX_LEAN_BITS = 64
MIN_BUILD_MEMORY = 128 << 20
SAMPLE_ROWS = 1 << 18
"""The layout is chosen from so many of the first rows."""
# Memory besides the workspaces: the interpreter, NumPy, cuts of runs, buffers of files.
OTHER_BYTES = 64 << 20
# More rows at a time would not make a build faster, but leave less to do at the same time.
_MAX_ROWS = 1 << 22
# With fewer there would be too many runs; fewer threads are better.
_MIN_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions that a resumed build keeps."""

    n_bits: int
    bitorder: BitOrder
    layout: tuple[tuple[int, ...], ...]
    """The bits of each band."""
    has_ids: bool
    """Whether the source has ids; if not, they are counted from 0."""
    rows_at_once: int
    """The most rows of a piece and of a range."""

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return (self.n_bits + 7) // 8

    def band(self, number: int) -> _core.LeanBand:
        """The engine's view of a band."""
        bits = np.array(self.layout[number], np.uint16)
        return _core.LeanBand(bits, self.n_bits, self.bitorder)

    def key_bits(self, number: int) -> int:
        """How many bits the keys of a band have."""
        return len(self.layout[number])

    def facts(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "n_bits": self.n_bits,
            "bitorder": self.bitorder,
            "layout": [list(bits) for bits in self.layout],
            "has_ids": self.has_ids,
            "rows_at_once": self.rows_at_once,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Plan:
        """The plan that `facts` were made from."""
        return cls(**(facts | {"layout": tuple(tuple(bits) for bits in facts["layout"])}))


def choose_layout(
    sample: Codes,
    rows: int | None,
    n_bits: int,
    bitorder: BitOrder,
    bands: int | None,
    band_bits: int | None,
) -> BandLayout:
    """The bits of each band, from the first rows and the number of all rows, if that is known.

    By default there are as many bands as the bits are enough for.
    """
    width = lean_width(rows, n_bits, None, band_bits)
    count = max(1, n_bits // width) if bands is None else bands
    return layout_of(sample, n_bits, bitorder, count, min(width, n_bits // count))


def rows_at_once(n_bytes: int, number_bytes: int, build_memory: int, threads: int) -> int:
    """How many rows each thread sorts at a time.

    It has a minimum, which may be too large for all threads together: see `max_workers`.
    """
    room = (build_memory - OTHER_BYTES) // threads
    return min(_MAX_ROWS, max(_MIN_ROWS, room // row_bytes(n_bytes, number_bytes)))


def max_workers(plan: Plan, source: Source, build_memory: int, threads: int) -> int:
    """How many threads have room for the rows of the plan, and for those that the source loads."""
    number_bytes = 8 if plan.has_ids else 4
    needed = plan.rows_at_once * row_bytes(plan.n_bytes, number_bytes)
    needed += loaded_bytes(source, plan.n_bytes, number_bytes)
    if OTHER_BYTES + needed > build_memory:
        raise ValueError(
            f"build_memory must be at least {OTHER_BYTES + needed} for pieces of "
            f"{source.loaded_rows} rows in the source and {plan.rows_at_once} rows at a time, got "
            f"{build_memory}"
        )
    return min(threads, (build_memory - OTHER_BYTES) // needed)
