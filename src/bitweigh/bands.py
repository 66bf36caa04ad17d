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

__all__ = ["BLOCK_ROWS", "Band", "BandLayout", "BandOptions", "build_bands", "first_order"]

BitNumbers = NDArray[np.uint16]
Rows = NDArray[np.uint32]

BandLayout = tuple[BitNumbers, ...]
"""The bits of each band."""

BLOCK_ROWS = 32
# Rows that tell which bits depend on each other; longer codes take bits as they come.
SAMPLE_ROWS = 8192
MOST_SPREAD_BITS = 2048
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

    def layout(self, codes: Codes, n_bits: int, bitorder: BitOrder, others: int = 0) -> BandLayout:
        """The bits of each band for these rows; empty if the memory does not allow any.

        `others` are the bytes that the rest of the index takes.
        """
        count, width = self.shape(len(codes), n_bits, others)
        if count == 0:
            return ()
        if count == 1 or n_bits > MOST_SPREAD_BITS:
            return contiguous_layout(n_bits, count, width)
        return spread_layout(codes, n_bits, count, width, bitorder)

    def shape(self, n: int, n_bits: int, others: int = 0) -> tuple[int, int]:
        """How many bands of how many bits for n rows; none if the memory does not allow any."""
        n_bytes = (n_bits + 7) // 8
        count, width = self._shape(n, n_bits)
        if self.memory_limit is not None:
            directory = 4 * 2**width + 4
            codes = -(-n // BLOCK_ROWS) * BLOCK_ROWS * n_bytes
            # The first band takes its directory only: its rows are the segment's own.
            own = codes + n * SEGMENT_ROW_BYTES + directory
            spare = self.memory_limit - others - own
            if spare < 0:
                return 0, 0
            count = min(count, 1 + spare // (codes + 4 * n + directory))
        return count, width

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


def spread_layout(
    codes: Codes, n_bits: int, count: int, width: int, bitorder: BitOrder
) -> BandLayout:
    """`count` bands of `width` bits, chosen so that the bits of a band depend little on each other.

    Bits that depend on each other waste keys: some never occur, and others have too many rows. On
    a million codes by LSH a search looks at a fifth to a quarter fewer blocks than with adjacent
    bits. The bits that vary most are taken first, each for the band whose bits it is least
    correlated with, in a sample; those that vary least are left out where not all are wanted.
    """
    rows = np.random.default_rng(0).choice(len(codes), min(len(codes), SAMPLE_ROWS), replace=False)
    bits = np.unpackbits(codes[rows], axis=1, count=n_bits, bitorder=bitorder).astype(np.float32)
    bits -= bits.mean(axis=0)
    spreads = bits.std(axis=0)
    bits /= np.maximum(spreads, 1e-6)
    squared = np.square(bits.T @ bits / len(bits))
    bands: list[list[int]] = [[] for _ in range(count)]
    room = np.full(count, min(width, -(-n_bits // count)))
    # By band and bit: how much a bit depends on those in the band. A sample tells a few digits; for
    # equal ones the emptier band is taken.
    shared = np.zeros((count, n_bits), dtype=np.float32)
    for bit in np.argsort(-spreads, kind="stable")[: count * width].tolist():
        sizes = [len(band) for band in bands]
        measure = np.where(room > sizes, shared[:, bit].round(3) + 1e-5 * np.array(sizes), np.inf)
        best = int(np.argmin(measure))
        bands[best].append(bit)
        shared[best] += squared[bit]
    return tuple(np.array(sorted(band), dtype=np.uint16) for band in bands if band)


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
