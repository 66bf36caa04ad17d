"""What an index consists of, between memory and files: its state with the facts that go with it.

From memory: the arrays of every part, in the pieces they are kept in, and the files they make. To
memory: parts from whatever hands out the arrays of those files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._index.bands import BLOCK_ROWS, Band, BandOptions
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._index.state import State
from bitweigh._storage.manifest import ArrayFile, Manifest, Shape, StoredPart, digest_of
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder

__all__ = [
    "Array",
    "ArrayReader",
    "Content",
    "StoredArray",
    "content_from",
    "header_of",
    "stored_arrays",
]

Array = NDArray[Any]
ArrayReader = Callable[[ArrayFile], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """An index without its methods."""

    n_bits: int
    bitorder: BitOrder
    options: BandOptions
    state: State


@dataclass(frozen=True, slots=True, eq=False)
class StoredArray:
    """An array that makes one file, in the pieces that are side by side there."""

    file: ArrayFile
    pieces: list[Array]

    def data(self) -> Iterator[memoryview]:
        """All bytes of the file."""
        yield memoryview(header_of(self.file.dtype, self.file.shape))
        for piece in self.pieces:
            yield _bytes_of(piece)


def header_of(dtype: str, shape: Shape) -> bytes:
    """How a .npy file begins: what NumPy writes, to the last byte."""
    fields = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    # Magic number, version and length take 10 bytes; the data begin at a multiple of 64.
    length = -(-(10 + len(fields) + 1) // 64) * 64 - 10
    length = max(length, 118)
    return (
        b"\x93NUMPY\x01\x00"
        + length.to_bytes(2, "little")
        + (fields.ljust(length - 1) + "\n").encode()
    )


def stored_arrays(content: Content) -> tuple[Manifest, dict[str, StoredArray]]:
    """The manifest of an index, and its arrays by the names of their files."""
    arrays: dict[str, StoredArray] = {}
    state = content.state

    def stored(part: LiveSegment | None) -> StoredPart | None:
        return None if part is None else _stored_part(part, arrays)

    manifest = Manifest(
        content.n_bits,
        content.bitorder,
        state.next_id,
        content.options,
        stored(state.tail),
        tuple(_stored_part(part, arrays) for part in state.segments),
    )
    return manifest, arrays


def _stored_part(part: LiveSegment, arrays: dict[str, StoredArray]) -> StoredPart:
    segment = part.segment

    def store(kind: str, pieces: list[Array], shape: Shape, known: dict[str, object]) -> ArrayFile:
        file = known.get(kind)
        if not isinstance(file, ArrayFile):
            dtype = pieces[0].dtype.newbyteorder("<").str
            header = header_of(dtype, shape)
            checksum = digest_of(header, *(_bytes_of(piece) for piece in pieces))
            file = ArrayFile(f"{kind}-{checksum}.npy", dtype, shape)
            known[kind] = file
        arrays[file.name] = StoredArray(file, pieces)
        return file

    def of_segment(kind: str, pieces: list[Array], shape: Shape) -> ArrayFile | None:
        return store(kind, pieces, shape, segment.files) if pieces else None

    ids = segment.ids
    rows = len(segment)
    starts: list[Array] = [band.starts for band in segment.bands]
    band_rows: list[Array] = [band.rows for band in segment.bands if band.rows is not None]
    band_codes: list[Array] = [band.blocks for band in segment.bands[1:]]
    return StoredPart(
        rows=rows,
        codes=store("codes", [segment.blocks], segment.blocks.shape, segment.files),
        ids=ids.start if isinstance(ids, range) else store("ids", [ids], (rows,), segment.files),
        by_id=of_segment("by_id", [] if segment.by_id is None else [segment.by_id], (rows,)),
        bands=tuple(tuple(band.bits.tolist()) for band in segment.bands),
        starts=of_segment("starts", starts, (sum(map(len, starts)),)),
        band_rows=of_segment("band_rows", band_rows, (len(band_rows), rows)),
        band_codes=of_segment("band_codes", band_codes, (len(band_codes), segment.blocks.size)),
        removed=store("removed", [part.removed_masks()], (-(-rows // BLOCK_ROWS),), part.files)
        if part.removed_rows
        else None,
    )


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1).data


def content_from(manifest: Manifest, read: ArrayReader, folder: Path) -> Content:
    """An index of the arrays that `read` hands out, each asked for once.

    Raises CorruptFileError, with `folder` in its path, for a part of which no row is left: an
    index drops such parts, and nothing else expects one.
    """
    arrays = {name: read(file) for name, file in manifest.files().items()}

    def part_from(stored: StoredPart) -> LiveSegment:
        part = _part_from(stored, manifest.n_bits, arrays)
        if not len(part) and stored.removed is not None:
            raise CorruptFileError(folder / stored.removed.name, "must leave a row of its part")
        return part

    state = State(
        tuple(part_from(part) for part in manifest.segments),
        None if manifest.tail is None else part_from(manifest.tail),
        manifest.next_id,
    )
    return Content(manifest.n_bits, manifest.bitorder, manifest.options, state)


def _part_from(part: StoredPart, n_bits: int, arrays: dict[str, Array]) -> LiveSegment:
    def array(file: ArrayFile | None) -> Any:  # noqa: ANN401
        return None if file is None else arrays[file.name]

    blocks, starts = array(part.codes), array(part.starts)
    band_rows, band_codes = array(part.band_rows), array(part.band_codes)
    bands = []
    first = 0
    for number, bits in enumerate(part.bands):
        end = first + 2 ** len(bits) + 1
        rows = None if number == 0 else band_rows[number - 1]
        own_blocks = blocks if number == 0 else band_codes[number - 1]
        bands.append(Band(np.array(bits, dtype=np.uint16), starts[first:end], rows, own_blocks))
        first = end
    segment = Segment(
        n_bits,
        blocks,
        range(part.ids, part.ids + part.rows) if isinstance(part.ids, int) else array(part.ids),
        array(part.by_id),
        tuple(bands),
        files={file.kind: file for file in part.files()},
    )
    masks = array(part.removed)
    removed = None if masks is None else _core.RowMask(masks, part.rows)
    return LiveSegment(segment, removed, {} if part.removed is None else {"removed": part.removed})
