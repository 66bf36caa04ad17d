"""A Ray cluster of several nodes on this machine, with shards served on it."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.cluster_utils import Cluster as Nodes

from bitweigh import cluster
from bitweigh.cluster.serving.ray_actors import NAMESPACE
from bitweigh.typing import BitOrder

__all__ = ["Served", "served"]


class Served:
    """Shards on a Ray cluster, and the index that answers must be equal to."""

    def __init__(self, nodes: Nodes, url: Path | str, found: cluster.Cluster, name: str) -> None:
        """Keep what was started."""
        self.nodes = nodes
        self.url = url
        self.cluster = found
        self.name = name

    def status_of(self, group: int, replica: int) -> dict[str, Any]:
        """The status of a holder."""
        handle: Any = ray.get_actor(f"bitweigh-{self.name}-{group}-{replica}", namespace=NAMESPACE)
        status: dict[str, Any] = ray.get(handle.status.remote(), timeout=20)
        return status

    def node_of(self, group: int, replica: int) -> Any:  # noqa: ANN401 a node of Ray's
        """The node that a holder is on."""
        node_id = self.status_of(group, replica)["node"]
        return next(node for node in self.nodes.list_all_nodes() if node.node_id == node_id)

    def kill(self, group: int, replica: int, what: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to the process of a holder; returns its number."""
        process = int(self.status_of(group, replica)["process"])
        os.kill(process, what)
        return process


@contextlib.contextmanager
def served(
    codes: NDArray[np.uint8],
    *,
    shards: int = 4,
    groups: int = 2,
    replicas: int = 2,
    nodes: int = 2,
    name: str = "test",
    bitorder: BitOrder = "big",
    url: str | None = None,
) -> Iterator[Served]:
    """Serve codes, whose ids are their row numbers, on so many nodes beside the head.

    The shards are at `url`, by default in a folder that is deleted in the end.
    """
    started = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(nodes):
            started.add_node(num_cpus=4)
        ray.init(address=started.address, namespace=NAMESPACE, log_to_driver=False)
        with tempfile.TemporaryDirectory(prefix="bitweigh-cluster-") as folder:
            where = url or Path(folder) / "shards"
            cluster.build(codes, where, shards=shards, bitorder=bitorder)
            found = cluster.start(where, name, groups=groups, replicas=replicas)
            try:
                yield Served(started, where, found, name)
            finally:
                found.close()
    finally:
        ray.shutdown()
        started.shutdown()
