"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, reference
from bitweigh._results import Memory, RangeResult, SearchResult, SearchStats
from bitweigh._system import Info, __version__, info
from bitweigh.embeddings import BinaryEmbeddings, ScoredResult
from bitweigh.errors import CorruptFileError, LimitError
from bitweigh.index import Index, load
from bitweigh.vector_index import VectorIndex

__all__ = [
    "BinaryEmbeddings",
    "CorruptFileError",
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
