"""Write the folders that every later version must read: `python tools/write_golden.py [FOLDER]`.

Each format has its own folder below tests/golden, which stays when a later format is added. Nothing
in it depends on the machine: neither on NumPy's generators, whose numbers may change with its
version, nor on how a sum is rounded.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._index.state import State
from bitweigh._storage import vector_files
from bitweigh._storage.formats import EMBEDDINGS, VECTORS
from bitweigh._storage.vector_files import VectorContent
from bitweigh.hashers import ITQ, LSH, Scalar, Sign
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import Estimator
from bitweigh.typing import BitOrder, Codes, Ids, Metric, RescoreDtype, VectorDtype
from bitweigh.weighers import Asym, Decoded, InnerProduct
from bitweigh.weighers._base import Weigher

AnyEstimator = TypeVar("AnyEstimator", bound=Estimator)

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
N_FEATURES = 12
QUERIES = 3


class Golden:
    """An index and a dict with the same changes: expectations do not come from the index."""

    def __init__(self, n_bits: int, bitorder: BitOrder, **options: Any) -> None:  # noqa: ANN401
        """Start with both empty."""
        self.index = bitweigh.Index(n_bits, bitorder=bitorder, build="manual", **options)
        self.index._policy.tail_rows = 20  # so that few rows become a segment
        self.options = options
        self.next_id = 0
        self.codes: dict[int, str] = {}

    def add(self, codes: Codes, ids: Ids | None = None) -> None:
        """Add codes, or replace those that have these ids."""
        self.index.add(codes, ids, on_duplicate="replace")
        new_ids = range(self.next_id, self.next_id + len(codes)) if ids is None else ids.tolist()
        self.codes.update(zip(new_ids, (code.tobytes().hex() for code in codes), strict=True))
        self.next_id = max(self.next_id, max(new_ids) + 1)

    def remove(self, ids: list[int]) -> None:
        """Remove codes by id."""
        self.index.remove(ids)
        for id_ in ids:
            del self.codes[id_]

    def expected(self) -> dict[str, Any]:
        """Return everything that a reader must find, in plain types."""
        return {
            "n_bits": self.index.n_bits,
            "bitorder": self.index.bitorder,
            "next_id": self.next_id,
            "options": self.options,
            "codes": {str(id_): self.codes[id_] for id_ in sorted(self.codes)},
        }


def some_bytes(seed: str, n: int) -> Codes:
    """Return n pseudo-random bytes, the same on every machine."""
    return np.frombuffer(hashlib.shake_128(seed.encode()).digest(n), np.uint8)


def some_order(seed: str, n: int) -> Ids:
    """Return a pseudo-random permutation of the numbers below n."""
    return some_bytes(seed, 8 * n).view("<u8").argsort()


def some_codes(seed: str, n: int, n_bits: int, bitorder: BitOrder) -> Codes:
    """Return n codes with each bit set in half of them.

    Their correlations are integers divided by n, in whatever order they are summed, so every
    machine chooses the same bits for the bands.
    """
    orders = [some_order(f"{seed} {bit}", n) for bit in range(n_bits)]
    return np.packbits(np.stack(orders, axis=1) < n // 2, axis=1, bitorder=bitorder)


def banded() -> Golden:
    """Return an index with all kinds of arrays: bands, ids of both widths, removed rows, a tail."""
    golden = Golden(20, "little", bands=3, band_bits=4)
    wide = 2**40 + some_order("wide", 70)
    golden.add(some_codes("first", 70, 20, "little"), wide)
    golden.index.build()
    narrow = 7 * some_order("narrow", 33)
    golden.add(some_codes("second", 33, 20, "little"), narrow)
    golden.add(some_codes("third", 6, 20, "little"))
    golden.add(some_codes("fourth", 2, 20, "little"), wide[[3, 33]])
    golden.remove([2**40 + 1, 2**40 + 68, 7 * 32, golden.next_id - 1])
    return golden


def lean() -> Golden:
    """Return an index with lean rows, of which some were removed, and a tail."""
    golden = Golden(40, "big", bands=2, band_bits=6)
    ids = 3 * some_order("lean ids", 70)
    golden.add(some_codes("lean", 70, 40, "big"), ids)
    golden.index.build()
    state = golden.index._state
    (part,) = state.segments
    layout = tuple(band.bits for band in part.segment.bands)
    segment = Segment.build_lean(*part.codes_and_ids(), 40, layout, "big")
    golden.index._state = State((LiveSegment(segment),), state.tail, state.next_id)
    golden.add(some_codes("lean tail", 6, 40, "big"))
    golden.remove([0, 3, 207, golden.next_id - 1])
    return golden


def plain() -> Golden:
    """Return an index of two blocks with consecutive ids, which are not stored."""
    golden = Golden(64, "big")
    ids = np.arange(1000, 1033)
    golden.add(some_bytes("plain", 33 * 8).reshape(33, 8), ids)
    return golden


def empty() -> Golden:
    """Return an empty index with options and with ids that were used once."""
    golden = Golden(12, "big", bands=2, band_bits=5, memory_limit=10**6)
    golden.add(some_codes("empty", 4, 12, "big"))
    golden.remove([0, 1, 2, 3])
    return golden


def some_numbers(seed: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return numbers from -5 to 4.75 with few digits: every sum of their products is exact."""
    raw = some_bytes(seed, math.prod(shape)) % 40
    return (raw.astype(np.float64) / 4 - 5).reshape(shape)


