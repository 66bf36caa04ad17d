"""FAISS IndexPQFastScan over the nibbles: fast, but its tables are rounded to 8 bits."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, need_memory
from benchmarks.peers.faiss_pattern_pq import import_faiss, inner_product_queries, pattern_pq

if TYPE_CHECKING:
    import faiss

_BLOCK_ROWS = 32


class FaissPqFastScan:
    """A product quantiser with 4 bits per part, scanned with shuffles; not exact."""

    name = "FAISS PQ fast scan"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Pack the nibbles into blocks."""
        need_memory(3 * codes.nbytes)
        self._index = fast_scan(import_faiss(), codes, n_bits)

    def n_bytes(self) -> int:
        """Return the size of the codes, padded to whole blocks."""
        return int(self._index.codes.size())

    def prepare(self, costs: Costs) -> Query:
        """Return queries whose inner product with the bits gives the same ranking."""
        return inner_product_queries(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call."""
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)


def fast_scan(module: ModuleType, codes: Codes, n_bits: int) -> faiss.IndexPQFastScan:
    """Return an IndexPQFastScan of the codes."""
    plain = pattern_pq(module, codes, n_bits, bits_per_part=4)
    index: faiss.IndexPQFastScan = module.IndexPQFastScan(plain, _BLOCK_ROWS)
    return index
