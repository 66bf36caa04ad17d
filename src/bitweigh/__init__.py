"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, errors, reference, typing
from bitweigh._index.explain import Explanation, SegmentFacts
from bitweigh._index.filters import Filter
from bitweigh._load import load
from bitweigh._merging import merge
from bitweigh._results import (
    Memory,
    RangeResult,
    ScoredRangeResult,
    ScoredResult,
    SearchResult,
    SearchStats,
)
from bitweigh._system import Info, __version__, info
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.errors import CorruptFileError, DeadlineError, LimitError
from bitweigh.index import Index
from bitweigh.vector_index import VectorIndex

__all__ = [
    "BinaryEmbeddings",
    "CorruptFileError",
    "DeadlineError",
    "Explanation",
    "Filter",
    "Index",
    "Info",
    "LimitError",
    "Memory",
    "RangeResult",
    "ScoredRangeResult",
    "ScoredResult",
    "SearchResult",
    "SearchStats",
    "SegmentFacts",
    "VectorIndex",
    "__version__",
    "costs",
    "errors",
    "info",
    "load",
    "merge",
    "reference",
    "typing",
]
