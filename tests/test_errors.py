"""Wrong calls: each raises its documented exception, naming the argument and what was got."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh import Filter, costs, paper, reference

U8 = np.uint8
Index = bitweigh.Index


def filled(n_bits: int = 12) -> bitweigh.Index:
    index = Index(n_bits)
    index.add(np.zeros((3, 2), dtype=U8), ids=[4, 5, 6])
    return index


def with_value(value: float, shape: tuple[int, ...] = (12, 2)) -> np.ndarray:
    made = np.ones(shape)
    made[(..., 7, 1)] = value
    return made


GOOD = np.ones((12, 2))
CODES = np.zeros((3, 2), dtype=U8)
RAGGED = [[1.0, 2.0], [3.0]]

# name: (call, exception, pattern of the message)
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # Index(...)
    "n_bits zero": (lambda: Index(0), ValueError, "n_bits must be from 1 to 8192, got 0"),
    "n_bits negative": (lambda: Index(-8), ValueError, "n_bits must be from 1"),
    "n_bits too large": (lambda: Index(8193), ValueError, "n_bits must be .* got 8193"),
    "n_bits float": (lambda: Index(64.0), TypeError, "n_bits must be an integer, got float 64.0"),
    "n_bits bool": (lambda: Index(True), TypeError, "n_bits must be an integer, got the bool True"),
    "n_bits text": (lambda: Index("64"), TypeError, "n_bits must be an integer, got str '64'"),
    "n_bits missing": (lambda: Index(), TypeError, "n_bits"),
    "bitorder unknown": (lambda: Index(8, bitorder="msb"), ValueError, "bitorder .* got 'msb'"),
    "bands too many": (lambda: Index(8, bands=9), ValueError, "bands must be from 0 to 8, got 9"),
    "bands a float": (lambda: Index(8, bands=2.0), TypeError, "bands must be an integer"),
    "band_bits too many": (lambda: Index(64, band_bits=29), ValueError, "band_bits .* 28, got 29"),
    "memory_limit negative": (lambda: Index(8, memory_limit=-1), ValueError, "memory_limit"),
    "bitorder positional": (lambda: Index(8, "big"), TypeError, "positional"),
    # add(codes)
    "codes int64": (
        lambda: filled().add(np.zeros((1, 2), int)), TypeError, "codes must have dtype uint8"),
    "codes int8": (lambda: filled().add(np.zeros((1, 2), np.int8)), TypeError, "got int8"),
    "codes bool says how to pack": (
        lambda: filled().add(np.zeros((1, 12), bool)), TypeError, r"got bool; .*np\.packbits"),
    "codes float": (lambda: filled().add(np.zeros((1, 2))), TypeError, "got float64"),
    "codes as a list of ints": (lambda: filled().add([[1, 2]]), TypeError, "got int64"),
    "codes as text": (lambda: filled().add("codes"), TypeError, "codes must have dtype uint8"),
    "codes None": (lambda: filled().add(None), TypeError, "codes .* Python objects"),
    "codes flat": (lambda: filled().add(np.zeros(2, U8)), ValueError, r"\(n, 2\).*got \(2,\)"),
    "codes cube": (lambda: filled().add(np.zeros((1, 1, 2), U8)), ValueError, r"got \(1, 1, 2\)"),
    "codes too wide": (lambda: filled().add(np.zeros((1, 3), U8)), ValueError, r"got \(1, 3\)"),
    "codes unpacked uint8 says how to pack": (
        lambda: filled().add(np.zeros((1, 12), U8)), ValueError, "packbits"),
    "codes with stray bits": (
        lambda: filled().add(np.array([[0, 0], [0, 8]], U8)), ValueError,
        r"codes\[1\] has unused bits set: bits 12 to 15"),
    "codes with stray bits, little": (
        lambda: Index(12, bitorder="little").add(np.array([[0, 16]], U8)), ValueError, "little"),
    "codes masked": (lambda: filled().add(np.ma.masked_equal(CODES, 0)), TypeError, "masked array"),
    "codes ragged": (lambda: filled().add(RAGGED), ValueError, "codes must be an array.*ragged"),
    # add(ids)
    "ids float": (lambda: filled().add(CODES, ids=[1.0, 2.0, 3.0]), TypeError, "got float64"),
    "ids bool": (lambda: filled().add(CODES, ids=[True, False, True]), TypeError, "got bool"),
    "ids text": (lambda: filled().add(CODES, ids=["a", "b", "c"]), TypeError, "ids must be integers"),
    "ids timedelta": (
        lambda: filled().add(CODES, ids=np.zeros(3, "m8[s]")), TypeError, "ids must be integers"),
    "ids beyond int64, of the other byte order": (
        lambda: filled().add(CODES, ids=np.array([1, 2**63, 2], ">u8")), ValueError, "fit in int64"),
    "ids negative": (
        lambda: filled().add(CODES, ids=[1, -1, 2]), ValueError, r"negative, got ids\[1\] = -1"),
    "ids beyond int64": (
        lambda: filled().add(CODES, ids=np.array([1, 2**63, 2], np.uint64)), ValueError,
        r"int64, got ids\[1\] = 9223372036854775808"),
    "ids too few": (lambda: filled().add(CODES, ids=[1, 2]), ValueError, r"shape \(3,\).*got \(2,\)"),
    "ids of two dimensions": (
        lambda: filled().add(CODES, ids=[[1], [2], [3]]), ValueError, r"shape \(n,\), got \(3, 1\)"),
    "ids a number": (lambda: filled().add(CODES, ids=3), ValueError, r"shape \(n,\), got \(\)"),
    "ids repeated in the call": (
        lambda: filled().add(CODES, ids=[1, 2, 1]), ValueError, r"ids\[2\] = 1 is the same as ids\[0\]"),
    "ids in use": (lambda: filled().add(CODES, ids=[1, 5, 2]), ValueError, r"ids\[1\] = 5 is in use"),
    # search(costs)
    "costs int": (
        lambda: filled().search(np.ones((12, 2), int), 1), TypeError,
        "costs must have dtype float32 or float64, got int64"),
    "costs are codes": (
        lambda: filled().search(CODES, 10), TypeError,
        r"got uint8; bitweigh.costs.hamming\(codes, n_bits\) and bitweigh.costs.from_weights\("),
    "costs are float queries": (
        lambda: filled().search(np.ones((3, 12)), 10), ValueError,
        r"got \(3, 12\); bitweigh.costs.inner_product\(queries\) turns one number"),
    "methods several": (
        lambda: filled().search(GOOD, 1, method=np.array(["auto", "scan"])), ValueError,
        "method must be one of auto, scan, probe"),
    "costs float16": (
        lambda: filled().search(np.ones((12, 2), np.float16), 1), TypeError, "got float16"),
    "costs longdouble": (
        lambda: filled().search(np.ones((12, 2), np.longdouble), 1), TypeError, "longdouble|float128"),
    "costs complex": (lambda: filled().search(np.ones((12, 2), complex), 1), TypeError, "complex"),
    "costs of the other byte order": (
        lambda: filled().search(GOOD.astype(GOOD.dtype.newbyteorder()), 1), TypeError,
        "native byte order"),
    "costs None": (lambda: filled().search(None, 1), TypeError, "costs .* Python objects"),
    "costs masked": (
        lambda: filled().search(np.ma.masked_equal(GOOD, 2.0), 1), TypeError, "masked array"),
    "costs ragged": (lambda: filled().search(RAGGED, 1), ValueError, "costs .* ragged"),
    "costs flat": (lambda: filled().search(np.ones(12), 1), ValueError, r"got \(12,\)"),
    "costs of the wrong length": (
        lambda: filled().search(np.ones((16, 2)), 1), ValueError,
        r"\(12, 2\) or \(nq, 12, 2\), got \(16, 2\)"),
    "costs transposed": (lambda: filled().search(np.ones((2, 12)), 1), ValueError, r"got \(2, 12\)"),
    "costs of four dimensions": (
        lambda: filled().search(np.ones((1, 1, 12, 2)), 1), ValueError, r"got \(1, 1, 12, 2\)"),
    "costs NaN": (
        lambda: filled().search(with_value(np.nan), 1), ValueError,
        r"costs\[7, 1\] is nan, every cost must be finite"),
    "costs infinite in a batch": (
        lambda: filled().search(np.stack([GOOD, with_value(-np.inf)]), 1), ValueError,
        r"costs\[1, 7, 1\] is -inf"),
    "costs NaN with an empty index": (
        lambda: Index(12).search(with_value(np.nan), 1), ValueError, "finite"),
    "costs too large": (
        lambda: filled().search(with_value(1.01 * 2.0**1020), 1), ValueError, r"costs: .*2\*\*1020"),
    "costs too large in a batch": (
        lambda: filled().search(np.stack([GOOD, with_value(-1e308)]), 1), ValueError,
        r"costs\[1\]: .*2\*\*1020"),
    # search(k, threads, method)
    "k zero": (lambda: filled().search(GOOD, 0), ValueError, "k must be from 1 to .*, got 0"),
    "k negative": (lambda: filled().search(GOOD, -1), ValueError, "k must be .* got -1"),
    "k huge": (lambda: filled().search(GOOD, 2**40), ValueError, "k must be"),
    "k float": (lambda: filled().search(GOOD, 1.0), TypeError, "k must be an integer, got float"),
    "k bool": (lambda: filled().search(GOOD, True), TypeError, "k must be an integer, got the bool"),
    "k None": (lambda: filled().search(GOOD, None), TypeError, "k must be an integer, got NoneType"),
    "k array": (
        lambda: filled().search(GOOD, np.array([1, 2])), TypeError, r"array of int64.*\(2,\)"),
    "threads zero": (lambda: filled().search(GOOD, 1, threads=0), ValueError, "threads must be"),
    "threads float": (lambda: filled().search(GOOD, 1, threads=2.0), TypeError, "threads must be"),
    "threads positional": (lambda: filled().search(GOOD, 1, 2), TypeError, "positional"),
    "radius NaN": (lambda: filled().range_search(GOOD, np.nan), ValueError, "radius .* NaN"),
    "radius a string": (lambda: filled().range_search(GOOD, "1"), TypeError, "radius"),
    "radius of another shape": (
        lambda: filled().range_search(GOOD, np.ones(3)), ValueError, r"radius .* \(1,\), got \(3,\)"),
    "limit negative": (lambda: filled().range_search(GOOD, 1, limit=-1), ValueError, "limit"),
    "iterate over several": (
        lambda: filled().iterate(np.ones((2, 12, 2))), ValueError, "one query"),
    "allow and deny": (
        lambda: filled().search(GOOD, 1, allow=[1], deny=[2]), ValueError, "allow= or deny="),
    "allow and filter": (
        lambda: filled().search(GOOD, 1, allow=[1], filter=Filter(deny=[2])), ValueError,
        "allow=, deny= or filter=, only one"),
    "deny and filter": (
        lambda: filled().iterate(GOOD, deny=[1], filter=Filter(deny=[2])), ValueError,
        "allow=, deny= or filter=, only one"),
    "filter of ids": (
        lambda: filled().search(GOOD, 1, filter=[1]), TypeError,
        "filter must be a bitweigh.Filter, got list; give ids or booleans as allow= or deny="),
    "filter of nothing": (lambda: filled().filter(), ValueError, "give allow= or deny="),
    "filter of both": (
        lambda: Filter(allow=[1], deny=[2]), ValueError, "give allow= or deny=, not both"),
    "filter of floats": (
        lambda: Filter(deny=[1.0]), TypeError, "deny must be ids or booleans, got float64"),
    "filter and ids": (lambda: Filter(allow=[1]) & [2], TypeError, "unsupported operand"),
    "filter or ids": (lambda: [2] | Filter(allow=[1]), TypeError, "unsupported operand"),
    "allow floats": (
        lambda: filled().search(GOOD, 1, allow=[1.0]), TypeError, "allow must be ids or booleans"),
    "deny a table": (
        lambda: filled().search(GOOD, 1, deny=[[1]]), ValueError, r"deny .* got shape \(1, 1\)"),
    "method unknown": (
        lambda: filled().search(GOOD, 1, method="fast"), ValueError,
        "method must be one of auto, scan, probe, got 'fast'"),
    # codes_of
    "codes_of an unknown id": (lambda: filled().codes_of([4, 7]), KeyError, "7"),
    "codes_of a number": (lambda: filled().codes_of(4), ValueError, r"ids must have shape \(n,\)"),
    "codes_of a float": (lambda: filled().codes_of([4.0]), TypeError, "ids must be integers"),
    "codes_of a negative id": (lambda: filled().codes_of([-1]), ValueError, "negative"),
    # costs
    "weights too few": (
        lambda: costs.from_weights(np.full((3, 2), 255, U8), np.ones(12)), ValueError,
        r"queries\[0\] has unused bits set: .*; weights of shape \(12,\) are for 12 bits: give one"),
    "weights far too few": (
        lambda: costs.from_weights(CODES, np.ones(3)), ValueError,
        r"weights of shape \(3,\) are for 3 bits: give one for each bit of a code"),
    "weights int": (
        lambda: costs.from_weights(CODES[0], np.ones(12, int)), TypeError, "weights must have dtype"),
    "weights cube": (
        lambda: costs.from_weights(CODES, np.ones((3, 12, 3))), ValueError, r"got \(3, 12, 3\)"),
    "weights per query without the flag": (
        lambda: costs.from_weights(CODES, np.ones((3, 12))), ValueError, "per_query=True"),
    "weights flat with the flag": (
        lambda: costs.from_weights(CODES, np.ones(12), per_query=True), ValueError, "per_query=True"),
    "weights for another number of queries": (
        lambda: costs.from_weights(CODES, np.ones((2, 12, 2))), ValueError, "2 queries, got 3"),
    "weights of several queries for a single one": (
        lambda: costs.from_weights(CODES[0], np.ones((3, 12, 2))), ValueError, "single query"),
    "queries of another length than weights": (
        lambda: costs.from_weights(CODES, np.ones(24)), ValueError, r"queries must have shape \(n, 3\)"),
    "a single query of another length than weights": (
        lambda: costs.from_weights(CODES[0], np.ones(24)), ValueError, r"shape \(3,\) or .*got \(2,\)"),
    "queries with stray bits": (
        lambda: costs.hamming(np.array([0, 1], U8), 12), ValueError, r"queries\[0\] has unused bits"),
    "a single masked query": (
        lambda: costs.hamming(np.ma.masked_equal(CODES[0], 0), 12), TypeError, "queries .* masked"),
    "queries ragged": (lambda: costs.hamming(RAGGED, 12), ValueError, "queries must be an array"),
    "queries float to hamming": (
        lambda: costs.hamming(np.zeros(2), 12), TypeError, "queries must have dtype uint8"),
    "hamming n_bits float": (lambda: costs.hamming(CODES, 12.0), TypeError, "n_bits"),
    "hamming bitorder": (lambda: costs.hamming(CODES, 12, bitorder=1), ValueError, "bitorder"),
    "inner product of codes": (
        lambda: costs.inner_product(CODES), TypeError, "queries must have dtype float32"),
    "inner product of a cube": (
        lambda: costs.inner_product(np.ones((1, 2, 3))), ValueError, r"got \(1, 2, 3\)"),
    # reference and paper
    "reference: k zero": (lambda: reference.search(CODES, GOOD, 0), ValueError, "k must be"),
    "reference: costs flat": (
        lambda: reference.distances(CODES, np.ones(12)), ValueError,
        r"costs must have shape \(n_bits, 2\) or \(nq, n_bits, 2\), got \(12,\)"),
    "reference: no bits": (
        lambda: reference.distances(np.empty((3, 0), U8), np.empty((0, 2))), ValueError, "n_bits"),
    "paper: no bits": (
        lambda: paper.linear_scan(np.empty((3, 0), U8), np.empty((0, 2)), 1), ValueError, "n_bits"),
    "paper: costs too large for float32": (
        lambda: paper.linear_scan(CODES, with_value(1e39), 1), ValueError, "float32"),
    "reference: costs too large": (
        lambda: reference.distances(CODES, with_value(1.5e307)), ValueError, r"2\*\*1020"),
    "paper: codes int": (
        lambda: paper.linear_scan(CODES.astype(int), GOOD, 1), TypeError, "codes must have dtype"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_gives_its_documented_exception(name: str) -> None:
    call, exception, message = WRONG[name]
    with pytest.raises(exception, match=message) as caught:
        call()
    assert type(caught.value) is exception


def test_the_largest_costs_allowed_are_searched() -> None:
    index = filled()
    biggest = np.zeros((12, 2))
    biggest[3] = 2.0**1019
    assert index.search(biggest, 1).distances.tolist() == [2.0**1019]
