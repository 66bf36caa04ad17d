"""What the demo measures: how good and how fast searching hashed digits is.

scikit-learn's digits are hashed with random projections and searched with plain Hamming distance,
with weights, and by the images themselves. Every answer is checked against the definition.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh.evaluation import precision_at_k
from bitweigh.hashers import LSH
from bitweigh.weighers import Asym

SEED = 7
K = 10
N_QUERIES = 200
BITS = (64, 128)
COPIES = 125  # of the training images in the larger set
TIMED_QUERIES = 100
CHECKED_QUERIES = 5  # of the larger set, where the definition takes its time

Floats = NDArray[np.float64]
Images = NDArray[np.float32]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint8]
T = TypeVar("T")


class Digits(NamedTuple):
    """The images, split into those to search and those to search with."""

    images: Images  # (n, 64)
    labels: Numbers  # (n,)
    queries: Images  # (nq, 64)
    query_labels: Numbers  # (nq,)


class Line(NamedTuple):
    """One line of a table: how well and how fast a way to search does."""

    name: str
    overlap: float  # share of the K that the exact float neighbours have too
    same_digit: float  # share of the K with the digit of the query
    item_bytes: int
    micros: float  # per query
    exact: bool  # equal to the definition, where there is one


class Race(NamedTuple):
    """Milliseconds per query on the larger set, of bitweigh and of NumPy."""

    n_bits: int
    rows: int
    ours: float
    theirs: float
    exact: bool


def load_digits() -> Digits:
    """Split scikit-learn's 1797 images of 8 x 8 grey levels, 0 to 16."""
    from sklearn import datasets

    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(images))
    images, labels = images[order].astype(np.float32), labels[order].astype(np.int64)
    return Digits(images[N_QUERIES:], labels[N_QUERIES:], images[:N_QUERIES], labels[:N_QUERIES])


def hash_and_weigh(rows: Images, queries: Images, n_bits: int) -> tuple[Codes, Codes, Floats]:
    """Codes of rows and queries by random projections (LSH), and the queries' costs (Asym)."""
    hasher = LSH(n_bits, seed=SEED).fit(rows)
    weigher = Asym().fit(hasher.project(rows), hasher.threshold_)
    costs = weigher.costs(hasher.project(queries))
    return hasher.transform(rows), hasher.transform(queries), costs


def float_neighbours(images: Images, norms: Images, query: Images, k: int) -> Numbers:
    """The k nearest images by Euclidean distance, ties by position.

    `norms` are the squared lengths of the images. Grey levels are integers, so float32 is exact.
    """
    gaps = norms - 2 * (images @ query)
    near = np.flatnonzero(gaps <= np.partition(gaps, k - 1)[k - 1])
    nearest: Numbers = near[np.argsort(gaps[near], kind="stable")][:k]
    return nearest


def table_scan(columns: Codes, costs: Floats, k: int) -> Floats:
    """The k smallest distances in plain NumPy, a 256-entry table per byte.

    `columns` are the codes transposed, (n_bytes, n). np.take into a buffer is faster than
    ``table[column]``.
    """
    tables = np.zeros((len(columns), 1))
    for i in range(8):  # the first bit of a byte is its highest: bitorder="big"
        tables = (tables[:, :, np.newaxis] + costs[i::8, np.newaxis, :]).reshape(len(columns), -1)
    total = np.zeros(columns.shape[1])
    found = np.empty_like(total)
    for table, column in zip(tables, columns, strict=True):
        np.take(table, column, out=found, mode="clip")
        total += found
    return np.sort(total[np.argpartition(total, k)[:k]])


def is_exact(result: bitweigh.SearchResult, codes: Codes, costs: Floats) -> bool:
    """Whether ids and distances are the definition's, to the last bit."""
    expected = bitweigh.reference.search(codes, costs, result.ids.shape[-1])
    return (
        np.array_equal(result.ids, expected.ids)
        and result.distances.tobytes() == expected.distances.tobytes()
    )


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a call took, and what it returned."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def compare(digits: Digits, n_bits: int) -> list[Line]:
    """Plain Hamming, weighted and float neighbours of the held-out digits."""
    codes, query_codes, weighted = hash_and_weigh(digits.images, digits.queries, n_bits)
    index = bitweigh.Index(n_bits)
    index.add(codes)

    norms = np.square(digits.images).sum(axis=1)
    times, found = [], []
    for query in digits.queries:
        seconds, ids = timed(partial(float_neighbours, digits.images, norms, query, K))
        times.append(seconds)
        found.append(ids)
    truth = np.stack(found)

    lines = []
    for name, costs in (
        ("plain Hamming", bitweigh.costs.hamming(query_codes, n_bits)),
        ("weighted", weighted),
    ):
        result = index.search(costs, K)
        own_times = [timed(partial(index.search, own, K, threads=1))[0] for own in costs]
        quality = judge(digits, truth, result.ids)
        exact = is_exact(result, codes, costs)
        lines.append(Line(name, *quality, codes.shape[1], 1e6 * float(np.median(own_times)), exact))
    quality = judge(digits, truth, truth)
    item_bytes = digits.images[0].nbytes
    micros = 1e6 * float(np.median(times))
    lines.append(Line("exact float neighbours", *quality, item_bytes, micros, True))
    return lines


def judge(digits: Digits, truth: Numbers, ids: Numbers) -> tuple[float, float]:
    """Shares of the ids found that are float neighbours, and that show the query's digit."""
    labels = (digits.query_labels, digits.labels)
    return precision_at_k(ids, truth), precision_at_k(ids, labels)


def race(digits: Digits, n_bits: int) -> Race:
    """Weighted search against NumPy on many noisy copies of the images, taking turns."""
    copies = np.tile(digits.images, (COPIES, 1))
    copies += np.random.default_rng(SEED).standard_normal(copies.shape, dtype=np.float32)
    codes, _, costs = hash_and_weigh(copies, digits.queries[:TIMED_QUERIES], n_bits)
    columns = np.ascontiguousarray(codes.T)
    index = bitweigh.Index(n_bits)
    index.add(codes)

    exact = is_exact(index.search(costs[:CHECKED_QUERIES], K), codes, costs[:CHECKED_QUERIES])
    ours, theirs = [], []
    for own in costs:
        seconds, result = timed(partial(index.search, own, K, threads=1))
        ours.append(seconds)
        seconds, distances = timed(partial(table_scan, columns, own, K))
        theirs.append(seconds)
        exact = exact and np.array_equal(result.distances, distances)
    our_millis, their_millis = 1e3 * float(np.median(ours)), 1e3 * float(np.median(theirs))
    return Race(n_bits, len(codes), our_millis, their_millis, exact)
