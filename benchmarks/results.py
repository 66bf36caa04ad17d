"""The format of the results, as stored in the JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict


class PeerFigures(TypedDict):
    """One peer on one workload; times are milliseconds per query."""

    peer: str
    exact: bool
    calls: int
    """Number of timed calls."""
    median_ms: float
    best_ms: float
    p10_ms: float
    p90_ms: float
    recall: float
    """Share of the exact k nearest that the peer found."""
    recall_queries: int
    """Number of queries that `recall` was measured on."""
    ratio: float
    """The peer's median time divided by that of bitweigh."""
    build_seconds: float
    """Time from packed codes to the first query."""
    bytes_per_row: float | None
    """Memory of the built peer per row; None if unknown."""


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
