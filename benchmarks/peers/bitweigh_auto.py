"""bitweigh's index with default options; costs are its queries."""

from __future__ import annotations

import bitweigh
from benchmarks.peers import Codes, Costs, Ids, Query


class Bitweigh:
    """bitweigh.Index with bands and otherwise default options, on one thread."""

    name = "bitweigh"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the codes, with row numbers as ids, and build the bands."""
        self._index = bitweigh.Index(n_bits, bitorder="little", build="manual")
        self._index.add(codes)
        self._index.build(threads=1)

    def n_bytes(self) -> int:
        """Return the index's own figure."""
        return self._index.memory().total

    def prepare(self, costs: Costs) -> Query:
        """Return the costs as they are."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call."""
        return self._index.search(prepared, k, threads=1).ids
