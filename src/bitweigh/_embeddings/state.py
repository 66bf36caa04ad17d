"""The state of a collection of embeddings.

With kept vectors it is replaced as a whole and never changed, so that bits and vectors belong
together. Without them it is an index, which replaces its own state as a whole.

Few vectors do not show the range of each dimension, which int8 needs: until there are enough, they
are kept as float32, and there are no scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitweigh._vectors.store import Vectors
from bitweigh.index import Index
from bitweigh.typing import RescoreDtype

__all__ = ["EmbeddingsState", "no_vectors"]


def no_vectors(rescore: RescoreDtype, scales: NDArray[np.float64] | None, dim: int) -> Vectors:
    """The vectors of an empty collection."""
    return Vectors.empty("float32" if rescore == "int8" and scales is None else rescore, dim)


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingsState:
    """The contents of a collection of embeddings at one moment."""

    index: Index
    """The bits; see `index_to_change`."""
    rescore: RescoreDtype | None = None
    vectors: Vectors | None = None
    """With `rescore`, the vectors of all ids in the index, and perhaps of removed ids."""
    scales: NDArray[np.float64] | None = None
    """With "int8", what a step of each dimension stands for; None while vectors are float32."""
    calibrated: bool = False
    """Whether the scales were given, by the caller or by a folder, and outlast a reset."""

    def index_to_change(self) -> Index:
        """The index that a change is made to: a copy, for a new state, if vectors belong to it."""
        return self.index if self.vectors is None else self.index.copy()
