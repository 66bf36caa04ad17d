"""What a cluster is to serve: a small JSON file beside the versions.

It is what the keeper and the holders begin with, also after they were killed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from bitweigh.cluster.stores import Store
from bitweigh.errors import CorruptFileError

__all__ = ["Desired"]


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a cluster."""

    version: int
    """The version that new queries are begun with."""
    previous: int | None
    """The version before, which stays open for queries that were begun with it."""
    groups: int
    """Shards g, g + groups, g + 2 groups, ... are held together."""
    replicas: int
    """How many holders have the same shards."""
    threads: int
    """Threads of a holder."""

    @property
    def versions(self) -> list[int]:
        """The versions that holders have open."""
        return [number for number in (self.previous, self.version) if number is not None]

    def write(self, store: Store, name: str) -> None:
        """Store this as the desired state of the cluster of this name."""
        store.write_state(name, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, store: Store, name: str) -> Desired | None:
        """The desired state of a cluster; None if there is no such cluster."""
        raw = store.read_states().get(name)
        return None if raw is None else cls.parsed(raw, f"{store.url}/serving/{name}.json")

    @classmethod
    def parsed(cls, raw: bytes, where: str) -> Desired:
        """Read what `write` wrote; raises CorruptFileError for anything else."""
        try:
            return cls(**json.loads(raw))
        except (ValueError, TypeError) as error:
            raise CorruptFileError(where, f"not the state of a cluster: {error}") from None
