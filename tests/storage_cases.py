"""Indexes to save and folders to change by hand, for tests of storage."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import with_lean_rows

import bitweigh
from bitweigh._storage import folder as files
from bitweigh._storage.arrays import digest_of
from bitweigh._storage.manifest import MANIFEST
from bitweigh.vector_index import VectorIndex

N_BITS = 20
VECTORS = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
RNG = np.random.default_rng(5)
DATA = RNG.standard_normal((300, 8)).astype(np.float32)
QUERIES = RNG.standard_normal((6, 8)).astype(np.float32)


def small_index(n: int = 40, seed: int = 0) -> bitweigh.Index:
    """Return an index of 20-bit codes in one segment."""
    index = bitweigh.Index(20)
    bits = np.random.default_rng(seed).random((n, 20)) < 0.5
    index.add(np.packbits(bits, axis=1))
    return index


def codes_by_id(index: bitweigh.Index) -> dict[str, str]:
    ids = index.ids
    codes = index.codes_of(ids)
    return {str(id_): bytes(code).hex() for id_, code in zip(ids.tolist(), codes, strict=True)}


def make_index() -> bitweigh.Index:
    """Return a small index with all kinds of files: bands, caller's ids, removed rows, a tail."""
    rng = np.random.default_rng(0)
    codes = np.packbits(rng.random((200, N_BITS)) < 0.5, axis=1)
    index = bitweigh.Index(N_BITS, bands=3, band_bits=3)
    index._policy.tail_rows = 20
    index.add(codes[:70], rng.permutation(2**40 + np.arange(70)))
    index.build()
    index._policy.segment_rows = 50
    index.add(codes[70:105], rng.permutation(35))
    index.add(codes[105:110])
    index.remove([3, 2**40 + 5, 2**40 + 60])
    assert len(list(index._state.parts())) == 3
    return index


def make_lean_index() -> bitweigh.Index:
    """Return a small index with lean rows, caller's ids, removed rows and a tail of whole codes."""
    rng = np.random.default_rng(1)
    codes = np.packbits(rng.random((110, N_BITS)) < 0.4, axis=1)
    index = bitweigh.Index(N_BITS, bands=2, band_bits=4)
    index._policy.tail_rows = 20
    index.add(codes[:70], rng.permutation(2**40 + np.arange(70)))
    index.build()
    index._state = with_lean_rows(index._state, "big")
    index.add(codes[105:110])
    index.remove([2**40 + 5, 2**40 + 60])
    assert len(list(index._state.parts())) == 2
    return index


def index_of(rows: int) -> bitweigh.Index:
    index = bitweigh.Index(16)
    index.add(np.full((rows, 2), rows, dtype=np.uint8), np.arange(rows)[::-1] * 2)
    return index


def vectors_of(rows: int) -> VectorIndex:
    index = VectorIndex(n_bits=7, hasher="lsh", rerank="float16").fit(VECTORS)
    index.add(VECTORS[:rows])
    return index


def old_vectors() -> VectorIndex:
    index = VectorIndex(n_bits=9, hasher="lsh", rerank="float16", band_bits=3).fit(DATA)
    index.add(DATA[:200], ids=range(400, 200, -1))
    return index


def changed(index: VectorIndex) -> None:
    index.remove(range(380, 390), on_missing="ignore")
    index.add(DATA[200:250], ids=range(340, 390), on_duplicate="replace")


def other_vectors() -> VectorIndex:
    index = VectorIndex(hasher="sign", weigher="wh", metric="cosine").fit(DATA)
    index.add(DATA[:50])
    return index


def content(index: VectorIndex) -> tuple[Any, ...]:
    """Return all settings, ids, vectors and answers of an index."""
    found = index.search(QUERIES, 12)
    vectors = b"" if index.rerank is None else index.vectors_of(index.ids).tobytes()
    facts = (repr(index), repr(index.hasher), repr(index.weigher), index.rerank, index.metric)
    return (*facts, index.ids.tobytes(), vectors, found.ids.tobytes(), found.distances.tobytes())


def saved_files(index: bitweigh.Index, folder: Path) -> dict[str, bytes]:
    """Return the files of an index by name; few enough bytes that each can be changed in turn."""
    index.save(folder / "index")
    found = {path.name: path.read_bytes() for path in sorted((folder / "index").iterdir())}
    assert sum(map(len, found.values())) <= 20_000
    return found


