"""Base classes of the paper's methods over hash tables, their results and their counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh import _paper
from bitweigh._checks import as_bitorder, as_codes, as_costs, as_integer, as_k, as_n_bits
from bitweigh._results import Neighbours, SearchResult
from bitweigh.typing import BitOrder, Codes

__all__ = ["MAX_KEY_BITS", "PaperIndex", "PaperResult", "ProbeStats", "SplitIndex", "empty_result"]

MAX_KEY_BITS = 32


def empty_result(nq: int, k: int) -> SearchResult:
    """Uninitialised arrays (nq, k) for answers."""
    return SearchResult(np.empty((nq, k)), np.empty((nq, k), dtype=np.int64))


class ProbeStats(NamedTuple):
    """Counters of a search: integers, or int64 ``(nq,)`` for several queries."""

    buckets: int | NDArray[np.int64]
    """Buckets probed."""
    empty_buckets: int | NDArray[np.int64]
    """Probed buckets without a row."""
    candidates: int | NDArray[np.int64]
    """Rows seen for the first time, and so compared."""
    duplicates: int | NDArray[np.int64]
    """Rows seen again in another table."""
    rounds: int | NDArray[np.int64]
    """Rounds of Alg. 2: one bucket of each table."""


class PaperResult(Neighbours):
    """The k nearest rows, as in `SearchResult`, with the counters of each query in ``stats``."""

    stats: ProbeStats


class PaperIndex(ABC):
    """Codes in hash tables, searched one query after the other on one thread."""

    def __init__(self, codes: ArrayLike, n_bits: int, bitorder: BitOrder) -> None:
        """Check and copy the codes."""
        self._n_bits = as_n_bits(n_bits)
        self._bitorder = as_bitorder(bitorder)
        # A copy: the tables must not outlive the codes they were built from.
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

    def search(self, costs: ArrayLike, k: int) -> PaperResult:
        """Find the k nearest rows of one query, or of several one after the other.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
            ``costs[i, v]`` is paid by a code whose bit i is v.
        k : int
            Number of neighbours, at least 1.

        Returns
        -------
        PaperResult
            ``distances`` float64 (nq, k) and row numbers ``ids`` int64 (nq, k), nearest first,
            padded with +inf and -1; ``(k,)`` for a single query. Sums are float64 but in another
            order than in the definition. As in the paper, it is unspecified which of several rows
            at the K-th distance are returned.

        """
        checked, single = as_costs(costs, self._n_bits)
        found = empty_result(len(checked), as_k(k))
        counts = np.empty((len(checked), len(ProbeStats._fields)), dtype=np.int64)
        self._run(checked, found, counts)
        if single:
            result = PaperResult(found.distances[0], found.ids[0])
            result.stats = ProbeStats(*counts[0].tolist())
        else:
            result = PaperResult(*found)
            result.stats = ProbeStats(*counts.T.copy())
        return result


class SplitIndex(PaperIndex):
    """Codes cut into m substrings, with a hash table for each."""

    def __init__(self, codes: ArrayLike, n_bits: int, m: int | None, bitorder: BitOrder) -> None:
        """Check and copy the codes; `m` defaults to the method's rule."""
        super().__init__(codes, n_bits, bitorder)
        if m is None:
            m = self._tables_by_rule(self._n_bits, len(self._codes))
        self._m = as_integer(m, "m", -(-self._n_bits // MAX_KEY_BITS), self._n_bits)

    @staticmethod
    def _tables_by_rule(n_bits: int, n: int) -> int:
        return _paper.substrings_by_rule(n_bits, n)

    @property
    def m(self) -> int:
        """Number of tables."""
        return self._m
