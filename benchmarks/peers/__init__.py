"""The peers: one adapter per file, and here their common interface.

Codes and costs are in little bit order, as everywhere in the benchmarks.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh._free_memory import free_memory

__all__ = ["Codes", "Costs", "Ids", "Peer", "Query", "UnavailableError", "need_memory", "need_rows"]

Codes: TypeAlias = NDArray[np.uint8]
Costs: TypeAlias = NDArray[np.float32]
Ids: TypeAlias = NDArray[np.int64]
Query: TypeAlias = NDArray[Any]
"""Queries in a peer's own form."""


class UnavailableError(Exception):
    """A peer cannot take part, with the reason."""


class Peer(Protocol):
    """A way to find the k nearest codes, on one thread."""

    name: str
    exact: bool
    """Whether the peer ranks by the weighted distance itself, in at least float32."""

    def build(self, codes: Codes, n_bits: int) -> None:
        """Build from codes (n, n_bytes), timed separately; UnavailableError if impossible."""

    def n_bytes(self) -> int | None:
        """Return the memory of what was built in bytes, codes included; None if unknown."""

    def prepare(self, costs: Costs) -> Query:
        """Convert costs (nq, n_bits, 2) to the peer's own form of query, not timed."""

    def search(self, prepared: Query, k: int) -> Ids:
        """Return the row numbers (nq, k) of the nearest codes; this call is timed."""


def need_memory(n_bytes: int) -> None:
    """Raise UnavailableError if that is more than half of the free memory."""
    if n_bytes > free_memory() // 2:
        raise UnavailableError(f"needs {n_bytes / 1e9:.1f} GB, too much for the free memory")


def need_rows(n: int, max_rows: int, why: str) -> None:
    """Raise UnavailableError if there are more than `max_rows` rows."""
    if n > max_rows:
        raise UnavailableError(f"takes at most {max_rows:,} rows here: {why}")
