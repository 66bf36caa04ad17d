"""Queries that show whether bands pay: given by the caller, asked recently, or made from codes.

Queries made from stored codes look like real ones in what decides: how many codes are about as near
as the nearest ones, and that bits on which neighbours agree count for more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core, _system
from bitweigh._index.bands import EvidenceSource
from bitweigh._index.request import Request, nearest, search_options
from bitweigh._index.segments import Segment
from bitweigh.costs import from_weights, hamming
from bitweigh.typing import BitOrder, Codes

__all__ = [
    "DEFAULT_K",
    "MAX_QUERIES",
    "CostsOfCodes",
    "Evidence",
    "RecentQueries",
    "from_codes",
    "from_decoded",
    "from_queries",
    "request_for",
    "weights_of",
]

Costs: TypeAlias = NDArray[np.float64]
CostsOfCodes: TypeAlias = Callable[[Codes], Costs]
"""The costs (n, n_bits, 2) of queries that codes (n, n_bytes) stand for."""

DEFAULT_K = 10
# Queries that are looked at; with more of them a choice hardly changes.
MAX_QUERIES = 96
# Rows among which neighbours of a stored code are looked for, and how many of them.
_POOL_ROWS = 1 << 14
_NEIGHBOURS = 32
_MAX_BYTES = 1 << 20
# Queries of a batch that are remembered.
_MAX_PER_BATCH = 8
_SEED = 0


class Evidence(NamedTuple):
    """Queries, and how many neighbours they ask for."""

    costs: Costs
    """(nq, n_bits, 2)"""
    k: int
    source: EvidenceSource
    rows: NDArray[np.int64] | None = None
    """The rows that the queries were made from: each is its own nearest neighbour."""


class RecentQueries:
    """The last queries that an index was asked. Threads may add some at the same time."""

    def __init__(self, n_bits: int) -> None:
        """Remember nothing yet; later no more than a mebibyte."""
        max_queries = max(8, min(MAX_QUERIES, _MAX_BYTES // (16 * n_bits)))
        self._queries: deque[tuple[Costs, int]] = deque(maxlen=max_queries)

    def copy(self) -> RecentQueries:
        """The same queries, to which others can be added."""
        other = RecentQueries(1)
        other._queries = self._queries.copy()
        return other

    def add(self, costs: Costs, k: int) -> None:
        """Remember a query (n_bits, 2), which nobody changes, or some of a batch."""
        if costs.ndim == 2:
            self._queries.append((costs, k))
        elif len(costs):
            step = -(-len(costs) // _MAX_PER_BATCH)
            self._queries.extend((query.copy(), k) for query in costs[::step])

    def evidence(self) -> Evidence | None:
        """All of them, for the median of their k; None if there are none."""
        queries = list(self._queries)
        if not queries:
            return None
        k = int(np.median([k for _, k in queries]))
        return Evidence(np.stack([costs for costs, _ in queries]), k, "recent")


def from_codes(codes: Codes, n_bits: int, bitorder: BitOrder) -> Evidence:
    """Queries made from stored codes (n, n_bytes), n >= 2; the same for the same codes.

    The costs of a query are those of flipping the bits of a stored code. Half of a bit's weight is
    noise. The other half says how far the code is from a flip of that bit, if projections are
    normally distributed: from how many of the code's neighbours agree with it.
    """
    rng = np.random.default_rng(_SEED)
    drawn = rng.choice(len(codes), min(len(codes), MAX_QUERIES + _POOL_ROWS), replace=False)
    n_queries = min(MAX_QUERIES, len(drawn) // 2)
    rows, pool = drawn[:n_queries], codes[np.sort(drawn[n_queries:])]
    agreeing = _agreeing_neighbours(codes[rows], pool, n_bits, bitorder)
    normal = NormalDist()
    margins = [normal.inv_cdf((1 + n) / (_NEIGHBOURS + 2)) for n in range(_NEIGHBOURS + 1)]
    known = np.maximum(np.array(margins), 0.05)[agreeing]
    weights = (known + np.abs(rng.standard_normal(known.shape))) / 2
    costs = from_weights(codes[rows], weights, per_query=True, bitorder=bitorder)
    return Evidence(np.asarray(costs, np.float64), DEFAULT_K, "stored", rows)


def from_decoded(codes: Codes, costs_of: CostsOfCodes) -> Evidence:
    """Queries that are what some stored codes (n, n_bytes) stand for; the same for the same codes.

    `costs_of` turns codes into the costs of such queries.
    """
    drawn = np.random.default_rng(_SEED).choice(
        len(codes), min(len(codes), MAX_QUERIES), replace=False
    )
    return Evidence(costs_of(codes[drawn]), DEFAULT_K, "stored", drawn)


def weights_of(evidence: Evidence) -> NDArray[np.float64]:
    """What each bit costs on average, (n_bits,)."""
    weights: NDArray[np.float64] = np.abs(np.diff(evidence.costs, axis=2)).mean(axis=(0, 2))
    return weights


def from_queries(costs: Costs, k: int | None) -> Evidence:
    """Queries (nq, n_bits, 2) of the caller, nq >= 1, or some of many."""
    step = -(-len(costs) // MAX_QUERIES)
    return Evidence(np.ascontiguousarray(costs[::step]), DEFAULT_K if k is None else k, "given")


def _agreeing_neighbours(
    queries: Codes, pool: Codes, n_bits: int, bitorder: BitOrder
) -> NDArray[np.int64]:
    """How many of the nearest rows of a pool have the same bit, (nq, n_bits), of 32."""
    k = min(_NEIGHBOURS, len(pool))
    segment = Segment.build(pool, np.arange(len(pool)), n_bits)
    found = nearest(request_for(segment, bitorder), hamming(queries, n_bits, bitorder=bitorder), k)
    bits = np.unpackbits(queries, axis=1, count=n_bits, bitorder=bitorder)
    agreeing = np.zeros(bits.shape, np.int64)
    for neighbour in found.ids.T:
        other = np.unpackbits(pool[neighbour], axis=1, count=n_bits, bitorder=bitorder)
        agreeing += other == bits
    return agreeing * _NEIGHBOURS // k


def request_for(segment: Segment, bitorder: BitOrder) -> Request:
    """A search of one segment on one thread."""
    engine = _core.Engine(segment.n_bits, bitorder, _system.KERNEL)
    return Request(engine, _core.SegmentSet([segment.core], [None]), search_options(threads=1))
