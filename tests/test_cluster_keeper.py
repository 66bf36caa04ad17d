"""The keeper, by a stand-in for Ray: where holders are started, and in which order versions change.

Actors are objects of this process, and calls are answered at once. What real actors do is tested in
test_cluster_ray.py.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import cluster
from bitweigh.cluster.errors import VersionGoneError
from bitweigh.cluster.serving import ray_actors
from bitweigh.cluster.serving.desired import Desired
from bitweigh.cluster.serving.ray_actors import KeeperActor
from bitweigh.cluster.stores import FolderStore
from bitweigh.errors import CorruptFileError

CODES = np.random.default_rng(0).integers(0, 256, (200, 8), dtype=np.uint8)


class Method:
    """A method of an actor; its answer is its own reference."""

    def __init__(self, ray: FakeRay, handle: Handle, name: str) -> None:
        self._ray, self._handle, self._name = ray, handle, name

    def remote(self, *arguments: Any) -> Any:
        self._ray.calls.append((self._handle.name, self._name, arguments))
        self._ray.here = self._handle.node
        try:
            answer = getattr(self._handle.actor, self._name)(*arguments)
        except Exception as error:
            return Reference(error=error)
        return Reference(answer)


class Reference:
    """What `remote` returns."""

    def __init__(self, answer: Any = None, error: Exception | None = None) -> None:
        self.answer, self.error = answer, error


class Handle:
    """An actor with a name, on a node."""

    def __init__(self, ray: FakeRay, name: str, node: str, actor: Any) -> None:
        self._ray, self.name, self.node, self.actor = ray, name, node, actor

    def __getattr__(self, name: str) -> Method:
        return Method(self._ray, self, name)


class FakeRay(types.ModuleType):
    """As much of Ray as a keeper uses."""

    def __init__(self, nodes: int) -> None:
        super().__init__("ray")
        self.actors: dict[str, Handle] = {}
        self.calls: list[tuple[str, str, tuple[Any, ...]]] = []
        self.alive = {f"node-{number}": True for number in range(nodes)}
        self.here = ""

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "Alive": alive, "Resources": {"CPU": 4.0}}
            for name, alive in self.alive.items()
        ]

    def get_actor(self, name: str, namespace: str) -> Handle:
        assert namespace == "bitweigh"
        if name not in self.actors:
            raise ValueError(name)
        return self.actors[name]

    def remote(self, actor: Any) -> Any:
        def options(**options: Any) -> Any:
            name, node = options["name"], options["scheduling_strategy"]

            def started(*arguments: Any) -> Handle:
                self.here = node
                self.actors[name] = Handle(self, name, node, actor(*arguments))
                return self.actors[name]

            return types.SimpleNamespace(remote=started)

        return types.SimpleNamespace(options=options)

    def get(self, references: Any) -> Any:
        if isinstance(references, list):
            return [self.get(each) for each in references]
        if references.error is not None:
            raise references.error
        return references.answer

    def wait(self, references: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return references, []

    def kill(self, handle: Handle) -> None:
        del self.actors[handle.name]

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(get_node_id=lambda: self.here)


class Kept:
    """A keeper, its store, and Ray."""

    def __init__(self, ray: FakeRay, url: Path) -> None:
        self.ray, self.url, self.store = ray, url, FolderStore(url)
        self.keeper = KeeperActor(str(url), "wiki")

    @property
    def desired(self) -> Desired | None:
        return Desired.read(self.store, "wiki")

    @property
    def nodes(self) -> dict[str, str]:
        return {name.removeprefix("bitweigh-wiki-"): h.node for name, h in self.ray.actors.items()}

    def versions(self) -> set[tuple[int, ...]]:
        return {tuple(h.actor.status()["versions"]) for h in self.ray.actors.values()}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """Two groups of two replicas on three nodes, of four versions; the first is served."""
    ray = FakeRay(nodes=3)
    strategies = types.ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node  # type: ignore[attr-defined] # noqa: ARG005
    for name, module in (("ray", ray), ("ray.util", types.ModuleType("ray.util"))):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    monkeypatch.setattr(ray_actors, "_KEEP_SECONDS", 3600)
    monkeypatch.setenv("BITWEIGH_THREADS", "1")
    url = tmp_path / "shards"
    cluster.build(CODES, url, shards=4)
    for each in range(3):
        cluster.update(url, remove=[each])
    Desired(1, None, 2, 2, 1).write(FolderStore(url), "wiki")
    found = Kept(ray, url)
    found.keeper.begin()
    yield found
    found.keeper.stop()


def test_holders_of_the_same_shards_are_started_on_different_nodes(kept: Kept) -> None:
    nodes = kept.nodes
    assert sorted(nodes) == ["0-0", "0-1", "1-0", "1-1"]
    assert nodes["0-0"] != nodes["0-1"]
    assert nodes["1-0"] != nodes["1-1"]
    assert len(set(nodes.values())) == 3


def test_a_version_is_served_once_all_holders_have_opened_it(kept: Kept) -> None:
    seen: list[Any] = []

    def watch(actor: Any) -> None:
        opened = actor.open

        def watched(number: int) -> None:
            opened(number)
            seen.append(kept.desired)

        actor.open = watched

    for handle in kept.ray.actors.values():
        watch(handle.actor)
    assert kept.keeper.publish(2) == 2
    assert [desired.version for desired in seen] == [1, 1, 1, 1]
    assert kept.desired == Desired(2, 1, 2, 2, 1)


def test_the_version_before_stays_open_and_the_one_before_that_does_not(kept: Kept) -> None:
    for number in (2, 3):
        kept.keeper.publish(number)
    assert kept.versions() == {(2, 3)}
    kept.keeper.publish(2)  # back again
    assert kept.versions() == {(2, 3)}
    assert kept.desired == Desired(2, 3, 2, 2, 1)
    holder = kept.ray.actors["bitweigh-wiki-0-0"].actor
    with pytest.raises(VersionGoneError):
        holder.explain(1, 0, np.zeros((64, 2)).tobytes(), 1, "auto")


def test_publishing_what_is_served_changes_nothing(kept: Kept) -> None:
    kept.keeper.publish(2)
    before = kept.desired
    kept.ray.calls.clear()
    assert kept.keeper.publish(2) == 2
    assert kept.desired == before
    assert kept.ray.calls == []
    assert kept.keeper.publish(None) == 4  # the newest


def test_a_version_that_one_holder_cannot_open_is_not_served(kept: Kept) -> None:
    version = cluster.update(kept.url, add=CODES[:50])
    old = {shard.folder for shard in cluster.verify(kept.url, version=4).shards}
    new = next(shard.folder for shard in version.shards if shard.folder not in old)
    (kept.url / "shards" / new / "manifest.json").write_text("{}")
    with pytest.raises(CorruptFileError):
        kept.keeper.publish(None)
    assert kept.desired == Desired(1, None, 2, 2, 1)
    _, raw, _ = kept.keeper.describe()
    assert cluster.Version.from_json(raw, "").number == 1


def test_a_holder_that_is_started_again_opens_both_versions(kept: Kept) -> None:
    kept.keeper.publish(2)
    kept.ray.kill(kept.ray.actors["bitweigh-wiki-1-0"])
    kept.keeper.begin()
    assert kept.versions() == {(1, 2)}
    assert kept.nodes["1-0"] != kept.nodes["1-1"]


def test_the_map_names_all_holders_by_group(kept: Kept) -> None:
    url, raw, names = kept.keeper.describe()
    assert url == kept.store.url
    assert raw == kept.store.read_version(1)
    assert names == [
        [f"bitweigh-wiki-{group}-{replica}" for replica in range(2)] for group in range(2)
    ]


def test_scaling_starts_or_stops_the_last_replicas(kept: Kept) -> None:
    kept.keeper.scale(3)
    assert sorted(kept.nodes) == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    assert len({kept.nodes[f"0-{replica}"] for replica in range(3)}) == 3
    kept.keeper.scale(1)
    assert sorted(kept.nodes) == ["0-0", "1-0"]
    assert kept.keeper.describe()[2] == [["bitweigh-wiki-0-0"], ["bitweigh-wiki-1-0"]]


def test_a_holder_of_a_lost_node_is_started_elsewhere(kept: Kept) -> None:
    lost = kept.nodes["0-0"]
    kept.ray.alive[lost] = False
    gone = [name for name, handle in kept.ray.actors.items() if handle.node == lost]
    for name in gone:  # as Ray does, in the end
        kept.ray.kill(kept.ray.actors[name])
    kept.keeper.begin()
    assert sorted(kept.nodes) == ["0-0", "0-1", "1-0", "1-1"]
    assert lost not in kept.nodes.values()
    assert kept.nodes["0-0"] != kept.nodes["0-1"]


def test_replicas_that_share_a_node_are_parted_where_there_is_another(kept: Kept) -> None:
    together, free = kept.nodes["0-0"], kept.nodes["0-1"]
    kept.ray.actors["bitweigh-wiki-0-1"].node = together
    desired = kept.desired
    assert desired is not None
    kept.keeper._part(desired)
    assert "0-1" not in kept.nodes
    kept.keeper.begin()
    assert kept.nodes["0-1"] != together
    # With no other node, both stay.
    kept.ray.alive = {together: True, free: False}
    for handle in kept.ray.actors.values():
        handle.node = together
    kept.keeper._part(desired)
    assert len(kept.nodes) == 4


def test_stopping_ends_all_holders_and_forgets_the_cluster(kept: Kept) -> None:
    kept.keeper.stop()
    assert kept.ray.actors == {}
    assert kept.desired is None
    with pytest.raises(KeyError, match="no cluster 'wiki'"):
        kept.keeper.describe()


def test_a_damaged_state_is_named(kept: Kept) -> None:
    kept.store.write_state("wiki", b'{"version": 1}')
    with pytest.raises(CorruptFileError, match=r"serving/wiki.json"):
        kept.keeper.describe()
    kept.store.write_state("wiki", None)
