"""FAISS IndexBinaryFlat: plain Hamming distance, the baseline without weights."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query
from benchmarks.peers.faiss_pattern_pq import import_faiss


class FaissBinaryFlat:
    """Ranking by the number of bits that differ from the cheapest code: another distance."""

    name = "FAISS plain Hamming"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the packed codes."""
        self._index = import_faiss().IndexBinaryFlat(n_bits)
        self._index.add(codes)

    def n_bytes(self) -> int:
        """Return the size of the codes."""
        return int(self._index.xb.size())

    def prepare(self, costs: Costs) -> Query:
        """Return the cheapest code of each query."""
        return cheapest_codes(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call."""
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)


def cheapest_codes(costs: Costs) -> Query:
    """Return the packed codes of least cost: a bit is 1 where that costs less."""
    return np.packbits(costs[:, :, 0] > costs[:, :, 1], axis=1, bitorder="little")
