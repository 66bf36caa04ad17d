"""Threads search while others change and save the index: each answer is that of one state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from effort import LONG
from numpy.typing import NDArray

import bitweigh

N_BITS = 20
# `make test-all` runs longer.
SECONDS = 60 if LONG else 8
Model = dict[int, bytes]


class Log:
    """The models of all versions. A version is logged before the change, and counted after it."""

    def __init__(self) -> None:
        self.models: list[Model] = [{}]
        self.n_published = 1
        self.lock = threading.Lock()

    def change(self, model: Model, apply: Callable[[], None]) -> None:
        """Log and apply a change; the caller must hold the lock."""
        self.models.append(model)
        apply()
        self.n_published += 1

    def newest(self) -> Model:
        return dict(self.models[-1])


def answer(model: Model, costs: NDArray[np.float64], k: int) -> bitweigh.SearchResult:
    ids = np.array(list(model), dtype=np.int64)
    raw = b"".join(model.values())
    codes = np.frombuffer(raw, np.uint8).reshape(len(ids), (N_BITS + 7) // 8)
    return bitweigh.reference.search(codes, costs, k, ids=ids)


class Stress:
    """An index, its log, and the work of the threads until time is up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Log()
        self.index = bitweigh.Index(N_BITS)
        growth = self.index._policy
        growth.tail_rows, growth.segment_rows, growth.banded_rows = 16, 100, 40
        growth.min_gain = 0
        self.index._engine.tuning.warm_up_rows = 32
        self.index._engine.tuning.min_scan_factor = self.index._engine.tuning.min_scan_ns_per_k = (
            0.0
        )
        self.over = threading.Event()
        self.failures: list[str] = []
        self.counts = dict.fromkeys(["searches", "several", "changes", "compactions", "saves"], 0)

    def guard(self, work: Callable[[np.random.Generator], None], seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            while not self.over.is_set():
                work(rng)
        except BaseException as error:
            self.failures.append(f"{work.__name__}: {error!r}")
            self.over.set()

    def change(self, rng: np.random.Generator) -> None:
        codes = np.packbits(rng.random((int(rng.integers(1, 12)), N_BITS)) < 0.5, axis=1)
        with self.log.lock:
            model = self.log.newest()
            kind = rng.random()
            if kind < 0.45 and len(model) < 400:
                ids = rng.choice(10_000, len(codes), replace=False).astype(np.int64)
                model.update(zip(ids.tolist(), map(bytes, codes), strict=True))
                self.log.change(model, lambda: self.index.add(codes, ids, on_duplicate="replace"))
            elif kind < 0.6 and model:
                some = rng.choice(list(model), min(len(codes), len(model)), replace=False)
                model.update(zip(some.tolist(), map(bytes, codes), strict=False))
                self.log.change(model, lambda: self.index.replace(codes[: len(some)], some))
            elif model:
                some = rng.choice(list(model), min(len(codes), len(model)), replace=False)
                for key in some.tolist():
                    del model[key]
                self.log.change(model, lambda: self.index.remove(some))
            self.counts["changes"] += 1
        time.sleep(0.001)

    def compact(self, rng: np.random.Generator) -> None:
        if rng.random() < 0.5:
            self.index.compact()
        else:
            self.index.build()
        self.counts["compactions"] += 1
        time.sleep(0.01)

    def save(self, rng: np.random.Generator) -> None:
        before = self.log.n_published
        self.index.save(self.folder)
        after = len(self.log.models)
        loaded = bitweigh.load(self.folder, mmap=bool(rng.random() < 0.5))
        costs = rng.standard_normal((N_BITS, 2))
        self.compare(loaded.search(costs, 9), costs, 9, before, after)
        self.counts["saves"] += 1
        time.sleep(0.02)

    def search(self, rng: np.random.Generator) -> None:
        costs, k = rng.standard_normal((N_BITS, 2)), int(rng.integers(1, 30))
        method = rng.choice(["auto", "scan", "probe"])
        before = self.log.n_published
        found = self.index.search(costs, k, method=method, threads=int(rng.integers(1, 3)))
        after = len(self.log.models)
        self.compare(found, costs, k, before, after)
        self.counts["searches"] += 1

    def compare(
        self,
        found: bitweigh.SearchResult,
        costs: NDArray[np.float64],
        k: int,
        before: int,
        after: int,
    ) -> None:
        """Check that the answer is that of one version between the two."""
        self.counts["several"] += after - before > 0
        for version in range(before - 1, after):
            expected = answer(self.log.models[version], costs, k)
            if np.array_equal(found.ids, expected.ids) and np.array_equal(
                found.distances, expected.distances
            ):
                return
        raise AssertionError(f"{found.ids.tolist()} is in no version from {before - 1} to {after}")


@pytest.mark.timeout(300)
def test_each_answer_is_that_of_one_version_while_others_change_and_save(tmp_path: Path) -> None:
    stress = Stress(tmp_path / "index")
    work = [stress.search] * 4 + [stress.change] * 2 + [stress.compact, stress.save]
    threads = [
        threading.Thread(target=stress.guard, args=(one, seed)) for seed, one in enumerate(work)
    ]
    for thread in threads:
        thread.start()
    stress.over.wait(SECONDS)
    stress.over.set()
    for thread in threads:
        thread.join()
    print(f"{SECONDS} seconds: {stress.counts}")
    assert not stress.failures, stress.failures
    assert min(stress.counts.values()) > 10, stress.counts
    stress.index.verify()
    assert set(stress.index.ids.tolist()) == set(stress.log.newest())
