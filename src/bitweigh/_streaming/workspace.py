"""The memory of one worker: two copies of the rows of a piece, used again for the next piece."""

from __future__ import annotations

import numpy as np

from bitweigh._index.bands import BLOCK_ROWS
from bitweigh.typing import Codes

__all__ = ["Workspace", "row_bytes"]


def row_bytes(n_bytes: int, number_bytes: int) -> int:
    """Bytes of a workspace for each of its rows."""
    return 2 * (n_bytes + number_bytes)


class Workspace:
    """Two arrays of codes and two of numbers, the ids or row numbers of these codes.

    Sorting moves rows from one pair to the other. What it leaves free holds packed blocks.
    """

    def __init__(self, rows: int, n_bytes: int, number_bytes: int) -> None:
        """Reserve address space; a page takes memory when it is first written to."""
        self.rows = rows
        self.n_bytes = n_bytes
        # Blocks begin and end at multiples of BLOCK_ROWS.
        size = (rows + 2 * BLOCK_ROWS) * n_bytes
        self._codes = [np.empty(size, np.uint8) for _ in range(2)]
        self._numbers = [np.empty(rows * number_bytes, np.uint8) for _ in range(2)]

    def codes(self, which: int, n: int) -> Codes:
        """The first n codes of an array: uint8 (n, n_bytes)."""
        return self._codes[which][: n * self.n_bytes].reshape(n, self.n_bytes)

    def numbers(self, which: int, n: int, width: int) -> Codes:
        """The first n numbers of an array, as bytes: uint8 (n, width)."""
        return self._numbers[which][: n * width].reshape(n, width)

    def blocks(self, which: int, n_bytes: int) -> Codes:
        """The memory of an array of codes, for blocks: uint8 (n_bytes,)."""
        return self._codes[which][:n_bytes]
