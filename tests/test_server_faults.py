"""A checkpoint of a server that is killed, or fails, at any system call loses nothing.

strace injects each fault into one system call, and does so for every call.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.server.stored import Stored, read_stored
from benchmarks.server.writing import COLLECTION
from save_server import BEGIN
from server_folders import BY_HAND
from test_save_faults import KILLED, Saves, points
from tools_needed import need_tool

from bitweigh.server.changes import Item, Remove, Upsert
from bitweigh.server.definition import Definition
from bitweigh.server.store import Store

SERVER = Path(__file__).parent / "checkpoint_server.py"
ROOT = Path(__file__).parent.parent


class Checkpoints(Saves):
    """Starts checkpoints, with or without strace, of a folder with changes after its last one."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.folder = scratch / "data"
        self.template = scratch / "template"
        self.expected = self.prepare()
        paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        self.server = subprocess.Popen(
            [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def prepare(self) -> Stored:
        """Make the folder as a killed server leaves it; return what it holds."""
        store = Store(self.scratch / "open", BY_HAND)
        collection, _ = store.create(COLLECTION, Definition(kind="codes", n_bits=64))
        codes = np.random.default_rng(0).integers(0, 256, (400, 8), dtype=np.uint8)
        items = [Item(row, None, code.tobytes(), None) for row, code in enumerate(codes)]
        collection.written(Upsert(items[:300]))
        collection.checkpoint()
        collection.written(Upsert(items[300:]))
        collection.written(Remove(range(20)))
        shutil.copytree(self.scratch / "open", self.template)
        store.close()
        return read_stored(self.template, self.scratch / "copy")

    def outcome(self) -> str:
        """Which checkpoint the folder has; fail if a change is lost."""
        found = read_stored(self.folder, self.scratch / "copy")
        assert found.wrong == []
        assert found.items == self.expected.items
        assert found.seq == self.expected.seq
        return "new" if found.replayed == 0 else "old"


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[Checkpoints]:
    need_tool("strace")
    server = Checkpoints(tmp_path)
    yield server
    server.close()


@pytest.mark.tools
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
def test_a_fault_at_any_call_of_a_checkpoint_loses_no_change(
    checkpoints: Checkpoints, fault: str
) -> None:
    plain = checkpoints.run()
    assert plain.status == 0
    assert checkpoints.outcome() == "new"
    every = list(points(plain))
    names = {name for name, _ in every}
    assert len(every) > 50
    assert {"fsync", "rename"} & names
    assert any(name.startswith("pwrite") for name in names), "the record forgets removed items"
    outcomes: Counter[str] = Counter()
    for name, number in every:
        done = checkpoints.run(f"{name}:{fault}:when={number}")
        fired = "killed by SIGKILL" if "KILL" in fault else "(INJECTED)"
        assert fired in done.log, f"{name} number {number}: the fault did not fire"
        assert BEGIN in done.log.split(fired)[0], f"{name} number {number} came too early"
        assert done.status in ((KILLED,) if "KILL" in fault else (0, 3))
        outcome = checkpoints.outcome()
        assert done.status != 0 or outcome == "new", "a checkpoint that went well is not there"
        outcomes[outcome] += 1
    print(f"{fault} at {len(every)} calls of a checkpoint: {dict(outcomes)}; 0 changes lost")
    assert outcomes["old"] > 10
    assert outcomes["new"] > 0
