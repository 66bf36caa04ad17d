"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, reference
from bitweigh.index import Index
from bitweigh.machine import Info, __version__, info
from bitweigh.results import LimitError, Memory, RangeResult, SearchResult, SearchStats

__all__ = [
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
    "reference",
]
