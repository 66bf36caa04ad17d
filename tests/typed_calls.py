"""Calls as users write them, for mypy: `test_types.py` checks this file without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import (
    Explanation,
    RangeResult,
    ScoredRangeResult,
    ScoredResult,
    SearchResult,
    SearchStats,
    VectorIndex,
)
from bitweigh.typing import FrameKind, Method

COSTS = np.ones((8, 2))
CODES = np.ones((3, 1), np.uint8)


def of_codes(index: bitweigh.Index, flag: bool, method: Method, kind: FrameKind) -> None:
    assert_type(index.search(COSTS, 3), SearchResult)
    assert_type(index.search(COSTS, 3, stats=flag, method=method), SearchResult)
    assert_type(index.search(COSTS, 3, stats=True).stats, SearchStats | None)
    assert_type(index.search_with_ties(COSTS, 3, stats=flag), RangeResult)
    assert_type(index.range_search(COSTS, 1.0, stats=flag), RangeResult)
    assert_type(index.search_by_id(3, 3, include_self=flag), SearchResult)
    assert_type(index.search(COSTS, 3).to_frame(kind), Any)
    assert_type(index.search_codes(CODES, 3, weights=COSTS, timeout=0.5), SearchResult)
    assert_type(index.contributions(COSTS, [1]), NDArray[np.float64])
    assert_type(index.note, dict[str, Any])
    assert_type(index.explain(COSTS, 3), Explanation)
    kept = index.filter(allow=[1, 2])
    assert_type(kept & ~kept | kept, bitweigh.Filter)
    assert_type(index.search(COSTS, 3, filter=kept), SearchResult)
    assert_type(index.range_search(COSTS, 1.0, filter=kept), RangeResult)
    index.build(rebuild=flag)
    _, ids = index.search(COSTS, 3)
    assert_type(ids.ndim, int)


def of_vectors(index: VectorIndex, flag: bool) -> None:
    assert_type(index.search(COSTS, 3, progress=flag), SearchResult)
    assert_type(index.search(COSTS, 3, filter=index.filter(deny=[1])), SearchResult)
    assert_type(index.index, bitweigh.Index)
    assert_type(index.range_search(COSTS, 1.0, by="codes"), RangeResult)
    assert_type(index.explain(COSTS[0], 3, rerank_from=10), Explanation)
    assert_type(index.iterate(COSTS[0], by="codes"), Iterator[tuple[float, int]])
    assert_type(index.search_by_id([1], 3, include_self=flag), SearchResult)
    assert_type(index.copy(), VectorIndex)
    index.replace(COSTS, [1])
    index.merge(index, on_duplicate="replace")
    index.build(rebuild=flag)


def of_embeddings(embeddings: bitweigh.BinaryEmbeddings, flag: bool) -> None:
    assert_type(embeddings.search(COSTS, 3, signed=flag), ScoredResult)
    assert_type(embeddings.search(COSTS, 3, filter=embeddings.filter(deny=[1])), ScoredResult)
    assert_type(embeddings.search(COSTS, 3).to_frame(), Any)
    assert_type(embeddings.range_search(COSTS, 3.0, by="codes"), ScoredRangeResult)
    assert_type(embeddings.copy(), bitweigh.BinaryEmbeddings)
    assert_type(embeddings.index, bitweigh.Index)


def of_shards(
    index: bitweigh.Index, embeddings: bitweigh.BinaryEmbeddings, timeout: float | None
) -> None:
    assert_type(bitweigh.merge([index.search(COSTS, 3, timeout=timeout)], 3), SearchResult)
    assert_type(bitweigh.merge([embeddings.search(COSTS, 3, timeout=1)], k=3), ScoredResult)
    assert_type(bitweigh.merge([index.range_search(COSTS, 3)]), RangeResult)
    assert_type(bitweigh.merge([embeddings.range_search(COSTS, 3)]), ScoredRangeResult)


def of_folders(path: str, flag: bool) -> None:
    assert_type(
        bitweigh.load(path, mmap=flag), bitweigh.Index | VectorIndex | bitweigh.BinaryEmbeddings
    )
    assert_type(bitweigh.Index.load(path, mmap=flag, verify=flag), bitweigh.Index)
    assert_type(VectorIndex.load(path, mmap=flag, verify=flag), VectorIndex)


class Derived(bitweigh.Index):
    """A class derived by a user."""


def copies(derived: Derived, index: bitweigh.Index) -> None:
    assert_type(derived.copy(), Derived)
    assert_type(index.copy(), bitweigh.Index)
