"""What failures are injected into: one operation each, and what it may leave behind.

A scene is made from a generator of random numbers, so that a seed repeats it. Each of its trials
begins with the same index and folder. After a trial the index holds what it held before or what it
holds after the whole operation, and so does the folder, with no other files than those of the two.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bitweigh
from bitweigh import reference

Rng = np.random.Generator
N_BITS = 24
N_FEATURES = 12


def as_bytes(value: Any) -> object:
    """A result, down to the bytes of its arrays, so that equal means equal in every bit."""
    if isinstance(value, bitweigh.Index | bitweigh.VectorIndex):
        return observe(value)
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, tuple | list):
        return tuple(as_bytes(one) for one in value)
    return value


def costs_for(rng: Rng, queries: int, n_bits: int = N_BITS) -> np.ndarray[Any, np.dtype[Any]]:
    return rng.standard_normal((queries, n_bits, 2))


def observe(index: Any) -> object:
    """Everything that an index answers, by plain calls on this thread; or a function."""
    if callable(index):
        return as_bytes(index())
    if isinstance(index, bitweigh.VectorIndex):
        ids = index.ids
        queries = np.random.default_rng(5).standard_normal((2, N_FEATURES))
        kept = index.vectors_of(ids) if index.rerank else None
        return as_bytes([ids, kept, index.search(queries, 3), index.index.search(_COSTS[0, :8], 3)])
    ids = index.ids
    found = [index.search(_COSTS, 4, method=method) for method in ("probe", "scan", "auto")]
    assert as_bytes(found[0]) == as_bytes(found[1]) == as_bytes(found[2]), "the methods disagree"
    within = [index.range_search(_COSTS, 0.0, method=method) for method in ("probe", "scan")]
    assert as_bytes(within[0]) == as_bytes(within[1]), "the methods of range_search disagree"
    codes = index.codes_of(ids)
    expected = reference.search(codes, _COSTS, 4, ids=ids)
    assert as_bytes(found[0]) == as_bytes(expected), "a plain search gives a wrong answer"
    return as_bytes([ids, codes, index._state.next_id, found[0], within[0]])


_COSTS = costs_for(np.random.default_rng(7), 2)


def ask_another() -> object:
    """What an index of another shape answers: scratch memory is shared between all of them."""
    found = [_ANOTHER.search(_COSTS[:, :8], 5, method=method) for method in ("probe", "scan")]
    within = _ANOTHER.range_search(_COSTS[:, :8], 0.5, method="probe")
    return as_bytes([found, within])


_ANOTHER = bitweigh.Index(8, bands=2, band_bits=4)
_ANOTHER.add(np.arange(200, dtype=np.uint8).reshape(-1, 1))
_ANOTHER.build()
_FROM_ANOTHER = ask_another()


@dataclass
class Trial:
    """One run of the operation."""

    act: Callable[[], object]
    index: Any = None
    """What it changes or asks, or a function that asks it; observed afterwards."""
    folder: Path | None = None
    """What it saves to; loaded afterwards."""
    load: Callable[[Path], object] = bitweigh.load


@dataclass
class Scene:
    """An operation, and how to begin it again and again."""

    name: str
    trial: Callable[[], Trial]
    before: object = None
    after: object = None
    answer: object = None
    listed: list[set[str]] = field(default_factory=list)
    saved: list[object] = field(default_factory=list)

    def rehearse(self) -> None:
        """Learn, by a run without failures, what is right."""
        trial = self.trial()
        if trial.folder is not None:
            self.listed.append(listing(trial.folder))
            self.saved.append(load_if_there(trial))
        self.before = None if trial.index is None else observe(trial.index)
        trial = self.trial()
        self.answer = as_bytes(trial.act())
        self.after = None if trial.index is None else observe(trial.index)
        if trial.folder is not None:
            self.listed.append(listing(trial.folder))
            self.saved.append(load_if_there(trial))

    def check(self, trial: Trial, finished: bool, answer: object, lasting: bool = False) -> None:
        """Raise AssertionError for anything that is not as promised after a trial.

        `lasting`: it went on failing, so that nothing could be tidied up either.
        """
        if finished:
            assert as_bytes(answer) == self.answer, "the answer is wrong"
        assert ask_another() == _FROM_ANOTHER, "the next search, of another index, is wrong"
        if trial.folder is not None:
            self._check_folder(trial, finished, lasting)
        if trial.index is not None:
            lock = getattr(trial.index, "_writing", None)
            if lock is not None:
                assert lock.acquire(blocking=False), "the lock is still taken"
                lock.release()
            now = observe(trial.index)
            allowed = [self.after] if finished else [self.before, self.after]
            assert now in allowed, "the index holds neither what it held nor what it should"

    def _check_folder(self, trial: Trial, finished: bool, lasting: bool) -> None:
        assert trial.folder is not None
        names = listing(trial.folder)
        old, new = self.listed
        now = load_if_there(trial)
        assert now in (self.saved[1:] if finished else self.saved), "the folder holds neither index"
        if finished:
            assert names == new, f"files are {kinds(names)}, not {kinds(new)}"
        elif not lasting:
            # A save that raises when it has replaced the manifest may leave old files.
            both = (old | new) - {NO_FOLDER}
            committed = now == self.saved[1] and new <= names <= both
            assert committed or names in (old, both), (
                f"left behind: {kinds(names - old)}; gone: {kinds(old - names)}"
            )
        trial.act()
        assert listing(trial.folder) == new, "the next save does not tidy up"


NO_FOLDER = "(no folder)"


def kinds(names: set[str]) -> list[str]:
    """Names of files without their checksums, to read and to compare reports by."""
    return sorted(re.sub("[0-9a-f]{32}", "*", name) for name in names)


def listing(folder: Path) -> set[str]:
    """All files and folders in it."""
    if not folder.exists():
        return {NO_FOLDER}
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def load_if_there(trial: Trial) -> object:
    """What the folder holds; None if there is no index in it."""
    assert trial.folder is not None
    try:
        return observe(trial.load(trial.folder))
    except FileNotFoundError:
        return None


def an_index(rng: Rng) -> bitweigh.Index:
    """Several segments, a tail, bands for some, ids in no order, some rows removed."""
    index = bitweigh.Index(N_BITS, bands=int(rng.integers(1, 4)), band_bits=int(rng.integers(2, 6)))
    index._policy.tail_rows = 40
    index._policy.banded_rows = 1
    index._engine.tuning.warm_up_rows = 32
    index._engine.tuning.min_scan_factor = 0.0
    index._engine.tuning.min_scan_ns_per_k = 0.0
    n = int(rng.integers(100, 300))
    codes = rng.integers(0, 256, (n, 3), dtype=np.uint8)
    index.add(codes, rng.permutation(n))
    index.build()
    index.add(codes[:20])
    index.remove(rng.permutation(n)[:10])
    return index


def some_vectors(rng: Rng, n: int) -> np.ndarray[Any, np.dtype[Any]]:
    return rng.standard_normal((n, N_FEATURES)).astype(np.float32)


def a_vector_index(rng: Rng) -> bitweigh.VectorIndex:
    index = bitweigh.VectorIndex(
        n_bits=8, hasher="lsh", rerank="float32" if rng.random() < 0.7 else None
    )
    index.fit(some_vectors(rng, 60))
    index.add(some_vectors(rng, int(rng.integers(30, 80))))
    return index


def again(index: bitweigh.VectorIndex) -> bitweigh.VectorIndex:
    """Another vector index that holds the same."""
    other = object.__new__(type(index))
    other.__dict__.update(index.__dict__)
    other._writing = threading.Lock()
    return other
