"""The peers: one adapter per file, and here what they have in common.

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
"""Queries in the form that a peer takes."""


class UnavailableError(Exception):
    """A peer cannot take part; says why."""


class Peer(Protocol):
    """A way to find the k nearest codes, on one thread."""

    name: str
    exact: bool
    """Whether it ranks by the weighted distance itself, in float32 at least."""

    def build(self, codes: Codes, n_bits: int) -> None:
        """Take the codes (n, n_bytes); timed on its own; UnavailableError where it cannot."""

    def n_bytes(self) -> int | None:
        """What was built takes so many bytes, codes included; None where that cannot be told."""

    def prepare(self, costs: Costs) -> Query:
        """Convert costs (nq, n_bits, 2) to the peer's own form of query, not timed."""

    def search(self, prepared: Query, k: int) -> Ids:
        """Row numbers (nq, k) of the nearest codes; this is what is timed."""


def need_memory(n_bytes: int) -> None:
    """UnavailableError if half of the free memory is less than that."""
    if n_bytes > free_memory() // 2:
        raise UnavailableError(f"needs {n_bytes / 1e9:.1f} GB, too much for the free memory")


def need_rows(n: int, most: int, why: str) -> None:
    """UnavailableError if there are more than `most` rows."""
    if n > most:
        raise UnavailableError(f"takes at most {most:,} rows here: {why}")
