"""LSH: bits are the signs of random projections."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitweigh.hashers._base import LinearHasher
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._vectors import mean_of
from bitweigh.typing import BitOrder

__all__ = ["LSH"]


class LSH(LinearHasher):
    """Locality-sensitive hashing: ``g = W (x - mean)``, W independent N(0, 1), threshold 0.

    Parameters
    ----------
    n_bits : int
        Bits of a code; may exceed the number of features.
    seed : int
        Random seed of W, and of the sample if there are more than `max_fit_rows` rows.
    max_fit_rows : int
        Maximum number of rows to compute the mean from.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Attributes
    ----------
    mean_ : float64 (n_features,)
    projection_ : float64 (n_features, n_bits)
        W transposed.
    thresholds_ : float64 (n_bits,)
        Zeros.
    n_features_in_, n_bits_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import LSH
    >>> vectors = np.random.default_rng(1).standard_normal((1000, 16))  # (1000, 16)
    >>> hasher = LSH(64).fit(vectors)
    >>> hasher.transform(vectors).shape, hasher.project(vectors[:3]).shape
    ((1000, 8), (3, 64))

    """

    _learned: ClassVar[dict[str, Shape]] = {
        "mean_": ("n_features_in_",),
        "projection_": ("n_features_in_", "n_bits_"),
        "thresholds_": ("n_bits_",),
    }

    def __init__(
        self,
        n_bits: int,
        *,
        seed: int = 0,
        max_fit_rows: int = 100_000,
        bitorder: BitOrder = "big",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.n_bits = n_bits
        self.seed = seed
        self.max_fit_rows = max_fit_rows
        self.bitorder = bitorder

    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:
        self.mean_ = mean_of(rows)
        weights = generator.standard_normal((n_bits, rows.shape[1]))
        self.projection_ = np.ascontiguousarray(weights.T)
        self.thresholds_ = np.zeros(n_bits)
