"""What a vector index holds at one moment. It is replaced whole, never changed."""

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
    """What a vector index holds at one moment."""

    index: Index
    """The codes. Nobody changes them: a change is made to a copy, which a new state holds."""
    hasher: Hasher
    weigher: Weigher
    vectors: Vectors | None
    """With `rerank`, the vectors of all ids of the index, and maybe of others."""
    metric: Metric
    rerank: VectorDtype | None
    seed: int
