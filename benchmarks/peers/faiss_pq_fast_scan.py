"""FAISS IndexPQFastScan over the nibbles: fast, but its tables are rounded to 8 bits."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query
from benchmarks.peers.faiss_pattern_pq import import_faiss, inner_product_queries, pattern_pq

_BLOCK_ROWS = 32


class FaissPqFastScan:
    """A product quantiser with 4 bits per part, scanned with shuffles; not exact."""

    name = "FAISS PQ fast scan"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Pack the nibbles of an IndexPQ into blocks."""
        faiss = import_faiss()
        plain = pattern_pq(faiss, codes, n_bits, bits_per_part=4)
        self._index = faiss.IndexPQFastScan(plain, _BLOCK_ROWS)

    def prepare(self, costs: Costs) -> Query:
        """Queries whose inner product with the bits ranks alike."""
        return inner_product_queries(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """One call for all queries."""
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)
