"""Write the test cases of scan_test, with the answers of bitweigh.reference.

Usage: python cpp/tests/write_vectors.py OUT.bin [--seed N]

The file, little-endian, without padding::

    8 bytes       b"BWVEC001"
    uint64        number of cases, then for each case:
      uint64 x 5    n_bits, bit order (0 big, 1 little), n, n_queries, k
      uint8         codes (n, n_bytes), as np.packbits makes them
      int64         ids (n,)
      float64       costs (n_queries, n_bits, 2)
      float64       expected distances (n_queries, k)
      int64         expected ids (n_queries, k)
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitweigh import reference
from bitweigh.typing import BitOrder

MAGIC = b"BWVEC001"
BITS = (1, 7, 8, 31, 33, 63, 64, 65, 96, 127, 128, 200, 256, 257, 300, 520, 1024, 2048)
ROWS = (1, 31, 32, 33, 127, 128, 129, 500, 2000)
# Rows and neighbours of the cases with long codes: few, since these make large files.
LONGEST = 8192
LONGEST_CASES = ((1, 1), (129, 5), (500, 3))
# More queries than one tile holds, so that threads take several tiles: bits, rows, k, queries.
MANY_QUERIES = ((64, 500, 4, 19), (300, 500, 2, 33))

Rng = np.random.Generator
Costs = NDArray[np.float64]
Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """One search; bits are unpacked."""

    order: BitOrder
    bits: Bits
    ids: NDArray[np.int64]
    costs: Costs
    k: int


def _signs(rng: Rng, n_bits: int) -> Costs:
    return rng.choice([-1.0, 1.0], (n_bits, 2))


def _cancelling(rng: Rng, n_bits: int) -> Costs:
    """Huge costs of both signs, equal for 0 and 1, so that the other costs are rounded."""
    huge = float(rng.choice([1e12, 1e15, 1e16])) * rng.permutation(np.arange(n_bits) % 2 * 2 - 1)
    return rng.standard_normal((n_bits, 2)) + huge[:, np.newaxis]


def _equal(rng: Rng, n_bits: int) -> Costs:
    return np.full((n_bits, 2), rng.choice([0.1, -0.7]))


def _subnormal(rng: Rng, n_bits: int) -> Costs:
    return rng.integers(-40, 40, (n_bits, 2)).astype(np.float64) * 5e-324


def _spread(rng: Rng, n_bits: int) -> Costs:
    return _signs(rng, n_bits) * np.exp2(-rng.integers(0, 60, (n_bits, 2)).astype(np.float64))


def _one_heavy(rng: Rng, n_bits: int) -> Costs:
    costs = rng.standard_normal((n_bits, 2))
    costs[rng.integers(n_bits)] *= 1e6
    return costs


COSTS: tuple[Callable[[Rng, int], Costs], ...] = (
    lambda rng, n_bits: rng.standard_normal((n_bits, 2)),
    lambda rng, n_bits: -rng.exponential(size=(n_bits, 2)),
    lambda _, n_bits: np.zeros((n_bits, 2)),
    lambda rng, n_bits: np.copysign(0.0, _signs(rng, n_bits)),
    _cancelling,
    _subnormal,
    lambda rng, n_bits: _signs(rng, n_bits) * rng.choice([1e300, 1e-300], (n_bits, 2)),
    _equal,
    lambda rng, n_bits: rng.integers(-3, 4, (n_bits, 2)).astype(np.float64),
    _spread,
    _one_heavy,
)


def _random_bits(rng: Rng, n: int, costs: Costs) -> Bits:
    return rng.integers(0, 2, (n, costs.shape[1]), dtype=np.uint8)


def _repeated_bits(rng: Rng, n: int, costs: Costs) -> Bits:
    """Random codes, most of them repeated."""
    return _random_bits(rng, n // 5 + 1, costs)[rng.integers(0, n // 5 + 1, n)]


def _approaching_bits(rng: Rng, n: int, costs: Costs) -> Bits:
    """Codes from far to near for the first query: the bound falls during the scan."""
    nearest = (costs[0, :, 1] < costs[0, :, 0]).astype(np.uint8)
    wrong = rng.random((n, len(nearest))) < np.linspace(0.9, 0.02, n)[:, np.newaxis]
    return nearest ^ wrong


CODES = (_random_bits, _repeated_bits, _approaching_bits)


def _make_ids(rng: Rng, n: int) -> NDArray[np.int64]:
    """Distinct ids in random order, including the smallest and the largest possible."""
    ids = np.arange(n, dtype=np.int64) * int(rng.integers(1, 10**9))
    if n > 1:
        ids[-1] = np.iinfo(np.int64).max
    return rng.permutation(ids)


def _shapes() -> Iterator[tuple[int, int, int, int]]:
    """The bits, rows, k and queries of each case."""
    for i, n_bits in enumerate(BITS):
        for j, n in enumerate(ROWS):
            ks = (1, 2, 5, 10, n // 3, n, n + 3)
            yield n_bits, n, max(1, ks[(i * len(ROWS) + j) % len(ks)]), 1 + (i + j) % 4
    for n, k in LONGEST_CASES:
        yield LONGEST, n, k, 2
    for n_bits, n, k, n_queries in MANY_QUERIES:
        yield n_bits, n, k, n_queries


def make_cases(rng: Rng) -> Iterator[Case]:
    """Yield all cases, cycling through kinds of costs, kinds of codes and bit orders."""
    kind = 0
    for number, (n_bits, n, k, n_queries) in enumerate(_shapes()):
        costs = np.empty((n_queries, n_bits, 2))
        for query in range(n_queries):
            costs[query] = COSTS[kind % len(COSTS)](rng, n_bits)
            kind += 1
        # Independent cycles, so that every kind of code occurs with every shape and bit order.
        bits = CODES[(number + number // len(ROWS)) % len(CODES)](rng, n, costs)
        order: BitOrder = "little" if (number + number // 2) % 2 else "big"
        yield Case(order, bits, _make_ids(rng, n), costs, k)


def to_bytes(case: Case) -> bytes:
    """Encode a case and its answer in the format of the file."""
    codes = np.packbits(case.bits, axis=1, bitorder=case.order)
    answer = reference.search(codes, case.costs, case.k, ids=case.ids, bitorder=case.order)
    n_queries, n_bits, _ = case.costs.shape
    header = (n_bits, int(case.order == "little"), len(codes), n_queries, case.k)
    return b"".join(
        [
            struct.pack("<5Q", *header),
            codes.tobytes(),
            case.ids.astype("<i8").tobytes(),
            case.costs.astype("<f8").tobytes(),
            answer.distances.astype("<f8").tobytes(),
            answer.ids.astype("<i8").tobytes(),
        ]
    )


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write the test cases of scan_test.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    cases = [to_bytes(case) for case in make_cases(np.random.default_rng(arguments.seed))]
    arguments.out.write_bytes(MAGIC + struct.pack("<Q", len(cases)) + b"".join(cases))
    print(f"{arguments.out}: {len(cases)} cases, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
