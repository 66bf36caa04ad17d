"""The speed of a scan relative to a plain read of memory, and the gain from a second thread.

``python -m benchmarks.bandwidth [--rows 100e6]``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

import bitweigh
from benchmarks import data, machine, report
from bitweigh._free_memory import free_memory

__all__ = ["Bandwidth", "Scaling"]

N_BITS = 64
K = 10
# A row takes 8 bytes each in the codes, in the index's copy, in its ids and in the buffer for the
# plain read, and some more while the index is built.
_BYTES_PER_ROW = 40
_ROUNDS = 15
_SCALING_ROWS = 100_000
_SCALING_ROUNDS = 41
# A short call and a long one: starting a thread costs 0.05 to 0.4 ms, more on a sleeping core.
_BATCHES = (64, 1000)

_PIECE_MEGABYTES = (1, 4, 16, 64)
_READS: dict[str, Callable[[NDArray[np.float64]], object]] = {
    "np.bitwise_or.reduce": lambda piece: np.bitwise_or.reduce(piece.view(np.uint64)),
    "np.add.reduce": lambda piece: np.add.reduce(piece.view(np.uint64)),
    "np.max": lambda piece: np.max(piece.view(np.uint8)),
    "np.dot": lambda piece: np.dot(piece, piece),
}


class Bandwidth(TypedDict):
    """One thread, data far larger than the cache."""

    rows: int
    n_bits: int
    read_with: str
    read_gb_per_s: float
    scan_gb_per_s: float
    scan_ms: float
    share: float
    """The scan's rate as a share of the plain read's."""


class Scaling(TypedDict):
    """A batch of queries over data that stays in the cache."""

    rows: int
    n_bits: int
    batch: int
    one_thread_ms: float
    two_threads_ms: float
    speed_up: float
    machine_speed_up: float
    """The speed-up of two threads that share nothing, in the same turns: the machine's limit."""


