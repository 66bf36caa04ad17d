"""Ways to make costs: what a search takes for a query.

``costs[i, v]`` is what a code pays if its bit i is v, and a distance is the sum. Any finite numbers
will do; the functions here make the usual ones. One query in gives ``(n_bits, 2)``, several give
``(nq, n_bits, 2)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_array, as_bitorder, as_codes, as_floats, as_n_bits
from bitweigh.typing import BitOrder, Floats

__all__ = ["from_weights", "hamming", "inner_product"]


def from_weights(
    queries: ArrayLike,
    weights: ArrayLike,
    *,
    per_query: bool = False,
    bitorder: BitOrder = "big",
) -> Floats:
    """Costs of binary queries with weighted bits: ``costs[i, v] = weights[i, q_i xor v]``.

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
        Says that a two-dimensional `weights` is ``(nq, n_bits)``.
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
    given = as_floats(weights, "weights")
    if given.ndim == 2 and per_query:
        n_bits = given.shape[1]
        pairs = np.stack([np.zeros_like(given), given], axis=-1)
    elif per_query:
        raise ValueError(
            f"weights must have shape (nq, n_bits) with per_query=True, got {given.shape}"
        )
    elif given.ndim == 1:
        n_bits = len(given)
        pairs = np.stack([np.zeros_like(given), given], axis=-1)
    elif given.ndim in (2, 3) and given.shape[-1] == 2:
        n_bits = given.shape[-2]
        pairs = given
    else:
        raise ValueError(
            "weights must have shape (n_bits,), (n_bits, 2) or (nq, n_bits, 2), or (nq, n_bits) "
            f"with per_query=True, got {given.shape}"
        )
    as_n_bits(n_bits)
    as_bitorder(bitorder)
    try:
        bits, single = _query_bits(queries, n_bits, bitorder)
    except ValueError as error:
        raise ValueError(
            f"{error}; weights of shape {given.shape} are for {n_bits} bits: give one for each bit "
            "of a code"
        ) from None
    if pairs.ndim == 3 and (single or len(pairs) != len(bits)):
        raise ValueError(
            f"weights of shape {given.shape} are for {len(pairs)} queries, "
            f"got {'a single query' if single else f'{len(bits)} queries'}"
        )
    costs = np.where(bits[..., np.newaxis], pairs[..., ::-1], pairs)
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
    bits, single = _query_bits(queries, as_n_bits(n_bits), as_bitorder(bitorder))
    costs = np.stack([bits, ~bits], axis=-1).astype(np.float64)
    return costs[0] if single else costs


def inner_product(queries: ArrayLike, *, signed: bool = False) -> Floats:
    """Costs that rank by the inner product of a float query with the bits, largest first.

    With bits in {0, 1} the distance is ``-<query, bits>``; with ``signed=True`` bits count as -1
    and +1. In exact arithmetic both rank alike. Sums of float64 are rounded, and differently in
    the two, so codes whose distances differ by no more than that may change places. For
    binary-quantised embeddings this is what is called rescoring with the float query, over all
    codes instead of a shortlist.

    Parameters
    ----------
    queries : float32 or float64 (n_bits,) or (nq, n_bits)
        Float queries.
    signed : bool
        Bits are -1 and +1 instead of 0 and 1.

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
    given = as_floats(queries, "queries")
    if given.ndim not in (1, 2):
        raise ValueError(f"queries must have shape (n_bits,) or (nq, n_bits), got {given.shape}")
    as_n_bits(given.shape[-1])
    return np.stack([given if signed else np.zeros_like(given), -given], axis=-1)


def _query_bits(
    queries: ArrayLike, n_bits: int, bitorder: BitOrder
) -> tuple[NDArray[np.bool_], bool]:
    """Unpacked bits (nq, n_bits), and whether a single query came."""
    array = as_array(queries, "queries")
    n_bytes = (n_bits + 7) // 8
    single = array.ndim == 1
    if single and array.dtype == np.uint8 and len(array) != n_bytes:
        raise ValueError(
            f"queries must have shape ({n_bytes},) or (nq, {n_bytes}) for {n_bits} bits, "
            f"got {array.shape}"
        )
    packed = as_codes(array[np.newaxis] if single else array, n_bits, bitorder, name="queries")
    bits = np.unpackbits(packed, axis=1, count=n_bits, bitorder=bitorder)
    return bits.astype(np.bool_), single
