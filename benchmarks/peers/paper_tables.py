"""Base class of the paper's methods over hash tables: their limits and their size."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, need_memory, need_rows
from bitweigh import paper

_MOST_ROWS = 2 * 10**7
_ENTRY_BYTES = 20
"""Maximum bytes of a row in a table while it is built."""


class PaperTables:
    """A method with a hash table for each of m substrings, m by the paper's rule."""

    _method: type[paper.MIWQ | paper.MIH]

    def build(self, codes: Codes, n_bits: int) -> None:
        """Sort the rows into the tables."""
        need_rows(len(codes), _MOST_ROWS, "its tables take minutes to build")
        need_memory(codes.nbytes + _ENTRY_BYTES * len(codes) * -(-n_bits // 16))
        self._codes_bytes = codes.nbytes
        self._index = self._method(codes, n_bits, bitorder="little")

    def n_bytes(self) -> int:
        """Return the size of the codes' copy, the tables, and a "seen" bit for each row."""
        n, n_bits, m = len(self._index), self._index.n_bits, self._index.m
        widths = [n_bits // m + (table < n_bits % m) for table in range(m)]
        return self._codes_bytes + sum(_table_bytes(n, width) for width in widths) + n // 8

    def prepare(self, costs: Costs) -> Query:
        """Return the costs as they are."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """Search one query after the other."""
        return np.asarray(self._index.search(prepared, k).ids)


def _table_bytes(n: int, width: int) -> int:
    """Return the size of a table over `width` bits, as in cpp/paper/substring_table.cpp.

    It has 4-byte numbers: a directory over the leading bits, a row for each code, and the keys of
    the rows if the directory does not cover all bits.
    """
    leading = min(width, max(n.bit_length() + 1, 8))
    return 4 * ((1 << leading) + 1 + n + (n if width > leading else 0))
