"""Scenes that failures are injected into: one operation each, and what it may leave behind.

A scene is built from a random generator, so that a seed repeats it. Each of its trials begins with
the same index and folder. After a trial the index must equal the one before or after the whole
operation; so must the folder, with no files beyond those of the two.
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
    """Convert a result to the bytes of its arrays, so that == compares every bit."""
    if isinstance(value, bitweigh.Index | bitweigh.VectorIndex):
        return observe(value)
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, tuple | list):
        return tuple(as_bytes(item) for item in value)
    return value


def costs_for(rng: Rng, queries: int, n_bits: int = N_BITS) -> np.ndarray[Any, np.dtype[Any]]:
    return rng.standard_normal((queries, n_bits, 2))


def observe(index: Any) -> object:
    """Return all answers of an index to plain calls on this thread, or those of a function."""
    if callable(index):
        return as_bytes(index())
    if isinstance(index, bitweigh.VectorIndex):
        ids = index.ids
        queries = np.random.default_rng(5).standard_normal((2, N_FEATURES))
        vectors = index.vectors_of(ids) if index.rerank else None
        return as_bytes(
            [ids, vectors, index.search(queries, 3), index.index.search(_COSTS[0, :8], 3)]
        )
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
    """Query an index of another shape, which shares its scratch memory with all others."""
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
    """The index that `act` changes or queries, or a function that queries; observed afterwards."""
    folder: Path | None = None
    """The folder that `act` saves to; loaded afterwards."""
    load: Callable[[Path], object] = bitweigh.load


@dataclass
class Scene:
    """An operation that can be started any number of times."""

    name: str
    trial: Callable[[], Trial]
    before: object = None
    after: object = None
    answer: object = None
    listed: list[set[str]] = field(default_factory=list)
    saved: list[object] = field(default_factory=list)

    def rehearse(self) -> None:
        """Record the expected answers and files from a run without failures."""
        trial = self.trial()
        if trial.folder is not None:
            self.listed.append(listing(trial.folder))
            self.saved.append(load_if_present(trial))
        self.before = None if trial.index is None else observe(trial.index)
        trial = self.trial()
        self.answer = as_bytes(trial.act())
        self.after = None if trial.index is None else observe(trial.index)
        if trial.folder is not None:
            self.listed.append(listing(trial.folder))
            self.saved.append(load_if_present(trial))

    def check(self, trial: Trial, finished: bool, answer: object, lasting: bool = False) -> None:
        """Raise AssertionError if anything is not as promised after a trial.

        `lasting` says that failures went on, so that cleaning up was impossible too.
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
            observed = observe(trial.index)
            allowed = [self.after] if finished else [self.before, self.after]
            assert observed in allowed, "the index is neither the old one nor the new one"

    def _check_folder(self, trial: Trial, finished: bool, lasting: bool) -> None:
        assert trial.folder is not None
        names = listing(trial.folder)
        old, new = self.listed
        loaded = load_if_present(trial)
        assert loaded in (self.saved[1:] if finished else self.saved), (
            "the folder holds neither index"
        )
        if finished:
            assert names == new, f"files are {kinds(names)}, not {kinds(new)}"
        elif not lasting:
            # A save that raises after replacing the manifest may leave old files.
            both = (old | new) - {NO_FOLDER}
            committed = loaded == self.saved[1] and new <= names <= both
            assert committed or names in (old, both), (
                f"left behind: {kinds(names - old)}; gone: {kinds(old - names)}"
            )
        trial.act()
        assert listing(trial.folder) == new, "the next save does not tidy up"


NO_FOLDER = "(no folder)"


def kinds(names: set[str]) -> list[str]:
    """Return file names without checksums, for reports that can be compared."""
    return sorted(re.sub("[0-9a-f]{32}", "*", name) for name in names)


def listing(folder: Path) -> set[str]:
    """Return the relative paths of all files and folders in `folder`."""
    if not folder.exists():
        return {NO_FOLDER}
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def load_if_present(trial: Trial) -> object:
    """Return the answers of the index in the folder; None if there is none."""
    assert trial.folder is not None
    try:
        return observe(trial.load(trial.folder))
    except FileNotFoundError:
        return None


def an_index(rng: Rng) -> bitweigh.Index:
    """Return an index with segments, a tail, bands, unordered ids and removed rows."""
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


def copy_of(index: bitweigh.VectorIndex) -> bitweigh.VectorIndex:
    """Return another vector index with the same state."""
    other = object.__new__(type(index))
    other.__dict__.update(index.__dict__)
    other._writing = threading.Lock()
    return other
