"""How long a start takes: of a folder that was closed, and with changes after its checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.server.processes import ServerProcess
from bitweigh.server.changes import Item, Remove, Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition
from bitweigh.server.settings import Settings
from bitweigh.server.store import Store

__all__ = ["Start", "time_starts"]

_N_BITS = 256
_AT_ONCE = 50_000
# Seconds from the start of the process until it answers.
READY_SECONDS, REPLAY_SECONDS = 2.0, 5.0


class Start(NamedTuple):
    """One start of a server."""

    of: str
    seconds: float
    """From the start of the process until it serves."""
    bar: float
    items: int
    replayed: int


def time_starts(folder: Path, rows: int, changes: int, repeats: int = 3) -> Iterator[Start]:
    """Start a server on `rows` items, then with `changes` to replay, each several times."""
    data, killed = folder / "data", folder / "killed"
    never = Settings(checkpoint_seconds=1e9, checkpoint_changes=10**9, build_seconds=1e9)
    store = Store(data, never)
    collection, _ = store.create("items", Definition(kind="codes", n_bits=_N_BITS))
    _write(collection, rows, 0)
    store.close()
    for _ in range(repeats):
        yield _started("a folder that was closed", data, folder, READY_SECONDS, 0)
    store = Store(data, never)
    _change(store["items"], rows, changes)
    # Nothing writes now: the copy is what a kill would have left.
    shutil.copytree(data, killed)
    store.close()
    for _ in range(repeats):
        copy = folder / "copy"
        shutil.copytree(killed, copy)
        yield _started("changes after a checkpoint", copy, folder, REPLAY_SECONDS, changes)
        shutil.rmtree(copy)
    # Without a checkpoint all of the record is read.
    shutil.rmtree(killed / "collections" / "items" / "index")
    yield _started("no checkpoint", killed, folder, float("inf"), rows)


def _started(of: str, data: Path, folder: Path, bar: float, replayed: int) -> Start:
    server = ServerProcess(data, folder / "log")
    try:
        status, _ = server.ask("GET", "/readyz")
        assert status == 200, status
        _, facts = server.ask("GET", "/v1/collections/items")
    finally:
        server.kill()
    return Start(of, server.start_seconds, bar, facts["items"], replayed)


def _write(collection: Collection, rows: int, seed: int, first: int = 0) -> None:
    generator = np.random.default_rng(seed)
    for start in range(first, first + rows, _AT_ONCE):
        count = min(_AT_ONCE, first + rows - start)
        codes = generator.integers(0, 256, (count, _N_BITS // 8), dtype=np.uint8)
        collection.written(
            Upsert(
                [
                    Item(start + row, None, code.tobytes(), f'{{"place": {row}}}')
                    for row, code in enumerate(codes)
                ]
            )
        )


def _change(collection: Collection, rows: int, changes: int) -> None:
    """Half of the changes replace items, a quarter are new ones, a quarter removals."""
    quarter = changes // 4
    _write(collection, 2 * quarter, 1)
    _write(collection, quarter, 2, rows)
    collection.written(Remove(range(2 * quarter, 2 * quarter + changes - 3 * quarter)))
