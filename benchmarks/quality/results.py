"""The figures of all sets in a JSON file; a set that is measured again replaces its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from benchmarks.quality.measuring import Figures
from benchmarks.quality.weighing import Line

__all__ = ["Results", "SetFigures", "load", "save"]


class SetFigures(TypedDict):
    """All that was measured on one set."""

    name: str
    n: int
    n_features: int
    n_queries: int
    methods: list[Figures]
    weighing: list[Line]
    without: str
    """Why FAISS's methods are missing; empty if they are not."""


class Results(TypedDict):
    """All sets, in the order of the page."""

    machine: dict[str, str]
    sets: dict[str, SetFigures]


def load(file: Path) -> Results:
    """Read a file; an empty result if there is none."""
    if not file.exists():
        return Results(machine={}, sets={})
    results: Results = json.loads(file.read_text())
    return results


def save(results: Results, file: Path) -> None:
    """Write a file, and its folder if it is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
