"""The paper's two algorithms: MIWQ on a single table (Alg. 1) and on several (Alg. 2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _core
from bitweigh.checks import (
    BitOrder,
    Codes,
    as_bitorder,
    as_codes,
    as_costs,
    as_integer,
    as_k,
    as_n_bits,
)
from bitweigh.results import SearchResult

__all__ = ["MIWQ", "ProbeStats", "SingleIndex"]

_MAX_KEY_BITS = 32


class ProbeStats(NamedTuple):
    """What one query did."""

    buckets: int
    """Buckets probed."""
    empty_buckets: int
    """Of those, buckets without a row."""
    candidates: int
    """Rows met for the first time, and so compared."""
    duplicates: int
    """Rows met again in another table."""
    rounds: int
    """Rounds of Alg. 2: one bucket of each table."""


class _PaperIndex(ABC):
    """Codes in hash tables; one query at a time, one thread."""

    def __init__(self, codes: ArrayLike, n_bits: int, bitorder: BitOrder) -> None:
        self._n_bits = as_n_bits(n_bits)
        self._bitorder = as_bitorder(bitorder)
        # A copy: the tables must not outlive what they were built from.
        self._codes: Codes = as_codes(codes, self._n_bits, self._bitorder).copy()

    def __len__(self) -> int:
        """Return the number of codes."""
        return len(self._codes)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._n_bits

    @abstractmethod
    def _run(
        self,
        costs: NDArray[np.float64],
        found: SearchResult,
        counts: NDArray[np.int64],
    ) -> None: ...

    @overload
    def search(
        self, costs: ArrayLike, k: int, *, stats: Literal[False] = False
    ) -> SearchResult: ...
    @overload
    def search(
        self, costs: ArrayLike, k: int, *, stats: Literal[True]
    ) -> tuple[SearchResult, ProbeStats]: ...
    def search(
        self, costs: ArrayLike, k: int, *, stats: bool = False
    ) -> SearchResult | tuple[SearchResult, ProbeStats]:
        """Find the k nearest rows of one query.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query: ``costs[i, v]`` is paid by a code whose bit i is v.
        k : int
            How many neighbours, at least 1.
        stats : bool
            Also return what the query did.

        Returns
        -------
        SearchResult
            ``distances`` float64 (k,) and row numbers ``ids`` int64 (k,), nearest first, padded
            with +inf and -1. Sums are float64 but in another order than the definition's. As the
            paper has it, which of several rows at the K-th distance are returned is left open.

        """
        checked, single = as_costs(costs, self._n_bits)
        if not single:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        k = as_k(k)
        found = SearchResult(np.empty(k), np.empty(k, dtype=np.int64))
        counts = np.empty(len(ProbeStats._fields), dtype=np.int64)
        self._run(checked, found, counts)
        return (found, ProbeStats(*counts.tolist())) if stats else found


class SingleIndex(_PaperIndex):
    """Alg. 1 of the paper: one hash table over whole codes, buckets in ascending cost.

    At most 32 bits: of longer codes nearly all buckets are empty, and it would walk them for ever.

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
    SearchResult(distances=array([-0.5]), ids=array([0]))

    """

    def __init__(self, codes: ArrayLike, n_bits: int, *, bitorder: BitOrder = "big") -> None:
        """Build the table."""
        if as_n_bits(n_bits) > _MAX_KEY_BITS:
            raise ValueError(
                f"n_bits must be at most {_MAX_KEY_BITS} for a single table, got {n_bits}; "
                "MIWQ takes longer codes"
            )
        super().__init__(codes, n_bits, bitorder)
        self._core = _core.SingleIndex(self._codes, self._n_bits, self._bitorder)

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._core.search(costs, found.distances, found.ids, counts)


class MIWQ(_PaperIndex):
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
        In which order of Eq. 10 the tables of a round are probed. Ascending is what the paper
        prints; descending stops earlier within a round.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> index = paper.MIWQ(np.packbits([[0, 0, 1], [1, 0, 1]], axis=1), 3)
    >>> index.search(np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    SearchResult(distances=array([-0.5]), ids=array([0]))

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
        super().__init__(codes, n_bits, bitorder)
        if order not in ("ascending", "descending"):
            raise ValueError(f"order must be 'ascending' or 'descending', got {order!r}")
        if m is None:
            m = _core.substrings_by_rule(self._n_bits, len(self._codes))
        least = -(-self._n_bits // _MAX_KEY_BITS)
        self._m = as_integer(m, "m", least, self._n_bits)
        self._descending = order == "descending"
        self._core = _core.MultiIndex(self._codes, self._n_bits, self._bitorder, self._m)

    @property
    def m(self) -> int:
        """Number of tables."""
        return self._m

    def _run(
        self, costs: NDArray[np.float64], found: SearchResult, counts: NDArray[np.int64]
    ) -> None:
        self._core.search(costs, found.distances, found.ids, counts, self._descending)
