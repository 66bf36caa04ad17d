"""The form of the results: what goes into the JSON file and comes out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict


class PeerFigures(TypedDict):
    """One peer on one workload; times are milliseconds per query."""

    peer: str
    exact: bool
    calls: int
    """How many calls were timed."""
    median_ms: float
    best_ms: float
    p10_ms: float
    p90_ms: float
    recall: float
    """Share of the exact k nearest that it found."""
    recall_queries: int
    """Over how many queries."""
    ratio: float
    """Its median time divided by that of bitweigh."""
    build_seconds: float
    """From packed codes to the first query."""
    bytes_per_row: float | None
    """Of what it keeps; None where that cannot be told."""


class WorkloadFigures(TypedDict):
    """All peers on one workload; the first is bitweigh."""

    name: str
    data: str
    n: int
    n_bits: int
    hasher: str
    weigher: str
    k: int
    batch: int
    peers: list[PeerFigures]
    left_out: dict[str, str]
    """Peers that did not take part, and why."""


class Results(TypedDict):
    """A whole run."""

    machine: dict[str, str]
    rounds: int
    queries: int
    workloads: list[WorkloadFigures]
    skipped: dict[str, str]
    """Workloads that were not measured, and why."""


def save(results: Results, file: Path) -> None:
    """Write the results as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")


def load(file: Path) -> Results:
    """Read what :func:`save` wrote."""
    results: Results = json.loads(file.read_text())
    return results
