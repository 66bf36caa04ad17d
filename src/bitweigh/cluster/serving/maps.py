"""Maps: which version is searched, and which holders have its shards.

A coordinator remembers the last few, for calls that must not change version.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from bitweigh.cluster.errors import Missing, VersionGoneError
from bitweigh.cluster.serving.replicas import HolderGroup, HolderLostError, Patience, Replica
from bitweigh.cluster.version import Version

__all__ = ["Directory", "KnownMaps", "Map", "State"]

_KNOWN_VERSIONS = 4


class Map(NamedTuple):
    """Which version is to be searched, and which holders have its shards."""

    version: Version
    groups: tuple[tuple[Replica, ...], ...]
    """The holders of shards g, g + G, g + 2 G, ... for each of G groups."""
    url: str
    """Where the shards are stored."""


class Directory(Protocol):
    """Where a coordinator learns the map, and how it sends large arguments."""

    def current(self) -> Map:
        """The present map; may block."""

    def shared(self, raw: bytes) -> Any:  # noqa: ANN401 an argument of calls to holders
        """Bytes as an argument for several holders."""


class State(NamedTuple):
    """A map, with what is known about its holders."""

    version: Version
    groups: tuple[HolderGroup, ...]
    url: str

    def shards_of(self, group: int) -> tuple[int, ...]:
        """The shards that a group holds."""
        return tuple(range(group, len(self.version.shards), len(self.groups)))

    def group_of(self, shard: int) -> HolderGroup:
        """The holders of a shard."""
        return self.groups[shard % len(self.groups)]

    def missing(self, shard: int, error: HolderLostError) -> Missing:
        """A shard that nobody answers for."""
        return Missing(shard, self.version.shards[shard].rows, str(error))


class KnownMaps:
    """The present map, and those of a few versions before."""

    def __init__(self, first: Map, patience: Patience) -> None:
        """Begin with one."""
        self._patience = patience
        # Suspicions and counts outlive a version: its holders do, too.
        self._groups: dict[tuple[str, ...], HolderGroup] = {}
        self._by_version: dict[int, State] = {}
        self.take(first)

    def take(self, found: Map) -> None:
        """Let this be the present map."""
        names = tuple(tuple(replica.name for replica in group) for group in found.groups)
        for key, replicas in zip(names, found.groups, strict=True):
            if key not in self._groups:
                self._groups[key] = HolderGroup(replicas, self._patience)
        groups = tuple(self._groups[key] for key in names)
        self.present = State(found.version, groups, found.url)
        number = found.version.number
        self._by_version.pop(number, None)  # the latest is last, also after a rollback
        self._by_version[number] = self.present
        while len(self._by_version) > _KNOWN_VERSIONS:
            self._by_version.pop(next(iter(self._by_version)))

    def of(self, version: int | None) -> State:
        """The map of a version, None for the present one; raises VersionGoneError."""
        if version is None:
            return self.present
        state = self._by_version.get(version)
        if state is None:
            raise VersionGoneError(version)
        return state

    @property
    def hedges(self) -> int:
        """Questions asked twice because an answer was slow."""
        return sum(group.hedges for group in self._groups.values())

    @property
    def failovers(self) -> int:
        """Questions asked again because a holder was lost."""
        return sum(group.failovers for group in self._groups.values())

    def close(self) -> None:
        """Stop asking suspects."""
        for group in self._groups.values():
            group.close()