def with_fixed_numbers(estimator: AnyEstimator, seed: str) -> AnyEstimator:
    """Replace the learned numbers of a fitted hasher or weigher by reproducible ones."""
    for number, name in enumerate(estimator._sizes()):
        setattr(estimator, name, some_numbers(f"{seed} {number}", getattr(estimator, name).shape))
    if isinstance(estimator, Scalar):
        estimator.steps_ = 0.25 + np.abs(estimator.steps_)
        estimator.limits_ = np.array([[-1000.0], [1000.0]]) + np.zeros(N_FEATURES)
        estimator.norm_range_ = np.array([0.0, 16.0 if estimator.norm_bits_ else 0.0])
    return estimator


def vector_content(
    name: str,
    hasher: Hasher,
    weigher: Weigher,
    rows: int,
    metric: Metric = "euclidean",
    rerank: VectorDtype | None = None,
) -> VectorContent:
    """Return the content of a vector index with several segments, bands and removed rows."""
    X = some_numbers(name, (90, N_FEATURES))  # noqa: N806
    if metric == "cosine":
        X /= np.sqrt((X**2).sum(axis=1, keepdims=True))  # noqa: N806
    hasher = with_fixed_numbers(hasher.fit(X), f"{name} hasher")
    if isinstance(weigher, Decoded):
        weigher.fit_hasher(hasher, metric)
    else:
        weigher = with_fixed_numbers(weigher.fit(hasher.project(X)), f"{name} weigher")
    index = bitweigh.Index(hasher.n_bits_, bitorder=hasher.bitorder, bands=2, band_bits=3)
    index._policy.tail_rows = 20
    index.add(hasher.transform(X[:60]), some_order(name, 60))
    index.build()
    index.add(hasher.transform(X[60:]))
    index.remove([3, 65])
    index.remove(index.ids[rows:])
    ids = index.ids
    row_of = np.argsort(np.concatenate([some_order(name, 60), np.arange(60, 90)]))
    stored = None if rerank is None else [X[row_of[ids]].astype(rerank)]
    return VectorContent(index._content(), hasher, weigher, metric, rerank, 5, ids, stored)


def vector_contents() -> dict[str, VectorContent]:
    """Return vector indexes with various hashers, weighers, metrics and rerank; one is empty."""
    lsh, itq = LSH(16, bitorder="little"), ITQ(9, n_rounds=2, max_fit_rows=100_000)
    lower = Asym("lower_bound")
    return {
        "codes": vector_content("codes", lsh, Asym(), 90),
        "rerank": vector_content("rerank", itq, lower, 80, rerank="float32"),
        "cosine": vector_content("cosine", Sign(), InnerProduct(), 90, "cosine", "float16"),
        "empty": vector_content("empty", Sign(), Asym(), 0, rerank="float32"),
        "scalar": vector_content("scalar", Scalar(3, norm_bits=9), Decoded(), 90),
        "products": vector_content(
            "products",
            Scalar(2, rotation=None, norm_bits=0),
            Decoded(),
            80,
            "inner_product",
            "float32",
        ),
    }


