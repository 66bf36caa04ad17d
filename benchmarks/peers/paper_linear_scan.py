"""The paper's Linear Scan: a table of 256 sums per byte, in C++, float32."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query
from bitweigh import paper


class PaperLinearScan:
    """bitweigh.paper.linear_scan, one query after the other."""

    name = "paper linear scan"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:  # noqa: ARG002
        """Store the codes as they are."""
        self._codes = codes

    def n_bytes(self) -> int:
        """Return the size of the codes."""
        return self._codes.nbytes

    def prepare(self, costs: Costs) -> Query:
        """Return the costs as they are."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """Loop over the queries."""
        return np.stack(
            [paper.linear_scan(self._codes, query, k, bitorder="little").ids for query in prepared]
        )
