"""FAISS IndexBinaryMultiHash: hash tables for plain Hamming distance, without weights."""

from __future__ import annotations

from math import log2

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, UnavailableError, need_memory
from benchmarks.peers.faiss_binary_flat import cheapest_codes
from benchmarks.peers.faiss_pattern_pq import import_faiss

_MOST_ENTRIES = 3 * 10**7
_ENTRY_BYTES = 100
"""Bytes of a row in a table: nearly every row has its own node and array."""


class FaissBinaryMultiHash:
    """Ranking of near codes by the bits that differ from the cheapest code: another distance."""

    name = "FAISS multi-hash, plain Hamming"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Build tables with the number of bits each that the paper's rule gives."""
        tables = max(1, round(n_bits / log2(len(codes))))
        if len(codes) * tables > _MOST_ENTRIES:
            raise UnavailableError(f"{tables} tables of {len(codes):,} rows take long to build")
        need_memory(codes.nbytes + _ENTRY_BYTES * len(codes) * tables)
        self._index = import_faiss().IndexBinaryMultiHash(n_bits, tables, n_bits // tables)
        self._index.add(codes)

    def n_bytes(self) -> None:
        """Return None: FAISS does not report it."""

    def prepare(self, costs: Costs) -> Query:
        """Return the cheapest code of each query."""
        return cheapest_codes(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries in one call.

        Enough bits of a key may differ to find most of the k nearest by Hamming distance.
        """
        self._index.nflip = 1 if k <= 10 else 2 if k <= 100 else 3
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)