def expected_vectors(folder: Path, content: VectorContent) -> dict[str, Any]:
    """Return what a reader must find in a folder, and the answers that it must give."""
    index = bitweigh.VectorIndex.load(folder)
    queries = some_numbers("queries", (QUERIES, N_FEATURES))
    distances, ids = index.search(queries, 5)
    expected = {
        "queries": queries.tolist(),
        "k": 5,
        "ids": index.ids.tolist(),
        "metric": content.metric,
        "rerank": content.rerank,
        "n_bits": content.codes.n_bits,
        "next_id": content.codes.state.next_id,
        "codes": index.index.codes_of(index.ids).tobytes().hex(),
        "search": {"distances": distances.astype("<f8").tobytes().hex(), "ids": ids.tolist()},
    }
    if content.vectors is not None:
        vectors = np.concatenate(list(content.vectors))
        expected["vectors"] = vectors.astype("<f4").tobytes().hex()
    return expected


def rescored_embeddings(rescore: RescoreDtype, rows: int) -> bitweigh.BinaryEmbeddings:
    """Return embeddings with kept vectors, of which some were removed or replaced."""
    x = some_numbers(f"embeddings {rescore}", (70, N_FEATURES))
    # Scales are powers of 2, so that no score is rounded.
    calibration = np.full((1, N_FEATURES), 127 / 16) if rescore == "int8" else None
    embeddings = bitweigh.BinaryEmbeddings(N_FEATURES, rescore=rescore, calibration=calibration)
    if rows:
        embeddings.add(x[:60], some_order("embeddings", 60))
        embeddings.add(x[60:])
        embeddings.replace(x[:2], [61, 5])
        embeddings.remove(embeddings.ids[rows:])
    return embeddings


def expected_embeddings(embeddings: bitweigh.BinaryEmbeddings) -> dict[str, Any]:
    """Return what a reader must find, and the answers that it must give."""
    queries = some_numbers("queries", (QUERIES, N_FEATURES))
    scores, ids = embeddings.search(queries, 5, rescore_from=9)
    return {
        "rescore": embeddings.rescore,
        "queries": queries.tolist(),
        "k": 5,
        "rescore_from": 9,
        "ids": embeddings.ids.tolist(),
        "codes": embeddings.codes_of(embeddings.ids).tobytes().hex(),
        "vectors": embeddings.vectors_of(embeddings.ids).astype("<f4").tobytes().hex(),
        "search": {"distances": scores.astype("<f8").tobytes().hex(), "ids": ids.tolist()},
    }


def write_expected(folder: Path, expected: dict[str, Any]) -> None:
    """Write the expected content of a folder beside it."""
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def write(folder: Path) -> None:
    """Write all golden folders, each with its expected content beside it."""
    for version, builders in ((1, (banded, plain, empty)), (2, (lean,))):
        for build in builders:
            golden = build()
            golden.index.verify()
            place = folder / f"format-{version}" / build.__name__
            golden.index.save(place / "index")
            write_expected(place, golden.expected())
    vectors = folder / f"vectors-{VECTORS.versions[-1]}"
    for name, content in vector_contents().items():
        vector_files.save(content, vectors / name / "index")
        write_expected(vectors / name, expected_vectors(vectors / name / "index", content))
    kinds: tuple[tuple[RescoreDtype, int], ...] = (("int8", 65), ("float16", 70), ("float32", 0))
    for rescore, rows in kinds:
        embeddings = rescored_embeddings(rescore, rows)
        place = folder / f"embeddings-{EMBEDDINGS.versions[-1]}" / rescore
        embeddings.save(place / "index")
        write_expected(place, expected_embeddings(embeddings))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
