"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, reference
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

__all__ = [
    "CorruptIndexError",
    "Index",
    "Info",
    "LimitError",
    "Memory",
    "RangeResult",
    "SearchResult",
    "SearchStats",
    "__version__",
    "costs",
    "info",
    "load",
    "reference",
]
