"""The definition of distance and search in plain NumPy, which every other path must equal exactly.

A distance is the sum of the costs that a code pays, added in float64 in this order: within each
group of 8 bits in ascending bit number, then the groups in ascending order, every sum starting
from +0.0. Floating-point sums depend on their order, so ``np.sum``, ``einsum`` and ``@`` would
define something else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_bitorder, as_codes, as_costs, as_ids, as_k, n_bits_of
from bitweigh._results import SearchResult
from bitweigh.typing import BitOrder

__all__ = ["distances", "search"]


def distances(
    codes: ArrayLike, costs: ArrayLike, *, bitorder: BitOrder = "big"
) -> NDArray[np.float64]:
    """The distance of every code to every query.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes.
    costs : float32 or float64 (n_bits, 2) or (nq, n_bits, 2)
        ``costs[i, v]`` is paid by a code whose bit i is v.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Returns
    -------
    float64 (n,) for a single query, (nq, n) for several

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import reference
    >>> codes = np.packbits([[0, 0, 1], [1, 0, 1]], axis=1)
    >>> costs = np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]])
    >>> reference.distances(codes, costs)
    array([-0.5,  4.5])

    """
    order = as_bitorder(bitorder)
    n_bits = n_bits_of(costs)
    checked, single = as_costs(costs, n_bits)
    packed = as_codes(codes, n_bits, order)
    if not np.isfinite(checked).all():
        raise ValueError("every cost must be finite")
    if (np.abs(checked / 2**1020).sum(axis=(1, 2)) > 1).any():
        raise ValueError("the absolute values of a query's costs must add up to at most 2**1020")
    bits = np.unpackbits(packed, axis=1, count=n_bits, bitorder=order)
    result = np.empty((len(checked), len(packed)))
    for query, query_costs in enumerate(checked):
        total = np.zeros(len(packed))
        for first in range(0, n_bits, 8):
            group = np.zeros(len(packed))
            for i in range(first, min(first + 8, n_bits)):
                group = group + query_costs[i, bits[:, i]]
            total = total + group
        result[query] = total
    return result[0] if single else result


def search(
    codes: ArrayLike,
    costs: ArrayLike,
    k: int,
    *,
    ids: ArrayLike | None = None,
    bitorder: BitOrder = "big",
) -> SearchResult:
    """The k codes that are smallest by (distance, id), padded with +inf and -1 if there are fewer.

    Parameters
    ----------
    codes, costs, bitorder
        As in :func:`distances`.
    k : int
        Number of neighbours, at least 1.
    ids : int64 (n,), optional
        Ids of the codes; by default 0 to n - 1.

    Returns
    -------
    SearchResult
        ``distances`` float64 and ``ids`` int64, (nq, k), or (k,) for a single query.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import reference
    >>> codes = np.packbits([[0, 0, 1], [1, 0, 1]], axis=1)
    >>> costs = np.array([[0.0, 5.0], [0.5, 1.0], [2.0, -1.0]])
    >>> reference.search(codes, costs, 1)
    SearchResult(distances=array([-0.5]), ids=array([0]))

    """
    k = as_k(k)
    all_distances = distances(codes, costs, bitorder=bitorder)
    n = all_distances.shape[-1]
    all_ids = np.arange(n) if ids is None else as_ids(ids)
    if len(all_ids) != n:
        raise ValueError(f"ids must have shape ({n},), one for each code, got {all_ids.shape}")
    found_distances = np.full((*all_distances.shape[:-1], k), np.inf)
    found_ids = np.full((*all_distances.shape[:-1], k), -1, dtype=np.int64)
    for query in np.ndindex(all_distances.shape[:-1]):
        order = np.lexsort((all_ids, all_distances[query]))[:k]
        found_distances[query][: len(order)] = all_distances[query][order]
        found_ids[query][: len(order)] = all_ids[order]
    return SearchResult(found_distances, found_ids)
