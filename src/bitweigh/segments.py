"""The rows of an index: immutable segments, and the state that holds them.

A state is replaced whole, never changed, so whoever has read it once sees one consistent set of
rows for as long as they like.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.bands import BLOCK_ROWS, Band, BandLayout, build_bands, first_order
from bitweigh.checks import BitOrder, Codes, Ids
from bitweigh.results import Memory

Rows = NDArray[np.uint32]
StoredIds = Ids | NDArray[np.uint32]
"""Ids in 32 bits where all of them fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows with their ids, stored in blocks of 32 for the scan kernel."""

    n_bytes: int
    ids: StoredIds
    """By row."""
    core: _core.Segment
    by_id: Rows | None
    """Rows in ascending id; None where the rows are in that order themselves."""
    bands: tuple[Band, ...] = ()
    """Empty where the segment is only scanned. With bands rows are in the first one's order."""
    refused: bool = False
    """Whether there was no memory for bands when they were wanted."""

    @classmethod
    def build(
        cls,
        codes: Codes,
        ids: StoredIds,
        n_bits: int,
        layout: BandLayout = (),
        bitorder: BitOrder = "big",
    ) -> Segment:
        """A segment of codes (n, n_bytes), n >= 1, that were checked before. Ids are distinct.

        With a layout the rows are put in the order of its first band.
        """
        if layout:
            order = first_order(codes, layout, bitorder)
            codes, ids = codes[order], ids[order]
        if ids.dtype != np.uint32 and ids.max() < 2**32:
            ids = ids.astype(np.uint32)
        by_id = None
        if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
            by_id = np.argsort(ids).astype(np.uint32)
        blocks = _core.pack_blocks(codes)
        bands = build_bands(codes, blocks, layout, bitorder)
        core = _core.Segment(blocks, ids, n_bits, [band.core for band in bands])
        return cls(codes.shape[1], ids, core, by_id, bands)

    def __len__(self) -> int:
        """Rows."""
        return len(self.ids)

    @property
    def largest_id(self) -> int:
        """Of all rows."""
        return int(self.ids[-1 if self.by_id is None else self.by_id[-1]])

    @property
    def wants_bands(self) -> bool:
        """Whether it has none, and nobody has tried."""
        return not (self.bands or self.refused)

    def memory(self) -> Memory:
        """Bytes by part."""
        beyond_first = [band for band in self.bands if band.rows is not None]
        return Memory(
            codes=-(-len(self) // BLOCK_ROWS) * BLOCK_ROWS * self.n_bytes,
            ids=self.ids.nbytes,
            id_lookup=0 if self.by_id is None else self.by_id.nbytes,
            band_codes=sum(band.blocks.nbytes for band in beyond_first),
            band_rows=sum(band.rows.nbytes for band in beyond_first if band.rows is not None),
            directories=sum(band.starts.nbytes for band in self.bands),
        )

    def find(self, ids: Ids) -> tuple[Rows, NDArray[np.bool_]]:
        """The rows of the given ids, and which of them are here; rows elsewhere mean nothing."""
        if self.by_id is None:
            # Ids that do not fit wrap around, and are then found to be others.
            places = np.searchsorted(self.ids, ids.astype(self.ids.dtype)).clip(max=len(self) - 1)
            return places.astype(np.uint32), self.ids[places] == ids
        rows, here = np.empty(len(ids), dtype=np.uint32), np.empty(len(ids), dtype=np.bool_)
        _core.find_ids(self.ids, self.by_id, ids, rows, here)
        return rows, here

    def codes(self, rows: Rows) -> Codes:
        """The codes of the given rows, (len(rows), n_bytes)."""
        codes = np.empty((len(rows), self.n_bytes), dtype=np.uint8)
        _core.unpack_rows(self.core, rows, codes)
        return codes

    def all_codes(self) -> Codes:
        """The codes of all rows, (n, n_bytes)."""
        return self.codes(np.arange(len(self), dtype=np.uint32))


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Everything an index holds at one moment."""

    segments: tuple[Segment, ...] = ()
    tail: Segment | None = None
    """The rows added last, too few for a segment of their own; copied by each small add."""
    next_id: int = 0
    """One more than the largest id ever used."""
    rows: int = field(init=False)
    unbanded_rows: int = field(init=False)
    """Of the largest part that could get bands; 0 if there is none."""
    core: _core.SegmentList = field(init=False)
    """What a search hands to the engine: made once, since a search may take microseconds."""

    def __post_init__(self) -> None:
        """Count the rows, list the parts."""
        object.__setattr__(self, "rows", sum(len(part) for part in self.parts()))
        unbanded = max((len(part) for part in self.parts() if part.wants_bands), default=0)
        object.__setattr__(self, "unbanded_rows", unbanded)
        core = _core.SegmentList([part.core for part in self.parts()])
        object.__setattr__(self, "core", core)

    def parts(self) -> Iterator[Segment]:
        """Tail and segments, in the order in which a search reads them."""
        if self.tail is not None:
            yield self.tail
        yield from self.segments
