"""The files that a build made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bitweigh._storage.arrays import Shape
from bitweigh.typing import BitOrder

__all__ = ["LeanBandFiles", "LeanFile", "LeanFiles"]


@dataclass(frozen=True, slots=True)
class LeanFile:
    """A finished .npy file."""

    path: Path
    dtype: str
    shape: Shape
    checksum: str
    """XXH3 of all bytes of the file, 128 bits in hexadecimal."""


@dataclass(frozen=True, slots=True)
class LeanBandFiles:
    """The files of one band."""

    bits: tuple[int, ...]
    blocks: LeanFile
    starts: LeanFile
    numbers: LeanFile
    """The ids by position, for the first band; for others the row numbers."""


@dataclass(frozen=True, slots=True)
class LeanFiles:
    """What a build made."""

    folder: Path
    n_bits: int
    bitorder: BitOrder
    rows: int
    next_id: int
    """Larger than every id."""
    bands: tuple[LeanBandFiles, ...]
