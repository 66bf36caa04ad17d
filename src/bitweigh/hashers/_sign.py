"""Sign: one bit per feature, as in binary-quantised embeddings."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import MAX_BITS
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import Shape
from bitweigh.hashers._vectors import blocks
from bitweigh.typing import BitOrder

__all__ = ["Sign"]


class Sign(Hasher):
    """One bit per feature: ``g = x``, threshold 0 or the median of the feature.

    With "zero" a code is what embedding libraries call binary quantisation. With "median" each bit
    is set in half of the training rows.

    Parameters
    ----------
    threshold : "zero" or "median"
        What a feature must exceed for its bit to be 1.
    seed : int
        Random seed of the sample if there are more than `max_fit_rows` rows.
    max_fit_rows : int
        Maximum number of rows to compute the median from.
    bitorder : "big" or "little"
        As in ``np.packbits``.

    Attributes
    ----------
    thresholds_ : float64 (n_bits,)
    n_features_in_, n_bits_ : int
        Both the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.hashers import Sign
    >>> vectors = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]], dtype=np.float32)
    >>> Sign(threshold="median").fit_transform(vectors)
    array([[  0],
           [  0],
           [192]], dtype=uint8)

    """

    _learned: ClassVar[dict[str, Shape]] = {"thresholds_": ("n_bits_",)}

    def __init__(
        self,
        *,
        threshold: Literal["zero", "median"] = "zero",
        seed: int = 0,
        max_fit_rows: int = 100_000,
        bitorder: BitOrder = "big",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.threshold = threshold
        self.seed = seed
        self.max_fit_rows = max_fit_rows
        self.bitorder = bitorder

    def _bits_for(self, n_features: int) -> int:
        if self.threshold not in ("zero", "median"):
            raise ValueError(f"threshold must be 'zero' or 'median', got {self.threshold!r}")
        if n_features > MAX_BITS:
            raise ValueError(f"X must have at most {MAX_BITS} features, got {n_features}")
        return n_features

    def _learn(self, rows: NDArray[Any], n_bits: int, generator: np.random.Generator) -> None:  # noqa: ARG002
        for _ in blocks(rows, sampled=True):  # raises ValueError for values that are not finite
            pass
        self.thresholds_ = np.zeros(n_bits)
        if self.threshold == "median":
            for first in range(0, n_bits, 64):  # a few columns at a time, to save memory
                columns = rows[:, first : first + 64].astype(np.float64)
                self.thresholds_[first : first + 64] = np.median(columns, axis=0)

    def _project_block(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return block
