"""FAISS IndexBinaryMultiHash: hash tables for plain Hamming distance, without weights."""

from __future__ import annotations

from math import log2

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, UnavailableError, need_memory
from benchmarks.peers.faiss_binary_flat import cheapest_codes
from benchmarks.peers.faiss_pattern_pq import import_faiss

_MOST_ENTRIES = 3 * 10**7
_ENTRY_BYTES = 100
"""Of a row in a table: a node and an array for nearly each of them."""


class FaissBinaryMultiHash:
    """Ranks near codes by the number of bits that differ from the cheapest: another distance."""

    name = "FAISS multi-hash, plain Hamming"
    exact = False

    def build(self, codes: Codes, n_bits: int) -> None:
        """Tables over as many bits each as the paper's rule has it."""
        tables = max(1, round(n_bits / log2(len(codes))))
        if len(codes) * tables > _MOST_ENTRIES:
            raise UnavailableError(f"{tables} tables of {len(codes):,} rows take long to build")
        need_memory(codes.nbytes + _ENTRY_BYTES * len(codes) * tables)
        self._index = import_faiss().IndexBinaryMultiHash(n_bits, tables, n_bits // tables)
        self._index.add(codes)

    def n_bytes(self) -> None:
        """FAISS does not tell."""

    def prepare(self, costs: Costs) -> Query:
        """The cheapest code."""
        return cheapest_codes(costs)

    def search(self, prepared: Query, k: int) -> Ids:
        """One call for all queries.

        So many bits of a key may differ that most of the k nearest by Hamming distance are found.
        """
        self._index.nflip = 1 if k <= 10 else 2 if k <= 100 else 3
        return np.asarray(self._index.search(prepared, k)[1], dtype=np.int64)
