"""Embeddings to bits, in the two layouts of embedding packages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_array, as_choice
from bitweigh._embeddings.inputs import SIGN_BIT
from bitweigh.typing import Codes, Precision

__all__ = ["quantize"]


def quantize(x: ArrayLike, precision: Precision = "ubinary") -> NDArray[np.uint8 | np.int8]:
    """Quantise embeddings to one bit per dimension: whether it is greater than 0.

    Returns what ``sentence_transformers.quantize_embeddings`` returns, without that package.

    Parameters
    ----------
    x : float (dim,) or (n, dim)
        Embeddings, without NaN.
    precision : "ubinary" or "binary"
        "ubinary" is ``np.packbits(x > 0, axis=-1)``, "binary" is that minus 128.

    Returns
    -------
    uint8 ("ubinary") or int8 ("binary"), (n_bytes,) or (n, n_bytes), n_bytes = dim / 8 rounded up

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.embeddings import quantize
    >>> x = np.array([[0.3, -0.1, 0.2, 0.0, 0.7, -0.5, -0.2, 0.4]], dtype=np.float32)
    >>> quantize(x)
    array([[169]], dtype=uint8)
    >>> quantize(x, "binary")
    array([[41]], dtype=int8)

    """
    kind = as_choice(precision, "precision", ("ubinary", "binary"))
    array = as_array(x, "x")
    if array.dtype.kind != "f":
        raise TypeError(f"x must be float embeddings, got {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"x must have shape (dim,) or (n, dim), got {array.shape}")
    if np.isnan(array).any():
        position = np.argwhere(np.isnan(array))[0].tolist()
        raise ValueError(f"x must not contain NaN, got NaN at x{position}")
    packed: Codes = np.packbits(array > 0, axis=-1)
    return packed if kind == "ubinary" else (packed ^ SIGN_BIT).view(np.int8)
