"""Three ways to search the same documents: float cosine, weighted bits, plain Hamming distance.

Float cosine is the truth that the others are judged by.
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
    """What one way to search found."""

    way: str
    ids: Ids
    overlap: float
    """The share of the ids that float cosine found, too."""
    item_bytes: int
    """What is searched, per document: the vectors, or all that the index takes."""
    seconds: float
    """From the embedded query to the ids."""


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
    """Whether all weighted answers are those of the definition, to the last bit."""


def compare(collection: Collection, query: str, vector: Floats, n_bits: int, k: int) -> Answer:
    """Search the documents that are there in all three ways.

    `vector`, float32 (d,), is the query embedded, of length 1.
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
    """The k rows with the largest inner product, largest first, ties by row."""
    # On one thread, like the other searches; a matrix product would take all of BLAS's.
    scores = -np.vecdot(vectors, query)
    near = np.flatnonzero(scores <= np.partition(scores, k - 1)[k - 1])
    top: Ids = near[np.argsort(scores[near], kind="stable")][:k]
    return top


def summarise(
    collection: Collection, queries: Sequence[str], vectors: Floats, n_bits: int, k: int
) -> Summary:
    """Overlap, memory and time over queries, for `n_bits` and the usual lengths of codes.

    `vectors`, float32 (nq, d), are the queries embedded, of length 1. The collection must not grow
    any more.
    """
    lines: list[Line] = []
    exact = True
    k = min(k, collection.n_ready)
    longest = vectors.shape[1]
    for bits in sorted({n_bits, *(usual for usual in BITS if usual <= longest)}):
        answers = [
            compare(collection, query, vector, bits, k)
            for query, vector in zip(queries, vectors, strict=True)
        ]
        of_bits = [_line(answers, place) for place in range(len(WAYS))]
        lines += of_bits[1:] if lines else of_bits
        exact = exact and _is_exact(collection.hashed(bits), vectors, k)
    return Summary(collection.n_ready, len(queries), k, tuple(lines), exact)


def _plain(hasher: Hasher, vector: Floats) -> NDArray[np.float64]:
    return costs.hamming(hasher.transform(vector[np.newaxis])[0], hasher.n_bits_)


def _timed(search: Callable[[], Ids]) -> tuple[float, Ids]:
    """The median of some calls in seconds, and what they return."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        ids = search()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), ids


def _line(answers: Sequence[Answer], place: int) -> Line:
    """One way to search, over all answers."""
    found = [answer.found[place] for answer in answers]
    return Line(
        found[0].way,
        answers[0].n_bits if place else None,
        float(np.mean([one.overlap for one in found])),
        found[0].item_bytes,
        1e6 * float(np.median([one.seconds for one in found])),
    )


def _is_exact(hashed: VectorIndex, vectors: Floats, k: int) -> bool:
    """Whether ids and distances of weighted searches are the definition's, to the last bit."""
    found = hashed.search(vectors, k)
    codes = hashed.index.codes_of(np.arange(len(hashed)))
    expected = reference.search(codes, hashed.costs(vectors), k)
    return (
        np.array_equal(found.ids, expected.ids)
        and found.distances.tobytes() == expected.distances.tobytes()
    )
