"""What a search returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Memory",
    "RangeResult",
    "SearchResult",
    "SearchStats",
]


class Memory(NamedTuple):
    """Bytes that an index takes, by part."""

    codes: int
    """The codes, once."""
    ids: int
    """The id of each row."""
    id_lookup: int
    """The row of each id."""
    band_codes: int
    """The codes again, in the order of each band but the first."""
    band_rows: int
    """Which row is where in a band."""
    directories: int
    """Where the rows of a key start, in each band."""
    removed: int
    """Which rows were removed."""

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


class SearchResult(NamedTuple):
    """The K nearest codes, nearest first; equal distances in ascending id.

    Where an index has fewer than K codes, the rest is padded with distance +inf and id -1.
    A single query gives arrays of shape ``(k,)``.
    """

    distances: NDArray[np.float64]
    """float64 (nq, k)"""
    ids: NDArray[np.int64]
    """int64 (nq, k)"""


class RangeResult(NamedTuple):
    """All codes within a radius, of one query after the other.

    Those of query q are at ``lims[q]`` to ``lims[q + 1]``, nearest first, equal distances in
    ascending id.
    """

    lims: NDArray[np.int64]
    """int64 (nq + 1,); (2,) for a single query"""
    distances: NDArray[np.float64]
    """float64 (lims[-1],)"""
    ids: NDArray[np.int64]
    """int64 (lims[-1],)"""


class SearchStats(NamedTuple):
    """What a search did, one count per query: int64 ``(nq,)``, or ``()`` for a single query.

    The counts depend on threads, batches and segments; the answer does not.
    """

    rows_scored_directly: NDArray[np.int64]
    """Rows scored without the kernel: all of a small index, or the sample for a first bound."""
    rows_scanned: NDArray[np.int64]
    """Rows that the kernel looked at."""
    rows_scanned_wide: NDArray[np.int64]
    """Of those, rows whose bounds were summed in 16 bits instead of 8."""
    candidates: NDArray[np.int64]
    """Rows that the kernel could not rule out, scored by the definition."""
    rescales: NDArray[np.int64]
    """How often the kernel's tables were made anew because the worst distance had halved."""
    capped_entries: NDArray[np.int64]
    """Entries of the kernel's tables that were too large for their 8 bits."""
    probes: NDArray[np.int64]
    """Keys looked up."""
    empty_probes: NDArray[np.int64]
    """Of those, keys without a row."""
    blocks_probed: NDArray[np.int64]
    """Blocks of 32 rows that the kernel looked at for them."""
    rounds: NDArray[np.int64]
    """How often it was planned which band to go on with."""
    walks_again: NDArray[np.int64]
    """Walks through the keys of a band beyond the first one of that band."""
    exhausted_bands: NDArray[np.int64]
    """Bands that had no key left: every row was met."""
    duplicates: NDArray[np.int64]
    """Rows met again while they were among the nearest."""
    give_ups: NDArray[np.int64]
    """Segments that were scanned after all, because probing became dearer."""
    predicted_cost: NDArray[np.int64]
    """Nanoseconds that all probing was estimated to take, as soon as there was a bound."""
    probing_cost: NDArray[np.int64]
    """Nanoseconds that the probing done takes by the same estimates."""
    scan_cost: NDArray[np.int64]
    """Nanoseconds that scanning what was probed would take by the same estimates."""
    nanoseconds: NDArray[np.int64]
    """By the clock, in the engine. Queries that were scanned together share the time evenly."""
