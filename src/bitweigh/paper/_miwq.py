"""The paper's two algorithms: MIWQ on a single table (Alg. 1) and on several (Alg. 2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _paper
from bitweigh._checks import as_n_bits
from bitweigh._results import SearchResult
from bitweigh.paper._tables import MAX_KEY_BITS, PaperIndex, SplitIndex
from bitweigh.typing import BitOrder

__all__ = ["MIWQ", "SingleIndex"]


class SingleIndex(PaperIndex):
    """Alg. 1 of the paper: one hash table over whole codes, buckets in ascending cost.

    Codes have at most 32 bits: with longer ones nearly all buckets are empty, and a search would
    walk through them for ever.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    n_bits : int
        Bits of a code, 1 to 32.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> index = paper.SingleIndex(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), 3)
    >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    PaperResult(distances=array([-0.5]), ids=array([0]))

    """

    def __init__(self, codes: ArrayLike, n_bits: int, *, bitorder: BitOrder = "big") -> None:
        """Build the table."""
        if as_n_bits(n_bits) > MAX_KEY_BITS:
            raise ValueError(
                f"n_bits must be at most {MAX_KEY_BITS} for a single table, got {n_bits}; "
                "MIWQ takes longer codes"
            )
        super().__init__(codes, n_bits, bitorder)
        self._compiled = _paper.SingleIndex(self._codes, self._n_bits, self._bitorder)

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._compiled.search(costs, found.distances, found.ids, counts)


class MIWQ(SplitIndex):
    """Alg. 2 of the paper, Multi-Index Weighted Querying, as printed.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    n_bits : int
        Bits of a code.
    m : int, optional
        Number of tables; by default the paper's rule, n_bits / log2 n, rounded. Their substrings
        have n_bits / m bits, rounded up or down, at most 32.
    order : "ascending" or "descending"
        Order by Eq. 10 in which a round probes the tables. The paper prints "ascending";
        "descending" stops earlier within a round.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> index = paper.MIWQ(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), 3)
    >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    PaperResult(distances=array([-0.5]), ids=array([0]))

    """

    def __init__(
        self,
        codes: ArrayLike,
        n_bits: int,
        *,
        m: int | None = None,
        order: Literal["ascending", "descending"] = "ascending",
        bitorder: BitOrder = "big",
    ) -> None:
        """Build the tables."""
        super().__init__(codes, n_bits, m, bitorder)
        if order not in ("ascending", "descending"):
            raise ValueError(f"order must be 'ascending' or 'descending', got {order!r}")
        self._descending = order == "descending"
        self._compiled = _paper.MultiIndex(self._codes, self._n_bits, self._bitorder, self._m)

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._compiled.search(costs, found.distances, found.ids, counts, self._descending)
