"""Three ways to search the same documents: float cosine, weighted bits, plain Hamming distance.

Float cosine is the ground truth for the other two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh import VectorIndex, costs, reference
from bitweigh.evaluation import precision_at_k
from bitweigh.hashers import Hasher
from bitweigh_experiments.demo.collection import Collection
from bitweigh_experiments.demo.model import Floats

__all__ = ["WAYS", "Answer", "Found", "Line", "Summary", "compare", "cosine_top", "summarise"]

WAYS = ("float cosine", "weighted bits", "plain Hamming")
BITS = (64, 128, 256)
REPEATS = 5

Ids = NDArray[np.int64]


class Found(NamedTuple):
    """The documents that one way to search found."""

    way: str
    ids: Ids
    overlap: float
    """The share of the ids that float cosine also found."""
    item_bytes: int
    """Memory per document: of the vectors, or of the whole index."""
    seconds: float
    """Time from the embedded query to the ids."""


class Answer(NamedTuple):
    """A query and what each way to search found for it."""

    query: str
    n_rows: int
    n_bits: int
    found: tuple[Found, ...]


class Line(NamedTuple):
    """How one way to search did over several queries."""

    way: str
    n_bits: int | None
    overlap: float
    item_bytes: int
    micros: float


class Summary(NamedTuple):
    """All ways to search, over several queries."""

    n_rows: int
    n_queries: int
    k: int
    lines: tuple[Line, ...]
    exact: bool
    """Whether all weighted answers equal those of `bitweigh.reference`, to the last bit."""


def compare(collection: Collection, query: str, vector: Floats, n_bits: int, k: int) -> Answer:
    """Search the ready documents in all three ways.

    `vector`, float32 (d,), is the embedded query, of length 1.
    """
    with collection.growing:
        vectors = collection.vectors[: collection.n_ready]
        hashed = collection.hashed(n_bits)
        k = min(k, len(vectors))
        codes, hasher = hashed.index, hashed.hasher
        code_bytes = round(codes.memory().total / len(vectors))
        searches: list[tuple[int, Callable[[], Ids]]] = [
            (vectors[0].nbytes, lambda: cosine_top(vectors, vector, k)),
            (code_bytes, lambda: hashed.search(vector, k, threads=1).ids),
            (code_bytes, lambda: codes.search(_plain(hasher, vector), k, threads=1).ids),
        ]
        timed = [_timed(search) for _, search in searches]
        n_rows = len(vectors)
    truth = timed[0][1][np.newaxis]
    found = tuple(
        Found(way, ids, precision_at_k(ids[np.newaxis], truth), item_bytes, seconds)
        for way, (item_bytes, _), (seconds, ids) in zip(WAYS, searches, timed, strict=True)
    )
    return Answer(query, n_rows, n_bits, found)


def cosine_top(vectors: Floats, query: Floats, k: int) -> Ids:
    """Return the k rows with the largest inner product, largest first, ties by row."""
    # One thread, like the other searches; a matrix product would use all threads of BLAS.
    scores = -np.vecdot(vectors, query)
    near = np.flatnonzero(scores <= np.partition(scores, k - 1)[k - 1])
    top: Ids = near[np.argsort(scores[near], kind="stable")][:k]
    return top


def summarise(
    collection: Collection, queries: Sequence[str], vectors: Floats, n_bits: int, k: int
) -> Summary:
    """Measure overlap, memory and time over queries, for `n_bits` and the usual code lengths.

    `vectors`, float32 (nq, d), are the embedded queries, of length 1. The collection must not grow
    any more.
    """
    lines: list[Line] = []
    exact = True
    k = min(k, collection.n_ready)
    longest = vectors.shape[1]
    for bits in sorted({n_bits, *(length for length in BITS if length <= longest)}):
        answers = [
            compare(collection, query, vector, bits, k)
            for query, vector in zip(queries, vectors, strict=True)
        ]
        bit_lines = [_line(answers, way) for way in range(len(WAYS))]
        lines += bit_lines[1:] if lines else bit_lines  # float cosine does not depend on bits
        exact = exact and _is_exact(collection.hashed(bits), vectors, k)
    return Summary(collection.n_ready, len(queries), k, tuple(lines), exact)


def _plain(hasher: Hasher, vector: Floats) -> NDArray[np.float64]:
    return costs.hamming(hasher.transform(vector[np.newaxis])[0], hasher.n_bits_)


def _timed(search: Callable[[], Ids]) -> tuple[float, Ids]:
    """Return the median time of REPEATS calls in seconds, and their result."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        ids = search()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), ids


def _line(answers: Sequence[Answer], way: int) -> Line:
    """Summarise WAYS[way] over all answers."""
    results = [answer.found[way] for answer in answers]
    return Line(
        results[0].way,
        answers[0].n_bits if way else None,
        float(np.mean([result.overlap for result in results])),
        results[0].item_bytes,
        1e6 * float(np.median([result.seconds for result in results])),
    )


def _is_exact(hashed: VectorIndex, vectors: Floats, k: int) -> bool:
    """Whether weighted searches return the reference's ids and distances, to the last bit."""
    found = hashed.search(vectors, k)
    codes = hashed.index.codes_of(np.arange(len(hashed)))
    expected = reference.search(codes, hashed.costs(vectors), k)
    return (
        np.array_equal(found.ids, expected.ids)
        and found.distances.tobytes() == expected.distances.tobytes()
    )
