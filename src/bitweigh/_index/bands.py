"""Bands of a segment: choosing the bits that each is keyed by, and building them.

A band is a copy of the rows of its segment, sorted by a key of selected bits of the code, so that
rows with the same key lie side by side. See docs/how-it-works.md.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log2
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._free_memory import free_memory
from bitweigh.typing import BitOrder, Codes

__all__ = [
    "BLOCK_ROWS",
    "Band",
    "BandChoice",
    "BandLayout",
    "BandOptions",
    "EvidenceSource",
    "build_bands",
    "build_lean_bands",
    "code_bytes",
    "extra_bytes",
    "first_order",
    "fits_in_free_memory",
    "layout_of",
    "rests_of",
    "rows_of",
    "sorted_by_band",
]

BitNumbers = NDArray[np.uint16]
Rows = NDArray[np.uint32]

EvidenceSource: TypeAlias = Literal["given", "recent", "stored"]
"""Where the queries came from that bands were chosen by: see `bitweigh._index.evidence`."""

BandLayout = tuple[BitNumbers, ...]
"""The bits of each band."""

BLOCK_ROWS = 32
# Rows sampled to estimate which bits depend on each other.
SAMPLE_ROWS = 8192
# The bits of longer codes are assigned to bands in order, without a sample.
MAX_SPREAD_BITS = 2048
# Default limits on the memory of bands: copies of the codes, and a share of free memory.
MAX_COPIES = 16
FREE_SHARE = 0.5
# Longer keys are for those who ask for them: their directories take memory and save no time. 100 M
# codes of 32 bits take 12.7 bytes each with a key of 24 bits, and 17.4 with one of 27; a search
# takes as long.
MAX_USUAL_BITS = 24
# Bytes of a row number.
ROW_BYTES = 4
# Fewer rows are sorted in less time than a thread takes to start.
THREADED_ROWS = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The arrays of one band; the first band shares the order and blocks of its segment."""

    bits: BitNumbers
    """Bit j of a key is bit ``bits[j]`` of the code."""
    starts: NDArray[np.uint32]
    """starts[key] is the first position of the key's rows; the last entry is the number of rows."""
    rows: Rows | None
    """rows[position] is the row at that position; None for the first band, where they are equal."""
    blocks: NDArray[np.uint8]
    core: _core.Band = field(init=False)

    def __post_init__(self) -> None:
        """Hand the arrays to the engine."""
        core = _core.Band(self.bits, self.starts, self.blocks, self.rows)
        object.__setattr__(self, "core", core)


