"""Float vectors in, nearest vectors out: hashing, weighing, exact search of codes, reranking."""

from bitweigh.vector_index.index import VectorIndex

__all__ = ["VectorIndex"]
