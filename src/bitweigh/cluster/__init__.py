"""Codes beyond one machine: shards in a folder or an object store, searched as one index.

`build` writes shards and publishes them as a version, `update` and `reshard` publish others. `open`
opens all shards of a version in this process; `start` has processes on a Ray cluster hold them.
`plan` says what codes take on one machine and on several. docs/cluster.md explains.
"""

from __future__ import annotations

from bitweigh.cluster.building import build, reshard, update
from bitweigh.cluster.embeddings import ClusterEmbeddings
from bitweigh.cluster.errors import (
    ControlPlaneError,
    IncompleteError,
    Missing,
    OverloadedError,
    PublishConflictError,
    VersionGoneError,
)
from bitweigh.cluster.keeping import Vacuumed, vacuum, verify
from bitweigh.cluster.opening import open_shards, versions
from bitweigh.cluster.partition import HashPartition, RangePartition
from bitweigh.cluster.planning import Plan, plan
from bitweigh.cluster.serving.client import Cluster
from bitweigh.cluster.serving.on_ray import connect, start
from bitweigh.cluster.serving.replicas import Patience
from bitweigh.cluster.serving.reports import ClusterStatus, PartialResult
from bitweigh.cluster.shards import ShardExplanation, Shards
from bitweigh.cluster.vectors import ClusterVectors
from bitweigh.cluster.version import ShardOptions, StoredShard, Version

open = open_shards  # noqa: A001 as in `cluster.open(url)`

__all__ = [
    "Cluster",
    "ClusterEmbeddings",
    "ClusterStatus",
    "ClusterVectors",
    "ControlPlaneError",
    "HashPartition",
    "IncompleteError",
    "Missing",
    "OverloadedError",
    "PartialResult",
    "Patience",
    "Plan",
    "PublishConflictError",
    "RangePartition",
    "ShardExplanation",
    "ShardOptions",
    "Shards",
    "StoredShard",
    "Vacuumed",
    "Version",
    "VersionGoneError",
    "build",
    "connect",
    "open",
    "plan",
    "reshard",
    "start",
    "update",
    "vacuum",
    "verify",
    "versions",
]
