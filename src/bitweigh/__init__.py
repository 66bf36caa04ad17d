"""Exact nearest binary codes under a weighted Hamming distance."""

from bitweigh import costs, reference
from bitweigh.index import Index
from bitweigh.machine import Info, __version__, info
from bitweigh.results import Memory, SearchResult, SearchStats

__all__ = [
    "Index",
    "Info",
    "Memory",
    "SearchResult",
    "SearchStats",
    "__version__",
    "costs",
    "info",
    "reference",
]
