"""Results of searches, counters of the work they did, and the memory that an index uses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh.typing import FrameKind, RowLayout

__all__ = [
    "Memory",
    "Neighbours",
    "RangeResult",
    "ScoredRangeResult",
    "ScoredResult",
    "SearchResult",
    "SearchStats",
]


class _MemoryParts(NamedTuple):
    codes: int
    """The codes, stored once."""
    ids: int
    """The id of each row."""
    id_lookup: int
    """The row of each id."""
    band_codes: int
    """Copies of the codes, one in the order of each band but the first."""
    band_rows: int
    """The row at each position of a band, for each band but the first."""
    directories: int
    """The position in each band where the rows of each key start."""
    removed: int
    """Marks of the rows that were removed."""


class Memory(_MemoryParts):
    """Bytes of memory that an index uses, by purpose."""

    layouts: tuple[RowLayout, ...] = ()
    """How the rows of each segment are stored; `Index.explain` says why."""

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self)


class Neighbours(NamedTuple):
    """Distances and ids of the nearest codes, two arrays of the same shape."""

    distances: NDArray[np.float64]
    ids: NDArray[np.int64]


class _Matches(NamedTuple):
    lims: NDArray[np.int64]
    distances: NDArray[np.float64]
    ids: NDArray[np.int64]


class _Scored(NamedTuple):
    scores: NDArray[np.float64]
    ids: NDArray[np.int64]


class _ScoredMatches(NamedTuple):
    lims: NDArray[np.int64]
    scores: NDArray[np.float64]
    ids: NDArray[np.int64]


class _Counted:
    """A result that may have counters of its search."""

    _counters: NDArray[np.int64] | None = None
    """(n_counters,) for a single query, else (nq, n_counters)."""

    @property
    def stats(self) -> SearchStats | None:
        """Counters of the search if it was called with ``stats=True``, else None."""
        if self._counters is None:
            return None
        single = self._counters.ndim == 1
        return SearchStats(*(self._counters.tolist() if single else self._counters.T))


class SearchResult(_Counted, Neighbours):
    """The k nearest codes, nearest first; equal distances in ascending id.

    A pair, ``distances, ids = index.search(...)``: float64 (nq, k) and int64 (nq, k), or ``(k,)``
    for a single query. If the index has fewer than k codes, the rest is padded with distance +inf
    and id -1.
    """

    def to_frame(self, kind: FrameKind = "pandas", *, queries: ArrayLike | None = None) -> Any:  # noqa: ANN401
        """A table with a row for each neighbour: query, rank (1 is the nearest), id and distance.

        The padding of answers with fewer than k neighbours is left out.

        Parameters
        ----------
        kind : "pandas", "polars", "arrow" or "dict"
            A DataFrame of pandas or of polars, a Table of pyarrow, or a dict of NumPy arrays.
        queries : (nq,), optional
            Names of the queries, for the first column. By default they are numbered from 0.

        Raises
        ------
        ImportError
            If the package for that kind of table is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[0], [1], [255]], dtype=np.uint8))
        >>> found = index.search(bitweigh.costs.hamming(np.array([[3]], dtype=np.uint8), 8), k=2)
        >>> table = found.to_frame("dict", queries=["first"])
        >>> table["query"].tolist(), table["rank"].tolist(), table["id"].tolist()
        (['first', 'first'], [1, 2], [1, 0])

        """
        from bitweigh._tables import frame_of_rows

        return frame_of_rows(self.ids, {"distance": self.distances}, kind, queries)


class RangeResult(_Counted, _Matches):
    """All codes within a radius, one query after the other.

    A triple: ``lims`` int64 (nq + 1,), ``distances`` float64 (lims[-1],) and ``ids`` int64
    (lims[-1],). Those of query q are at ``lims[q]`` to ``lims[q + 1]``, nearest first, equal
    distances in ascending id. A single query has two `lims`.
    """

    def to_frame(self, kind: FrameKind = "pandas", *, queries: ArrayLike | None = None) -> Any:  # noqa: ANN401
        """A table with a row for each code, as `SearchResult.to_frame` returns it.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[0], [1], [255]], dtype=np.uint8))
        >>> costs = bitweigh.costs.hamming(np.array([[3]], dtype=np.uint8), 8)
        >>> index.range_search(costs, 2).to_frame("dict")["id"]
        array([1, 0])

        """
        from bitweigh._tables import frame_of_runs

        return frame_of_runs(self.lims, self.ids, {"distance": self.distances}, kind, queries)


class ScoredResult(_Scored):
    """The k embeddings with the largest scores, largest first; equal scores in ascending id.

    A pair, ``scores, ids``: float64 (nq, k) and int64 (nq, k), or ``(k,)`` for a single query.
    If there are fewer than k embeddings, the rest is padded with score -inf and id -1.
    """

    def to_frame(self, kind: FrameKind = "pandas", *, queries: ArrayLike | None = None) -> Any:  # noqa: ANN401
        """A table as `SearchResult.to_frame` returns it, with a column `score`, not `distance`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> embeddings = bitweigh.BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[255], [15]], dtype=np.uint8))
        >>> embeddings.search(np.ones(8, np.float32), k=1).to_frame("dict")["score"]
        array([8.])

        """
        from bitweigh._tables import frame_of_rows

        return frame_of_rows(self.ids, {"score": self.scores}, kind, queries)


class ScoredRangeResult(_ScoredMatches):
    """All embeddings with scores of at least a bound, one query after the other.

    A triple: ``lims`` int64 (nq + 1,), ``scores`` float64 (lims[-1],) and ``ids`` int64
    (lims[-1],). Those of query q are at ``lims[q]`` to ``lims[q + 1]``, largest score first, equal
    scores in ascending id. A single query has two `lims`.
    """

    def to_frame(self, kind: FrameKind = "pandas", *, queries: ArrayLike | None = None) -> Any:  # noqa: ANN401
        """A table with a row for each embedding, as `ScoredResult.to_frame` returns it.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> embeddings = bitweigh.BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[255], [15]], dtype=np.uint8))
        >>> embeddings.range_search(np.ones(8), min_score=5).to_frame("dict")["score"]
        array([8.])

        """
        from bitweigh._tables import frame_of_runs

        return frame_of_runs(self.lims, self.ids, {"score": self.scores}, kind, queries)


class SearchStats(NamedTuple):
    """Counters of a search: each is int64 ``(nq,)``, or an int for a single query.

    Counters depend on threads, batches and segments; the answer does not.
    """

    rows_scored_directly: NDArray[np.int64]
    """Rows scored without the kernel: all of a small index or filter, or a first sample."""
    rows_scanned: NDArray[np.int64]
    """Rows that the kernel looked at."""
    rows_scanned_wide: NDArray[np.int64]
    """Scanned rows whose bounds were summed in 16 bits instead of 8."""
    verified: NDArray[np.int64]
    """Rows that the kernel could not rule out, scored by the definition."""
    rescales: NDArray[np.int64]
    """Times that the kernel's tables were rebuilt because the worst distance had halved."""
    capped_entries: NDArray[np.int64]
    """Entries of the kernel's tables that were too large for their 8 bits."""
    probes: NDArray[np.int64]
    """Keys looked up in bands."""
    empty_probes: NDArray[np.int64]
    """Looked-up keys that no row has."""
    blocks_probed: NDArray[np.int64]
    """Blocks of 32 rows that the kernel looked at for the keys looked up."""
    rounds: NDArray[np.int64]
    """Times that the next band to walk was planned."""
    rewalks: NDArray[np.int64]
    """Walks through the keys of a band that had been walked before, to a higher limit."""
    exhausted_bands: NDArray[np.int64]
    """Bands whose keys were all looked up, which means that every row was seen."""
    duplicates: NDArray[np.int64]
    """Rows seen again while they were among the nearest."""
    fallbacks: NDArray[np.int64]
    """Segments that were scanned after all, because probing became too expensive."""
    predicted_ns: NDArray[np.int64]
    """Nanoseconds that all probing was estimated to take, at first or when it was given up."""
    probe_spent_ns: NDArray[np.int64]
    """Nanoseconds that the probing done takes by the same estimates."""
    scan_ns: NDArray[np.int64]
    """Nanoseconds that scanning the probed segments would take by the same estimates."""
    nanoseconds: NDArray[np.int64]
    """Measured nanoseconds in the engine, added up over threads.

    Queries scanned together share the time evenly.
    """


def others(ids: NDArray[np.int64], self_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A mask of neighbours (nq, k + 1) that drops one for each query: the query itself.

    A query may be missing among its neighbours, behind others that are as near and have lower ids.
    Then its last neighbour is dropped instead.
    """
    mask: NDArray[np.bool_] = ids != self_ids[:, np.newaxis]
    mask[mask.all(axis=1), -1] = False
    return mask
