"""Which shard an id belongs to: by a hash of the id, or by disjoint ranges of ids.

Every id is in one shard only, which follows from the id alone. So results of shards have no id in
common, and an update knows where a row is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh._storage.manifest import Fields
from bitweigh.typing import Ids

__all__ = ["MAX_SHARDS", "HashPartition", "Partition", "RangePartition", "partition_from"]

MAX_SHARDS = 10_000
"""More would make a version file that takes longer to read than a search."""

_FUNCTION = "splitmix64"


@dataclass(frozen=True, slots=True)
class HashPartition:
    """Ids spread evenly: each shard is a random sample of the rows."""

    shards: int

    @property
    def samples_evenly(self) -> bool:
        """Whether shards are random samples, so that each has about the same share of answers."""
        return True

    def shard_of(self, ids: Ids) -> NDArray[np.int64]:
        """The shard of each id, (n,)."""
        return (_mixed(ids) % np.uint64(self.shards)).astype(np.int64)

    def facts(self) -> dict[str, Any]:
        """The partition as JSON."""
        return {"by": "hash", "function": _FUNCTION, "shards": self.shards}


@dataclass(frozen=True, slots=True)
class RangePartition:
    """Ids in ranges: for ids that are times, whose old shards then never change."""

    starts: tuple[int, ...]
    """The first id that may be in each shard: 0 for the first, then ascending."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self.starts)

    @property
    def samples_evenly(self) -> bool:
        """Whether shards are random samples; rows of similar age may be alike."""
        return False

    def shard_of(self, ids: Ids) -> NDArray[np.int64]:
        """The shard of each id, (n,)."""
        return np.searchsorted(np.array(self.starts, dtype=np.int64), ids, side="right") - 1

    def facts(self) -> dict[str, Any]:
        """The partition as JSON."""
        return {"by": "range", "starts": list(self.starts)}


Partition: TypeAlias = HashPartition | RangePartition


def partition_from(fields: Fields) -> Partition:
    """The partition that `facts` has described; raises CorruptFileError for anything else."""
    if fields.choice("by", ("hash", "range")) == "hash":
        fields.choice("function", (_FUNCTION,))
        return HashPartition(fields.integer("shards", 1, MAX_SHARDS))
    starts = fields.value("starts")
    if (
        not isinstance(starts, list)
        or not 1 <= len(starts) <= MAX_SHARDS
        or not all(type(start) is int and 0 <= start < 2**63 for start in starts)
        or starts[0] != 0
        or any(first >= second for first, second in pairwise(starts))
    ):
        fields.fail_at("starts", "must be ascending ids, the first of which is 0")
    return RangePartition(tuple(starts))


def _mixed(ids: Ids) -> NDArray[np.uint64]:
    """The finalizer of the generator splitmix64: a bijection whose every bit depends on all bits.

    Neighbouring ids go to unrelated shards. NumPy computes it for a million ids in 10 ms.
    """
    mixed = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
