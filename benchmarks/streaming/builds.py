"""Builds in processes of their own, and what can be seen of them from outside."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Build", "Part", "digests", "write_codes"]

N_BYTES = 8
FILES = 4
CHILD = Path(__file__).with_name("child.py")

Part = tuple[str, int]
"""A stage, and the number of a piece or range of it."""


def write_codes(folder: Path, rows: int, seed: int = 0) -> None:
    """Write seeded codes of 64 bits as several npy files. Some bits are rarely set."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, rows, FILES + 1).astype(int)
    for number in range(FILES):
        shape = (int(edges[number + 1] - edges[number]), N_BYTES)
        codes = np.lib.format.open_memmap(
            folder / f"codes-{number}.npy", mode="w+", dtype=np.uint8, shape=shape
        )
        for first in range(0, len(codes), 1 << 20):
            part = codes[first : first + (1 << 20)]
            part[:] = rng.integers(0, 256, part.shape, dtype=np.uint8)
            part[:, ::3] &= rng.integers(0, 256, (len(part), 3), dtype=np.uint8)
        codes.flush()


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of every file in a folder by its name."""
    found = {}
    for path in sorted(folder.iterdir()):
        digest = blake2b()
        with path.open("rb") as file:
            while piece := file.read(1 << 24):
                digest.update(piece)
        found[path.name] = digest.hexdigest()
    return found


@dataclass(frozen=True)
class Build:
    """A build of an index from a folder of codes, which may take several processes."""

    codes: Path
    index: Path
    build_memory: int = 1 << 28
    rows_at_once: int | None = None
    """The most rows of a piece, if fewer than fit into memory."""

    @property
    def work(self) -> Path:
        """The folder of what is finished."""
        return self.index.with_name(f"{self.index.name}.building")

    @property
    def log(self) -> Path:
        """The log of the parts that the last process has begun."""
        return self.index.with_name(f"{self.index.name}.log")

    def start(self, *options: str, threads: int | None = None) -> subprocess.Popen[str]:
        """Start or continue the build, and return when the process is about to."""
        self.log.unlink(missing_ok=True)
        command = [sys.executable, str(CHILD), str(self.codes), str(self.index)]
        command += ["--build-memory", str(self.build_memory), "--log", str(self.log), *options]
        if threads is not None:
            command += ["--threads", str(threads)]
        if self.rows_at_once is not None:
            command += ["--rows-at-once", str(self.rows_at_once)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"the build did not start: {process.communicate()[1]}")
        return process

    def run(self, *options: str, threads: int | None = None) -> None:
        """Build to the end."""
        process = self.start(*options, threads=threads)
        _, errors = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"the build failed: {errors}")

    def stage(self) -> str:
        """What a process that has ended was doing."""
        facts = self._journal()
        if not facts:
            return "finished" if self.is_finished() else "starting"
        if "result" in facts:
            return "publishing"
        n_bands = len(facts["plan"]["layout"])
        band = next((i for i in range(n_bands) if f"band {i}" not in facts), n_bands - 1)
        return f"band {band}" if "rows" in facts else "sorting"

    def is_finished(self) -> bool:
        """Whether the index is there, and no file besides."""
        return (self.index / "manifest.json").exists() and not any(self.work.glob("*"))

    def has(self, name: str) -> bool:
        """Whether the journal has a fact, or a finished part of a stage."""
        return name in self._journal()

    def finished(self) -> set[Part]:
        """Return the parts that are finished, by the journal."""
        facts = self._journal()
        stages = [name for name in facts if name.startswith(("pieces", "ranges"))]
        return {(stage, int(number)) for stage in stages for number in facts[stage]}

    def begun(self) -> list[Part]:
        """Return the parts that the last process has begun."""
        if not self.log.exists():
            return []
        # The last line may be cut.
        lines = [line.rpartition(" ") for line in self.log.read_text().split("\n")[:-1]]
        return [(stage, int(number)) for stage, _, number in lines]

    def again(self, before: set[Part]) -> int:
        """Count the finished parts that the last process has begun again."""
        return len(before.intersection(self.begun()))

    def clear(self) -> None:
        """Delete all files of the build."""
        for folder in (self.index, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)

    def _journal(self) -> dict[str, Any]:
        path = self.work / "journal.json"
        return json.loads(path.read_text()) if path.exists() else {}
