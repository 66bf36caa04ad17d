"""Building an index from a source of codes, streamed to disk where the library can."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import bitweigh
from bitweigh_experiments.datasets import CodeSource
from bitweigh_experiments.reproduce.large.memory import PeakMemory

__all__ = ["Built", "build_index", "built"]


class Built(NamedTuple):
    """How an index was built."""

    how: str
    seconds: float
    peak_anon: int | None
    """Peak of the process's anonymous memory, in bytes; None if unknown."""


def built(source: CodeSource, path: Path, build_memory: int) -> Built:
    """Build the index, unless an earlier run finished it: a file beside it has the figures."""
    note = path.with_name(path.name + ".json")
    if note.exists() and path.exists():
        return Built(**json.loads(note.read_text()))
    with PeakMemory() as peak:
        clock = time.monotonic()
        how = build_index(source, path, build_memory)
        seconds = time.monotonic() - clock
    done = Built(how, seconds, peak.bytes)
    note.write_text(json.dumps(done._asdict()))
    return done


def build_index(source: CodeSource, path: Path, build_memory: int) -> str:
    """Write the index of all codes of a source to `path`; ids are row numbers.

    Returns how it was built: "streamed" by `Index.from_batches`, or "in memory" where the library
    has no such method, which takes several times the memory of the index whatever `build_memory`.
    """
    streamed: Any = getattr(bitweigh.Index, "from_batches", None)
    if streamed is not None:
        streamed(source, path, build_memory=build_memory)
        return "streamed"
    index = bitweigh.Index(source.n_bits, build="manual")
    for codes in source.pieces():
        index.add(codes)
    index.compact()
    index.build()
    shutil.rmtree(path, ignore_errors=True)
    index.save(path)
    return "in memory"
