"""What a reproduction of the paper's experiments measured, as one JSON file holds it.

Plain records: the tables, the plots and the claims of the report are all made from these.
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
"""The paper's, Alg. 2 with the other order of Eq. 10, and last this library's own index."""


@dataclass(frozen=True, slots=True)
class DataFacts:
    """The data that stood in for one of the paper's sets."""

    role: str
    """The paper's set, one of ROLES, or one of EXTRA_ROLES."""
    name: str
    """What was searched."""
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
    """What makes a row found a true one: "same label" or "Euclidean top 1000"."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one setting. Means over the queries; None where it was not measured."""

    role: str
    hasher: str
    weigher: str
    bits: int
    k: int
    method: str
    m: int | None = None
    """Tables, for methods that have any: the best of the sweep."""
    precision: float | None = None
    """From 0 to 1."""
    ms: float | None = None
    """Milliseconds per query: the mean over the timed queries, the median of the rounds."""
    ms_low: float | None = None
    """The quickest round."""
    ms_high: float | None = None
    """The slowest round."""
    speed_up: float | None = None
    """Time of Linear Scan at this setting divided by this one's."""
    buckets: float | None = None
    """Buckets probed."""
    empty_buckets: float | None = None
    candidates: float | None = None
    """Rows compared."""
    duplicates: float | None = None
    """Rows met again in another table."""
    rounds: float | None = None
    queries: int | None = None
    """Queries that precision and counts are means over."""
    timed_queries: int | None = None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """The time of a method with another number of tables."""

    role: str
    hasher: str
    weigher: str
    bits: int
    k: int
    method: str
    m: int
    ms: float
    by_rule: bool
    """Whether m is what the method's own rule gives."""
    chosen: bool
    """Whether the cells were measured with it."""


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
    """How it was run: "quick", "seed", "tables", "max_rows", "queries", "timed_queries",
    "timing_rounds", "seconds" in all."""
    data: list[DataFacts] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    sweeps: list[SweepPoint] = field(default_factory=list)
    ambiguity: list[Ambiguity] = field(default_factory=list)

    def name_of(self, role: str) -> str:
        """What to call a set of the paper: its name only where it was searched itself."""
        for facts in self.data:
            if facts.role == role:
                return role if facts.genuine else facts.name
        return role

    def cell(
        self, role: str, hasher: str, weigher: str, bits: int, k: int, method: str
    ) -> Cell | None:
        """The cell at a setting, None if it was not measured."""
        wanted = (role, hasher, weigher, bits, k, method)
        for cell in self.cells:
            if wanted == (cell.role, cell.hasher, cell.weigher, cell.bits, cell.k, cell.method):
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
            data=[DataFacts(**one) for one in content["data"]],
            cells=[Cell(**one) for one in content["cells"]],
            sweeps=[SweepPoint(**one) for one in content["sweeps"]],
            ambiguity=[Ambiguity(**one) for one in content["ambiguity"]],
        )
