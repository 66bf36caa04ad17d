"""Building an index from a source of codes, streamed to disk where the library can."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bitweigh
from bitweigh_experiments.datasets import CodeFiles
from bitweigh_experiments.reproduce.large.memory import PeakMemory

__all__ = ["Built", "build_index", "built", "remove"]

STREAMED = "streamed"


class Built(NamedTuple):
    """How an index was built."""

    how: str
    """As of `build_index`; "streamed, resumed" if an earlier run had begun with it."""
    seconds: float
    """Seconds of the last run alone."""
    peak_anon: int | None
    """Peak of the process's anonymous memory, in bytes; None if unknown."""


def built(source: CodeFiles, path: Path, build_memory: int) -> Built:
    """Build the index, unless an earlier run finished it: a file beside it has the figures."""
    note = _beside(path, ".json")
    if note.exists() and path.exists():
        return Built(**json.loads(note.read_text()))
    begun = _beside(path, ".begun")
    resumed = begun.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()
    with PeakMemory() as peak:
        clock = time.monotonic()
        how = build_index(source, path, build_memory)
        seconds = time.monotonic() - clock
    done = Built(f"{how}, resumed" if resumed and how == STREAMED else how, seconds, peak.bytes)
    note.write_text(json.dumps(done._asdict()))
    begun.unlink()
    return done


def build_index(source: CodeFiles, path: Path, build_memory: int) -> str:
    """Write the index of all codes of a source to `path`; ids are row numbers.

    Returns how it was built: always "streamed", from paths of whole files, so that it can resume.
    """
    paths = _whole_files(source, _beside(path, "-last.npy"))
    bitweigh.Index.from_batches(paths, path, build_memory=build_memory)
    return STREAMED


def remove(path: Path) -> None:
    """Delete an index and what `built` left beside it."""
    shutil.rmtree(path)
    for ending in (".json", "-last.npy"):
        _beside(path, ending).unlink(missing_ok=True)


def _whole_files(source: CodeFiles, last: Path) -> list[Path]:
    """Return files that have exactly the source's rows, writing its last piece again if it is cut.

    A file that is there already stays as it is, so that a resumed build finds it unchanged.
    """
    *before, stored = source.paths
    piece = source.piece(source.n_pieces - 1)
    if len(np.load(stored, mmap_mode="r")) == len(piece):
        return source.paths
    if not last.exists():
        partial = last.with_suffix(".partial")
        with partial.open("wb") as file:
            np.save(file, piece)
        partial.replace(last)
    return [*before, last]


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
