"""The distance between a query and the vector that a code stands for, as a sum over bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BitTerms"]


class BitTerms(NamedTuple):
    """What each bit adds to a distance; arrays are float64 (n_bits,), g is the query's projection.

    A bit adds ``squares g^2 + slopes g + constants``, and if it is 1 ``gains g + extras`` as well.
    """

    squares: NDArray[np.float64]
    slopes: NDArray[np.float64]
    constants: NDArray[np.float64]
    gains: NDArray[np.float64]
    extras: NDArray[np.float64]

    @classmethod
    def zeros(cls, n_bits: int) -> BitTerms:
        """Terms that add nothing."""
        return cls(*(np.zeros(n_bits) for _ in cls._fields))
