"""The actors of a cluster on Ray: holders, and the keeper that has them started where they belong.

Actors have names: `bitweigh-<name>` is the keeper, and `bitweigh-<name>-<g>-<r>` holds the shards
of group g as replica r. They are detached, and Ray restarts them on their node; if that is lost,
the keeper starts another one elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import replace
from typing import Any

from bitweigh._optional import optional
from bitweigh.cluster.opening import read
from bitweigh.cluster.serving.desired import Desired
from bitweigh.cluster.serving.holder import Holder
from bitweigh.cluster.stores import open_store

__all__ = ["CONCURRENCY", "NAMESPACE", "HolderActor", "KeeperActor", "actor_named"]

NAMESPACE = "bitweigh"
# Calls that a holder works on at a time: a search, another that was begun meanwhile, opening a
# version, and a ping.
CONCURRENCY = 4
_KEEP_SECONDS = 1.0
_STATUS_SECONDS = 2.0


class HolderActor(Holder):
    """A holder that begins with what its cluster is to serve."""

    def __init__(self, url: str, name: str, group: int, groups: int) -> None:
        """Open the versions that are served now."""
        desired = Desired.read(open_store(url), name)
        if desired is not None:
            # Ray has reserved so many CPUs; other holders of the node have the others.
            os.environ["BITWEIGH_THREADS"] = str(desired.threads)
        super().__init__(url, group, groups, [] if desired is None else desired.versions)

    def status(self) -> dict[str, Any]:
        """What is open, what was done, and on which node."""
        ray: Any = optional("ray", "cluster")
        return {**super().status(), "node": ray.get_runtime_context().get_node_id()}


class KeeperActor:
    """Has holders started, opened and stopped as desired. No query passes through it."""

    def __init__(self, url: str, name: str) -> None:
        """Begin with what is stored; also after a restart."""
        self._ray: Any = optional("ray", "cluster")
        self._store = open_store(url)
        self._name = name
        self._changing = threading.RLock()
        self._started_on: dict[str, str] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._keep, name="bitweigh-keeper", daemon=True).start()

    def begin(self) -> None:
        """Start all holders, and wait until they are open."""
        with self._changing:
            desired = self._desired()
            holders = self._started(desired)
            self._ray.get([holder.status.remote() for holder in holders])

    def check(self) -> None:
        """Return if Ray's control plane answers: whoever changes something needs it."""
        self._ray.nodes()

    def describe(self) -> tuple[str, bytes, list[list[str]]]:
        """The URL, the version to search, and the names of the holders by group."""
        desired = self._desired()
        names = [
            [self._holder_name(group, replica) for replica in range(desired.replicas)]
            for group in range(desired.groups)
        ]
        return self._store.url, self._store.read_version(desired.version), names

    def publish(self, number: int | None) -> int:
        """Serve another version, by default the newest, once all holders have it open."""
        with self._changing:
            desired = self._desired()
            version = read(self._store, number).number
            if version == desired.version:
                return version
            holders = self._started(desired)
            self._ray.get([holder.open.remote(version) for holder in holders])
            changed = replace(desired, version=version, previous=desired.version)
            changed.write(self._store, self._name)
            # The version before the last is closed; whoever still asks for it is told.
            self._ray.get([holder.keep.remote(changed.versions) for holder in holders])
            return version

    def scale(self, replicas: int) -> None:
        """Have so many holders for each group."""
        with self._changing:
            desired = self._desired()
            changed = replace(desired, replicas=replicas)
            if replicas > desired.replicas:
                self._ray.get([holder.status.remote() for holder in self._started(changed)])
            changed.write(self._store, self._name)
            for group in range(desired.groups):
                for replica in range(replicas, desired.replicas):
                    self._kill(self._holder_name(group, replica))

    def stop(self) -> None:
        """Stop all holders, and forget the cluster."""
        with self._changing:
            self._stopped.set()
            desired = Desired.read(self._store, self._name)
            if desired is not None:
                for group in range(desired.groups):
                    for replica in range(desired.replicas):
                        self._kill(self._holder_name(group, replica))
            self._store.write_state(self._name, None)

    def _keep(self) -> None:
        """Start holders that are gone, and part those that share a node, while it is desired."""
        while not self._stopped.wait(_KEEP_SECONDS):
            with contextlib.suppress(Exception), self._changing:
                desired = Desired.read(self._store, self._name)
                if desired is not None and not self._stopped.is_set():
                    self._started(desired)
                    self._part(desired)

    def _part(self, desired: Desired) -> None:
        """Stop holders that are to be elsewhere: they are started again where they should be.

        These are holders of lost nodes, which wait there in vain, and one of two holders of the
        same shards on one node, if there is a node without them.
        """
        nodes = self._alive()
        where = self._places(desired)
        for name, node in list(self._started_on.items()):
            if name not in where and node not in nodes:
                self._kill(name)
        for group in range(desired.groups):
            names = [self._holder_name(group, replica) for replica in range(desired.replicas)]
            # Those that do not answer may be opening their shards, and are left alone.
            answering = [(name, where[name]) for name in names if name in where]
            free = {*nodes} - {node for _, node in answering}
            used: set[str] = set()
            for name, node in answering:
                if node in used and free:
                    # It is started again elsewhere, while the other one answers.
                    self._kill(name)
                    return
                used.add(node)

    def _places(self, desired: Desired) -> dict[str, str]:
        """The node of each holder that answers."""
        names = [
            self._holder_name(group, replica)
            for group in range(desired.groups)
            for replica in range(desired.replicas)
        ]
        asked = {
            holder.status.remote(): name
            for name in names
            if (holder := actor_named(self._ray, name)) is not None
        }
        if not asked:
            return {}
        done, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=_STATUS_SECONDS)
        found = {}
        for reference in done:
            with contextlib.suppress(Exception):
                found[asked[reference]] = str(self._ray.get(reference)["node"])
        return found

    def _alive(self) -> list[str]:
        """The nodes that have CPUs for holders."""
        return sorted(
            node["NodeID"]
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        )

    def _desired(self) -> Desired:
        desired = Desired.read(self._store, self._name)
        if desired is None:
            raise KeyError(f"no cluster {self._name!r}")
        return desired

    def _started(self, desired: Desired) -> list[Any]:
        """All holders, started if they are not there."""
        names = {
            (group, replica): self._holder_name(group, replica)
            for replica in range(desired.replicas)
            for group in range(desired.groups)
        }
        holders = {place: actor_named(self._ray, name) for place, name in names.items()}
        if None not in holders.values():
            return list(holders.values())
        where = self._places(desired)
        nodes = self._alive()
        for (group, replica), name in names.items():
            if holders[group, replica] is None and nodes:
                beside = [where.get(names[group, other]) for other in range(desired.replicas)]
                used = list(where.values())
                # Apart from replicas of the same shards, and where the fewest holders are.
                node = min(nodes, key=lambda each: (beside.count(each), used.count(each)))
                holders[group, replica] = self._start(name, group, desired, node)
                where[name] = self._started_on[name] = node
        return [holder for holder in holders.values() if holder is not None]

    def _start(self, name: str, group: int, desired: Desired, node: str) -> Any:  # noqa: ANN401
        strategies: Any = optional("ray.util.scheduling_strategies", "cluster")
        return (
            self._ray.remote(HolderActor)
            .options(
                name=name,
                namespace=NAMESPACE,
                lifetime="detached",
                max_restarts=-1,
                # The coordinator asks again: it knows about replicas and deadlines.
                max_task_retries=0,
                # Killed, it comes back where it was. If the node is lost, so is the holder, and
                # the keeper starts another one elsewhere.
                max_concurrency=CONCURRENCY,
                num_cpus=desired.threads,
                scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote(self._store.url, self._name, group, desired.groups)
        )

    def _kill(self, name: str) -> None:
        self._started_on.pop(name, None)
        holder = actor_named(self._ray, name)
        if holder is not None:
            self._ray.kill(holder)

    def _holder_name(self, group: int, replica: int) -> str:
        return f"bitweigh-{self._name}-{group}-{replica}"


def actor_named(ray: Any, name: str) -> Any:  # noqa: ANN401
    """The handle of a named actor; None if there is none."""
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None
