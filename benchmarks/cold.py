"""Searches of a mapped index whose pages are not in memory, and of the same index in memory.

``python -m benchmarks.cold FOLDER [--rows 4e7] [--data DIR]``

Builds an index of 64-bit codes like hashed SIFT in FOLDER, unless an earlier run left it there. For
each k: a query right after all of its pages were dropped from memory, as a mean over queries; the
queries that follow one such query; and queries whose pages are in memory. On one thread. The disk's
share is given by the pages that the first kind reads, by `explain`. At last a scan, cold and warm.

Linux drops the pages of files that no process has mapped, so nothing else may use the index.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import bitweigh
from benchmarks import machine
from bitweigh_experiments.reproduce.large.memory import drop_cached
from bitweigh_experiments.reproduce.large.setting import code_setting, origin

__all__ = ["Timing", "built", "measure"]

N_BITS = 64
KS = (1, 10, 100)
WARM_REPEATS = 5


class Timing(NamedTuple):
    """Milliseconds of a query, and pages of 4 KiB that it reads, as means."""

    k: int
    first: float
    """All of its pages were dropped before."""
    following: float
    """Others were asked before, after the pages were dropped."""
    warm: float
    pages: float


def built(folder: Path, rows: int, queries: int, data: Path | None) -> NDArray[np.float64]:
    """Build the index if it is not there; return costs of queries, (queries, N_BITS, 2)."""
    setting = code_setting(origin(data, rows, 0), N_BITS, rows, queries, 0)
    if not folder.exists():
        bitweigh.Index.from_batches(setting.source.pieces(), folder)
    return setting.costs


def measure(folder: Path, costs: NDArray[np.float64], k: int, method: str = "auto") -> Timing:
    """Time queries with and without their pages in memory."""
    first = []
    for query in costs:
        index = _cold(folder)
        first.append(_seconds(index, query, k, method))
        del index
    following = [_seconds(index, query, k, method) for index in [_cold(folder)] for query in costs]
    index = bitweigh.Index.load(folder, mmap=True)
    warm = [min(_seconds(index, query, k, method) for _ in range(WARM_REPEATS)) for query in costs]
    pages = [index.explain(query, k, method=method).pages for query in costs]  # type: ignore[arg-type]
    return Timing(
        k, _mean_ms(first), _mean_ms(following[1:]), _mean_ms(warm), float(np.mean(pages))
    )


def _mean_ms(seconds: list[float]) -> float:
    return 1e3 * float(np.mean(seconds))


def _cold(folder: Path) -> bitweigh.Index:
    gc.collect()  # a mapping that is still there would keep its pages
    if not drop_cached(folder):
        raise SystemExit("this system cannot drop pages from memory")
    return bitweigh.Index.load(folder, mmap=True)


def _seconds(index: bitweigh.Index, query: NDArray[np.float64], k: int, method: str) -> float:
    start = time.perf_counter()
    index.search(query, k, threads=1, method=method)  # type: ignore[arg-type]
    return time.perf_counter() - start


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the index is, or is built")
    parser.add_argument("--rows", type=float, default=4e7)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--data", type=Path, help="folder with dsift480k_u8.npy")
    arguments = parser.parse_args()
    costs = built(arguments.folder, int(arguments.rows), arguments.queries, arguments.data)
    table = Table("search", "first, ms", "following, ms", "in memory, ms", "pages")
    for k in KS:
        timing = measure(arguments.folder, costs, k)
        table.add_row(f"k = {k}", *(f"{value:.3g}" for value in timing[1:4]), f"{timing.pages:.0f}")
    scan = measure(arguments.folder, costs[:3], 10, "scan")
    table.add_row("scan", *(f"{value:.3g}" for value in scan[1:4]), f"{scan.pages:.0f}")
    console = Console()
    console.print(", ".join(f"{name}: {value}" for name, value in machine.facts().items()))
    console.print(table)


if __name__ == "__main__":
    main()
