"""Building shards from parquet files: by one process, by two, with one killed in the middle."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.cluster.codes import some_codes
from bitweigh import cluster

__all__ = ["measure_builds"]


def measure_builds(rows: int, shards: int, files: int = 16) -> bool:
    """Print times, memory and whether all shards are the same; returns whether they are."""
    with tempfile.TemporaryDirectory(prefix="bitweigh-builds-") as name:
        folder = Path(name)
        # By another process, so that what it takes is not counted as that of the builds.
        writer = get_context("spawn").Process(target=_write_files, args=(folder, rows, files))
        writer.start()
        writer.join()
        source = sorted(folder.glob("*.parquet"))
        versions = {}
        for title, workers, killed in (
            ("one process", 1, False),
            ("two workers", 2, False),
            ("two workers, one killed", 2, True),
        ):
            peak = _Peak(of_children=workers > 1)
            began = time.monotonic()
            with peak:
                if killed:
                    threading.Timer(3.0, peak.kill_one).start()
                versions[title] = cluster.build(
                    source, folder / title, ids="id", shards=shards, workers=workers
                )
            seconds = time.monotonic() - began
            print(
                f"{title}: {seconds:.1f} s, {rows / seconds / 1e6:.2f} M rows/s, "
                f"peak RssAnon of a worker {peak.anon / 1e6:.0f} MB, killed {peak.killed}",
                flush=True,
            )
        first, *others = versions.values()
        same = all(version.shards == first.shards for version in others)
        largest = max(shard.n_bytes for shard in first.shards) / 1e6
        print(f"shards the same: {same}; the largest has {largest:.0f} MB")
        return same


def _write_files(folder: Path, rows: int, files: int) -> None:
    """Codes with ids in any order, in parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = np.random.default_rng(2).permutation(rows)
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        codes = some_codes(len(part), seed=number)
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(8), len(codes), [None, pa.py_buffer(codes.tobytes())]
        )
        table = pa.table({"code": column, "id": ids[part]})
        pq.write_table(table, folder / f"part-{number:03d}.parquet", row_group_size=1 << 20)


class _Peak:
    """The peak of anonymous memory of this process, or of any that runs tasks of it, sampled."""

    def __init__(self, of_children: bool) -> None:
        self._of_children = of_children
        self.anon = 0
        self.killed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Peak:  # noqa: PYI034
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def kill_one(self) -> None:
        """Kill the child with the most memory: one that works."""
        children = {child: _anon_of(child) for child in _children()}
        if children:
            os.kill(max(children, key=lambda child: children[child]), signal.SIGKILL)
            self.killed += 1

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            watched = _children() if self._of_children else [os.getpid()]
            self.anon = max([self.anon, *map(_anon_of, watched)])


def _children() -> list[int]:
    """The processes that run tasks of this one."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if b"spawn_main" in _command(child)]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _anon_of(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("RssAnon")), "0 0")
    return 1024 * int(line.split()[1])
