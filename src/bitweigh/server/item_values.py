"""Vectors and packed codes as requests give them, checked, and as the record keeps them: bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh.server.problems import Problem
from bitweigh.typing import Codes

__all__ = [
    "as_vector",
    "as_vectors",
    "decoded_code",
    "lengths",
    "rows_of_bytes",
    "unused_mask",
    "wrong_value",
]

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def decoded_code(text: str, n_bits: int, where: str) -> Codes:
    """A packed code from base64, uint8 (n_bytes,)."""
    try:
        packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    except (binascii.Error, ValueError) as error:
        raise wrong_value(f"{where} must be base64: {error}") from None
    n_bytes = (n_bits + 7) // 8
    if len(packed) != n_bytes:
        raise wrong_value(f"{where} must be {n_bytes} bytes ({n_bits} bits), got {len(packed)}")
    return packed


def as_vector(given: object, dim: int, where: str) -> NDArray[np.float32]:
    """One vector as float32 (dim,); raises Problem 422 that names what is wrong."""
    numbers = np.asarray(given, np.float64)
    if numbers.shape != (dim,):
        raise wrong_value(f"{where} must have {dim} numbers, got {lengths(numbers.shape)}")
    # False for NaN, too.
    if not np.abs(numbers).max() <= _LARGEST_FLOAT32:
        raise wrong_value(f"{where} must be finite and fit in float32")
    return numbers.astype("<f4")


def as_vectors(rows: NDArray[Any], dim: int) -> NDArray[np.float32] | None:
    """As `as_vector`, for many rows at once; None if some row is wrong."""
    if rows.shape[1] != dim:
        return None
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(rows, dtype="<f4")
    return numbers if np.isfinite(numbers).all() else None


def unused_mask(n_bits: int, bitorder: str) -> int:
    """The bits of a code's last byte that no bit of the code uses."""
    unused = -n_bits % 8
    return (1 << unused) - 1 if bitorder == "big" else 256 - (256 >> unused)


def lengths(shape: tuple[int, ...]) -> str:
    """A shape in an error: "3", "2 x 3", or "one" for a plain number."""
    return " x ".join(map(str, shape)) if shape else "one"


def rows_of_bytes(values: Sequence[bytes], n_bytes: int) -> Codes:
    """Values of equal length one below the other, uint8 (n, n_bytes)."""
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), n_bytes)


def wrong_value(detail: str) -> Problem:
    """The problem of a value that an item or a query cannot have."""
    return Problem(422, "invalid-value", detail)
