"""Builds that are killed at random moments and continued, each time with other threads.

In the end every file must be the same as after a build that nobody disturbed, and no part that was
finished may have been begun again.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.streaming.builds import Build, digests

__all__ = ["Attempt", "kill_builds"]

MAX_THREADS = 4
# An attempt lasts up to this share of an undisturbed build, so that several are needed for one.
LONGEST_SHARE = 0.3


class Attempt(NamedTuple):
    """One process of a build."""

    threads: int
    seconds: float
    """How long it ran."""
    ended: str
    """The stage in which it was killed, or "finished"."""
    finished: int
    """The parts that it has finished."""
    again: int
    """The parts that it has begun though they were finished before."""
    same_files: bool | None
    """Of an index that is finished, whether every byte is as it should be."""


class _Times(NamedTuple):
    """Seconds of a build that nobody disturbs."""

    all: float
    publishing: float


def kill_builds(
    codes: Path,
    folder: Path,
    kills: int,
    *,
    build_memory: int = 1 << 28,
    rows_at_once: int | None = None,
    seed: int = 0,
) -> Iterator[Attempt]:
    """Build from a folder of codes, first undisturbed, then with so many kills; yield each attempt.

    A build that is finished although kills are left is deleted, and the next one is begun.
    """
    whole = Build(codes, folder / "whole", build_memory, rows_at_once)
    times = _undisturbed(whole)
    expected = digests(whole.index)
    build = Build(codes, folder / "killed", build_memory, rows_at_once)
    moments = random.Random(seed)
    done = number = 0
    while done < kills or build.work.exists() or build.index.exists():
        threads = 1 + number % MAX_THREADS
        number += 1
        before = build.finished()
        began = time.perf_counter()
        process = build.start(threads=threads)
        if done < kills:
            done += _kill(process, build.index, times, moments)
        _, errors = process.communicate()
        seconds = time.perf_counter() - began
        if process.returncode > 0:
            raise RuntimeError(f"the build failed: {errors}")
        ended = build.stage()
        # At the end the journal is deleted.
        finished = len(build.finished() - before) if ended != "finished" else len(build.begun())
        same = digests(build.index) == expected if ended == "finished" else None
        yield Attempt(threads, seconds, ended, finished, build.again(before), same)
        if same is not None:
            build.clear()
    whole.clear()


def _undisturbed(build: Build) -> _Times:
    process = build.start()
    began = time.perf_counter()
    _wait(process, build.index.exists)
    publishing = time.perf_counter()
    _, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the build failed: {errors}")
    end = time.perf_counter()
    return _Times(end - began, end - publishing)


def _kill(
    process: subprocess.Popen[str], index: Path, times: _Times, moments: random.Random
) -> bool:
    """Kill a process at a random moment; return whether it was still there.

    Publishing takes little time. To come upon it as well, whoever is the first of its build to
    begin it is killed then, and so is half of those after it.
    """
    publishing = index.exists()
    if publishing and moments.random() < 0.5:
        return False
    longest = times.publishing if publishing else LONGEST_SHARE * times.all
    end = time.perf_counter() + moments.uniform(0.0, longest)
    _wait(process, lambda: time.perf_counter() > end or index.exists() > publishing)
    if index.exists() > publishing:
        time.sleep(moments.uniform(0.0, times.publishing))
    if process.poll() is not None:
        return False
    process.kill()
    process.wait()
    return True


def _wait(process: subprocess.Popen[str], until: Callable[[], bool]) -> None:
    while process.poll() is None and not until():
        time.sleep(0.0005)
