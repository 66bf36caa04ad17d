"""FAISS IndexPQ whose centroids are all bit patterns of a byte: the same distance, in float32."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query
from benchmarks.peers.faiss_pattern_pq import import_faiss, inner_product_queries, pattern_pq


class FaissPq:
    """A product quantiser with 8 bits per part: the codes are the packed bytes themselves."""

    name = "FAISS PQ"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Use the packed bytes as PQ codes."""
        self._index = pattern_pq(import_faiss(), codes, n_bits, bits_per_part=8)

    def n_bytes(self) -> int:
        """Return the size of the codes."""
        return int(self._index.codes.size())

    def prepare(self, costs: Costs) -> Query:
        """Return queries whose inner product with the bits gives the same ranking."""
        return inner_product_queries(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call."""
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)
