"""The files of a finished build as the folder of an index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bitweigh._index.bands import BandOptions
from bitweigh._index.row_layout import LayoutReason
from bitweigh._storage.arrays import PART_KINDS, ArrayData, ArrayFile, array_data, part_lengths
from bitweigh._storage.folder import listed_files
from bitweigh._storage.index_files import save_described
from bitweigh._streaming.plain import PlainFiles
from bitweigh._streaming.results import LeanFile, LeanFiles
from bitweigh.typing import BitOrder

__all__ = ["is_published", "publish_lean", "publish_plain"]

_KINDS = {kind.name: kind for kind in PART_KINDS}


def publish_plain(built: PlainFiles, path: str | os.PathLike[str], options: BandOptions) -> None:
    """Make a folder hold the index of plain segments, or leave it as it was.

    The files of the build are linked there and not copied, so both must be on one disk.
    """
    _publish(path, built.n_bits, built.bitorder, built.next_id, options, built.parts, built.arrays)


def publish_lean(
    built: LeanFiles,
    reason: LayoutReason | None,
    path: str | os.PathLike[str],
    options: BandOptions,
) -> None:
    """The same for the index of one lean segment, whose files get other names."""
    bands = tuple(band.bits for band in built.bands)
    lengths = part_lengths(built.rows, built.n_bits, bands, lean=True)
    directories = [np.load(band.starts.path, mmap_mode="r") for band in built.bands]
    starts = array_data(_KINDS["starts"], directories[0].dtype, directories, lengths)
    first, *others = built.bands
    placed = {"codes": _placed("codes", first.blocks), "ids": _placed("ids", first.numbers)}
    placed["starts"] = starts
    for other in others:
        placed["band_codes"] = _placed("band_codes", other.blocks)
        placed["band_rows"] = _placed("band_rows", other.numbers)
    part: dict[str, Any] = {"rows": built.rows}
    for name in ("codes", "ids", "first_id", "by_id", "bands", "starts", "band_rows", "band_codes"):
        part[name] = placed[name].file.name if name in placed else None
    part |= {"bands": [list(bits) for bits in bands], "removed": None, "lean": True}
    if reason is not None:
        part["layout_reason"] = reason
    arrays = {data.file.name: data for data in placed.values()}
    _publish(path, built.n_bits, built.bitorder, built.next_id, options, [part], arrays)


def _publish(
    path: str | os.PathLike[str],
    n_bits: int,
    bitorder: BitOrder,
    next_id: int,
    options: BandOptions,
    parts: list[dict[str, Any]],
    arrays: dict[str, ArrayData],
) -> None:
    fields = {
        "n_bits": n_bits,
        "bitorder": bitorder,
        "next_id": next_id,
        "bands": options.bands,
        "band_bits": options.band_bits,
        "memory_limit": options.memory_limit,
        "tail": None,
        "segments": parts,
        "files": {name: arrays[name].file.facts() for name in sorted(arrays)},
    }
    save_described(path, fields, arrays)


def is_published(built: LeanFiles | PlainFiles, folder: Path) -> bool:
    """Whether a folder holds the index of a build."""
    if isinstance(built, PlainFiles):
        return set(built.arrays) <= listed_files(folder)
    first, *others = built.bands
    placed = [("codes", first.blocks), ("ids", first.numbers)]
    placed += [("band_codes", other.blocks) for other in others]
    return {_placed(kind, file).file.name for kind, file in placed} <= listed_files(folder)


def _placed(kind: str, file: LeanFile) -> ArrayData:
    """A file of the build under the name that it has in the folder of an index."""
    stored = ArrayFile(f"{kind}-{file.checksum}.npy", file.dtype, file.shape)
    return ArrayData(stored, (), file.path)
