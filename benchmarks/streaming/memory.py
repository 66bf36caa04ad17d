"""The memory of builds with several values of `build_memory`, watched from outside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.streaming.builds import Build

__all__ = ["MAX_SHARE", "MemoryUse", "measure_memory"]

MAX_SHARE = 1.1
"""How much of `build_memory` a build may use."""
SAMPLE_SECONDS = 0.02
# Looking at the disk takes longer.
SAMPLES_BETWEEN_DISK = 10


class MemoryUse(NamedTuple):
    """What one build used."""

    source: str
    """ "files" or "iterator"."""
    build_memory: int
    peak: int
    """The most anonymous memory of the process (RssAnon), in bytes, of samples each 20 ms."""
    samples: int
    seconds: float
    """From the call to the loaded index."""
    peak_disk: int
    """The most bytes of all files of the build and the index."""
    index_bytes: int


def measure_memory(
    codes: Path, folder: Path, limits: Sequence[int], *, threads: int | None = None
) -> Iterator[MemoryUse]:
    """Build with each limit in bytes, from files and from an iterator; yield what each one used."""
    for limit in limits:
        for source in ("files", "iterator"):
            build = Build(codes, folder / "index", limit)
            options = ["--iterator"] if source == "iterator" else []
            process = build.start(*options, threads=threads)
            began = time.perf_counter()
            peak, samples, peak_disk = _watch(process, build)
            seconds = time.perf_counter() - began
            _, errors = process.communicate()
            if process.returncode != 0:
                raise RuntimeError(f"the build failed: {errors}")
            size = _disk_bytes(build)
            yield MemoryUse(source, limit, peak, samples, seconds, max(peak_disk, size), size)
            build.clear()


def _watch(process: subprocess.Popen[str], build: Build) -> tuple[int, int, int]:
    """Watch a process to its end: return peak memory, the number of samples, and peak disk."""
    peak = samples = peak_disk = 0
    while process.poll() is None:
        peak = max(peak, _anonymous_bytes(process.pid))
        if samples % SAMPLES_BETWEEN_DISK == 0:
            peak_disk = max(peak_disk, _disk_bytes(build))
        samples += 1
        time.sleep(SAMPLE_SECONDS)
    return peak, samples, peak_disk


def _anonymous_bytes(pid: int) -> int:
    """The anonymous memory of a process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    kilobytes = (int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
    return 1024 * next(kilobytes, 0)


def _disk_bytes(build: Build) -> int:
    """Bytes of the blocks that the files of a build take; a file with two names counts once."""
    sizes = {}
    for folder in (build.index, build.work):
        for path in folder.glob("*"):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            sizes[stat.st_ino] = 512 * stat.st_blocks
    return sum(sizes.values())
