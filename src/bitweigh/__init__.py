"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, reference
from bitweigh.embeddings import BinaryEmbeddings, ScoredResult
from bitweigh.index import Index, load
from bitweigh.machine import Info, __version__, info
from bitweigh.results import (
    CorruptIndexError,
    LimitError,
    Memory,
    RangeResult,
    SearchResult,
    SearchStats,
)
from bitweigh.vector_index import VectorIndex

__all__ = [
    "BinaryEmbeddings",
    "CorruptIndexError",
    "Index",
    "Info",
    "LimitError",
    "Memory",
    "RangeResult",
    "ScoredResult",
    "SearchResult",
    "SearchStats",
    "VectorIndex",
    "__version__",
    "costs",
    "info",
    "load",
    "reference",
]
