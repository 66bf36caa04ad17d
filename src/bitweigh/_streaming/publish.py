"""The files of a finished build as the folder of an index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bitweigh._index.bands import BandOptions
from bitweigh._storage.arrays import PART_KINDS, ArrayData, ArrayFile, array_data, part_lengths
from bitweigh._storage.folder import listed_files
from bitweigh._storage.index_files import save_described
from bitweigh._streaming.results import LeanFile, LeanFiles

__all__ = ["is_published", "publish"]

_KINDS = {kind.name: kind for kind in PART_KINDS}


def publish(built: LeanFiles, path: str | os.PathLike[str], options: BandOptions) -> None:
    """Make a folder hold the index of one lean segment, or leave it as it was.

    The files of the build get other names there and are not copied, so both must be on one disk.
    """
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
    arrays = {data.file.name: data for data in placed.values()}
    fields = {
        "n_bits": built.n_bits,
        "bitorder": built.bitorder,
        "next_id": built.next_id,
        "bands": options.bands,
        "band_bits": options.band_bits,
        "memory_limit": options.memory_limit,
        "tail": None,
        "segments": [part],
        "files": {name: arrays[name].file.facts() for name in sorted(arrays)},
    }
    save_described(path, fields, arrays)


def is_published(built: LeanFiles, folder: Path) -> bool:
    """Whether a folder holds the index of a build."""
    listed = listed_files(folder)
    first, *others = built.bands
    placed = [("codes", first.blocks), ("ids", first.numbers)]
    placed += [("band_codes", other.blocks) for other in others]
    return all(_placed(kind, file).file.name in listed for kind, file in placed)


def _placed(kind: str, file: LeanFile) -> ArrayData:
    """A file of the build under the name that it has in the folder of an index."""
    stored = ArrayFile(f"{kind}-{file.checksum}.npy", file.dtype, file.shape)
    return ArrayData(stored, (), file.path)
