"""Verification of an index: its files are as they were written, and its arrays agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.bands import BLOCK_ROWS, rests_of, sorted_by_band
from bitweigh._index.segments import Segment
from bitweigh._storage.arrays import DAMAGED, digest_of_pieces
from bitweigh._storage.index_files import Content, described
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder, Codes

__all__ = ["verify"]


def verify(content: Content, folder: Path) -> None:
    """Raise CorruptFileError for the first array that has changed or does not fit the others.

    `folder` is used in the path of the error: the folder of the index, or a placeholder.
    """
    for name, array in described(content)[1].items():
        if digest_of_pieces(array.data()) != array.file.checksum:
            raise CorruptFileError(folder / name, DAMAGED)
    try:
        _check(content)
    except _UnsoundError as error:
        raise CorruptFileError(folder, str(error)) from None


class _UnsoundError(Exception):
    pass


def _check(content: Content) -> None:
    for number, part in enumerate(content.state.parts()):
        name = f"part {number}"
        if not len(part):
            raise _UnsoundError(f"{name}: all rows were removed")
        _check_ids(part.segment, name)
        codes = part.segment.codes(np.arange(len(part.segment), dtype=np.uint32))
        _check_codes(part.segment, codes, content.bitorder, name)
        _check_bands(part.segment, codes, content.bitorder, name)
        rows_in_last_block = len(part.segment) % BLOCK_ROWS
        if rows_in_last_block and part.removed_masks()[-1] >> rows_in_last_block:
            raise _UnsoundError(f"{name}: rows were removed that do not exist")
    ids = content.state.ids()
    if (ids[1:] == ids[:-1]).any():
        raise _UnsoundError("two rows have the same id")
    if any(part.segment.largest_id >= content.state.next_id for part in content.state.parts()):
        raise _UnsoundError("next_id is not larger than every id")


def _check_ids(segment: Segment, name: str) -> None:
    if isinstance(segment.ids, range):
        if segment.by_id is not None:
            raise _UnsoundError(f"{name}: ids stored as a range have a lookup")
        return
    if int(segment.ids.min()) < 0:
        raise _UnsoundError(f"{name}: an id is negative")
    in_order: NDArray[Any] = np.sort(segment.ids) if segment.lean_order else segment.ids
    if segment.by_id is not None:
        if int(segment.by_id.max()) >= len(segment):
            raise _UnsoundError(f"{name}: the id lookup names a row that does not exist")
        in_order = segment.ids[segment.by_id]
    if not (in_order[1:] > in_order[:-1]).all():
        raise _UnsoundError(f"{name}: ids are not distinct, or their lookup is not in order")


def _check_codes(segment: Segment, codes: Codes, bitorder: BitOrder, name: str) -> None:
    if _core.first_stray_row(codes, segment.n_bits, bitorder) < len(segment):
        raise _UnsoundError(f"{name}: a code has unused bits set")
    if segment.lean_order is not None:
        codes = rests_of(codes, segment.bands[0].bits, segment.n_bits, bitorder)
    if not np.array_equal(_core.pack_blocks(codes), segment.blocks):
        raise _UnsoundError(f"{name}: the last block is not padded with zeros")


def _check_bands(segment: Segment, codes: Codes, bitorder: BitOrder, name: str) -> None:
    """Check that the bands are identical to newly built ones."""
    for number, band in enumerate(segment.bands):
        starts, rows = sorted_by_band(codes, band.bits, bitorder)
        band_rows = np.arange(len(segment)) if band.rows is None else band.rows
        if not np.array_equal(starts, band.starts) or not np.array_equal(rows, band_rows):
            raise _UnsoundError(f"{name}: band {number} is not in the order of its keys")
        stored = codes
        if segment.lean_order is not None:
            stored = rests_of(codes, band.bits, segment.n_bits, bitorder)
        if number and not np.array_equal(_core.pack_in_order(stored, rows), band.blocks):
            raise _UnsoundError(f"{name}: band {number} has other codes than its segment")
