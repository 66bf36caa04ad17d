"""Plain or lean rows, and why: the choice for an index that is built on disk.

Plain rows are whole codes, in as many bands as pay. Lean rows leave out the bits that the key of
their band implies (docs/file-format.md): smaller, but for codes of at most 64 bits, in at most two
bands. The choice depends on the rows, the bits and the options alone, so that it is the same on
every machine.
"""

from __future__ import annotations

from math import log2
from typing import Literal, NamedTuple, TypeAlias

from bitweigh import _core
from bitweigh._index.bands import ROW_BYTES, BandOptions, code_bytes
from bitweigh.typing import RowLayout

__all__ = [
    "LEAN_ROWS",
    "LayoutChoice",
    "LayoutReason",
    "choose_row_layout",
    "lean_bytes",
    "lean_width",
    "why_this_layout",
]

LayoutReason: TypeAlias = Literal["asked", "bands", "bits", "memory_limit", "rows"]
"""What decided: the caller's `layout`, or one of these."""

LEAN_ROWS = 1 << 24
"""So many rows are lean by default.

Fewer codes of 64 bits take less than half a gigabyte as plain rows with two bands, 28 bytes each.
Lean rows would save a third of that, but could not have more bands where more pay.
"""

# A third band would take as much memory as the codes again.
_MAX_LEAN_BANDS = 2
# Codes with at most so many bits more than log2 of the rows have one band, whose key has most of
# their bits. 100 M codes of 32 bits: k = 1 takes 18 us and 6 bytes a row, 34 us and 12 with two.
_BITS_BEYOND_ONE_BAND = 12
# Longer keys take more memory than they save time; measured with a billion codes of 64 bits.
_MAX_LEAN_WIDTH = 26
# So many rows are assumed where their number is not known.
_ASSUMED_ROWS = 1 << 28
# Ids below 2^32, which is what most indexes have. Others make the choice no less valid.
_ID_BYTES = 4


class LayoutChoice(NamedTuple):
    """The layout of all rows, and what decided."""

    layout: RowLayout
    reason: LayoutReason
    lean_bands: int
    """Bands of lean rows; 0 for plain rows, whose bands are chosen when they are built."""


def choose_row_layout(
    rows: int | None, n_bits: int, options: BandOptions, asked: RowLayout | None
) -> LayoutChoice:
    """The layout for so many rows; None is some number from LEAN_ROWS on, without a memory limit.

    Raises ValueError if lean rows were asked for and are not possible.
    """
    obstacle = _lean_obstacle(n_bits, options)
    bands = 0 if obstacle else _lean_bands(rows, n_bits, options)
    if asked == "lean" and not bands:
        reason = why_this_layout("plain", obstacle or "memory_limit")
        raise ValueError(f"layout='lean' is not possible: {reason}")
    if asked is not None:
        return LayoutChoice(asked, "asked", bands if asked == "lean" else 0)
    if not bands:
        return LayoutChoice("plain", obstacle or "memory_limit", 0)
    if rows is None or rows >= LEAN_ROWS:
        return LayoutChoice("lean", "rows", bands)
    wanted = min(bands, options.ideal_shape(rows, n_bits)[0])
    if options.shape(rows, n_bits, _ID_BYTES)[0] < wanted:
        return LayoutChoice("lean", "memory_limit", bands)
    return LayoutChoice("plain", "rows", 0)


def why_this_layout(layout: RowLayout, reason: LayoutReason | None) -> str:
    """The reason as text; "" if it is not known."""
    if reason is None:
        return ""
    if layout == "lean":
        return {
            "asked": "layout='lean'",
            "rows": f"at least {LEAN_ROWS:,} codes",
            "memory_limit": "memory_limit leaves less room for bands of plain rows",
        }.get(reason, "")
    return {
        "asked": "layout='plain'",
        "bands": f"lean rows have 1 to {_MAX_LEAN_BANDS} bands",
        "bits": f"lean rows are for codes of at most {_core.max_lean_bits} bits",
        "memory_limit": "memory_limit leaves no room for lean rows",
        "rows": f"fewer than {LEAN_ROWS:,} codes",
    }[reason]


def lean_width(rows: int | None, n_bits: int, bands: int | None, band_bits: int | None) -> int:
    """Bits of the keys of lean rows, before `bands` have to share all bits.

    By default about 16 of evenly spread rows share a key, but keys have at most 26 bits, or up to
    two more where that saves memory: a rest that is a byte shorter.
    """
    width = band_bits
    if width is None:
        known = rows or _ASSUMED_ROWS
        usual = min(_MAX_LEAN_WIDTH, max(4, round(log2(max(known, 2))) - 4))
        width = min(range(usual, usual + 3), key=lambda each: _band_bytes(known, n_bits, each))
    width = min(n_bits, width)
    return width if bands is None else min(width, n_bits // bands)


def _lean_obstacle(n_bits: int, options: BandOptions) -> LayoutReason | None:
    """Why rows cannot be lean, whatever their number."""
    if n_bits > _core.max_lean_bits:
        return "bits"
    no_bands = options.bands is None and options.memory_limit == 0
    if no_bands or (options.bands is not None and options.bands > _MAX_LEAN_BANDS):
        return "bands"
    return None


def _lean_bands(rows: int | None, n_bits: int, options: BandOptions) -> int:
    """The most bands of lean rows, as far as wanted, that the memory limit has room for."""
    bands = options.bands if options.bands is not None else _usual_bands(rows, n_bits)
    if options.memory_limit is None or rows is None:
        return bands
    while bands and lean_bytes(rows, n_bits, bands, options.band_bits) > options.memory_limit:
        bands -= 1
    return bands


def _usual_bands(rows: int | None, n_bits: int) -> int:
    """The number of bands that is fastest."""
    one_band_bits = log2(rows or _ASSUMED_ROWS) + _BITS_BEYOND_ONE_BAND
    return 1 if n_bits <= one_band_bits else _MAX_LEAN_BANDS


def lean_bytes(rows: int, n_bits: int, bands: int, band_bits: int | None) -> int:
    """Bytes of lean rows with all of their bands."""
    return bands * _band_bytes(rows, n_bits, lean_width(rows, n_bits, bands, band_bits))


def _band_bytes(rows: int, n_bits: int, width: int) -> int:
    """Bytes of a band of lean rows: rests, ids or row numbers, and its directory."""
    rests = code_bytes(rows, max(1, n_bits - width))
    return rests + ROW_BYTES * rows + 4 * ((1 << width) + 1)
