"""Input vectors: checks, seeded samples, and blocks of float64.

Apart from samples, no more than a block of the input is copied, so a memory map larger than memory
will do. Input is accepted or refused as by scikit-learn's own check, with messages that its tests
recognise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_array

__all__ = ["as_out", "as_vectors", "blocks", "mean_of", "sample_rows", "unit_rows"]

# Values in a block: 2 MB as float64, so that a block and its projection stay in cache.
BLOCK_VALUES = 2**18


def as_vectors(
    X: object,  # noqa: N803
    owner: str,
    n_features: int | None = None,
    *,
    name: str = "X",
) -> NDArray[Any]:
    """Real vectors ``(n, n_features)``, in their own dtype and not copied.

    Strings, complex and sparse data are refused here; NaN and infinities by `blocks`, so that
    nothing is read twice.
    """
    if type(X).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{name} must be dense, got sparse data: use {name}.toarray()")
    array = as_array(X, name, allow_objects=True)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real, got {array.dtype}")
    if array.dtype.kind == "O":
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, n_features), got {array.shape}. Reshape your data: a "
            f"single vector is {name}[np.newaxis]"
        )
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but {owner} is expecting {n_features} features "
            "as input"
        )
    return array


def as_out(
    out: NDArray[Any] | None, shape: tuple[int, int], dtype: type[np.generic]
) -> NDArray[Any]:
    """The array to write into: `out` if it fits, or a new one."""
    if out is None:
        return np.empty(shape, dtype=dtype)
    name = np.dtype(dtype).name
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        actual = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be an array of {name}, got {actual}")
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("out must be writeable, got a read-only array")
    return out


def sample_rows(
    vectors: NDArray[Any], max_rows: int, generator: np.random.Generator
) -> NDArray[Any]:
    """All rows, or `max_rows` of them drawn without repeats, in their original order."""
    if len(vectors) <= max_rows:
        return vectors
    chosen = generator.choice(len(vectors), max_rows, replace=False, shuffle=False)
    sample: NDArray[Any] = vectors[np.sort(chosen)]
    return sample


def blocks(
    vectors: NDArray[Any], n_bits: int = 1, *, name: str = "X", sampled: bool = False
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the rows in blocks of finite float64, each with the number of its first row.

    A block, and its projection to `n_bits` numbers per row, each have at most `BLOCK_VALUES` values
    unless a single row has more. If they are `sampled`, an error says that it numbers those.
    """
    step = max(1, BLOCK_VALUES // max(vectors.shape[1], n_bits))
    for start in range(0, len(vectors), step):
        block = np.ascontiguousarray(vectors[start : start + step], dtype=np.float64)
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"{name} must be finite, got {value} at {name}[{start + row}, {column}]"
                + _of_sample(sampled)
            )
        yield start, block


def mean_of(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The mean of each feature of a sample, float64 ``(n_features,)``."""
    total = np.zeros(vectors.shape[1])
    for _, block in blocks(vectors, sampled=True):
        total += block.sum(axis=0)
    return total / len(vectors)


def unit_rows(
    block: NDArray[np.float64], first: int = 0, *, name: str = "X", sampled: bool = False
) -> NDArray[np.float64]:
    """The rows of a block, each divided by its length; `first` is the number of the first row.

    A row is first divided by its largest absolute value, so that the sum of squares neither
    overflows nor underflows.
    """
    largest = np.abs(block).max(axis=1, keepdims=True, initial=0.0)
    if not largest.all():
        row = first + int(np.argmin(largest != 0))
        raise ValueError(
            f"{name} must have no zero vectors, which have no cosine, got {name}[{row}]"
            + _of_sample(sampled)
        )
    scaled = block / largest
    unit: NDArray[np.float64] = scaled / np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    return unit


def _of_sample(sampled: bool) -> str:
    return " of the rows used" if sampled else ""
