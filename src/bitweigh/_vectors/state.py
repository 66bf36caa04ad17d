"""The state of a vector index, which is replaced as a whole and never changed."""

from __future__ import annotations

from dataclasses import dataclass

from bitweigh._vectors.store import Vectors
from bitweigh.hashers._base import Hasher
from bitweigh.index import Index
from bitweigh.typing import Metric, VectorDtype
from bitweigh.weighers._base import Weigher

__all__ = ["VectorState"]


@dataclass(frozen=True, slots=True, eq=False)
class VectorState:
    """The contents of a vector index at one moment."""

    index: Index
    """The codes. Changes go to a copy, for a new state."""
    hasher: Hasher
    weigher: Weigher
    vectors: Vectors | None
    """With `rerank`, the vectors of all ids in the index, and perhaps of removed ids."""
    metric: Metric
    rerank: VectorDtype | None
    seed: int
