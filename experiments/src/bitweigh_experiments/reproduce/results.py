"""The records of a reproduction, stored as one JSON file.

All tables, charts and claims of the report are derived from these plain records.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

__all__ = [
    "BITS",
    "EXTRA_ROLES",
    "HASHERS",
    "KS",
    "METHODS",
    "ROLES",
    "WEIGHERS",
    "Ambiguity",
    "Cell",
    "DataFacts",
    "Results",
    "SweepPoint",
]

FORMAT = 1
ROLES = ("Places205", "GIST1M", "SIFT1B")
EXTRA_ROLES = ("dense SIFT", "GloVe")
"""Real sets that the paper does not have; 32 and 64 bits only."""
HASHERS = ("LSH", "ITQ")
WEIGHERS = ("Asym", "Wh")
BITS = (32, 64, 128, 256)
KS = (1, 10, 100)
METHODS = (
    "Baseline",
    "MIH",
    "Linear Scan",
    "MIWQ",
    "MIWQ descending",
    "PQTable",
    "PQTable_max_heap",
    "bitweigh",
)
"""The paper's methods, MIWQ with the reversed order of Eq. 10, and this library's index."""


@dataclass(frozen=True, slots=True)
class DataFacts:
    """Facts about the data set searched for a role."""

    role: str
    """The paper's set, one of ROLES, or one of EXTRA_ROLES."""
    name: str
    """The name of the set that was searched."""
    genuine: bool
    """Whether it is the paper's own set."""
    n: int
    """Rows searched."""
    n_paper: int
    """Rows that the paper searched; n where it has no such set."""
    d: int
    """Dimensions."""
    n_queries: int
    truth: str
    """Which rows count as true neighbours: "same label" or "Euclidean top 1000"."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one setting: means over the queries, None where not measured."""

    role: str
    hasher: str
    weigher: str
    bits: int
    k: int
    method: str
    m: int | None = None
    """Number of tables, for methods that have tables: the best of the sweep."""
    precision: float | None = None
    """Precision from 0 to 1."""
    ms: float | None = None
    """Milliseconds per query: the mean over the timed queries, the median of the rounds."""
    ms_low: float | None = None
    """The fastest round."""
    ms_high: float | None = None
    """The slowest round."""
    speed_up: float | None = None
    """Time of Linear Scan at this setting divided by `ms`."""
    buckets: float | None = None
    """Buckets probed."""
    empty_buckets: float | None = None
    candidates: float | None = None
    """Rows compared."""
    duplicates: float | None = None
    """Rows found again in another table."""
    rounds: float | None = None
    queries: int | None = None
    """Queries that precision and counts are means over."""
    timed_queries: int | None = None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The time of a method with m tables."""

    role: str
    hasher: str
    weigher: str
    bits: int
    k: int
    method: str
    m: int
    ms: float
    by_rule: bool
    """Whether the method's own rule gives m."""
    chosen: bool
    """Whether the cells were measured with m."""


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """How many codes share the distance of the k-th nearest one: means over the queries."""

    role: str
    hasher: str
    weigher: str
    bits: int
    k: int
    hamming_ties: float
    weighted_ties: float


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that one run measured."""

    machine: dict[str, str]
    """Facts about the machine and the software, in the order to print."""
    settings: dict[str, Any]
    """The settings "quick", "seed", "tables", "max_rows", "queries", "timed_queries" and
    "timing_rounds", and the duration of the run in "seconds"."""
    data: list[DataFacts] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    sweeps: list[SweepPoint] = field(default_factory=list)
    ambiguity: list[Ambiguity] = field(default_factory=list)

    def name_of(self, role: str) -> str:
        """Return the name of the set searched for a role: the paper's only if it is the paper's."""
        for facts in self.data:
            if facts.role == role:
                return role if facts.genuine else facts.name
        return role

    def cell(
        self, role: str, hasher: str, weigher: str, bits: int, k: int, method: str
    ) -> Cell | None:
        """Return the cell at a setting, None if it was not measured."""
        key = (role, hasher, weigher, bits, k, method)
        for cell in self.cells:
            if key == (cell.role, cell.hasher, cell.weigher, cell.bits, cell.k, cell.method):
                return cell
        return None

    def save(self, path: Path) -> None:
        """Write as JSON."""
        content = {"format": FORMAT, **dataclasses.asdict(self)}
        path.write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        content = json.loads(path.read_text())
        if content.get("format") != FORMAT:
            raise ValueError(f"{path}: not results of `bitweigh paper reproduce`, format {FORMAT}")
        return cls(
            machine=content["machine"],
            settings=content["settings"],
            data=[DataFacts(**record) for record in content["data"]],
            cells=[Cell(**record) for record in content["cells"]],
            sweeps=[SweepPoint(**record) for record in content["sweeps"]],
            ambiguity=[Ambiguity(**record) for record in content["ambiguity"]],
        )
