"""From runs to the files of a band: ranges of keys are read from all runs, sorted and written.

Merging the first band also writes the runs of the others, whose numbers are positions in it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bitweigh import _core
from bitweigh._index.bands import BLOCK_ROWS
from bitweigh._streaming.files import OutputArray
from bitweigh._streaming.plan import Plan
from bitweigh._streaming.ranges import Range
from bitweigh._streaming.runs import Run, run_path, write_run
from bitweigh._streaming.workspace import Workspace
from bitweigh.typing import Codes

__all__ = ["BandFiles", "Merging", "merge_range"]

# Entries of a directory, and rows put back in order, that are handled at a time.
_KEYS_AT_ONCE = 1 << 16
_ROWS_AT_ONCE = 1 << 16


class BandFiles:
    """The files of one band while they are written, and which of its ranges are in them."""

    def __init__(
        self, folder: Path, plan: Plan, number: int, rows: int, wide_ids: bool, ranges: list[Range]
    ) -> None:
        """Open the files, or create them."""
        self.number = number
        self.band = plan.band(number)
        self.ranges = ranges
        self._lock = threading.Lock()
        self._finished: set[int] = set()
        self._n_hashed = 0
        self.block_bytes = BLOCK_ROWS * self.band.n_rest_bytes
        n_blocks = -(-rows // BLOCK_ROWS)
        numbers = ("ids", "<i8" if wide_ids else "<u4") if number == 0 else ("rows", "<u4")
        self.arrays: dict[str, OutputArray] = {}
        n_starts = 2 ** plan.key_bits(number) + 1
        try:
            for name, dtype, length in (
                ("blocks", "|u1", n_blocks * self.block_bytes),
                ("starts", "<u4", n_starts),
                (*numbers, rows),
            ):
                path = folder / f"band{number}-{name}.npy"
                # Rows and rests of the bands after the first are stacked, band after band.
                stacked = number > 0 and name != "starts"
                shape = (1, length) if stacked else (length,)
                self.arrays[name] = OutputArray(path, dtype, shape)
            self.blocks, self.starts, self.numbers = self.arrays.values()
            self.starts.write(n_starts - 1, np.array([rows], np.uint32))
        except BaseException:
            self.close()
            raise

    @property
    def number_bytes(self) -> int:
        """Bytes of an id or row number."""
        return np.dtype(self.numbers.dtype).itemsize

    def sync(self) -> None:
        """Wait until all that was written is on disk."""
        for array in self.arrays.values():
            array.sync()

    def add_finished(self, numbers: Iterable[int]) -> None:
        """Hash, in order, the ranges that are finished."""
        with self._lock:
            self._finished.update(numbers)
            while self._n_hashed in self._finished:
                self._n_hashed += 1
            if self._n_hashed == 0:
                return
            last = self.ranges[self._n_hashed - 1]
            position = last.first_position + last.rows
            # The block of the last row may get more rows.
            self.blocks.hash_until(position // BLOCK_ROWS * self.block_bytes)
            self.starts.hash_until(last.last_key)
            self.numbers.hash_until(position)

    def close(self) -> None:
        """Close the files; may be called again."""
        for array in self.arrays.values():
            array.close()


@dataclass(frozen=True, slots=True)
class Merging:
    """What the ranges of a band are merged with."""

    folder: Path
    plan: Plan
    runs: Sequence[Run]
    files: BandFiles
    stop: _core.Stop


def merge_range(merging: Merging, part: Range, workspace: Workspace) -> None:
    """Write a range into the files of its band; for the first band, also runs of the others."""
    files, stop, n = merging.files, merging.stop, part.rows
    width = files.number_bytes
    done = 0
    for run, first, last in part.slices:
        merging.runs[run].read(first, last, workspace, done, width)
        done += last - first
    in_spare = files.band.sort(
        workspace.codes(0, n),
        workspace.numbers(0, n, width),
        workspace.codes(1, n),
        workspace.numbers(1, n, width),
        stop,
    )
    which = int(in_spare)
    codes = workspace.codes(which, n)
    if part.has_starts:
        _write_starts(files, part, codes, stop)
    files.numbers.write(part.first_position, workspace.numbers(which, n, width))
    _write_blocks(files, part, codes, workspace, 1 - which, stop)
    if files.number == 0:
        _write_other_runs(merging, part, workspace, which)
    files.sync()


def _write_starts(files: BandFiles, part: Range, codes: Codes, stop: _core.Stop) -> None:
    done = 0
    for first in range(part.first_key, part.last_key, _KEYS_AT_ONCE):
        last = min(part.last_key, first + _KEYS_AT_ONCE)
        end = done + files.band.count_below(codes[done:], last)
        starts = np.empty(last - first, np.uint32)
        files.band.starts(codes[done:end], first, part.first_position + done, starts, stop)
        files.starts.write(first, starts)
        done = end


def _write_blocks(
    files: BandFiles,
    part: Range,
    codes: Codes,
    workspace: Workspace,
    spare: int,
    stop: _core.Stop,
) -> None:
    """Write the blocks of a range. Blocks that it shares with its neighbours get its rows alone."""
    if part.rows == 0:
        return
    end = part.first_position + part.rows
    first_block = part.first_position // BLOCK_ROWS
    n_blocks = -(-end // BLOCK_ROWS) - first_block
    offset = part.first_position % BLOCK_ROWS
    blocks = workspace.blocks(spare, n_blocks * files.block_bytes)
    files.band.pack_rests(codes, offset, blocks, stop)
    whole_first = 0 if offset == 0 else 1
    whole_last = n_blocks if end % BLOCK_ROWS == 0 else n_blocks - 1
    if whole_first < whole_last:
        whole = blocks[whole_first * files.block_bytes : whole_last * files.block_bytes]
        files.blocks.write((first_block + whole_first) * files.block_bytes, whole)
    for block in {0, n_blocks - 1} - set(range(whole_first, whole_last)):
        first_row = offset if block == 0 else 0
        last_row = end - (first_block + block) * BLOCK_ROWS
        for plane in range(files.band.n_rest_bytes):
            at = block * files.block_bytes + plane * BLOCK_ROWS
            rests = blocks[at + first_row : at + min(last_row, BLOCK_ROWS)]
            files.blocks.write(first_block * files.block_bytes + at + first_row, rests)


def _write_other_runs(merging: Merging, part: Range, workspace: Workspace, which: int) -> None:
    """Write the rows of a range of the first band as runs of the others."""
    plan, n, first = merging.plan, part.rows, part.first_position
    for other in range(1, len(plan.layout)):
        band = plan.band(other)
        numbers = workspace.numbers(which, n, 4)
        for start in range(0, n, _ROWS_AT_ONCE):
            end = min(n, start + _ROWS_AT_ONCE)
            numbers[start:end].view(np.uint32)[:, 0] = np.arange(first + start, first + end)
        in_spare = band.sort(
            workspace.codes(which, n),
            numbers,
            workspace.codes(1 - which, n),
            workspace.numbers(1 - which, n, 4),
            merging.stop,
        )
        which = 1 - which if in_spare else which
        codes, numbers = workspace.codes(which, n), workspace.numbers(which, n, 4)
        path = run_path(merging.folder, other, part.number)
        write_run(path, band, plan.key_bits(other), codes, numbers)
        if other + 1 < len(plan.layout):
            # Back into the order of the first band, for the next one.
            restored = workspace.codes(1 - which, n)
            for start in range(0, n, _ROWS_AT_ONCE):
                part_of_rows = slice(start, start + _ROWS_AT_ONCE)
                rows = numbers[part_of_rows].view(np.uint32)[:, 0] - np.uint32(first)
                restored[rows] = codes[part_of_rows]
            which = 1 - which
