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
# Longer keys take more memory than they save time, unless there are billions of rows.
_MAX_LEAN_WIDTH = 24
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

    By default about 16 of evenly spread rows share a key, but keys have at most 24 bits.
    """
    spread = _MAX_LEAN_WIDTH if rows is None else round(log2(max(rows, 2))) - 4
    usual = min(_MAX_LEAN_WIDTH, max(4, spread))
    width = min(n_bits, usual if band_bits is None else band_bits)
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
    bands = options.bands if options.bands is not None else min(_MAX_LEAN_BANDS, n_bits)
    if options.memory_limit is None or rows is None:
        return bands
    while bands and _lean_bytes(rows, n_bits, bands, options.band_bits) > options.memory_limit:
        bands -= 1
    return bands


def _lean_bytes(rows: int, n_bits: int, bands: int, band_bits: int | None) -> int:
    """Bytes of lean rows: rests and ids, or row numbers, for each band, and directories."""
    width = lean_width(rows, n_bits, bands, band_bits)
    rests = code_bytes(rows, max(1, n_bits - width))
    return bands * (rests + ROW_BYTES * rows + 4 * ((1 << width) + 1))
