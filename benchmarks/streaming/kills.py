"""Builds that are killed at random moments and continued, each time with other threads.

In the end every file must be the same as after a build that nobody disturbed, and no part that was
finished may have been begun again.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.streaming.builds import Build, digests

__all__ = ["Attempt", "kill_builds"]

MAX_THREADS = 4
# An attempt lasts up to this share of an undisturbed build, so that several are needed for one.
LONGEST_SHARE = 0.3
# Publishing takes so little time that no kill from outside would come upon it. So a process that
# gets there kills itself before one of so many steps; fewer are needed.
PUBLISHING_STEPS = 40


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
    began = time.perf_counter()
    whole.run()
    longest = LONGEST_SHARE * (time.perf_counter() - began)
    expected = digests(whole.index)
    build = Build(codes, folder / "killed", build_memory, rows_at_once)
    moments = random.Random(seed)
    killed = number = 0
    while killed < kills or build.work.exists() or build.index.exists():
        threads = 1 + number % MAX_THREADS
        number += 1
        before = build.finished()
        began = time.perf_counter()
        step = moments.randrange(PUBLISHING_STEPS)
        options = ["--kill-at-step", str(step)] if killed < kills else []
        process = build.start(*options, threads=threads)
        if killed < kills:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0.0, longest))
            process.kill()
        _, errors = process.communicate()
        seconds = time.perf_counter() - began
        if process.returncode > 0:
            raise RuntimeError(f"the build failed: {errors}")
        ended = build.stage()
        killed += ended != "finished"
        # At the end the journal is deleted.
        finished = len(build.finished() - before) if ended != "finished" else len(build.begun())
        same = digests(build.index) == expected if ended == "finished" else None
        yield Attempt(threads, seconds, ended, finished, build.again(before), same)
        if same is not None:
            build.clear()
    whole.clear()
