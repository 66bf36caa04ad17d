"""The peers: one adapter per file, and here what they have in common.

Codes and costs are in little bit order, as everywhere in the benchmarks.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Costs", "Ids", "Peer", "Query", "UnavailableError"]

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
        """Take the codes (n, n_bytes), not timed; UnavailableError where it cannot."""

    def prepare(self, costs: Costs) -> Query:
        """Convert costs (nq, n_bits, 2) to the peer's own form of query, not timed."""

    def search(self, prepared: Query, k: int) -> Ids:
        """Row numbers (nq, k) of the nearest codes; this is what is timed."""
