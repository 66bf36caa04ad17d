"""Calls as callers write them, for mypy: `test_types.py` checks this file and never runs it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import bitweigh
from bitweigh import RangeResult, SearchResult, SearchStats, VectorIndex

COSTS = np.ones((8, 2))


def of_codes(index: bitweigh.Index, stats: bool, as_frame: bool) -> None:
    assert_type(index.search(COSTS, 3), SearchResult)
    assert_type(index.search(COSTS, 3, as_frame=False), SearchResult)
    assert_type(index.search(COSTS, 3, stats=False, as_frame=False), SearchResult)
    assert_type(index.search(COSTS, 3, ties="cut"), SearchResult)
    assert_type(index.search(COSTS, 3, ties="all"), RangeResult)
    assert_type(index.search(COSTS, 3, ties="all", as_frame=False), RangeResult)
    assert_type(index.search(COSTS, 3, stats=True), tuple[SearchResult, SearchStats])
    assert_type(
        index.search(COSTS, 3, stats=True, as_frame=False), tuple[SearchResult, SearchStats]
    )
    assert_type(
        index.search(COSTS, 3, stats=stats), SearchResult | tuple[SearchResult, SearchStats]
    )
    assert_type(index.search(COSTS, 3, as_frame=True), Any)
    assert_type(index.search(COSTS, 3, as_frame="polars"), Any)
    assert_type(index.search(COSTS, 3, as_frame="dict", ties="all", stats=False), Any)
    assert_type(index.search(COSTS, 3, as_frame=as_frame), SearchResult | Any)
    index.search(COSTS, 3, as_frame=as_frame, stats=stats)
    index.search(COSTS, 3, as_frame=as_frame, ties="all")
    index.search(COSTS, 3, as_frame=as_frame or "arrow")


def of_vectors(index: VectorIndex, as_frame: bool) -> None:
    assert_type(index.search(COSTS, 3), SearchResult)
    assert_type(index.search(COSTS, 3, as_frame=False), SearchResult)
    assert_type(index.search(COSTS, 3, as_frame=True), Any)
    assert_type(index.search(COSTS, 3, as_frame="arrow"), Any)
    assert_type(index.search(COSTS, 3, as_frame=as_frame), SearchResult | Any)
    assert_type(index.index, bitweigh.Index)
    assert_type(index.range_search(COSTS, 1.0, by="codes"), RangeResult)


class Own(bitweigh.Index):
    """A class of a caller's."""


def copies(own: Own, index: bitweigh.Index) -> None:
    assert_type(own.copy(), Own)
    assert_type(index.copy(), bitweigh.Index)
