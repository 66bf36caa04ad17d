"""Runs: pieces of rows in ascending key of a band, each in a file, with the places to cut it.

A file has the codes, then the numbers (ids or row numbers), then `cuts`: uint32, how many rows have
a key below each multiple of 2^(key bits - cut bits).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh._streaming.files import read_into, write_whole
from bitweigh._streaming.workspace import Workspace
from bitweigh.typing import Codes

__all__ = ["Run", "cut_bits", "run_path", "write_run"]

_MAX_CUT_BITS = 12


def cut_bits(key_bits: int) -> int:
    """How many of the first bits of a key `cuts` distinguishes."""
    return min(key_bits, _MAX_CUT_BITS)


def run_path(folder: Path, band: int, number: int) -> Path:
    """The file of a run for a band."""
    return folder / f"run-{band}-{number:06d}"


def write_run(
    path: Path, band: _core.LeanBand, key_bits: int, codes: Codes, numbers: Codes
) -> None:
    """Write sorted rows."""
    bits = cut_bits(key_bits)
    step = 1 << (key_bits - bits)
    below = [band.count_below(codes, cut * step) for cut in range(2**bits)]
    cuts = np.array([*below, len(codes)], np.uint32)
    write_whole(path, [array.reshape(-1).view(np.uint8).data for array in (codes, numbers, cuts)])


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path
    rows: int
    n_bytes: int
    number_bytes: int
    key_bits: int

    @cached_property
    def cuts(self) -> NDArray[np.uint32]:
        """How many rows have a key below each multiple of 2^(key bits - cut bits)."""
        cuts = np.empty(2 ** cut_bits(self.key_bits) + 1, np.uint32)
        offset = self.rows * (self.n_bytes + self.number_bytes)
        read_into(self.path, offset, cuts.view(np.uint8).data)
        return cuts

    def count_below(self, band: _core.LeanBand, key: int) -> int:
        """How many rows have a smaller key."""
        step = 1 << (self.key_bits - cut_bits(self.key_bits))
        first = int(self.cuts[key // step])
        if key % step == 0:
            return first
        last = int(self.cuts[key // step + 1])
        if first == last:
            return first
        codes = np.memmap(self.path, np.uint8, "r", 0, (self.rows, self.n_bytes))
        return first + band.count_below(np.asarray(codes[first:last]), key)

    def read(self, first: int, last: int, workspace: Workspace, at: int, width: int) -> None:
        """Copy rows into the first arrays of a workspace, from row `at` on.

        Numbers become `width` bytes wide, which is at least as wide as they are here.
        """
        end = at + last - first
        codes = workspace.codes(0, end)[at:]
        read_into(self.path, first * self.n_bytes, codes.reshape(-1).data)
        offset = self.rows * self.n_bytes + first * self.number_bytes
        numbers = workspace.numbers(0, end, width)[at:]
        if width == self.number_bytes:
            read_into(self.path, offset, numbers.reshape(-1).data)
            return
        narrow = workspace.numbers(1, last - first, self.number_bytes)
        read_into(self.path, offset, narrow.reshape(-1).data)
        np.copyto(numbers.view(np.int64), narrow.view(np.uint32))

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)
