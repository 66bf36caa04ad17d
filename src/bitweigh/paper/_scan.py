"""The paper's exhaustive methods: Linear Scan and, by plain Hamming distance, Baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitweigh import _paper
from bitweigh._checks import as_bitorder, as_codes, as_costs, as_k, n_bits_of
from bitweigh._results import SearchResult
from bitweigh.paper._tables import empty_result
from bitweigh.typing import BitOrder, Codes

__all__ = ["hamming_ranking", "linear_scan"]


def linear_scan(
    codes: ArrayLike,
    costs: ArrayLike,
    k: int,
    *,
    dtype: DTypeLike = np.float32,
    bitorder: BitOrder = "big",
) -> SearchResult:
    """Score every code with a 256-entry table per byte: the paper's Linear Scan.

    One thread.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
        One query, or several that are answered one after the other.
    k : int
        Number of neighbours, at least 1.
    dtype : float32 or float64
        Precision of tables and sums. float32 is faster and usual for such scans; it rounds the
        distances.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Returns
    -------
    SearchResult
        ``distances`` float64 (nq, k) and row numbers ``ids`` int64 (nq, k), padded with +inf and
        -1; ``(k,)`` for a single query.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> codes = np.packbits([[0, 0, 1], [1, 0, 1]], axis=1)
    >>> paper.linear_scan(codes, np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 1)
    SearchResult(distances=array([-0.5]), ids=array([0]))

    """
    packed, checked, found, order, single = _prepare(codes, costs, k, bitorder)
    narrow = np.dtype(dtype) == np.float32
    if not narrow and np.dtype(dtype) != np.float64:
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    if (
        narrow
        and (
            np.abs(checked[np.isfinite(checked)]) > np.finfo(np.float32).max / checked.shape[1]
        ).any()
    ):
        raise ValueError("costs are too large for sums in float32; dtype=np.float64 takes them")
    _paper.linear_scan(packed, checked, found.distances, found.ids, order, narrow)
    return SearchResult(found.distances[0], found.ids[0]) if single else found


def hamming_ranking(
    codes: ArrayLike, costs: ArrayLike, k: int, *, bitorder: BitOrder = "big"
) -> SearchResult:
    """Rank every code by plain Hamming distance to the cheapest code: the paper's Baseline.

    The weights are lost, so this is not exact. One thread.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
        One query or several. Only which of the two costs of a bit is smaller matters.
    k : int
        Number of neighbours, at least 1.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Returns
    -------
    SearchResult
        Hamming ``distances`` float64 (nq, k) and row numbers ``ids`` int64 (nq, k), padded with
        +inf and -1; equal distances in ascending row. ``(k,)`` for a single query.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import paper
    >>> codes = np.packbits([[0, 0, 1], [1, 0, 1]], axis=1)
    >>> paper.hamming_ranking(codes, np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]]), 2)
    SearchResult(distances=array([0., 1.]), ids=array([0, 1]))

    """
    packed, checked, found, order, single = _prepare(codes, costs, k, bitorder)
    _paper.hamming_ranking(packed, checked, found.distances, found.ids, order)
    return SearchResult(found.distances[0], found.ids[0]) if single else found


def _prepare(
    codes: ArrayLike, costs: ArrayLike, k: int, bitorder: BitOrder
) -> tuple[Codes, NDArray[np.float64], SearchResult, BitOrder, bool]:
    """Checked codes, costs (nq, n_bits, 2), result (nq, k), bit order, whether it is one query."""
    order = as_bitorder(bitorder)
    checked, single = as_costs(costs, n_bits_of(costs))
    packed = as_codes(codes, checked.shape[1], order)
    return packed, checked, empty_result(len(checked), as_k(k)), order, single
