"""Small hand-written results of a reproduction."""

from __future__ import annotations

from typing import Any

from bitweigh_experiments.reproduce.results import Cell, DataFacts, Results

MAIN = ("Places205", "LSH", "Asym", 32)
STAND_IN = DataFacts(
    "Places205", "CIFAR-10 features", False, 59_000, 1_025_000, 128, 1_000, "same label"
)


def a_run(*cells: Cell, data: list[DataFacts] | None = None, **parts: Any) -> Results:
    return Results({}, {}, data=[STAND_IN] if data is None else data, cells=list(cells), **parts)
