"""bitweigh's own index as one uses it; its costs are the queries as they are."""

from __future__ import annotations

import os

import bitweigh
from benchmarks.peers import Codes, Costs, Ids, Query


class Bitweigh:
    """bitweigh.Index with its bands built and everything else by default; one thread."""

    name = "bitweigh"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Add the codes, row numbers being the ids, and build the bands."""
        os.environ["BITWEIGH_THREADS"] = "1"  # building has no argument for it
        self._index = bitweigh.Index(n_bits, bitorder="little")
        self._index.add(codes)
        self._index.build()

    def n_bytes(self) -> int:
        """As the index tells."""
        return self._index.memory().total

    def prepare(self, costs: Costs) -> Query:
        """Nothing to convert."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """One call for all queries."""
        return self._index.search(prepared, k, threads=1).ids
