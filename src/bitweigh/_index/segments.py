"""The rows of an index: immutable segments, and which of their rows were removed.

A segment never changes. A part, `LiveSegment`, is a segment with a mask of the rows removed since.
A removal replaces the part as a whole: whoever holds the old one keeps seeing the same rows.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.bands import (
    BLOCK_ROWS,
    Band,
    BandChoice,
    BandLayout,
    build_bands,
    build_lean_bands,
    first_order,
    rows_of,
)
from bitweigh._index.row_layout import LayoutReason
from bitweigh._results import Memory
from bitweigh.typing import BitOrder, Codes, Ids, RowLayout

__all__ = ["COUNTED_IDS_END", "LiveSegment", "Rows", "Segment", "StoredIds", "Unbanded"]

Rows = NDArray[np.uint32]
StoredIds = Ids | NDArray[np.uint32] | range
"""Ids by row: uint32 if all of them fit, a range if each is one more than the one before."""

Unbanded: TypeAlias = Literal["small", "manual", "memory_limit", "free_memory", "no_gain", "stored"]
"""Why a segment has no bands: few rows, `build` was not called, no room, no use, or saved so."""

# Ids kept as a range are less than this; see cpp/engine/rows/id_column.h.
COUNTED_IDS_END = 2**61


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Segment:
    """Rows with their ids, stored in blocks of 32 for the scan kernel."""

    n_bits: int
    blocks: NDArray[np.uint8]
    """The codes in blocks of 32 rows, each byte by byte; the last block is padded with zeros."""
    ids: StoredIds
    by_id: Rows | None
    """Row numbers in ascending id; None if the ids are ascending."""
    bands: tuple[Band, ...] = ()
    """Empty if the segment is only scanned; otherwise rows are in the order of the first band."""
    unbanded: Unbanded = "stored"
    """The reason for having no bands; unused if there are any."""
    choice: BandChoice | None = None
    """What was decided about its bands; None if nothing was, or the segment was loaded."""
    lean_order: BitOrder | None = None
    """If not None, rows are lean, of codes with this order of bits: see docs/file-format.md."""
    layout_reason: LayoutReason | None = None
    """Why rows are lean, or are not; None if that was not decided, but follows from the call."""
    core: _core.Segment = field(init=False)

    def __post_init__(self) -> None:
        """Hand the arrays to the engine, which checks that they fit each other."""
        ids = self.ids
        core_ids = _core.CountedIds(ids.start, len(ids)) if isinstance(ids, range) else ids
        bands = [band.core for band in self.bands]
        core = _core.Segment(
            self.blocks,
            core_ids,
            self.by_id,
            self.n_bits,
            bands,
            self.lean_order,
            _is_mapped(self.blocks),
        )
        object.__setattr__(self, "core", core)

    @classmethod
    def build(
        cls,
        codes: Codes,
        ids: Ids | NDArray[np.uint32],
        n_bits: int,
        layout: BandLayout = (),
        bitorder: BitOrder = "big",
        *,
        unbanded: Unbanded = "small",
        choice: BandChoice | None = None,
        threads: int | None = None,
    ) -> Segment:
        """Build a segment of checked codes (n, n_bytes), n >= 1, with distinct ids.

        With a layout the rows are sorted by its first band. Without one, `unbanded` is the reason.
        """
        if layout:
            order = first_order(codes, layout, bitorder)
            codes = rows_of(codes, order)
            ids = rows_of(ids[:, np.newaxis].view(np.uint8), order).view(ids.dtype)[:, 0]
            del order
        by_id = None
        if not is_ascending(ids):
            by_id = np.empty(len(ids), dtype=np.uint32)
            _core.sort_ids(ids, by_id)
        # Building bands takes the most memory: what they do not need is gone by then.
        stored_ids = _stored(ids, by_id is None)
        del ids
        blocks = _core.pack_blocks(codes)
        bands = build_bands(codes, blocks, layout, bitorder, threads)
        return cls(n_bits, blocks, stored_ids, by_id, bands, unbanded, choice)

    @classmethod
    def build_lean(
        cls,
        codes: Codes,
        ids: Ids | NDArray[np.uint32],
        n_bits: int,
        layout: BandLayout,
        bitorder: BitOrder = "big",
    ) -> Segment:
        """Build a segment of lean rows, of checked codes of at most 64 bits."""
        order = first_order(codes, layout, bitorder)
        codes, ids = codes[order], ids[order]
        bands = build_lean_bands(codes, n_bits, layout, bitorder)
        stored = ids.astype(np.uint32) if int(ids.max()) < 2**32 else ids
        return cls(n_bits, bands[0].blocks, stored, None, bands, lean_order=bitorder)

    def __len__(self) -> int:
        """Return the number of rows, removed ones included."""
        return len(self.ids)

    @property
    def layout(self) -> RowLayout:
        """How its rows are stored."""
        return "plain" if self.lean_order is None else "lean"

    @property
    def largest_id(self) -> int:
        """The largest id in the segment, removed rows included."""
        if self.lean_order is not None:
            return int(np.max(np.asarray(self.ids)))
        if self.by_id is None:
            return int(self.ids[-1])
        # by_id of a damaged mapped file may be out of range; any row will do then.
        return int(self.ids[min(int(self.by_id[-1]), len(self) - 1)])

    def memory(self) -> Memory:
        """Bytes of memory by purpose."""
        beyond_first = [band for band in self.bands if band.rows is not None]
        return Memory(
            codes=self.blocks.nbytes,
            ids=0 if isinstance(self.ids, range) else self.ids.nbytes,
            id_lookup=self.core.id_lookup_nbytes,
            band_codes=sum(band.blocks.nbytes for band in beyond_first),
            band_rows=sum(band.rows.nbytes for band in beyond_first if band.rows is not None),
            directories=sum(band.starts.nbytes for band in self.bands),
            removed=0,
        )

    def codes(self, rows: Rows) -> Codes:
        """The codes of these rows, (len(rows), n_bytes)."""
        codes = np.empty((len(rows), (self.n_bits + 7) // 8), dtype=np.uint8)
        _core.unpack_rows(self.core, rows, codes)
        return codes

    def ids_of(self, rows: Rows) -> Ids:
        """The ids of these rows."""
        if isinstance(self.ids, range):
            return rows.astype(np.int64) + self.ids.start
        return self.ids[rows].astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LiveSegment:
    """A segment without the rows that were removed from it."""

    segment: Segment
    removed: _core.RowMask | None = None
    """The rows that a search must not return; None if none was removed."""

    def __len__(self) -> int:
        """Return the number of rows that were not removed."""
        return len(self.segment) - self.removed_rows

    @property
    def removed_rows(self) -> int:
        """The number of removed rows."""
        return 0 if self.removed is None else self.removed.denied_rows

    def removed_masks(self, first: int = 0, last: int | None = None) -> NDArray[np.uint32]:
        """A mask for each block of 32 rows; the bits of removed rows are set.

        Of rows from `first`, a multiple of 32, to before `last`; by default of all.
        """
        rows = (len(self.segment) if last is None else last) - first
        masks = np.zeros(-(-rows // BLOCK_ROWS), dtype=np.uint32)
        if self.removed is not None:
            self.removed.write_masks(masks, first // BLOCK_ROWS)
        return masks

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """The numbers of the rows that were not removed, ascending; from `first` to before `last`.

        `first` must be a multiple of 32.
        """
        end = len(self.segment) if last is None else min(last, len(self.segment))
        if not self.removed_rows:
            return np.arange(first, end, dtype=np.uint32)
        live = ~self.removed_masks(first, end)
        flags = np.unpackbits(live.astype("<u4").view(np.uint8), bitorder="little")
        return (first + np.flatnonzero(flags[: end - first])).astype(np.uint32)

    def codes_and_ids(self) -> tuple[Codes, Ids]:
        """The codes and ids of the rows that were not removed, by row."""
        rows = self.rows()
        return self.segment.codes(rows), self.segment.ids_of(rows)

    def memory(self) -> Memory:
        """Bytes of memory by purpose."""
        removed = 0 if self.removed is None else self.removed.nbytes
        return self.segment.memory()._replace(removed=removed)


def _is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is that of a mapped file."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return isinstance(owner, mmap.mmap)


def is_ascending(ids: StoredIds) -> bool:
    """Whether each id is larger than the one before."""
    return isinstance(ids, range) or len(ids) < 2 or bool((ids[1:] > ids[:-1]).all())


def _stored(ids: Ids | NDArray[np.uint32], ascending: bool) -> StoredIds:
    first, last = int(ids[0]), int(ids[-1])
    if ascending and last - first == len(ids) - 1 and last < COUNTED_IDS_END:
        return range(first, last + 1)
    largest = last if ascending else int(ids.max())
    return (
        ids.astype(np.uint32, copy=False) if largest < 2**32 else ids.astype(np.int64, copy=False)
    )
