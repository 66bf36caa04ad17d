"""FAISS IndexRefine: the fast scan's shortlist, ranked again by the distance in float32."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, need_memory
from benchmarks.peers.faiss_pattern_pq import import_faiss, inner_product_queries, pattern_pq
from benchmarks.peers.faiss_pq_fast_scan import fast_scan

_LEAST_SHORTLIST = 32


class FaissPqRefine:
    """IndexPQFastScan and then IndexPQ over the same bits; nearly exact."""

    name = "FAISS PQ fast scan + refine"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Pack nibbles into blocks for the scan, and keep whole bytes for reranking."""
        need_memory(4 * codes.nbytes)
        faiss = import_faiss()
        self._scan = fast_scan(faiss, codes, n_bits)
        self._exact = pattern_pq(faiss, codes, n_bits, bits_per_part=8)
        self._index = faiss.IndexRefine(self._scan, self._exact)

    def n_bytes(self) -> int:
        """Return twice the size of the codes."""
        return int(self._scan.codes.size() + self._exact.codes.size())

    def prepare(self, costs: Costs) -> Query:
        """Return queries whose inner product with the bits gives the same ranking."""
        return inner_product_queries(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call, with a shortlist long enough to miss hardly any row."""
        self._index.k_factor = max(2.0, _LEAST_SHORTLIST / k)
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)
