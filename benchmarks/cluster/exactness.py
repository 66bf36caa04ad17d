"""Shards in memory against one index of all rows, over random cases: every byte must be equal.

A case follows from its number. Data are ugly on purpose: few distinct codes and costs, so that ties
run across shards, negative costs, empty shards, more neighbours than rows, filters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh.cluster import HashPartition, RangePartition, Shards

__all__ = ["check_cases"]


def check_cases(numbers: Iterable[int]) -> Counter[str]:
    """Compare the answers in these cases; returns what happened how often.

    Raises AssertionError naming the case if an answer differs.
    """
    seen: Counter[str] = Counter()
    for number in numbers:
        try:
            seen += _check(np.random.default_rng([7, number]))
        except Exception as error:
            raise AssertionError(f"case {number}: {error}") from error
    return seen


def _check(rng: np.random.Generator) -> Counter[str]:
    n_bits = int(rng.choice([1, 7, 8, 31, 33, 64, 65, 130]))
    rows = int(
        rng.choice([0, 1, 2, 7, 31, 33, 80, 300], p=[0.05, 0.1, 0.1, 0.1, 0.15, 0.15, 0.2, 0.15])
    )
    ids = np.sort(rng.choice(max(2 * rows, 10), rows, replace=False)) * int(
        rng.choice([1, 1, 10**9])
    )
    rng.shuffle(ids)
    partition = _partition(rng, ids)
    indexes = [bitweigh.Index(n_bits) for _ in range(partition.shards)]
    shard_of = partition.shard_of(ids)
    codes = _codes(rng, shard_of, n_bits)
    for number, index in enumerate(indexes):
        if (shard_of == number).any():
            index.add(codes[shard_of == number], ids[shard_of == number])
    one = bitweigh.Index(n_bits)
    if rows:
        one.add(codes, ids)
    shards = Shards(indexes, partition, share_from=int(rng.choice([1, 8, 64])))
    seen = _compare(rng, one, shards, codes, ids)
    seen["second rounds"] += shards.second_rounds
    seen["empty shards"] += sum(not len(index) for index in indexes)
    return seen


def _compare(
    rng: np.random.Generator,
    one: bitweigh.Index,
    shards: Shards,
    codes: NDArray[np.uint8],
    ids: NDArray[np.int64],
) -> Counter[str]:
    """Ask both for the same."""
    seen: Counter[str] = Counter(cases=1)
    nq = int(rng.choice([0, 1, 3], p=[0.02, 0.6, 0.38]))
    costs = _costs(rng, nq, one.n_bits)
    if nq == 1 and rng.random() < 0.5:
        costs = costs[0]
    k = int(rng.choice([1, 2, 5, 10, 30, 64, 100, max(1, len(ids)), len(ids) + 5]))
    row_filter = _filter(rng, ids)
    seen["filters"] += bool(row_filter)
    seen["k beyond the rows"] += k > len(ids)
    found = one.search(costs, k, **row_filter)
    _equal(found, shards.search(costs, k, **row_filter))
    ends = found.distances[..., -1:]
    seen["ties at the end"] += bool(k > 1 and (found.distances[..., -2:-1] == ends).any())
    if nq and np.ndim(costs) == 3:
        radius = np.where(np.isfinite(ends[:, 0]), ends[:, 0], 1.0)
        _equal(
            one.range_search(costs, radius, **row_filter),
            shards.range_search(costs, radius, **row_filter),
        )
        _equal(
            one.search_with_ties(costs, k, **row_filter),
            shards.search_with_ties(costs, k, **row_filter),
        )
    elif nq:
        taken = list(
            zip(range(k), one.iterate(costs.reshape(one.n_bits, 2), **row_filter), strict=False)
        )
        ours = zip(
            range(k), shards.iterate(costs.reshape(one.n_bits, 2), **row_filter), strict=False
        )
        assert taken == list(ours), "iterate"
    if len(ids):
        some = rng.choice(ids, min(3, len(ids)), replace=False)
        assert np.array_equal(one.codes_of(some), shards.codes_of(some)), "codes_of"
        _equal(one.search_by_id(some, k, **row_filter), shards.search_by_id(some, k, **row_filter))
        _equal(one.search_codes(codes[:2], k), shards.search_codes(codes[:2], k))
    assert np.array_equal(one.ids, shards.ids), "ids"
    return seen


def _equal(expected: Any, got: Any) -> None:  # noqa: ANN401 results of searches
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape, f"shapes {one.shape} and {other.shape}"
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), f"{type(expected).__name__} differs"


def _codes(rng: np.random.Generator, shard_of: NDArray[np.int64], n_bits: int) -> NDArray[np.uint8]:
    distinct = int(rng.choice([1, 3, 1000]))
    pool = np.packbits(rng.integers(0, 2, (distinct, n_bits), dtype=np.uint8), axis=1)
    if rng.random() < 0.3:
        # Rows of a shard are alike, so that one shard has most of the nearest ones.
        return pool[shard_of % distinct]
    return pool[rng.integers(0, distinct, len(shard_of))]


def _partition(rng: np.random.Generator, ids: NDArray[np.int64]) -> HashPartition | RangePartition:
    shards = int(rng.integers(1, 8))
    if rng.random() < 0.7:
        return HashPartition(shards)
    last = int(ids.max(initial=0)) + 10
    starts = np.unique(np.append(rng.integers(1, last + 1, shards - 1), 0))
    return RangePartition(tuple(starts.tolist()))


def _costs(rng: np.random.Generator, nq: int, n_bits: int) -> NDArray[np.float64]:
    shape = (nq, n_bits, 2)
    kind = rng.integers(6)
    if kind == 0:
        return rng.standard_normal(shape)
    if kind == 1:
        return np.zeros(shape)
    if kind == 2:
        return np.full(shape, -1.5)
    if kind == 3:
        return rng.choice([1e300, -1e300, 1e-300, 0.0], shape)
    return rng.integers(-2, 3, shape).astype(np.float64)


def _filter(rng: np.random.Generator, ids: NDArray[np.int64]) -> dict[str, Any]:
    kind = rng.integers(8)
    some = rng.choice(ids, int(rng.integers(len(ids) + 1)), replace=False)
    if kind == 0:
        return {"allow": some}
    if kind == 1:
        return {"deny": some}
    if kind == 2:
        return {"filter": bitweigh.Filter(allow=some) | bitweigh.Filter(allow=[0, 10**12])}
    if kind == 3 and ids.max(initial=0) < 10_000:
        return {"allow": rng.random(int(ids.max(initial=0)) + 1) < 0.5}
    return {}
