"""A save that is killed, fails or writes partially leaves the old index or the new one.

strace injects each fault into one system call of a save, and does so for every call.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from save_server import (
    BEGIN,
    END,
    NEW_NOTE,
    OLD_NOTE,
    VERSION_1,
    new_index,
    new_vectors,
    old_index,
    old_vectors,
)
from tools_needed import need_tool, skip_or_fail

import bitweigh

SERVER = Path(__file__).parent / "save_server.py"
CALL = re.compile(r"(\w+)\((.*)\)\s+= (.*)|(\w+)\((.*)")
KILLED = -9

SHORT_WRITES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
ssize_t write(int file, const void* data, size_t size) {
    static ssize_t (*real)(int, const void*, size_t);
    if (!real) real = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
    struct stat facts;
    if (size > 1 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode)) size = size / 3 + 1;
    return real(file, data, size);
}
"""


@dataclass(frozen=True)
class Saved:
    """One save in a child process: its trace and how it ended."""

    calls: list[tuple[str, str]]
    """System calls between beginning and end: name, and arguments with the result."""
    before: Counter[str]
    """Calls of each name before that."""
    log: str
    status: int


class Saves:
    """Starts saves, with or without strace, into a folder that holds the old index."""

    def __init__(
        self, scratch: Path, environment: dict[str, str] | None = None, kind: str = "index"
    ) -> None:
        self.scratch = scratch
        self.folder = scratch / "index"
        self.template: Path | None = scratch / "template"
        self.old: AnyIndex = old_index() if kind == "index" else old_vectors()
        self.new: AnyIndex = new_index(old_index()) if kind == "index" else new_vectors()
        self.old.save(self.template, note=OLD_NOTE)
        self.new.save(scratch / "new", note=NEW_NOTE)
        self.server = subprocess.Popen(
            [sys.executable, str(SERVER), str(scratch / "first"), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def close(self) -> None:
        # It exits at the end of its input.
        self.server.communicate(timeout=30)
        assert self.server.returncode == 0

    def restore(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.template is not None:
            shutil.copytree(self.template, self.folder)

    def run(self, fault: str = "", most_bytes: int = 0, traced: bool = True) -> Saved:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.restore()
        print(self.folder, most_bytes, file=self.server.stdin, flush=True)
        number = int(self.server.stdout.readline())
        wait_for(number, "State:\tT")
        log = self.scratch / "log"
        tracer = self.trace(number, log, fault) if traced else None
        os.kill(number, signal.SIGCONT)
        status = int(self.server.stdout.readline())
        if tracer is None:
            return Saved([], Counter(), "", status)
        tracer.wait(30)
        return saved_from(log.read_text(), status)

    def trace(self, number: int, log: Path, fault: str) -> subprocess.Popen[bytes]:
        inject = ["-e", f"inject={fault}"] if fault else []
        said = self.scratch / "strace-said"
        with said.open("wb") as output:
            tracer = subprocess.Popen(
                ["strace", "-o", log, "-e", "trace=all", *inject, "-p", str(number)], stderr=output
            )
        if not wait_for(number, f"TracerPid:\t{tracer.pid}\n", tracer):
            os.kill(number, signal.SIGKILL)
            skip_or_fail(f"strace cannot attach: {said.read_text()}")
        return tracer

    def check(self, status: int) -> str:
        """Return which index the folder holds; fail if neither, or not the one reported."""
        found = bitweigh.load(self.folder, verify=True)
        codes_of(found).verify()
        holds = [
            name
            for name, index in (("old", self.old), ("new", self.new))
            if content(index) == content(found)
        ]
        assert len(holds) == 1, "torn"
        assert status in (0, 3, KILLED), f"the save ended with {status}"
        assert status != 0 or holds == ["new"], "a save that went well was lost"
        return holds[0]


AnyIndex = bitweigh.Index | bitweigh.VectorIndex


def codes_of(index: AnyIndex) -> bitweigh.Index:
    return index if isinstance(index, bitweigh.Index) else index.index


def content(index: AnyIndex) -> tuple[object, ...]:
    """Return the note, ids, codes, and vectors if there are any."""
    ids = index.ids
    codes = codes_of(index).codes_of(ids).tobytes()
    if isinstance(index, bitweigh.Index):
        return index.note, ids.tobytes(), codes
    return index.note, ids.tobytes(), codes, index.vectors_of(ids).tobytes()


def wait_for(number: int, fact: str, tracer: subprocess.Popen[bytes] | None = None) -> bool:
    """Wait until a process has a state in /proc; return False if the tracer ends first."""
    deadline = time.monotonic() + 60
    while fact not in Path(f"/proc/{number}/status").read_text():
        if tracer is not None and tracer.poll() is not None:
            return False
        assert time.monotonic() < deadline, f"process {number} is not {fact!r}"
        time.sleep(0.001)
    return True


def saved_from(log: str, status: int) -> Saved:
    calls: list[tuple[str, str]] = []
    before: Counter[str] = Counter()
    begun = False
    for line in log.splitlines():
        match = CALL.match(line)
        if match is None:
            continue
        name = match[1] or match[4]
        if BEGIN in line:
            begun = True
        elif END in line:
            break
        elif begun:
            calls.append((name, line))
        if not begun or BEGIN in line:
            before[name] += 1
    return Saved(calls, before, log, status)


@pytest.fixture
def saves(tmp_path: Path) -> Iterator[Saves]:
    need_tool("strace")
    server = Saves(tmp_path)
    yield server
    server.close()


def points(saved: Saved) -> Iterator[tuple[str, int]]:
    """Return each system call of a save, as strace counts them."""
    count = Counter(saved.before)
    for name, _ in saved.calls:
        count[name] += 1
        yield name, count[name]


@pytest.mark.tools
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
def test_a_fault_at_any_call_leaves_the_old_index_or_the_new(saves: Saves, fault: str) -> None:
    plain = saves.run()
    assert saves.check(plain.status) == "new"
    every = list(points(plain))
    assert len(every) > 50
    outcomes: Counter[str] = Counter()
    for name, number in every:
        saved = saves.run(f"{name}:{fault}:when={number}")
        fired = "killed by SIGKILL" if "KILL" in fault else "(INJECTED)"
        assert fired in saved.log, f"{name} number {number}: the fault did not fire"
        assert BEGIN in saved.log.split(fired)[0], f"{name} number {number} came too early"
        outcomes[saves.check(saved.status)] += 1
        # Leftovers do not disturb later saves.
        if outcomes.total() % 10 == 0:
            saves.new.save(saves.folder)
            assert saves.check(0) == "new"
            left = {path.name for path in saves.folder.iterdir()}
            assert left == {path.name for path in (saves.scratch / "first").iterdir()}
    print(f"{fault} at {len(every)} calls: {dict(outcomes)}; 0 lost, 0 torn")
    assert outcomes["old"] > 10
    assert outcomes["new"] > 0


@pytest.mark.tools
@pytest.mark.timeout(900)
def test_a_first_save_that_is_killed_leaves_no_index_or_the_new(saves: Saves) -> None:
    saves.template = None
    outcomes: Counter[str] = Counter()
    for name, number in points(saves.run()):
        saved = saves.run(f"{name}:signal=KILL:when={number}")
        assert saved.status == KILLED
        try:
            outcomes[saves.check(saved.status)] += 1
        except FileNotFoundError:
            outcomes["none"] += 1
            saves.new.save(saves.folder)
            assert saves.check(0) == "new"
    print(f"killed in {outcomes.total()} calls of a first save: {dict(outcomes)}")
    assert outcomes["none"] > 10
    assert outcomes["new"] > 0
    assert not outcomes["old"]


@pytest.mark.tools
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [1, 2])
def test_a_vector_index_killed_at_any_call_of_a_save_leaves_the_old_one_or_the_new(
    version: int, tmp_path: Path
) -> None:
    need_tool("strace")
    saves = Saves(tmp_path, kind="vectors")
    if version == 1:
        saves.template, saves.old = VERSION_1, old_vectors()
    every = list(points(saves.run()))
    new_names = {path.name for path in (saves.scratch / "first").iterdir()}
    outcomes: Counter[str] = Counter()
    for name, number in every:
        saved = saves.run(f"{name}:signal=KILL:when={number}")
        assert saved.status == KILLED
        outcomes[saves.check(saved.status)] += 1
        if outcomes.total() % 10 == 0 or outcomes["new"]:
            saves.new.save(saves.folder)
            assert saves.check(0) == "new"
            assert {path.name for path in saves.folder.iterdir()} == new_names
    saves.close()
    print(f"over version {version}, killed at {len(every)} calls: {dict(outcomes)}")
    assert outcomes["old"] > 50
    assert outcomes["new"] > (40 if version == 1 else 5)


@pytest.mark.tools
def test_files_are_synced_before_they_get_their_names(saves: Saves) -> None:
    calls = saves.run().calls
    unsynced: set[str] = set()
    open_files: dict[str, str] = {}
    named_unsynced: set[str] = set()
    renamed = []
    for name, line in calls:
        result = line.rsplit("= ", 1)[-1].split()[0]
        first = line.split("(", 1)[1].split(",")[0].split(")")[0]
        if name == "openat":
            open_files[result] = re.findall(r'"(.*?)"', line)[0]
        elif name == "write":
            unsynced.add(open_files[first])
        elif name in ("fsync", "fdatasync"):
            if open_files[first] == str(saves.folder):
                named_unsynced.clear()
            unsynced.discard(open_files[first])
        elif name.startswith("rename"):
            source, target = re.findall(r'"(.*?)"', line)
            assert source not in unsynced, f"{target} got its name before it was synced"
            if target.endswith("manifest.json"):
                assert not named_unsynced, "the manifest came before the names of its files"
            named_unsynced.add(target)
            renamed.append(Path(target).name)
        elif name.startswith("unlink"):
            assert "manifest.json" in renamed, "an old file was removed before the new manifest"
            assert not named_unsynced, "an old file was removed before the manifest was synced"
    assert len(renamed) > 3
    assert renamed[-1] == "manifest.json"
    assert not unsynced


def test_a_full_disk_at_any_size_leaves_the_old_index(tmp_path: Path) -> None:
    # At a file size limit the system writes only what still fits: a short write.
    saves = Saves(tmp_path)
    template = saves.template
    assert template is not None
    outcomes: Counter[str] = Counter()
    largest = 0
    for most_bytes in [*range(1, 600, 13), *range(600, 6000, 200)]:
        saved = saves.run(most_bytes=most_bytes, traced=False)
        outcomes[saves.check(saved.status)] += 1
        if saved.status == 3:
            largest = most_bytes
            assert {path.name for path in saves.folder.iterdir()} == {
                path.name for path in template.iterdir()
            }, "something was left behind"
    saves.close()
    print(f"disks that were full after up to {largest} bytes of a file: {dict(outcomes)}")
    assert outcomes["old"] > 10
    assert outcomes["new"] > 0


def test_short_writes_are_continued(tmp_path: Path) -> None:
    source, shim = tmp_path / "short.c", tmp_path / "short.so"
    source.write_text(SHORT_WRITES)
    subprocess.run([need_tool("gcc"), "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    saves = Saves(tmp_path, {"LD_PRELOAD": str(shim)})
    saved = saves.run(traced=False)
    assert saved.status == 0
    assert saves.check(saved.status) == "new"
    if shutil.which("strace"):
        written = [line for name, line in saves.run().calls if name == "write"]
        sizes = [
            (int(line.rsplit(", ", 1)[1].split(")")[0]), int(line.rsplit("= ", 1)[1]))
            for line in written
        ]
        assert len(sizes) > 20, "the writes were not short"
    saves.close()
