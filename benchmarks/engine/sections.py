"""Code shared by the sections: settings, progress display, data, and reports."""

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
"""Queries (nq, n_bits, 2) in float64, which a search need not convert."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the command line."""

    rows: int
    """Maximum rows of any set."""
    rounds: int
    data: Path | None
    """Folder of the real data sets."""


class Report(NamedTuple):
    """The results of a section."""

    figures: object
    """All figures, for JSON."""
    markdown: str
    plot: str | None = None
    """An SVG; the markdown refers to it by the section's name."""


class Display:
    """The current step on one line, refreshed explicitly: a thread would disturb the timing."""

    def __init__(self, progress: Progress) -> None:
        """Start the line."""
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def doing(self, what: str, done: int = 0, of: int | None = None) -> None:
        """Replace the line."""
        self._progress.update(self._task, description=what, completed=done, total=of, refresh=True)

    def say(self, line: str) -> None:
        """Print a line that stays on the screen."""
        self._progress.console.print(line, soft_wrap=True, highlight=False)


def load(
    kind: Kind,
    n: int | None,
    n_bits: int,
    settings: Settings,
    display: Display,
    hasher: HasherName = "lsh",
) -> tuple[Codes, Costs]:
    """Return as many codes as the settings allow, and 1000 queries; NoDataError if missing."""
    rows = None if n is None else min(n, settings.rows)
    doing = f"{kind}, {n_bits} bits: data"
    display.doing(doing)
    dataset = data.load(
        kind,
        rows,
        n_bits,
        settings.data,
        hasher=hasher,
        on_chunk=partial(display.doing, doing),
        memory_map=True,
    )
    return dataset.codes[: settings.rows], dataset.costs.astype(np.float64)


def indexed(codes: Codes, n_bits: int) -> bitweigh.Index:
    """Return an index with default options, ready for its first query."""
    index = bitweigh.Index(n_bits, bitorder="little", build="manual")
    index.add(codes)
    index.build()
    return index