def exercise(index: bitweigh.Index) -> None:
    """Call everything that reads data from files."""
    rng = np.random.default_rng(0)
    costs = rng.standard_normal((index.n_bits, 2))
    index._engine.tuning.warm_up_rows = 32
    index._engine.tuning.min_scan_factor = index._engine.tuning.min_scan_ns_per_k = 0.0
    for method in ("scan", "probe", "auto"):
        index.search(costs, 7, method=method)
        index.search(np.zeros((index.n_bits, 2)), 300, method=method)
        index.range_search(costs, 0.0, method=method)
    index.search(costs, 3, allow=np.ones(50, dtype=np.bool_))
    index.search(costs, 3, deny=[1, 2**40 + 1])
    index.search(costs, 3, allow=[1, 5, 2**40, 2**40 + 1])
    index.search(costs, 300, allow=np.arange(2**40, 2**40 + 300))
    index.search(costs, 300, filter=index.filter(deny=np.arange(300)))
    ids = index.ids
    index.contains([0, 1, 2**40, 2**62])
    known = ids[(ids >= 0)][:3]
    index.codes_of(known[index.contains(known)])
    index.remove(known, on_missing="ignore")
    index.explain(costs, 2)
    index.compact()
    index.search(costs, 7)


# The files in each folder: in thousands of calls of `write` only one file changes.
written: dict[Path, dict[str, bytes]] = {}


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Make `files` the only files in the folder."""
    folder.mkdir(exist_ok=True)
    before = written.get(folder, {})
    for name in before.keys() - files.keys():
        (folder / name).unlink()
    for name, raw in files.items():
        if before.get(name) != raw:
            # A new file under the same name: the old one may still be mapped.
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_bytes(raw)
    written[folder] = files


def repaired(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with checksums that match their contents."""
    names = {
        name: f"{name.partition('-')[0]}-{digest_of(raw)}.npy"
        for name, raw in files.items()
        if name != MANIFEST
    }
    manifest = files[MANIFEST]
    for old, new in names.items():
        manifest = manifest.replace(old.encode(), new.encode())
    return {MANIFEST: sealed(manifest), **{names[n]: raw for n, raw in files.items() if n in names}}


def sealed(manifest: bytes) -> bytes:
    """Return a manifest with its correct checksum."""
    start = manifest.find(b'"checksum": "') + 13
    blank = manifest[:start] + b"0" * 32 + manifest[start + 32 :]
    return blank[:start] + digest_of(blank).encode() + blank[start + 32 :]


class StoppedError(Exception):
    pass


class Stopping:
    """Stop a save before one of its steps: writing, renaming or removing a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clean: bool) -> None:
        self.steps_left = 10**6
        self._write, self._replace, self._unlink = files.write_synced, Path.replace, Path.unlink
        monkeypatch.setattr(files, "write_synced", self.write)
        monkeypatch.setattr(Path, "replace", lambda *paths: self.replace(*paths))
        monkeypatch.setattr(Path, "unlink", lambda *path, **how: self.unlink(*path, **how))
        if not clean:  # as if the machine had stopped
            monkeypatch.setattr(files, "_remove", lambda *_: None)

    def step(self) -> None:
        self.steps_left -= 1
        if self.steps_left == -1:
            raise StoppedError

    def write(self, *arguments: Any) -> Path:
        self.step()
        return self._write(*arguments)

    def replace(self, path: Path, target: Path) -> Path:
        self.step()
        return self._replace(path, target)

    def unlink(self, path: Path, **how: Any) -> None:
        self.step()
        self._unlink(path, **how)


def stopped_at_every_step(
    save: Callable[[Path], None],
    start: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    clean: bool,
) -> Iterator[Path]:
    """Yield, for each step, a copy of `start` to which a save was stopped at that step.

    The save to the last folder was not stopped.
    """
    stopping = Stopping(monkeypatch, clean)
    for steps in range(200):
        folder = scratch / f"stopped-{steps}"
        shutil.copytree(start, folder)
        stopping.steps_left = steps
        stopped = False
        try:
            save(folder)
        except StoppedError:
            stopped = True
        stopping.steps_left = 10**6
        yield folder
        if not stopped:
            return
