"""The lean layout in NumPy: the definition that streaming builds are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._storage.arrays import digest_of
from bitweigh._streaming.results import LeanFiles
from bitweigh.typing import BitOrder


def key_of(bits: NDArray[np.uint8], band: Sequence[int]) -> NDArray[np.int64]:
    """Return the key of each row; bit j of a key is bit band[j] of the code."""
    return bits[:, list(band)].astype(np.int64) @ (1 << np.arange(len(band), dtype=np.int64))


def lean_arrays(
    codes: NDArray[np.uint8],
    ids: NDArray[np.int64],
    layout: Sequence[Sequence[int]],
    n_bits: int,
    bitorder: BitOrder,
) -> list[dict[str, NDArray[Any]]]:
    """Return the arrays of each band of a lean segment."""
    bits = np.unpackbits(codes, axis=1, count=n_bits, bitorder=bitorder)
    first = np.argsort(key_of(bits, layout[0]), kind="stable")
    bits, ids = bits[first], ids[first]
    bands = []
    for number, band in enumerate(layout):
        keys = key_of(bits, band)
        rows = np.argsort(keys, kind="stable")
        arrays: dict[str, NDArray[Any]] = {
            "blocks": blocks_of_rests(bits[rows], band),
            "starts": np.searchsorted(keys[rows], np.arange(2 ** len(band) + 1)).astype(np.uint32),
        }
        if number == 0:
            arrays["ids"] = ids.astype(np.uint32 if ids.max() < 2**32 else np.int64)
        else:
            # Arrays of the bands after the first are stacked in the files of an index.
            arrays["rows"] = rows.astype(np.uint32)[np.newaxis]
            arrays["blocks"] = arrays["blocks"][np.newaxis]
        bands.append(arrays)
    return bands


def blocks_of_rests(bits: NDArray[np.uint8], band: Sequence[int]) -> NDArray[np.uint8]:
    """Return the bits that are not in the band, packed, in blocks of 32 rows."""
    rest_bits = [i for i in range(bits.shape[1]) if i not in set(band)]
    rests = np.packbits(bits[:, rest_bits], axis=1, bitorder="little")
    if not rest_bits:
        rests = np.zeros((len(bits), 1), np.uint8)
    padding = np.zeros((-len(rests) % 32, rests.shape[1]), np.uint8)
    blocks = np.concatenate([rests, padding]).reshape(-1, 32, rests.shape[1])
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1)


def check_lean(
    built: LeanFiles, codes: NDArray[np.uint8], ids: NDArray[np.int64] | None = None
) -> None:
    """Compare files, byte for byte, and their checksums with the definition."""
    numbers = np.arange(len(codes)) if ids is None else ids
    layout = [band.bits for band in built.bands]
    expected = lean_arrays(codes, numbers, layout, built.n_bits, built.bitorder)
    assert built.rows == len(codes)
    for band, arrays in zip(built.bands, expected, strict=True):
        files = (band.blocks, band.starts, band.numbers)
        for file, (name, array) in zip(files, arrays.items(), strict=True):
            assert name in file.path.name
            saved = file.path.with_name("expected.npy")
            np.save(saved, array)
            assert file.path.read_bytes() == saved.read_bytes(), file
            assert file.checksum == digest_of(saved.read_bytes())
            assert (file.dtype, file.shape) == (array.dtype.str, array.shape)
            saved.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the finished files of a build."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("band*.npy"))}
