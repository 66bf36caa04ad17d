"""The scan kernels of this machine compared in turns: ``python -m benchmarks.kernels``.

Codes of up to 160 bits are scanned with 8-bit sums, longer ones with 16-bit sums. One query at a
time and batches of 64 on one thread, with codes that fit in a cache and codes that do not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import bitweigh

__all__ = ["Line", "measure"]

N_BITS = (64, 128, 256, 1024)
IN_CACHE_BYTES = 256 << 10
K = 10
BATCH = 64


class Line(NamedTuple):
    """Microseconds a query by each kernel."""

    n_bits: int
    rows: int
    at_once: int
    us: dict[str, float]


def vector_kernels() -> tuple[str, ...]:
    """The kernels of this machine but the portable one, which takes ten times as long."""
    kernels = bitweigh.info().kernels
    return kernels[:-1] or kernels


def measure(n_bits: int, n_bytes: int, at_once: int, rounds: int) -> Line:
    """Scan so many bytes of random codes, with each kernel in turn; the best of all rounds."""
    rng = np.random.default_rng(0)
    rows = n_bytes // (n_bits // 8)
    index = bitweigh.Index(n_bits, bands=0)
    index.add(rng.integers(0, 256, (rows, n_bits // 8), dtype=np.uint8))
    costs = np.abs(rng.standard_normal((BATCH, n_bits, 2)))
    costs[..., 0] = 0
    repeats = max(1, (64 << 20) // (n_bytes * BATCH))
    best = dict.fromkeys(vector_kernels(), np.inf)
    for _ in range(rounds):
        for kernel in best:
            index._engine.kernel = kernel
            begin = time.perf_counter()
            for _ in range(repeats):
                for first in range(0, BATCH, at_once):
                    part = costs[first] if at_once == 1 else costs[first : first + at_once]
                    index.search(part, K, threads=1, method="scan")
            seconds = (time.perf_counter() - begin) / (repeats * BATCH)
            best[kernel] = min(best[kernel], 1e6 * seconds)
    return Line(n_bits, rows, at_once, best)


def lines(out_of_cache_bytes: int, rounds: int) -> Iterator[Line]:
    """All combinations."""
    for n_bits in N_BITS:
        for n_bytes in (IN_CACHE_BYTES, out_of_cache_bytes):
            for at_once in (1, BATCH):
                yield measure(n_bits, n_bytes, at_once, rounds)


def main() -> None:
    """Print a line for each combination, with speeds relative to AVX2."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--mib", type=int, default=128, help="codes that fit in no cache (128)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (7)")
    arguments = parser.parse_args()
    print(f"kernels: {', '.join(vector_kernels())}; the first one is the default")
    for line in lines(arguments.mib << 20, arguments.rounds):
        reference = line.us.get("avx2") or next(iter(line.us.values()))
        times = ", ".join(
            f"{kernel} {us:.1f} us ({reference / us:.2f}x)" for kernel, us in line.us.items()
        )
        what = "one query" if line.at_once == 1 else f"batches of {line.at_once}"
        print(f"{line.n_bits:5} bits, {line.rows:>9,} rows, {what}: {times}", flush=True)


if __name__ == "__main__":
    main()
