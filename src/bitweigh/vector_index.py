"""VectorIndex."""

from bitweigh._vectors.index import VectorIndex

__all__ = ["VectorIndex"]
