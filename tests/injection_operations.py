"""The operations that failures are injected into; injection_scenes.py has the checks."""

from __future__ import annotations

import itertools
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from injection_scenes import (
    N_BITS,
    N_FEATURES,
    Rng,
    Scene,
    Trial,
    a_vector_index,
    an_index,
    copy_of,
    costs_for,
    some_vectors,
)

import bitweigh
from bitweigh import paper
from bitweigh.embeddings import BinaryEmbeddings, quantize

MakeScene = Callable[[Rng, Path], Scene]
Codes = np.ndarray[Any, np.dtype[np.uint8]]


def asking(name: str, ask: Callable[[bitweigh.Index, Rng], Callable[[], object]]) -> MakeScene:
    """Return a scene that queries an index."""

    def make(rng: Rng, _: Path) -> Scene:
        index = an_index(rng)
        act = ask(index, rng)
        return Scene(name, lambda: Trial(act, index))

    return make


def _search(method: Any, threads: int) -> MakeScene:
    def ask(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
        costs, k = costs_for(rng, int(rng.integers(1, 6))), int(rng.choice([1, 5, 40]))
        if threads > 1:
            # Otherwise so little work would not get a second thread.
            costs = np.repeat(costs, 300, axis=0)
        return lambda: index.search(costs, k, method=method, threads=threads)

    return asking(f"search {method}, {threads} threads", ask)


def _ties(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
    costs = rng.integers(0, 3, (2, N_BITS, 2)).astype(np.float64)
    return lambda: index.search_with_ties(costs, 3)


def _range_search(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
    costs, radius = costs_for(rng, 3), float(rng.uniform(-4, 8))
    method = str(rng.choice(["auto", "probe", "scan"]))
    return lambda: index.range_search(costs, radius, method=method)  # type: ignore[arg-type]


def _iterate(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
    costs = costs_for(rng, 1)[0]
    return lambda: list(itertools.islice(index.iterate(costs), 70))


def _filtered(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
    costs, ids = costs_for(rng, 2), rng.permutation(90)[:30]
    if rng.random() < 0.3:
        return lambda: index.search(costs, 4, filter=index.filter(allow=ids[:3]))
    if rng.random() < 0.5:
        return lambda: index.search(costs, 4, allow=ids)
    return lambda: index.search(costs, 4, deny=ids)


def _search_by_id(index: bitweigh.Index, rng: Rng) -> Callable[[], object]:
    ids = index.ids[rng.permutation(len(index))[:3]]
    return lambda: index.search_by_id(ids, 3)


def changing(
    name: str, change: Callable[[Rng], Callable[[bitweigh.Index], object]], *, built: bool = True
) -> MakeScene:
    """Return a scene that changes an index."""

    def make(rng: Rng, _: Path) -> Scene:
        base = an_index(rng)
        if not built:
            fresh = bitweigh.Index(N_BITS, bands=2, band_bits=4)
            fresh.add(base.codes_of(base.ids), base.ids)
            base = fresh
        act = change(rng)

        def trial() -> Trial:
            index = base.copy()
            return Trial(lambda: act(index), index)

        return Scene(name, trial)

    return make


def _some_codes(rng: Rng) -> Codes:
    return rng.integers(0, 256, (int(rng.choice([1, 30, 200])), 3), dtype=np.uint8)


def _add(rng: Rng) -> Callable[[bitweigh.Index], object]:
    codes = _some_codes(rng)
    ids = None if rng.random() < 0.5 else rng.permutation(len(codes)) + 5000
    return lambda index: index.add(codes, ids)


def _add_replacing(rng: Rng) -> Callable[[bitweigh.Index], object]:
    codes = _some_codes(rng)
    ids = rng.permutation(len(codes) + 50)[: len(codes)]
    return lambda index: index.add(codes, ids, on_duplicate="replace")


def _remove(rng: Rng) -> Callable[[bitweigh.Index], object]:
    ids = rng.permutation(400)[:80]
    return lambda index: index.remove(ids, on_missing="ignore")


def _replace(rng: Rng) -> Callable[[bitweigh.Index], object]:
    codes = rng.integers(0, 256, (3, 3), dtype=np.uint8)
    return lambda index: index.replace(codes, index.ids[[5, 50, 9]])


def _saved_index(rng: Rng, scratch: Path) -> Scene:
    old = an_index(rng)
    new = old.copy()
    new.remove(new.ids[:3])
    new.add(_some_codes(rng))
    new.build()  # so that bands are saved too
    template = None if rng.random() < 0.3 else scratch / "template"
    if template is not None:
        old.save(template)

    def trial() -> Trial:
        index, folder = pickle.loads(pickle.dumps(new)), restored(scratch, template)
        return Trial(lambda: index.save(folder), index, folder)

    return Scene("save", trial)


def restored(scratch: Path, template: Path | None) -> Path:
    """Return the folder to save to: a copy of the template, or missing."""
    folder = scratch / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    if template is not None:
        shutil.copytree(template, folder)
    return folder


def _loaded_index(rng: Rng, scratch: Path) -> Scene:
    an_index(rng).save(scratch / "folder")
    mapped = bool(rng.random() < 0.5)
    return Scene("load", lambda: Trial(lambda: bitweigh.load(scratch / "folder", mmap=mapped)))


def _saved_vectors(rng: Rng, scratch: Path) -> Scene:
    old = a_vector_index(rng)
    new = copy_of(old)
    new.add(some_vectors(rng, 7))
    template = None if rng.random() < 0.3 else scratch / "template"
    if template is not None:
        old.save(template)

    def trial() -> Trial:
        index, folder = copy_of(new), restored(scratch, template)
        return Trial(lambda: index.save(folder), index, folder, bitweigh.VectorIndex.load)

    return Scene("VectorIndex.save", trial)


def _loaded_vectors(rng: Rng, scratch: Path) -> Scene:
    a_vector_index(rng).save(scratch / "folder")
    mapped = bool(rng.random() < 0.5)
    load = bitweigh.VectorIndex.load
    return Scene("VectorIndex.load", lambda: Trial(lambda: load(scratch / "folder", mmap=mapped)))


def on_vectors(
    name: str, do: Callable[[Rng], Callable[[bitweigh.VectorIndex], object]]
) -> MakeScene:
    """Return a scene that queries or changes a vector index."""

    def make(rng: Rng, _: Path) -> Scene:
        base = a_vector_index(rng)
        act = do(rng)

        def trial() -> Trial:
            index = copy_of(base)
            return Trial(lambda: act(index), index)

        return Scene(f"VectorIndex.{name}", trial)

    return make


def _search_vectors(rng: Rng) -> Callable[[bitweigh.VectorIndex], object]:
    queries = some_vectors(rng, 3)
    return lambda index: index.search(queries, 4)


def _add_vectors(rng: Rng) -> Callable[[bitweigh.VectorIndex], object]:
    vectors = some_vectors(rng, int(rng.choice([1, 50])))
    return lambda index: index.add(vectors)


def _fit(rng: Rng, _: Path) -> Scene:
    vectors = some_vectors(rng, 80)
    hasher: Any = "itq" if rng.random() < 0.5 else "lsh"

    def fitted() -> bitweigh.VectorIndex:
        index = bitweigh.VectorIndex(n_bits=8, hasher=hasher, rerank="float16").fit(vectors)
        index.add(vectors)
        return index

    return Scene("VectorIndex.fit", lambda: Trial(fitted))


def _embeddings(rng: Rng, _: Path) -> Scene:
    vectors = some_vectors(rng, 90)
    index = BinaryEmbeddings(N_FEATURES)
    index.add(quantize(vectors))

    def search() -> object:
        return index.search(vectors[:3], 4)

    return Scene("BinaryEmbeddings.search", lambda: Trial(search, search))


def on_embeddings(
    name: str, act: Callable[[BinaryEmbeddings, np.ndarray[Any, Any]], object]
) -> MakeScene:
    """Return a scene that queries or changes embeddings with kept vectors."""

    def make(rng: Rng, _: Path) -> Scene:
        vectors = some_vectors(rng, 90)
        base = BinaryEmbeddings(N_FEATURES, rescore="int8", calibration=vectors)
        base.add(vectors)

        def trial() -> Trial:
            embeddings = base.copy()
            return Trial(
                lambda: act(embeddings, vectors),
                lambda: [embeddings.ids, embeddings.range_search(vectors[:2], -np.inf)],
            )

        return Scene(f"BinaryEmbeddings.{name}, rescored", trial)

    return make


def _paper(method: str) -> MakeScene:
    def make(rng: Rng, _: Path) -> Scene:
        codes = rng.integers(0, 256, (150, 3), dtype=np.uint8)
        costs = costs_for(rng, 2)
        kinds: dict[str, Any] = {
            "MIWQ": paper.MIWQ,
            "MIH": paper.MIH,
            "PQTable": paper.PQTable,
        }
        index = kinds[method](codes, N_BITS)

        def build_and_search() -> object:
            kinds[method](codes, N_BITS)
            return index.search(costs, 5)

        return Scene(
            f"paper {method}", lambda: Trial(build_and_search, lambda: index.search(costs, 5))
        )

    return make


OPERATIONS: list[MakeScene] = [
    *(_search(method, threads) for method in ("auto", "probe", "scan") for threads in (1, 2)),
    asking("search, all ties", _ties),
    asking("range_search", _range_search),
    asking("iterate", _iterate),
    asking("search, filtered", _filtered),
    asking("search_by_id", _search_by_id),
    asking("copy", lambda index, _: index.copy),
    asking("pickle", lambda index, _: lambda: pickle.loads(pickle.dumps(index))),
    changing("add", _add),
    changing("add, replacing", _add_replacing),
    changing("remove", _remove),
    changing("replace", _replace),
    changing("build", lambda _: lambda index: index.build(), built=False),
    changing("compact", lambda _: lambda index: index.compact()),
    _saved_index,
    _loaded_index,
    _fit,
    on_vectors("search", _search_vectors),
    on_vectors("add", _add_vectors),
    on_vectors("remove", lambda _: lambda index: index.remove([3, 8])),
    on_vectors("compact", lambda _: lambda index: (index.remove([2]), index.compact())),
    _saved_vectors,
    _loaded_vectors,
    _embeddings,
    on_embeddings("search", lambda embeddings, x: embeddings.search(x[:3], 4)),
    on_embeddings("add", lambda embeddings, x: embeddings.add(x[:50])),
    on_embeddings("compact", lambda embeddings, _: (embeddings.remove([2]), embeddings.compact())),
    *map(_paper, ("MIWQ", "MIH", "PQTable")),
]


def _long(name: str, ask: Callable[[bitweigh.Index, np.ndarray[Any, Any]], object]) -> MakeScene:
    """Return a scene that takes longer than the engine's interval between signal checks."""

    def make(rng: Rng, _: Path) -> Scene:
        index = bitweigh.Index(N_BITS, bands=2, band_bits=8)
        index.add(rng.integers(0, 256, (60_000, 3), dtype=np.uint8))
        index.build()
        costs, took = costs_for(rng, 100), 0.0
        while took < 0.1:
            costs = np.concatenate([costs, costs])
            began = time.perf_counter()
            ask(index, costs)
            took = time.perf_counter() - began
        return Scene(name, lambda: Trial(lambda: ask(index, costs), index))

    return make


def _long_build(rng: Rng, _: Path) -> Scene:
    base = bitweigh.Index(N_BITS, bands=3, band_bits=8)
    base.add(rng.integers(0, 256, (400_000, 3), dtype=np.uint8), rng.permutation(400_000))

    def trial() -> Trial:
        index = base.copy()
        return Trial(index.build, index)

    return Scene("long build", trial)


def _long_paper(rng: Rng, _: Path) -> Scene:
    codes = rng.integers(0, 256, (400, 3), dtype=np.uint8)
    index, costs = paper.SingleIndex(codes, N_BITS), costs_for(rng, 2)

    def search() -> object:
        return index.search(costs, 40)

    return Scene("long paper search", lambda: Trial(search, search))


# For interrupts only: signals that arrive while the engine works.
LONG_OPERATIONS: list[MakeScene] = [
    _long("long search auto", lambda index, costs: index.search(costs, 10, threads=1)),
    _long(
        "long search probe", lambda index, costs: index.search(costs, 10, method="probe", threads=1)
    ),
    _long(
        "long search scan", lambda index, costs: index.search(costs, 3, method="scan", threads=2)
    ),
    _long("long range_search", lambda index, costs: index.range_search(costs, -14.0)),
    _long_build,
    _long_paper,
]
