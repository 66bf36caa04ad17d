"""What a search of a collection does, and what each bit of its hits pays.

The hits are those of a search by code for the same query: an item that is asked for by its id is
none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh import Filter, Index, SearchResult
from bitweigh.server.asking import (
    Prepared,
    costs_of,
    filter_of,
    hits_of,
    is_exact,
    time_left,
)
from bitweigh.server.collection import Collection
from bitweigh.server.contents import CodesOf
from bitweigh.server.payload_filters import Condition

__all__ = ["AskedWhy", "bits_of", "explained", "found_hits"]

# Rows up to which all distances are computed for a histogram.
_MAX_HISTOGRAM_ROWS = 5_000_000
# Doubles below it can hold halves.
_HALVES_END = 2.0**51


class AskedWhy(NamedTuple):
    """A query to explain."""

    query: Prepared
    k: int
    others: Sequence[int]
    """Items to explain beside the hits."""
    bins: int
    """Of the histogram; 0 for none."""
    payload: bool | tuple[str, ...]
    condition: Condition | None
    deadline: float

    def k_searched(self, rows: int) -> int:
        """One more than k if the item asked for, which is no hit, may be among the nearest."""
        return self.k + (self.query.form == "id" and self.k < rows)


def explained(collection: Collection, asked: AskedWhy) -> dict[str, Any]:
    """The answer for a collection, all of it of one state."""
    with collection.pinned() as (reader, view):
        costs, codes = costs_of(collection, view, asked.query)
        allowed = filter_of(collection, reader, view, asked.condition, asked.deadline)
        timeout = time_left(asked.deadline)
        plan = codes.explain(costs, asked.k_searched(len(codes)), filter=allowed, timeout=timeout)
        distances, ids = found_hits(asked, plan.found)
        return {
            "plan": {**plan.as_dict(), "k": asked.k},
            "hits": hits_of(distances, ids, asked.payload, reader.payloads(ids)),
            "costs": np.ascontiguousarray(costs, np.float64),
            "bits": bits_of(codes, costs, [*ids, *asked.others]),
            "histogram": _histogram(codes, costs, allowed, asked),
            "seq": view.seq,
            "exact": is_exact(collection.contents, asked.query),
        }


def found_hits(asked: AskedWhy, found: SearchResult) -> tuple[list[float], list[int]]:
    """Distances and ids of the k nearest of those found, without the item asked for."""
    kept = found.ids >= 0
    if asked.query.form == "id":
        kept &= found.ids != asked.query.value
    return found.distances[kept].tolist()[: asked.k], found.ids[kept].tolist()[: asked.k]


def bits_of(codes: CodesOf, costs: NDArray[Any], ids: Sequence[int]) -> dict[str, dict[str, Any]]:
    """The bits of items and what each pays; KeyError for an id that is not there."""
    ids = list(dict.fromkeys(ids))
    if not ids:
        return {}
    packed = codes.codes_of(ids)
    rows = np.unpackbits(packed, axis=1, count=codes.n_bits, bitorder=codes.bitorder)
    pays = np.where(rows, costs[:, 1], costs[:, 0]).astype(np.float64)
    return {
        str(id_): {"bits": "".join(map(str, row.tolist())), "pays": paid.tolist()}
        for id_, row, paid in zip(ids, rows, pays, strict=True)
    }


def _histogram(
    codes: Index, costs: NDArray[Any], allowed: Filter | None, asked: AskedWhy
) -> dict[str, Any] | None:
    """How many items are at which distances; None if not asked for, or for no or too many items."""
    if not asked.bins or len(codes) > _MAX_HISTOGRAM_ROWS:
        return None
    timeout = time_left(asked.deadline)
    distances = codes.range_search(costs, np.inf, filter=allowed, timeout=timeout).distances
    if not distances.size:
        return None
    bins, span = _bins_of(distances, asked.bins)
    counts, edges = np.histogram(distances, bins, span)
    return {
        "counts": counts.tolist(),
        "edges": edges.tolist(),
        "min": float(distances.min()),
        "max": float(distances.max()),
    }


def _bins_of(distances: NDArray[np.float64], bins: int) -> tuple[int, tuple[float, float]]:
    """How many bins of equal width, at most `bins`; where the first begins and the last ends.

    If all distances are whole, each bin spans the same number of whole numbers.
    """
    low, high = float(distances.min()), float(distances.max())
    most = max(abs(low), abs(high))
    if low == high:
        bins = 1
    elif most < _HALVES_END and np.array_equal(distances, np.rint(distances)):
        step = math.ceil((high - low + 1) / bins)
        bins = math.ceil((high - low + 1) / step)
        return bins, (low - 0.5, low - 0.5 + bins * step)
    # Edges closer to each other than adjacent doubles would coincide.
    finest = 4 * bins * float(np.spacing(most))
    pad = 0.0 if high - low > finest else max(0.5, finest)
    return bins, (low - pad, high + pad)
