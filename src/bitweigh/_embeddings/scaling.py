"""Vectors kept as int8: the scale of each dimension, rounding to steps of it, and back.

A value x is kept as the integer x / scale, rounded to nearest and clipped to -127..127. The score
of a query q is the sum of (q * scale) * integer: scales go into the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._embeddings.inputs import float_blocks

__all__ = ["rounded", "scales_from", "scales_of_first"]

_MAX_STEPS = 127
# Fewer rows say too little about the range of a dimension.
_MIN_ROWS = 100


def scales_from(embeddings: NDArray[Any], name: str) -> NDArray[np.float64]:
    """The scale of each dimension: 1/127 of its largest absolute value.

    A dimension that is 0 everywhere gets the largest scale of all.
    """
    largest = _largest(embeddings, name)
    return _scales(np.where(largest > 0, largest, largest.max()))


def scales_of_first(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    """The scales for the first embeddings that are added: if there are few, one for all."""
    if len(embeddings) >= _MIN_ROWS:
        return scales_from(embeddings, "embeddings")
    largest = _largest(embeddings, "embeddings")
    return _scales(np.full(len(largest), largest.max()))


def rounded(block: NDArray[np.float64], scales: NDArray[np.float64]) -> NDArray[np.int8]:
    """The integers that a block of vectors is kept as."""
    with np.errstate(over="ignore"):
        steps = np.rint(block / scales)
    return np.clip(steps, -_MAX_STEPS, _MAX_STEPS).astype(np.int8)


def _largest(embeddings: NDArray[Any], name: str) -> NDArray[np.float64]:
    """The largest absolute value of each dimension."""
    largest = np.zeros(embeddings.shape[1])
    for block in float_blocks(embeddings, name):
        np.maximum(largest, np.abs(block).max(axis=0), out=largest)
    return largest


def _scales(largest: NDArray[np.float64]) -> NDArray[np.float64]:
    scales = largest / _MAX_STEPS
    # Zeros, and numbers so small that the division underflows.
    scales[scales == 0] = 1.0
    return scales
