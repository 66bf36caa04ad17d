"""What the sections share: settings, what they show while they work, data, and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

import bitweigh
from benchmarks import data
from benchmarks.data import Kind
from benchmarks.hashed import Codes, HasherName

__all__ = ["Codes", "Costs", "Display", "Report", "Settings", "indexed", "load"]

Costs: TypeAlias = NDArray[np.float64]
"""What a search takes without converting it, (nq, n_bits, 2)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line chose."""

    rows: int
    """No set has more."""
    rounds: int
    data: Path | None
    """Folder of the real data sets."""


class Report(NamedTuple):
    """What a section found out."""

    figures: object
    """All of it, for JSON."""
    markdown: str
    plot: str | None = None
    """SVG, which the markdown shows under the section's name."""


class Display:
    """What is being done, on one line; refreshed by hand, as a thread would disturb the timing."""

    def __init__(self, progress: Progress) -> None:
        """Begin the line."""
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def doing(self, what: str, done: int = 0, of: int | None = None) -> None:
        """Replace the line."""
        self._progress.update(self._task, description=what, completed=done, total=of, refresh=True)

    def say(self, line: str) -> None:
        """Leave something on the screen."""
        self._progress.console.print(line, soft_wrap=True, highlight=False)


def load(
    kind: Kind,
    n: int | None,
    n_bits: int,
    settings: Settings,
    display: Display,
    hasher: HasherName = "lsh",
) -> tuple[Codes, Costs]:
    """Codes, as many as the settings allow, and 1000 queries; NoDataError without the real data."""
    rows = None if n is None else min(n, settings.rows)
    doing = f"{kind}, {n_bits} bits: data"
    display.doing(doing)
    made = data.load(
        kind,
        rows,
        n_bits,
        settings.data,
        hasher=hasher,
        on_chunk=partial(display.doing, doing),
        memory_map=True,
    )
    return made.codes[: settings.rows], made.costs.astype(np.float64)


def indexed(codes: Codes, n_bits: int) -> bitweigh.Index:
    """An index with all options at their defaults, ready for its first query."""
    index = bitweigh.Index(n_bits, bitorder="little", build="manual")
    index.add(codes)
    index.build()
    return index
