"""What a run at a large number of rows does, and which sizes it measures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["LARGE_ROWS", "LARGE_TABLES", "LargePlan"]

LARGE_TABLES = frozenset({6, 7, 8})
LARGE_ROWS = 2_000_000
"""Rows from which on tables 6 to 8 are measured from disk unless asked otherwise."""
_MIN_GROWTH_ROWS = 2000
_MAX_SIZES = 4


@dataclass(frozen=True, slots=True)
class LargePlan:
    """What to run."""

    rows: int
    work: Path
    """The folder for codes and indexes."""
    data: Path | None = None
    """A folder with dsift480k_u8.npy; without it the mixture is fitted on generated rows."""
    tables: frozenset[int] = LARGE_TABLES
    bits: tuple[int, ...] = (64, 32)
    queries: int = 1000
    seed: int = 0
    build_memory: int = 4 * 2**30
    """Bytes that a build may use."""
    peer_memory: int = 12 * 2**30
    """Bytes that the methods of the paper may use, which keep everything in memory."""
    precision_rows: int = 1_000_000
    """Rows for Table 6: precision needs whole vectors, and the true neighbours among them."""
    definition_queries: int = 20
    """Queries that are compared with the definition."""
    scan_queries: int = 10
    """Queries that Linear Scan is timed with, for each K."""
    cold_queries: int = 20
    threads: int = 2
    """Threads of batches, of generating and of building."""
    keep: bool = False
    """Whether to keep codes and indexes."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows to measure at, ascending: all, and a tenth, hundredth and thousandth of that."""
        steps = [self.rows // 10**power for power in range(_MAX_SIZES)]
        return tuple(sorted({n for n in steps if n >= _MIN_GROWTH_ROWS} | {self.rows}))

    def peer_rows(self, n_bits: int, m: int = 2) -> int:
        """Return how many rows the paper's methods hold in `peer_memory`, to two digits.

        A row takes its code, in each of m tables a row number and a key, and 24 bytes of temporary
        memory while a table is sorted.
        """
        fitting = self.peer_memory // (-(-n_bits // 8) + 8 * m + 24)
        unit: int = 10 ** max(0, len(str(fitting)) - 2)
        return min(self.rows, fitting // unit * unit)
