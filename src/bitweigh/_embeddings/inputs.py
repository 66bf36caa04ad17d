"""Checks of embeddings and queries, and bits from floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_array
from bitweigh.hashers._vectors import blocks
from bitweigh.typing import Codes, Floats

__all__ = [
    "SIGN_BIT",
    "as_embeddings",
    "as_packed",
    "as_queries",
    "float_blocks",
    "one_query",
    "sign_codes",
    "signs_of",
]

# "binary" is "ubinary" minus 128, which is the same as flipping this bit.
SIGN_BIT = np.uint8(128)


def as_packed(embeddings: object, dim: int) -> NDArray[Any]:
    """Quantised embeddings of either layout as packed codes; `Index` checks the rest."""
    array = as_array(embeddings, "embeddings")
    n_bytes = (dim + 7) // 8
    if array.dtype not in (np.uint8, np.int8):
        hint = ""
        if array.dtype.kind == "f":
            hint = (
                "; quantise floats with bitweigh.embeddings.quantize(x), or keep them with rescore="
            )
        elif array.dtype == np.bool_:
            hint = "; pack bits with np.packbits(bits, axis=-1)"
        raise TypeError(
            "embeddings must be uint8 (precision 'ubinary') or int8 (precision 'binary'), got "
            f"{array.dtype}{hint}"
        )
    if array.ndim != 2 or array.shape[1] != n_bytes:
        hint = ""
        if array.shape == (n_bytes,):
            hint = "; pass a single embedding as embeddings[np.newaxis]"
        elif array.ndim == 2 and array.shape[1] == dim:
            hint = (
                "; one number per dimension is another quantisation: quantise with the precision "
                "'ubinary' or 'binary', or pack bits with np.packbits(bits, axis=-1)"
            )
        raise ValueError(
            f"embeddings must have shape (n, {n_bytes}) for dim={dim}, got {array.shape}{hint}"
        )
    if array.dtype == np.int8:
        return np.ascontiguousarray(array).view(np.uint8) ^ SIGN_BIT
    return array


def as_embeddings(embeddings: object, dim: int, name: str = "embeddings") -> NDArray[Any]:
    """Float embeddings ``(n, dim)``, not yet checked for NaN; see `float_blocks`."""
    array = as_array(embeddings, name)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        hint = ""
        if array.dtype in (np.uint8, np.int8):
            hint = ": with rescore= the vectors are kept, and bits are computed from them"
        raise TypeError(f"{name} must be float16, float32 or float64, got {array.dtype}{hint}")
    if array.ndim != 2 or array.shape[1] != dim:
        hint = ""
        if array.shape == (dim,):
            hint = f"; pass a single embedding as {name}[np.newaxis]"
        raise ValueError(f"{name} must have shape (n, {dim}), got {array.shape}{hint}")
    return array


def float_blocks(
    embeddings: NDArray[Any], name: str = "embeddings"
) -> Iterator[NDArray[np.float64]]:
    """Yield the rows in blocks of finite float64; ValueError for a number that is not finite."""
    for _, block in blocks(embeddings, name=name):
        yield block


def sign_codes(embeddings: NDArray[Any]) -> Codes:
    """One bit per dimension, whether it is greater than 0, packed; all numbers must be finite."""
    codes = [np.packbits(block > 0, axis=1) for block in float_blocks(embeddings)]
    n_bytes = (embeddings.shape[1] + 7) // 8
    return np.concatenate([np.empty((0, n_bytes), np.uint8), *codes])


def signs_of(codes: Codes, dim: int) -> NDArray[np.float64]:
    """The bits of packed codes as -1 and +1, (n, dim)."""
    signs: NDArray[np.float64] = 2.0 * np.unpackbits(codes, axis=1, count=dim) - np.float64(1)
    return signs


def as_queries(queries: object, dim: int, name: str = "queries") -> Floats:
    """Finite float queries ``(dim,)`` or ``(nq, dim)``."""
    array = as_array(queries, name)
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    if array.dtype.char not in "fd" or not array.dtype.isnative:
        hint = ""
        if array.dtype.kind == "f":
            hint = f"; convert with {name}.astype(np.float32)"
        elif array.dtype in (np.uint8, np.int8, np.bool_):
            hint = "; pass queries as the model returns them, only what is added is quantised"
        raise TypeError(f"{name} must be float16, float32 or float64, got {array.dtype}{hint}")
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise ValueError(f"{name} must have shape ({dim},) or (nq, {dim}), got {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        position = tuple(np.argwhere(~finite)[0].tolist())
        raise ValueError(f"{name} must be finite, got {array[position]} at {name}{list(position)}")
    return array


def one_query(query: object, dim: int) -> Floats:
    """A single finite query, ``(dim,)``."""
    checked = as_queries(query, dim, "query")
    if checked.ndim != 1:
        raise ValueError(f"query must be one query, (dim,), got {checked.shape}")
    return checked
