"""PQTable, with which the paper compares: hash tables over product-quantised codes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _paper
from bitweigh._results import SearchResult
from bitweigh.paper._tables import SplitIndex
from bitweigh.typing import BitOrder

__all__ = ["PQTable"]


class PQTable(SplitIndex):
    """PQTable (Matsui et al. 2018) over weighted binary codes, as the paper adapts it.

    Every 8 bits of a code are a sub-code of a product quantiser, and the multi-sequence algorithm
    gives the buckets of a table in ascending cost.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    n_bits : int
        Bits of a code.
    m : int, optional
        Number of tables; by default n_bits / log2 n to the nearest power of two.
    merge : "own" or "max_heap"
        "own": the merge of PQTable, reconstructed: the tables take turns until k rows were seen in
        all of them. "max_heap": the merge of the paper's Alg. 2, its PQTable_max_heap.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> index = paper.PQTable(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), 3)
    >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    PaperResult(distances=array([-0.5]), ids=array([0]))

    """

    def __init__(
        self,
        codes: ArrayLike,
        n_bits: int,
        *,
        m: int | None = None,
        merge: Literal["own", "max_heap"] = "own",
        bitorder: BitOrder = "big",
    ) -> None:
        """Build the tables."""
        super().__init__(codes, n_bits, m, bitorder)
        if merge not in ("own", "max_heap"):
            raise ValueError(f"merge must be 'own' or 'max_heap', got {merge!r}")
        self._max_heap = merge == "max_heap"
        self._compiled = _paper.PqTable(self._codes, self._n_bits, self._bitorder, self._m)

    @staticmethod
    def _tables_by_rule(n_bits: int, n: int) -> int:
        return _paper.pq_tables_by_rule(n_bits, n)

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._compiled.search(costs, found.distances, found.ids, counts, self._max_heap)
