"""Hashers and weighers compared: how many of the nearest their codes find, for each length.

With plain Hamming distance, with weights, and with weights and reranking of 100 candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from benchmarks.quality.methods import Ids, K
from benchmarks.quality.sets import Floats, Vectors
from bitweigh import costs, evaluation, weighers
from bitweigh.hashers import ITQ, LSH, Hasher
from bitweigh.vector_index import VectorIndex

__all__ = ["BITS", "WAYS", "Line", "compare"]

BITS = (32, 64, 128, 256)
WAYS = ("plain Hamming", "Asym", "Wh", "Asym + rerank")


class Line(TypedDict):
    """The share of true neighbours found by each of `WAYS`, for one hasher and code length."""

    hasher: str
    n_bits: int
    precision: list[float]


def compare(data: Vectors, fit_rows: int = 20_000) -> Iterator[Line]:
    """Measure each hasher, learning from `fit_rows`, with each number of bits that it supports."""
    truth = evaluation.euclidean_top(data.rows, data.queries, K)
    for n_bits in BITS:
        kinds: list[Hasher] = [LSH(n_bits, max_fit_rows=fit_rows)]
        if n_bits <= data.rows.shape[1]:
            kinds.append(ITQ(n_bits, max_fit_rows=fit_rows))
        for hasher in kinds:
            found = _found(hasher, data.rows, data.queries)
            precision = [evaluation.precision_at_k(ids, truth) for ids in found]
            yield Line(hasher=type(hasher).__name__, n_bits=n_bits, precision=precision)


def _found(hasher: Hasher, rows: Floats, queries: Floats) -> Iterator[Ids]:
    """Yield the ids that each way finds, (nq, K)."""
    index = VectorIndex(hasher=hasher, rerank="float32").fit(rows)
    index.add(rows)
    fitted, codes = index.hasher, index.index
    plain = costs.hamming(fitted.transform(queries), codes.n_bits)
    projected = fitted.project(queries)
    sample = rows[: hasher.max_fit_rows]
    wh = weighers.Wh().fit(fitted.project(sample), fitted.thresholds_, vectors=sample)
    for query_costs in (plain, index.weigher.costs(projected), wh.costs(projected)):
        yield codes.search(query_costs, K).ids
    yield index.search(queries, K).ids
