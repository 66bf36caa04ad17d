"""bitweigh's scan: the same answer without bands."""

from __future__ import annotations

import bitweigh
from benchmarks.peers import Codes, Costs, Ids, Query


class BitweighScan:
    """bitweigh.Index with method "scan" and one thread."""

    name = "bitweigh scan"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the codes; row numbers become the ids."""
        self._index = bitweigh.Index(n_bits, bitorder="little", build="manual")
        self._index.add(codes)

    def n_bytes(self) -> int:
        """Return the index's own figure."""
        return self._index.memory().total

    def prepare(self, costs: Costs) -> Query:
        """Return the costs as they are."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call."""
        return self._index.search(prepared, k, threads=1, method="scan").ids
