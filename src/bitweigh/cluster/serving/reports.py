"""What a cluster tells its callers beside plain results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh.cluster.errors import Missing

__all__ = ["ClusterStatus", "PartialResult"]


class PartialResult(NamedTuple):
    """The nearest codes in the shards that answered.

    ``distances`` and ``ids`` are as in :class:`bitweigh.SearchResult`.
    """

    distances: NDArray[np.float64]
    ids: NDArray[np.int64]
    complete: bool
    """Whether all shards answered, so that this is the exact answer."""
    missing: tuple[Missing, ...]
    """The shards that did not answer, their rows and the reasons."""


class ClusterStatus(NamedTuple):
    """The state of a cluster, as this process sees it; ``print`` it."""

    version: int
    rows: int
    shards: int
    holders: list[list[tuple[str, str]]]
    """Name and state ("open" or "suspect") of each holder, by group of shards."""
    queued: int
    """Queries of this process that wait."""
    answered: int
    """Queries of this process that were answered."""
    batches: int
    """Batches that they were asked in."""
    hedges: int
    """Questions asked twice because an answer was slow."""
    failovers: int
    """Questions asked again because a holder was lost."""
    second_rounds: int
    """Queries for which some shard was asked again, because its share was not enough."""

    def __str__(self) -> str:
        """Some lines for people."""
        groups = "\n".join(
            f"  group {number}: " + ", ".join(f"{name} {state}" for name, state in group)
            for number, group in enumerate(self.holders)
        )
        return (
            f"version {self.version}, {self.rows:,} rows in {self.shards} shards\n{groups}\n"
            f"  {self.answered:,} queries in {self.batches:,} batches, {self.queued:,} waiting; "
            f"{self.hedges:,} hedges, {self.failovers:,} failovers, "
            f"{self.second_rounds:,} second rounds"
        )
