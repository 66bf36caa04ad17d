"""Codes beyond one machine: shards in a folder or an object store, searched as one index.

`build` writes shards and publishes them as a version, `update` and `reshard` publish others, and
`open` opens all shards of a version in this process. `plan` says what codes take on one machine and
on several. docs/cluster.md explains.
"""

from __future__ import annotations

from bitweigh.cluster.building import build, reshard, update
from bitweigh.cluster.errors import PublishConflictError
from bitweigh.cluster.keeping import Vacuumed, vacuum, verify
from bitweigh.cluster.opening import open_shards, versions
from bitweigh.cluster.partition import HashPartition, RangePartition
from bitweigh.cluster.planning import Plan, plan
from bitweigh.cluster.shards import ShardExplanation, Shards
from bitweigh.cluster.version import ShardOptions, StoredShard, Version

open = open_shards  # noqa: A001 as in `cluster.open(url)`

__all__ = [
    "HashPartition",
    "Plan",
    "PublishConflictError",
    "RangePartition",
    "ShardExplanation",
    "ShardOptions",
    "Shards",
    "StoredShard",
    "Vacuumed",
    "Version",
    "build",
    "open",
    "plan",
    "reshard",
    "update",
    "vacuum",
    "verify",
    "versions",
]
