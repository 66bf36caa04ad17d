"""bitweigh's own index; its costs are the queries as they are."""

from __future__ import annotations

import bitweigh
from benchmarks.peers import Codes, Costs, Ids, Query


class BitweighScan:
    """The scan of bitweigh.Index with one thread."""

    name = "bitweigh"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the codes; row numbers become the ids."""
        self._index = bitweigh.Index(n_bits, bitorder="little")
        self._index.add(codes)

    def prepare(self, costs: Costs) -> Query:
        """Nothing to convert."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """One call for all queries."""
        result = self._index.search(prepared, k, threads=1, method="scan")
        return result[1]
