"""A matrix product in NumPy: unpacked float32 bits times weights, then a partition."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Codes, Costs, Ids, Query, UnavailableError
from benchmarks.peers.numpy_select import smallest

_MOST_BYTES = 2 * 10**9
_PIECE_ROWS = 1 << 17


class NumpyBlas:
    """The NumPy solution with memory to spare: 32 times that of the codes."""

    name = "NumPy BLAS"
    exact = True

    def build(self, codes: Codes, n_bits: int) -> None:
        """Unpack all bits to float32."""
        n_bytes = 4 * n_bits * len(codes)
        if n_bytes > _MOST_BYTES:
            raise UnavailableError(f"needs {n_bytes / 1e9:.1f} GB for unpacked bits")
        self._bits = np.empty((len(codes), n_bits), dtype=np.float32)
        for first in range(0, len(codes), _PIECE_ROWS):
            piece = slice(first, first + _PIECE_ROWS)
            self._bits[piece] = np.unpackbits(codes[piece], axis=1, bitorder="little")

    def n_bytes(self) -> int:
        """Return the size of the unpacked bits."""
        return self._bits.nbytes

    def prepare(self, costs: Costs) -> Query:
        """Return weights (nq, n_bits): what a set bit adds to the distance."""
        return np.ascontiguousarray(costs[:, :, 1] - costs[:, :, 0])

    def search(self, prepared: Query, k: int) -> Ids:
        """Search all queries together, piece by piece to limit the memory of the scores."""
        scores, ids = [], []
        for first in range(0, len(self._bits), _PIECE_ROWS):
            piece = prepared @ self._bits[first : first + _PIECE_ROWS].T
            nearest = np.stack([smallest(scores, k) for scores in piece])
            scores.append(np.take_along_axis(piece, nearest, axis=1))
            ids.append(nearest + first)
        every_score, every_id = np.concatenate(scores, axis=1), np.concatenate(ids, axis=1)
        best = np.stack([smallest(scores, k) for scores in every_score])
        return np.take_along_axis(every_id, best, axis=1)
