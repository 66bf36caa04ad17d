"""Injects failures into operations, one after the other, and reports the outcomes.

test_injected_failures.py runs it as `injection_server.py KIND SEED COUNT SCRATCH FIRST`. KIND is
"allocations", for which failing_allocations.c is preloaded, or "interrupts"; FIRST is the number of
the first operation. It prints a line of JSON before each injection, so that a crash or a hang,
which ends the process, can be attributed, and one after each operation.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import gc
import itertools
import json
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from injection_operations import LONG_OPERATIONS, OPERATIONS, MakeScene
from injection_scenes import N_BITS, N_FEATURES, Scene, Trial, ask_another

HANGS_AFTER = 60.0
# Injections into a scene before the next one is built.
PER_SCENE = 40
# Code whose allocations fail: ours, `operator new` of all C++, and CPython's. Of NumPy's only the
# data of arrays: if the rest fails, `array[rows] = 1` crashes (NumPy 2.4.6).
FAILING = ("_core.", "_paper.", "libstdc++", "python3.")
# Messages of what CPython and NumPy raise instead of MemoryError when they run out of memory.
NOT_OURS = ("without exception set", "without setting an exception", "can't allocate")
# Messages of what zipfile raises instead of KeyboardInterrupt and MemoryError.
NOT_OURS += ("Can't close the ZIP file", "I/O operation on closed file")
RIGHT = {"answered", "interrupted", "MemoryError", "OSError", "raised by Python or NumPy"}


@dataclass
class Tally:
    """The outcomes of the injections into an operation."""

    operation: str
    seconds: float = 0.0
    injected: int = 0
    fired: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def other_outcome(error: BaseException) -> str:
    """Name the outcome of an unexpected error."""
    not_ours = any(words in str(error) for words in NOT_OURS)
    return "raised by Python or NumPy" if not_ours else f"raised {error!r}"


def outcome_of(error: BaseException | None) -> str:
    """Name the outcome of an operation that ran out of memory."""
    if error is None:
        return "answered"
    if isinstance(error, MemoryError):
        return "MemoryError"
    if isinstance(error, OSError):
        return "OSError" if error.errno == errno.ENOMEM else f"raised {error!r}"
    return other_outcome(error)


class Allocations:
    """Makes allocations fail."""

    def __init__(self) -> None:
        self.shim: Any = ctypes.CDLL(None)
        self.shim.watch_calls_from.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self.shim.seek_caller_of.argtypes = [ctypes.c_size_t]
        self.shim.fail_allocation.argtypes = [ctypes.c_long, ctypes.c_int]
        self.shim.allocations_counted.restype = ctypes.c_long
        self.shim.allocations_failed.restype = ctypes.c_long
        watched = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, rights, *_, name = line.split()
            if "x" in rights and any(library in Path(name).name for library in FAILING):
                begin, end = (int(part, 16) for part in addresses.split("-"))
                watched += self.shim.watch_calls_from(begin, end)
        assert watched >= 2, "the code to watch was not found"
        for size, allocate in ((123_457, np.empty), (123_458, np.zeros)):
            self.shim.seek_caller_of(size)
            allocate(size, dtype=np.uint8)
            assert self.shim.caller_was_seen(), "NumPy's allocation of arrays was not found"

    def points(self, scene: Scene, rng: np.random.Generator) -> list[tuple[int, bool]]:
        """Return all (allocation, whether later ones fail too), shuffled."""

        def run() -> None:
            trial = scene.trial()
            self.shim.fail_allocation(-1, 0)
            trial.act()
            self.shim.fail_no_more()

        self.run(run)
        counted = int(self.shim.allocations_counted())
        every = [(n, more) for n in range(1, counted + 1) for more in (False, True)]
        rng.shuffle(every)
        return every

    def inject(self, trial: Trial, point: tuple[int, bool]) -> tuple[str, object, bool]:
        """Return the outcome, the answer and whether the failure fired."""
        answer = None
        # The error is kept until there is memory again: dropping it cleans up what it refers to.
        raised: list[BaseException | None] = [None]
        self.shim.fail_allocation(*point)
        try:
            answer = trial.act()
        except BaseException as error:
            raised[0] = error
        finally:
            self.shim.fail_no_more()
        return outcome_of(raised.pop()), answer, self.shim.allocations_failed() > 0

    def run(self, step: Callable[[], None]) -> None:
        """Run on a new thread, which has no scratch memory from earlier searches."""
        raised: list[BaseException] = []
        # Starting a thread allocates, joining it does not, so failures are injected in between.
        started = threading.Lock()

        def run() -> None:
            started.acquire()
            try:
                step()
            except BaseException as error:
                raised.append(error)

        started.acquire()
        thread = threading.Thread(target=run)
        thread.start()
        started.release()
        thread.join()
        for error in raised:
            raise error


class Interrupts:
    """Raises KeyboardInterrupt, or searches, in a signal handler."""

    def __init__(self) -> None:
        self.armed = False
        self.fired = False
        self.meanwhile: Callable[[], object] | None = None
        signal.signal(signal.SIGALRM, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if not self.armed:
            return
        self.armed = False
        self.fired = True
        if self.meanwhile is None:
            raise KeyboardInterrupt
        self.meanwhile()

    def points(self, scene: Scene, rng: np.random.Generator) -> list[tuple[float, bool]]:
        """Return delays in seconds, each with whether the handler searches instead of raising."""
        trial = scene.trial()
        began = time.perf_counter()
        trial.act()
        took = time.perf_counter() - began
        delays = rng.uniform(1e-6, 1.2 * took + 2e-5, PER_SCENE).tolist()
        # Long operations are likely to be inside the engine, where a nested search tests most.
        share = 0.6 if took > 0.05 else 0.2
        return [(delay, bool(rng.random() < share)) for delay in delays]

    def inject(self, trial: Trial, point: tuple[float, bool]) -> tuple[str, object, bool]:
        """Return the outcome, the answer and whether the failure fired."""
        delay, searches = point
        index = trial.index
        self.meanwhile = None
        if searches and index is not None:
            self.meanwhile = lambda: search_anything(index)
        answer = None
        outcome = "interrupted"
        self.fired = False
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, delay)
            answer = trial.act()
            self.armed = False
            outcome = "answered"
        except KeyboardInterrupt:
            pass
        except BaseException as error:
            outcome = other_outcome(error)
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.meanwhile = None
        return outcome, answer, self.fired

    def run(self, step: Callable[[], None]) -> None:
        """Run on the main thread, the only one with signals."""
        step()


def search_anything(index: Any) -> None:
    """Search the same index and another one, as a signal handler would."""
    ask_another()
    if callable(index):
        index()
    elif hasattr(index, "hasher"):
        index.search(np.ones((2, N_FEATURES)), 3)
    else:
        costs = np.ones((2, N_BITS, 2))
        index.search(costs, 7, method="probe")
        index.range_search(costs, 1.0)


def open_and_temporary_files() -> Counter[str]:
    """Count the open files of this process and the temporary files."""
    gc.collect()
    found = Counter(path.name for path in Path(tempfile.gettempdir()).iterdir())
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            # Drop the number of an unnamed file.
            found[re.sub(r"/#\d+", "/#", str(path.readlink()))] += 1
    return found


def inject_once(injector: Any, scene: Scene, point: tuple[Any, bool], tally: Tally) -> None:
    """Inject one failure, and check the result on the same thread."""
    trial = scene.trial()
    outcome, answer, fired = injector.inject(trial, point)
    tally.injected += 1
    tally.fired += fired
    tally.outcomes[outcome if outcome in RIGHT else "wrong"] += 1
    if outcome not in RIGHT:
        tally.failures.append(f"{point}: {outcome}")
    lasting = isinstance(injector, Allocations) and point[1]
    try:
        scene.check(trial, outcome == "answered", answer, lasting)
    except Exception as error:
        tally.failures.append(f"{point}, {outcome}: {error!r}"[:600])


def run_scene(injector: Any, scene: Scene, limit: int, rng: Any, tally: Tally) -> None:
    """Inject up to `limit` failures."""
    scene.rehearse()
    before = open_and_temporary_files()
    for point in injector.points(scene, rng)[: min(limit, PER_SCENE)]:
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        print(json.dumps({"operation": tally.operation, "point": point}), flush=True)
        injector.run(lambda point=point: inject_once(injector, scene, point, tally))
    leaked = open_and_temporary_files() - before
    # tempfile has a gap between os.open and the creation of the object that closes the file.
    leaked.pop(f"{tempfile.gettempdir()}/# (deleted)", None)
    if leaked:
        tally.failures.append(f"open or temporary files were left: {dict(leaked)}")


def run_operation(injector: Any, make: MakeScene, number: int, seed: int, limit: int) -> Tally:
    """Inject failures into scenes of one operation until `limit` of them fired."""
    tally = Tally(str(number))
    began = time.perf_counter()
    for variation in itertools.count():
        # Some operations make no allocation that is watched.
        if tally.fired >= limit or (variation >= 3 and tally.fired == 0):
            break
        rng = np.random.default_rng([seed, number, variation])
        scratch = Path(tempfile.mkdtemp(dir=sys.argv[4]))
        try:
            scene = make(rng, scratch)
            tally.operation = scene.name
            run_scene(injector, scene, limit - tally.fired, rng, tally)
        finally:
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(scratch)
    tally.seconds = round(time.perf_counter() - began, 3)
    return tally


def main() -> None:
    """Run the operations from number FIRST on."""
    kind, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    first = int(sys.argv[5])
    faulthandler.enable()
    injector = Allocations() if kind == "allocations" else Interrupts()
    operations = OPERATIONS + (LONG_OPERATIONS if kind == "interrupts" else [])
    per_operation = -(-count // len(OPERATIONS))
    for number, make in enumerate(operations):
        if number < first:
            continue
        # Long operations take a thousand times as long, and a second to set up.
        limit = per_operation if number < len(OPERATIONS) else per_operation // 10
        tally = run_operation(injector, make, number, seed, limit)
        print(json.dumps({"done": number, **tally.__dict__}), flush=True)


if __name__ == "__main__":
    main()
