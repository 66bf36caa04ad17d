"""The linear scan in NumPy: gathers from a table of 256 sums per byte, then a partition."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, need_rows
from benchmarks.peers.numpy_select import smallest

_MOST_ROWS = 2 * 10**7
_BITS_OF_BYTE = np.unpackbits(
    np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1, bitorder="little"
).astype(np.float32)


class NumpyLut:
    """The NumPy solution without unpacking the codes; float32."""

    name = "NumPy tables"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:  # noqa: ARG002
        """Store the codes by byte plane, so that gathers read memory in order."""
        need_rows(len(codes), _MOST_ROWS, "a query would take seconds")
        self._planes = np.ascontiguousarray(codes.T)

    def n_bytes(self) -> int:
        """Return the size of the codes."""
        return self._planes.nbytes

    def prepare(self, costs: Costs) -> Query:
        """Return the costs as they are; building the tables is part of a search."""
        return costs

    def search(self, prepared: Query, k: int) -> Ids:
        """Loop over the queries."""
        return np.stack([self._nearest(costs, k) for costs in prepared])

    def _nearest(self, costs: Costs, k: int) -> Ids:
        by_byte = costs.reshape(len(self._planes), 8, 2)
        flips = by_byte[:, :, 1] - by_byte[:, :, 0]
        tables = flips @ _BITS_OF_BYTE.T + by_byte[:, :, 0].sum(axis=1, keepdims=True)
        distances = tables[0].take(self._planes[0])
        for table, plane in zip(tables[1:], self._planes[1:], strict=True):
            distances += table.take(plane)
        return smallest(distances, k)
