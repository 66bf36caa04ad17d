"""Bands of a segment: which bits each is keyed by, and building them.

A band holds the rows of its segment once more, in ascending order of a key made of some bits of
the code, so that the rows with a given key lie side by side. See docs/how-it-works.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log2

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.checks import BitOrder, Codes

__all__ = ["Band", "BandLayout", "BandOptions", "build_bands", "first_order"]

BitNumbers = NDArray[np.uint16]
Rows = NDArray[np.uint32]

BandLayout = tuple[BitNumbers, ...]
"""The bits of each band."""

# Memory that bands may take by default, as copies of the codes.
MOST_COPIES = 8
# What a row of a segment takes beyond its code: its id, and its place in ascending id.
SEGMENT_ROW_BYTES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The arrays of one band; the first has the segment's own order and blocks."""

    bits: BitNumbers
    """Bit j of a key is this bit of the code."""
    starts: NDArray[np.uint32]
    """By key: the first position of its rows; one more at the end."""
    rows: Rows | None
    """By position: the row. None where positions are rows."""
    blocks: NDArray[np.uint8]
    core: _core.Band


@dataclass(frozen=True, slots=True)
class BandOptions:
    """How a caller wants bands; None where the default will do."""

    bands: int | None = None
    """How many."""
    band_bits: int | None = None
    """Bits of each."""
    memory_limit: int | None = None
    """Bytes that an index may take with its bands."""

    def layout(self, n: int, n_bits: int, rest: int = 0) -> BandLayout:
        """The bits of each band for n rows; empty if the memory does not allow any.

        `rest` bytes of the limit are taken by something else.
        """
        n_bytes = (n_bits + 7) // 8
        count, width = self._shape(n, n_bits)
        if self.memory_limit is not None:
            directory = 4 * 2**width + 4
            # The first band takes its directory only: its rows are the segment's own.
            spare = self.memory_limit - rest - n * (n_bytes + SEGMENT_ROW_BYTES) - directory
            if spare < 0:
                return ()
            count = min(count, 1 + spare // (n * (n_bytes + 4) + directory))
        return contiguous_layout(n_bits, count, width)

    def _shape(self, n: int, n_bits: int) -> tuple[int, int]:
        """How many bands of how many bits, as far as the bits go.

        Some 16 rows share a key if rows spread evenly. Where that would take more bands than the
        default memory allows, keys are longer, down to one row for each: what no band covers does
        not help.
        """
        spread = round(log2(max(n, 2)))
        most = min(n_bits, _core.max_band_bits)
        width = min(most, self.band_bits or max(4, spread - 4))
        count = min(n_bits, self.bands or max(1, min(n_bits // width, MOST_COPIES)))
        if self.band_bits is None:
            width = min(most, max(width, min(spread, n_bits // count)))
        return count, width


def contiguous_layout(n_bits: int, count: int, width: int) -> BandLayout:
    """`count` bands of at most `width` adjacent bits, spread evenly over the code."""
    edges = np.linspace(0, n_bits, count + 1).astype(int)
    return tuple(
        np.arange(first, min(last, first + width), dtype=np.uint16)
        for first, last in pairwise(edges)
    )


def first_order(codes: Codes, layout: BandLayout, bitorder: BitOrder) -> Rows:
    """The rows in the order of the first band."""
    return _sorted(codes, layout[0], bitorder)[1]


def build_bands(
    codes: Codes, blocks: NDArray[np.uint8], layout: BandLayout, bitorder: BitOrder
) -> tuple[Band, ...]:
    """The bands of codes that are in the order of the first one, packed as `blocks`."""
    bands = []
    for number, bits in enumerate(layout):
        starts, rows = _sorted(codes, bits, bitorder)
        if number == 0:
            core = _core.Band(bits, starts, blocks, None)
            bands.append(Band(bits, starts, None, blocks, core))
        else:
            own = _core.pack_in_order(codes, rows)
            bands.append(Band(bits, starts, rows, own, _core.Band(bits, starts, own, rows)))
    return tuple(bands)


def _sorted(codes: Codes, bits: BitNumbers, bitorder: BitOrder) -> tuple[NDArray[np.uint32], Rows]:
    starts = np.empty(2 ** len(bits) + 1, dtype=np.uint32)
    rows = np.empty(len(codes), dtype=np.uint32)
    _core.sort_band(codes, bits, bitorder, starts, rows)
    return starts, rows
