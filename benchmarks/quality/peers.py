"""FAISS's methods, trained on the rows; their ids are positions, which take no bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.peers import UnavailableError
from benchmarks.peers.faiss_pattern_pq import import_faiss
from benchmarks.quality.methods import Built, K, Method, Search
from benchmarks.quality.sets import Floats

__all__ = ["UnavailableError", "peer_methods"]

_PART_LENGTHS = (2, 4, 5, 8, 10, 16)  # features of a part of a product quantiser
_OPQ_ROUNDS = 10  # of 50 by default, to keep a run short
_OPQ_ROWS = 20_000
# Shorter parts leave little to learn, and learning takes minutes: those are rotated at random.
_OPQ_LENGTH = 8
_QUERY_BITS = 8  # RaBitQ's query: 4 bits find less, floats find as much in a hundred times the time
_BLOCK_ROWS = 32
_EF_CONSTRUCTION = 200
# The scalar quantiser takes ten times as long for 100 features as for 112.
_WIDTH = 16


def peer_methods(n_features: int) -> list[Method]:
    """Return the methods for vectors of this length; UnavailableError if FAISS is missing."""
    faiss = import_faiss()
    return [
        *_product_quantisers(faiss, n_features),
        *_rabitq_quantisers(faiss, n_features),
        *_scalar_quantisers(faiss, n_features),
        *_refinements(faiss, n_features),
        *_graphs(faiss, n_features),
    ]


def _product_quantisers(faiss: ModuleType, d: int) -> Iterator[Method]:
    parts = [d // length for length in _PART_LENGTHS if d % length == 0]
    for m in parts:
        yield _method(faiss, "PQ", f"IndexPQ, {m} parts", partial(_pq, faiss, d, m))
    for m in parts:
        kind, rotated = ("OPQ", _opq) if d // m >= _OPQ_LENGTH else ("rotated", _rotated_pq)
        name = f"{kind}, IndexPQ, {m} parts"
        yield _method(faiss, "rotated PQ", name, partial(rotated, faiss, d, m))


def _rabitq_quantisers(faiss: ModuleType, d: int) -> Iterator[Method]:
    for family, name, make in (
        ("RaBitQ", "IndexRaBitQ", _rabitq),
        ("RaBitQ fast scan", "IndexRaBitQFastScan", _rabitq_fast_scan),
    ):
        for bits in (1, 2, 4):
            yield _method(faiss, family, f"{name}, {_bits(bits)}", partial(make, faiss, d, bits))


def _scalar_quantisers(faiss: ModuleType, d: int) -> Iterator[Method]:
    sq = faiss.ScalarQuantizer
    for bits, kind in ((4, sq.QT_4bit), (6, sq.QT_6bit), (8, sq.QT_8bit)):
        make = partial(_padded, faiss, d, partial(_sq, faiss, kind))
        yield _method(faiss, "scalar quantiser", f"IndexScalarQuantizer, {_bits(bits)}", make)


def _refinements(faiss: ModuleType, d: int) -> Iterator[Method]:
    def shortlists() -> dict[str, Any]:
        return {
            f"from {count}": faiss.IndexRefineSearchParameters(k_factor=count / K)
            for count in (40, 100, 400)
        }

    m = d // 2
    for dtype, kind in (("float16", faiss.ScalarQuantizer.QT_fp16), ("float32", None)):
        name = f"IndexPQFastScan, {m} parts + {dtype}"
        make = partial(_refined, faiss, d, m, kind)
        yield _method(faiss, "fast scan + refine", name, make, shortlists)


def _graphs(faiss: ModuleType, d: int) -> Iterator[Method]:
    def efforts(padded: bool) -> dict[str, Any]:
        each = {
            f"efSearch {effort}": faiss.SearchParametersHNSW(efSearch=effort)
            for effort in (32, 128, 512)
        }
        if not padded:
            return each
        return {
            label: faiss.SearchParametersPreTransform(index_params=effort)
            for label, effort in each.items()
        }

    flat, small = (partial(_hnsw, faiss, kind) for kind in (None, faiss.ScalarQuantizer.QT_8bit))
    yield _method(faiss, "HNSW", "IndexHNSWFlat, M = 32", partial(flat, d), partial(efforts, False))
    yield _method(
        faiss,
        "HNSW",
        "IndexHNSWSQ, 8 bits, M = 32",
        partial(_padded, faiss, d, small),
        partial(efforts, d % _WIDTH != 0),
    )


def _method(
    faiss: ModuleType,
    family: str,
    name: str,
    make: Callable[[], Any],
    settings: Callable[[], dict[str, Any]] = lambda: {"": None},
) -> Method:
    return Method(f"FAISS {family}", name, partial(_build, faiss, make, settings))


def _build(
    faiss: ModuleType,
    make: Callable[[], Any],
    settings: Callable[[], dict[str, Any]],
    rows: Floats,
) -> Built:
    """Train, add, and count what adding made the index larger by."""
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = make()
    index.train(rows)
    learned = _size(faiss, index)
    index.add(rows)
    faiss.omp_set_num_threads(1)

    def search(parameters: object) -> Search:
        given = {} if parameters is None else {"params": parameters}
        return lambda query: index.search(query[None], K, **given)[1][0]

    searches = {label: search(parameters) for label, parameters in settings().items()}
    return Built(_size(faiss, index) - learned, searches)


def _size(faiss: ModuleType, index: object) -> int:
    """Return the bytes of an index in a file."""
    return int(faiss.serialize_index(index).nbytes)


def _bits(bits: int) -> str:
    return f"{bits} {'bit' if bits == 1 else 'bits'} a feature"


def _pq(faiss: ModuleType, d: int, m: int) -> object:
    index = faiss.IndexPQ(d, m, 8)
    _quiet(index.pq)
    return index


def _quiet(quantiser: Any) -> object:  # noqa: ANN401 FAISS may be missing
    """Let a quantiser learn from few rows, as those of digits, without a warning for each part."""
    quantiser.cp.min_points_per_centroid = 1
    return quantiser


def _opq(faiss: ModuleType, d: int, m: int) -> object:
    rotation = faiss.OPQMatrix(d, m)
    rotation.niter = _OPQ_ROUNDS
    rotation.max_train_points = _OPQ_ROWS
    rotation.pq = _quiet(faiss.ProductQuantizer(d, m, 8))
    return faiss.IndexPreTransform(rotation, _pq(faiss, d, m))


def _rotated_pq(faiss: ModuleType, d: int, m: int) -> object:
    return faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), _pq(faiss, d, m))


def _rabitq(faiss: ModuleType, d: int, bits: int) -> object:
    index = faiss.IndexRaBitQ(d, faiss.METRIC_L2, bits)
    index.qb = _QUERY_BITS
    return faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), index)


def _rabitq_fast_scan(faiss: ModuleType, d: int, bits: int) -> object:
    index = faiss.IndexRaBitQFastScan(d, faiss.METRIC_L2, _BLOCK_ROWS, bits)
    index.qb = _QUERY_BITS
    return faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), index)


def _sq(faiss: ModuleType, kind: int, d: int) -> object:
    return faiss.IndexScalarQuantizer(d, kind)


def _padded(faiss: ModuleType, d: int, make: Callable[[int], object]) -> object:
    """Return an index of vectors that zeros make as long as FAISS's fast loops need."""
    width = -(-d // _WIDTH) * _WIDTH
    if width == d:
        return make(d)
    return faiss.IndexPreTransform(faiss.RemapDimensionsTransform(d, width, False), make(width))


def _refined(faiss: ModuleType, d: int, m: int, kind: int | None) -> object:
    scan = faiss.IndexPQFastScan(d, m, 4)
    if kind is None:
        return faiss.IndexRefineFlat(scan)
    return faiss.IndexRefine(scan, faiss.IndexScalarQuantizer(d, kind))


def _hnsw(faiss: ModuleType, kind: int | None, d: int) -> object:
    index = faiss.IndexHNSWFlat(d, 32) if kind is None else faiss.IndexHNSWSQ(d, kind, 32)
    index.hnsw.efConstruction = _EF_CONSTRUCTION
    return index