@dataclass(frozen=True, slots=True)
class BandOptions:
    """The caller's settings for bands; None means the default."""

    bands: int | None = None
    """Number of bands."""
    band_bits: int | None = None
    """Bits of each band."""
    memory_limit: int | None = None
    """The most bytes of an index, bands included."""

    def shape(
        self, n: int, n_bits: int, id_bytes: int = 8, other_bytes: int = 0
    ) -> tuple[int, int]:
        """The most bands, and bits of each, for n rows; (0, 0) if the memory limit allows none.

        An id takes `id_bytes`, and the rest of the index takes `other_bytes`.
        """
        count, width = self.ideal_shape(n, n_bits)
        if self.memory_limit is None:
            return count, width
        spare = self.memory_limit - other_bytes - n * id_bytes - code_bytes(n, n_bits)
        while count and extra_bytes(n, n_bits, count, width) > spare:
            count -= 1
        return (count, width) if count else (0, 0)

    def with_bands(self, bands: int) -> BandOptions:
        """The same options for a certain number of bands."""
        return replace(self, bands=bands)

    def ideal_shape(self, n: int, n_bits: int) -> tuple[int, int]:
        """Number of bands and bits of each, given enough memory.

        If rows are spread evenly, about 16 share a key, or 4 if codes are long: for these that is
        as fast as more bands and takes less memory. If covering all bits would take more copies
        than the default allows, keys are longer, down to one row each: a bit that no band covers
        does not help.
        """
        spread = round(log2(max(n, 2)))
        max_width = min(n_bits, _core.max_band_bits if self.band_bits else MAX_USUAL_BITS)
        usual = min(max_width, max(4, spread - (4 if n_bits <= 4 * spread else 2)))
        if self.bands is not None:
            count = min(n_bits, self.bands)
        elif self.band_bits is not None:
            count = min(MAX_COPIES, max(1, n_bits // self.band_bits))
        else:
            count = min(MAX_COPIES, max(1, round(n_bits / usual)))
        return count, min(max_width, self.band_bits or min(max(usual, spread), n_bits // count))


class BandChoice(NamedTuple):
    """The best bands for a segment, and what they gain."""

    bands: int
    """The best number of bands; they were built only if they gain enough."""
    band_bits: int
    gain: float
    """How many times as fast as the scan they make a search, by counted work."""
    copies: float
    """Memory of a segment with them, in multiples of that of its codes."""
    queries: int
    """The number of queries that it was decided by."""
    k: int
    source: EvidenceSource

    def __str__(self) -> str:
        """One line: what these bands would give, for what, and how that is known."""
        made = " made from stored codes" if self.source == "stored" else ""
        recent = "the last " if self.source == "recent" else ""
        return (
            f"{self.gain:.2f}x the speed for {self.copies:.1f}x the memory with {self.bands} "
            f"bands, from {recent}{self.queries} queries{made} at k = {self.k}"
        )


def code_bytes(n: int, n_bits: int) -> int:
    """Bytes of the codes of n rows."""
    return -(-n // BLOCK_ROWS) * BLOCK_ROWS * ((n_bits + 7) // 8)


def extra_bytes(n: int, n_bits: int, count: int, width: int) -> int:
    """Bytes that `count` bands of `width` bits add to a segment of n rows.

    The first band needs only its directory: its rows are those of the segment. But then the rows
    are no longer in the order of their ids, and a lookup is needed.
    """
    directories = count * (4 * (1 << width) + 4)
    return directories + ROW_BYTES * n + (count - 1) * (code_bytes(n, n_bits) + ROW_BYTES * n)


def fits_in_free_memory(n: int, n_bits: int, count: int, width: int) -> bool:
    """Whether such bands leave enough of the memory that is free."""
    return extra_bytes(n, n_bits, count, width) <= free_memory() * FREE_SHARE


def layout_of(
    codes: Codes,
    n_bits: int,
    bitorder: BitOrder,
    count: int,
    width: int,
    weights: NDArray[np.float64] | None = None,
) -> BandLayout:
    """The bits of each of `count` bands, at most `width` bits each, for these codes.

    With `weights` (n_bits,), what bits usually cost, the bands take those that weigh most.
    """
    if weights is None and (count == 1 or n_bits > MAX_SPREAD_BITS):
        return contiguous_layout(n_bits, count, width)
    return spread_layout(codes, n_bits, count, width, bitorder, weights)


def contiguous_layout(n_bits: int, count: int, width: int) -> BandLayout:
    """`count` bands of at most `width` adjacent bits each, spread evenly over the code."""
    edges = np.linspace(0, n_bits, count + 1).astype(int)
    return tuple(
        np.arange(first, min(last, first + width), dtype=np.uint16)
        for first, last in pairwise(edges)
    )


def spread_layout(
    codes: Codes,
    n_bits: int,
    count: int,
    width: int,
    bitorder: BitOrder,
    weights: NDArray[np.float64] | None = None,
) -> BandLayout:
    """`count` bands of `width` bits, chosen so that the bits of a band depend little on each other.

    Bits that depend on each other waste keys: some keys never occur, and others have too many rows.
    The table in docs/tuning.md shows the effect on speed. Bits are assigned in descending order of
    variance, each to the band whose bits it correlates least with in a sample of the rows. If not
    all bits are used, those that vary least are left out. With `weights` a bit counts by what it
    adds to the variance of distances.
    """
    rows = np.random.default_rng(0).choice(len(codes), min(len(codes), SAMPLE_ROWS), replace=False)
    bits = np.unpackbits(codes[rows], axis=1, count=n_bits, bitorder=bitorder).astype(np.float32)
    bits -= bits.mean(axis=0)
    spreads = bits.std(axis=0)
    numbers = np.arange(n_bits)
    if weights is not None:
        # Only the bits that will be used: there may be thousands of others.
        numbers = np.sort(np.argsort(-spreads * weights, kind="stable")[: count * width])
        bits, spreads, weights = bits[:, numbers], spreads[numbers], weights[numbers]
    bits /= np.maximum(spreads, 1e-6)
    squared = np.square(bits.T @ bits / len(bits))
    bands: list[list[int]] = [[] for _ in range(count)]
    room = min(width, -(-n_bits // count))
    # shared[band, bit]: how much a bit depends on those in the band. A sample is good for a few
    # digits only; ties go to the emptier band.
    shared = np.zeros((count, len(numbers)), dtype=np.float32)
    sizes = np.zeros(count, dtype=np.int64)
    importance = spreads if weights is None else spreads * weights
    for bit in np.argsort(-importance, kind="stable")[: count * width].tolist():
        measure = shared[:, bit].round(3) + 1e-5 * sizes
        measure[sizes >= room] = np.inf
        best = int(measure.argmin())
        bands[best].append(int(numbers[bit]))
        sizes[best] += 1
        shared[best] += squared[bit]
    return tuple(np.array(sorted(band), dtype=np.uint16) for band in bands if band)


def first_order(codes: Codes, layout: BandLayout, bitorder: BitOrder) -> Rows:
    """The row numbers in the order of the first band."""
    return sorted_by_band(codes, layout[0], bitorder)[1]


def rows_of(values: Codes, rows: Rows) -> Codes:
    """``values[rows]`` for values (n, n_bytes), interruptible by Ctrl-C."""
    selected = np.empty((len(rows), values.shape[1]), dtype=np.uint8)
    _core.take_rows(values, rows, selected)
    return selected


def build_bands(
    codes: Codes,
    blocks: NDArray[np.uint8],
    layout: BandLayout,
    bitorder: BitOrder,
    threads: int | None = None,
) -> tuple[Band, ...]:
    """The bands of codes that are sorted by the first band; `blocks` are the same codes packed."""
    if not layout:
        return ()
    stop = _core.Stop()

    def build(number: int) -> Band:
        bits = layout[number]
        starts, rows = sorted_by_band(codes, bits, bitorder, stop)
        if number == 0:
            return Band(bits, starts, None, blocks)
        return Band(bits, starts, rows, _core.pack_in_order(codes, rows, stop))

    workers = min(len(layout), _system.default_threads() if threads is None else threads)
    if workers <= 1 or len(codes) < THREADED_ROWS:
        return tuple(map(build, range(len(layout))))
    pool = ThreadPoolExecutor(workers)
    try:
        return tuple(
            [band.result() for band in [pool.submit(build, i) for i in range(len(layout))]]
        )
    finally:
        # Only this thread sees Ctrl-C, so it stops the others. Without Ctrl-C they have ended.
        stop.set()
        pool.shutdown(cancel_futures=True)


def build_lean_bands(
    codes: Codes, n_bits: int, layout: BandLayout, bitorder: BitOrder
) -> tuple[Band, ...]:
    """The bands of codes that are sorted by the first band, with lean rows."""
    bands = []
    for number, bits in enumerate(layout):
        starts, rows = sorted_by_band(codes, bits, bitorder)
        blocks = _core.pack_blocks(rests_of(codes[rows], bits, n_bits, bitorder))
        bands.append(Band(bits, starts, rows if number else None, blocks))
    return tuple(bands)


def rests_of(codes: Codes, bits: BitNumbers, n_bits: int, bitorder: BitOrder) -> Codes:
    """The bits of codes that are not in the key of a band, packed in little bit order."""
    unpacked = np.unpackbits(codes, axis=1, count=n_bits, bitorder=bitorder)
    rest_bits = np.setdiff1d(np.arange(n_bits), bits)
    if not len(rest_bits):
        return np.zeros((len(codes), 1), np.uint8)
    rests: Codes = np.packbits(unpacked[:, rest_bits], axis=1, bitorder="little")
    return rests


def sorted_by_band(
    codes: Codes, bits: BitNumbers, bitorder: BitOrder, stop: _core.Stop | None = None
) -> tuple[NDArray[np.uint32], Rows]:
    """The position where the rows of each key start, and the row numbers in ascending key."""
    starts = np.empty(2 ** len(bits) + 1, dtype=np.uint32)
    rows = np.empty(len(codes), dtype=np.uint32)
    _core.sort_band(codes, bits, bitorder, starts, rows, stop)
    return starts, rows
