"""The measured cells as a CSV file, for other programs."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

from bitweigh_experiments.reproduce.results import Cell, Results

__all__ = ["write_csv"]


def write_csv(results: Results, path: Path) -> None:
    """Write a header of field names and a line per cell; unmeasured fields are empty."""
    names = [field.name for field in dataclasses.fields(Cell)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(cell) for cell in results.cells)
