"""The records of a run at a large number of rows, stored as one JSON file."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

__all__ = ["Exactness", "LargeResults", "Precision", "SizeRecord", "Timing", "is_large"]

FORMAT = 1
KIND = "large"


@dataclass(frozen=True, slots=True)
class Timing:
    """One method at one size and K: means per query."""

    bits: int
    rows: int
    k: int
    method: str
    """"Linear Scan", "MIH", "MIWQ", "PQTable", "PQTable_max_heap"; or ours: "bitweigh", warm on
    one thread, "bitweigh cold", and "bitweigh batch" on several threads."""
    ms: float
    queries: int
    buckets: float | None = None
    """Buckets, or keys, looked up."""
    candidates: float | None = None
    """Rows looked at; for ours, 32 for each block."""
    m: int | None = None
    """Number of tables."""
    cpu_share: float | None = None
    """CPU time divided by time: below 1, something else ran on the CPU meanwhile."""


@dataclass(frozen=True, slots=True)
class SizeRecord:
    """An index of the first `rows` codes."""

    bits: int
    rows: int
    how: str
    """"streamed", or "streamed, resumed" if the build was stopped and went on."""
    build_seconds: float
    disk_bytes: int
    """Bytes of the folder."""
    build_peak_anon: int | None
    """Peak of the process's anonymous memory during the build, in bytes; None if unknown."""
    query_peak_anon: int | None
    parts: dict[str, int]
    """Bytes by purpose, as of `Index.memory`."""
    first_warm_ms: float
    """From `load(mmap=True)` to the first answer."""
    first_cold_ms: float | None
    """The same without cached pages; None where these could not be dropped."""

    @property
    def resumed(self) -> bool:
        """Whether `build_seconds` are those of the last part of the build alone."""
        return self.how.endswith("resumed")


@dataclass(frozen=True, slots=True)
class Exactness:
    """Queries whose ids and distances were compared with other ways to compute them."""

    bits: int
    rows: int
    k: int
    scanned: int
    """Queries compared with a scan of all codes."""
    defined: int
    """Of those, queries compared with the definition."""
    wrong: int


@dataclass(frozen=True, slots=True)
class Precision:
    """A method's precision at K, from 0 to 1."""

    bits: int
    rows: int
    k: int
    method: str
    precision: float


@dataclass(slots=True)
class LargeResults:
    """Everything that one run measured."""

    machine: dict[str, str]
    settings: dict[str, Any]
    """The name of the "data", "bits", "rows", "tables", "seed", "queries", "build_memory",
    "peer_memory" and "threads"."""
    generation: dict[str, float] = field(default_factory=dict)
    """Codes per second drawn and written, by bits; only those not in the folder before."""
    timings: list[Timing] = field(default_factory=list)
    sizes: list[SizeRecord] = field(default_factory=list)
    exactness: list[Exactness] = field(default_factory=list)
    precision: list[Precision] = field(default_factory=list)

    def ms(self, bits: int, rows: int, k: int, method: str) -> float | None:
        """Return the time of a method, None if it was not measured."""
        found = self.timing(bits, rows, k, method)
        return None if found is None else found.ms

    def timing(self, bits: int, rows: int, k: int, method: str) -> Timing | None:
        """Return the record of a method, None if it was not measured."""
        for timing in self.timings:
            if (timing.bits, timing.rows, timing.k, timing.method) == (bits, rows, k, method):
                return timing
        return None

    def save(self, path: Path) -> None:
        """Write as JSON."""
        content = {"format": FORMAT, "kind": KIND, **dataclasses.asdict(self)}
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        content = json.loads(path.read_text())
        if (content.get("format"), content.get("kind")) != (FORMAT, KIND):
            raise ValueError(f"{path}: not records of a run at a large number of rows")
        return cls(
            machine=content["machine"],
            settings=content["settings"],
            generation=content["generation"],
            timings=[Timing(**record) for record in content["timings"]],
            sizes=[SizeRecord(**record) for record in content["sizes"]],
            exactness=[Exactness(**record) for record in content["exactness"]],
            precision=[Precision(**record) for record in content["precision"]],
        )


def is_large(path: Path) -> bool:
    """Whether a JSON file has records of such a run."""
    content = json.loads(path.read_text())
    return isinstance(content, dict) and content.get("kind") == KIND
