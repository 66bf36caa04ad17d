"""Costs, the form in which a search takes its queries, made in the usual ways.

``costs[i, v]`` is what a code pays if its bit i is v; the distance of the code is the sum. Any
finite numbers will do. Each function here returns ``(n_bits, 2)`` for a single query and
``(nq, n_bits, 2)`` for several.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_array, as_bitorder, as_codes, as_floats, as_n_bits
from bitweigh.typing import BitOrder, Codes, Floats

__all__ = ["from_weights", "hamming", "inner_product"]


def from_weights(
    queries: ArrayLike,
    weights: ArrayLike,
    *,
    per_query: bool = False,
    bitorder: BitOrder = "big",
) -> Floats:
    """Costs for binary queries with weighted bits: ``costs[i, v] = weights[i, q_i xor v]``.

    This is Eq. 1 of the paper: its weight function w_i(x) of x = q_i xor g_i.

    Parameters
    ----------
    queries : uint8 (n_bytes,) or (nq, n_bytes)
        Packed binary queries.
    weights : float32 or float64
        ``(n_bits,)``: paid where query and code differ, 0 where they agree.
        ``(n_bits, 2)``: ``weights[i, 0]`` where bit i agrees, ``weights[i, 1]`` where it differs.
        ``(nq, n_bits, 2)``: the same for each query.
        ``(nq, n_bits)``: one weight per bit for each query, only with ``per_query=True``.
    per_query : bool
        Whether a two-dimensional `weights` is ``(nq, n_bits)``.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Returns
    -------
    the dtype of `weights`, (n_bits, 2) for a single query, (nq, n_bits, 2) for several

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import costs
    >>> query = np.packbits([1, 0, 1])  # (1,) uint8
    >>> costs.from_weights(query, np.array([0.5, 2.0, 1.0]))
    array([[0.5, 0. ],
           [0. , 2. ],
           [1. , 0. ]])

    """
    pairs = weight_pairs(weights, per_query=per_query)
    n_bits = as_n_bits(pairs.shape[-2])
    as_bitorder(bitorder)
    try:
        packed, single = packed_queries(queries, n_bits, bitorder)
    except ValueError as error:
        raise ValueError(
            f"{error}; weights of shape {np.shape(weights)} are for {n_bits} bits: give one for "
            "each bit of a code"
        ) from None
    check_weights_fit(pairs, np.shape(weights), len(packed), single)
    costs = expanded(packed, pairs, bitorder)
    return costs[0] if single else costs


def hamming(queries: ArrayLike, n_bits: int, *, bitorder: BitOrder = "big") -> NDArray[np.float64]:
    """Costs that make the distance the plain Hamming distance: 1 for each differing bit.

    Parameters
    ----------
    queries : uint8 (n_bytes,) or (nq, n_bytes)
        Packed binary queries.
    n_bits : int
        Bits of a code.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Returns
    -------
    float64 (n_bits, 2) for a single query, (nq, n_bits, 2) for several

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import costs
    >>> costs.hamming(np.packbits([1, 0, 1]), 3)
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])

    """
    packed, single = packed_queries(queries, as_n_bits(n_bits), as_bitorder(bitorder))
    costs = expanded(packed, weight_pairs(np.ones(n_bits)), bitorder).astype(np.float64, copy=False)
    return costs[0] if single else costs


def inner_product(queries: ArrayLike, *, signed: bool = False) -> Floats:
    """Costs that rank by the inner product of a float query with the bits, largest first.

    With bits in {0, 1} the distance is ``-<query, bits>``; with ``signed=True`` bits count as -1
    and +1. In exact arithmetic both rank alike. In float64 the two sums are rounded differently,
    so codes whose distances differ by no more than the rounding may change places. For
    binary-quantised embeddings this is known as rescoring with the float query, here over all
    codes instead of a shortlist.

    Parameters
    ----------
    queries : float32 or float64 (n_bits,) or (nq, n_bits)
        Float queries.
    signed : bool
        Whether bits count as -1 and +1 instead of 0 and 1.

    Returns
    -------
    the dtype of `queries`, (n_bits, 2) for a single query, (nq, n_bits, 2) for several

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh import costs
    >>> costs.inner_product(np.array([0.5, -2.0], dtype=np.float32))
    array([[ 0. , -0.5],
           [ 0. ,  2. ]], dtype=float32)

    """
    checked = as_floats(queries, "queries")
    if checked.ndim not in (1, 2):
        raise ValueError(f"queries must have shape (n_bits,) or (nq, n_bits), got {checked.shape}")
    as_n_bits(checked.shape[-1])
    return np.stack([checked if signed else np.zeros_like(checked), -checked], axis=-1)


def weight_pairs(weights: ArrayLike, *, per_query: bool = False) -> Floats:
    """The weights of `from_weights` for bits that agree and that differ, (..., n_bits, 2)."""
    checked = as_floats(weights, "weights")
    if per_query and checked.ndim != 2:
        raise ValueError(
            f"weights must have shape (nq, n_bits) with per_query=True, got {checked.shape}"
        )
    if per_query or checked.ndim == 1:
        return np.stack([np.zeros_like(checked), checked], axis=-1)
    if checked.ndim in (2, 3) and checked.shape[-1] == 2:
        return checked
    raise ValueError(
        "weights must have shape (n_bits,), (n_bits, 2) or (nq, n_bits, 2), or (nq, n_bits) "
        f"with per_query=True, got {checked.shape}"
    )


def check_weights_fit(pairs: Floats, shape: tuple[int, ...], nq: int, single: bool) -> None:
    """Raise ValueError for weights of each query, given in that shape, of other queries."""
    if pairs.ndim == 3 and (single or len(pairs) != nq):
        raise ValueError(
            f"weights of shape {shape} are for {len(pairs)} queries, "
            f"got {'a single query' if single else f'{nq} queries'}"
        )


def expanded(packed: Codes, pairs: Floats, bitorder: BitOrder) -> Floats:
    """The costs (nq, n_bits, 2) of packed queries with such weights."""
    bits = np.unpackbits(packed, axis=1, count=pairs.shape[-2], bitorder=bitorder)
    differing: Floats = np.where(bits[..., np.newaxis], pairs[..., ::-1], pairs)
    return differing


def packed_queries(queries: ArrayLike, n_bits: int, bitorder: BitOrder) -> tuple[Codes, bool]:
    """Packed queries (nq, n_bytes), and whether `queries` is a single query."""
    array = as_array(queries, "queries")
    n_bytes = (n_bits + 7) // 8
    single = array.ndim == 1
    if single and array.dtype == np.uint8 and len(array) != n_bytes:
        raise ValueError(
            f"queries must have shape ({n_bytes},) or (nq, {n_bytes}) for {n_bits} bits, "
            f"got {array.shape}"
        )
    return as_codes(array[np.newaxis] if single else array, n_bits, bitorder, "queries"), single
