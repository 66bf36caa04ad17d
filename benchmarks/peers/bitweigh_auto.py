"""bitweigh's own index as one uses it; its costs are the queries as they are."""

from __future__ import annotations

import bitweigh
from benchmarks.peers import Codes, Costs, Ids, Query


class Bitweigh:
    """bitweigh.Index with its bands built and everything else by default; one thread."""

    name = "bitweigh"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the codes, row numbers being the ids, and build the bands."""
        self._index = bitweigh.Index(n_bits, bitorder="little", build="manual")
        self._index.add(codes)
        self._index.build(threads=1)

    def n_bytes(self) -> int:
        """As the index tells."""
        return self._index.memory().total

    def prepare(self, costs: Costs) -> Query:
        """Nothing to convert."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """One call for all queries."""
        return self._index.search(prepared, k, threads=1).ids