class _PlainRead:
    """Read a buffer from end to end in the fastest way that NumPy has on this machine."""

    def __init__(self, n_bytes: int) -> None:
        # Pages that were never written would not be read from memory.
        self._buffer = np.full(n_bytes // 8, 1.0)
        ways = [(name, size) for name in _READS for size in _PIECE_MEGABYTES]
        seconds = [min(_seconds(partial(self._pass, *way)) for _ in range(3)) for way in ways]
        self._way = ways[int(np.argmin(seconds))]
        self.name = f"{self._way[0]} in pieces of {self._way[1]} MiB"

    def __call__(self) -> None:
        self._pass(*self._way)

    def _pass(self, name: str, megabytes: int) -> None:
        read, step = _READS[name], megabytes * 2**20 // 8
        for first in range(0, len(self._buffer), step):
            read(self._buffer[first : first + step])


def measure_bandwidth(rows: int) -> Bandwidth:
    """Time the scan and the plain read in turns; return medians."""
    with Progress(transient=True) as progress:
        task = progress.add_task(f"making {rows:,} codes of {N_BITS} bits", total=None)
        dataset = data.load(
            "mixture",
            rows,
            N_BITS,
            memory_map=True,
            on_chunk=lambda done, of: progress.update(task, completed=done, total=of),
        )
    index = bitweigh.Index(N_BITS, bitorder="little", build="manual")
    index.add(dataset.codes)
    n_bytes = rows * N_BITS // 8
    read = _PlainRead(n_bytes)
    index.search(dataset.costs[-1], K, threads=1, method="scan")
    read_seconds, scan_seconds = [], []
    for costs in dataset.costs[:_ROUNDS]:
        read_seconds.append(_seconds(read))
        scan_seconds.append(_seconds(partial(index.search, costs, K, threads=1, method="scan")))
    read_median, scan_median = float(np.median(read_seconds)), float(np.median(scan_seconds))
    return Bandwidth(
        rows=rows,
        n_bits=N_BITS,
        read_with=read.name,
        read_gb_per_s=n_bytes / read_median / 1e9,
        scan_gb_per_s=n_bytes / scan_median / 1e9,
        scan_ms=1e3 * scan_median,
        share=read_median / scan_median,
    )


def measure_scaling(batch: int) -> Scaling:
    """Time one thread and two in turns; return medians."""
    dataset = data.load("mixture", _SCALING_ROWS, N_BITS)
    index = bitweigh.Index(N_BITS, bitorder="little", build="manual")
    index.add(dataset.codes)
    costs = dataset.costs[:batch]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    alone: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(_SCALING_ROUNDS):
        for threads, times in seconds.items():
            times.append(_seconds(partial(index.search, costs, K, threads=threads, method="scan")))
            alone[threads].append(_seconds(partial(_hash_apart, batch, threads)))
    one, two = float(np.median(seconds[1])), float(np.median(seconds[2]))
    return Scaling(
        rows=_SCALING_ROWS,
        n_bits=N_BITS,
        batch=batch,
        one_thread_ms=1e3 * one,
        two_threads_ms=1e3 * two,
        speed_up=one / two,
        machine_speed_up=float(np.median(alone[1]) / np.median(alone[2])),
    )


def _hash_apart(batch: int, threads: int) -> None:
    """Hash two buffers, together about as long as the search of a batch, on one thread or two."""
    buffer = bytes(batch * 24_000)
    if threads == 1:
        hashlib.sha256(buffer)
        hashlib.sha256(buffer)
        return
    helper = threading.Thread(target=hashlib.sha256, args=(buffer,))
    helper.start()
    hashlib.sha256(buffer)
    helper.join()


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _markdown(facts: dict[str, str], bandwidth: Bandwidth, scaling: list[Scaling]) -> str:
    memory = report.table(
        ["", "GB/s", "ms"],
        [
            [f"plain read ({bandwidth['read_with']})", f"{bandwidth['read_gb_per_s']:.1f}", ""],
            ["scan", f"{bandwidth['scan_gb_per_s']:.1f}", f"{bandwidth['scan_ms']:.1f}"],
            ["share of the plain read", f"{bandwidth['share']:.0%}", ""],
        ],
    )
    threads = report.table(
        ["queries", "1 thread, ms", "2 threads, ms", "speed-up", "of work that shares nothing"],
        [
            [
                f"{one['batch']}",
                f"{one['one_thread_ms']:.2f}",
                f"{one['two_threads_ms']:.2f}",
                f"{one['speed_up']:.2f}",
                f"{one['machine_speed_up']:.2f}",
            ]
            for one in scaling
        ],
    )
    return "\n\n".join(
        [
            report.machine_list(facts),
            f"One query, one thread, {bandwidth['rows']:,} codes of {N_BITS} bits:",
            memory,
            f"Batches of queries over {_SCALING_ROWS:,} codes of {N_BITS} bits, in cache:",
            threads,
        ]
    )


def main() -> None:
    """Measure both and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bandwidth", description=__doc__)
    parser.add_argument("--rows", type=float, default=100e6, help="default: 100e6")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--markdown", type=Path, help="file with the bandwidth markers")
    arguments = parser.parse_args()
    console = Console()

    rows = min(int(arguments.rows), free_memory() // 2 // _BYTES_PER_ROW)
    if rows < arguments.rows:
        console.print(f"{rows:,} rows: as many as half of the free memory holds")
    facts = machine.facts()
    bandwidth = measure_bandwidth(rows)
    scaling = [measure_scaling(batch) for batch in _BATCHES]
    text = _markdown(facts, bandwidth, scaling)
    if arguments.out is not None:
        everything = {"machine": facts, "bandwidth": bandwidth, "scaling": scaling}
        arguments.out.write_text(json.dumps(everything, indent=1) + "\n")
    if arguments.markdown is not None:
        report.write_between_markers(arguments.markdown, "bandwidth", text)
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
