"""Vectors kept as int8: the scale of each dimension, rounding to steps of it, and back.

A value x is kept as the integer x / scale, rounded to nearest and clipped to -127..127. The score
of a query q is the sum of (q * scale) * integer: scales go into the query.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._embeddings.inputs import float_blocks

__all__ = ["MIN_ROWS", "rounded_blocks", "scales_from", "scales_of"]

MIN_ROWS = 100
"""Fewer rows say too little about the range of a dimension."""

_MAX_STEPS = 127
# The largest of 100 values is exceeded by 1 % of others like them, but hardly ever by a factor.
_FAR_OUTSIDE = 2.0
_MAX_SHARE_OUTSIDE = 0.01


def scales_from(embeddings: NDArray[Any], name: str) -> NDArray[np.float64]:
    """The scale of each dimension: 1/127 of its largest absolute value.

    A dimension that is 0 everywhere gets the largest scale of all, or 1 if all are 0. ValueError
    for numbers that float32 cannot hold.
    """
    scales = scales_of(float_blocks(embeddings, name), embeddings.shape[1], name)
    return np.ones(embeddings.shape[1]) if scales is None else scales


def scales_of(blocks: Iterable[NDArray[Any]], dim: int, name: str) -> NDArray[np.float64] | None:
    """The scales for blocks of vectors, as `scales_from`; None if all numbers are 0."""
    largest = np.zeros(dim)
    for block in blocks:
        np.maximum(largest, np.abs(block).max(axis=0, initial=0.0), out=largest)
    if largest.max() > np.finfo(np.float32).max:
        raise ValueError(f"{name} must fit in float32, got {largest.max():.4g}")
    # A number so small that the division underflows counts as 0.
    scales = largest / _MAX_STEPS
    scales[scales == 0] = scales.max()
    return scales if scales.max() > 0 else None


def rounded_blocks(
    blocks: Iterable[NDArray[Any]], scales: NDArray[np.float64]
) -> Iterator[NDArray[np.int8]]:
    """Yield blocks of vectors as they are kept, and warn if many values were cut down a lot."""
    n_values = n_outside = 0
    for block in blocks:
        with np.errstate(over="ignore"):
            steps = np.rint(block / scales)
        n_values += steps.size
        n_outside += int((np.abs(steps) > _FAR_OUTSIDE * _MAX_STEPS).sum())
        yield np.clip(steps, -_MAX_STEPS, _MAX_STEPS).astype(np.int8)
    if n_outside > _MAX_SHARE_OUTSIDE * n_values:
        warnings.warn(
            f"{100 * n_outside / n_values:.0f} % of the values are more than twice as large as "
            "int8 has been calibrated for, and are clipped: pass calibration= with embeddings like "
            "all those to come",
            stacklevel=6,
        )
