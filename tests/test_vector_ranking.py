"""Ranking by true distance: equal to the definition in Python to the last bit, at any width."""

from __future__ import annotations

import ctypes
import pickle
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitweigh import VectorIndex, _core
from bitweigh._vectors import ranking
from bitweigh._vectors.ranking import rank
from bitweigh._vectors.store import Vectors
from bitweigh.errors import CorruptFileError, LimitError

WIDTHS = [*range(1, 301), 512, 1000, 1024, 4099]
METRICS = ["euclidean", "cosine"]
KERNEL_METRICS = [*METRICS, "inner_product"]


def pairwise_sum(terms: list[float]) -> float:
    """Return the sum of one row as NumPy adds it, which defines distances."""
    n = len(terms)
    if n > 128:
        half = n // 2 - n // 2 % 8
        return pairwise_sum(terms[:half]) + pairwise_sum(terms[half:])
    total, done = 0.0, 0
    if n >= 8:
        lanes, done = terms[:8], n - n % 8
        for first in range(8, done, 8):
            lanes = [lane + term for lane, term in zip(lanes, terms[first:], strict=False)]
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )
    for term in terms[done:]:
        total += term
    return total


def distance(vector: np.ndarray, query: np.ndarray, metric: str) -> float:
    """Return the distance by definition, one feature at a time."""
    v, q = vector.astype(np.float64).tolist(), query.tolist()
    if metric == "euclidean":
        gaps = [a - b for a, b in zip(v, q, strict=True)]
        return float(np.sqrt(pairwise_sum([gap * gap for gap in gaps])))
    product = pairwise_sum([a * b for a, b in zip(v, q, strict=True)])
    if metric == "inner_product":
        return -product
    length = float(np.sqrt(pairwise_sum([a * a for a in v])))
    return min(max(1.0 - product / length, 0.0), 2.0)


def by_numpy(vectors: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    rows = vectors.astype(np.float64)
    if metric == "euclidean":
        return np.sqrt(((rows - query) ** 2).sum(axis=1))
    if metric == "inner_product":
        return -(rows * query).sum(axis=1)
    return np.clip(1.0 - (rows * query).sum(axis=1) / np.sqrt((rows**2).sum(axis=1)), 0.0, 2.0)


def compiled(
    arrays: list[np.ndarray], queries: np.ndarray, metric: str, threads: int = 1
) -> np.ndarray:
    rows = np.arange(sum(map(len, arrays)))
    distances = np.empty((len(queries), len(rows)))
    _core.vector_distances(arrays, queries, rows, metric, threads, False, distances)
    return distances


def units(rng: np.random.Generator, n: int, width: int) -> np.ndarray:
    rows = rng.standard_normal((n, width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("metric", KERNEL_METRICS)
def test_distances_are_those_of_numpy_for_every_width(metric: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for width in WIDTHS:
        vectors = rng.standard_normal((5, width)).astype(dtype)
        queries = units(rng, 2, width)
        expected = np.stack([by_numpy(vectors, query, metric) for query in queries])
        assert compiled([vectors], queries, metric).tobytes() == expected.tobytes(), width


def test_products_with_bytes_are_those_of_numpy_for_every_width() -> None:
    rng = np.random.default_rng(1)
    for width in WIDTHS:
        vectors = rng.integers(-128, 128, (5, width), dtype=np.int8)
        queries = units(rng, 2, width)
        expected = np.stack([by_numpy(vectors, query, "inner_product") for query in queries])
        found = compiled([vectors[:2], vectors[2:]], queries, "inner_product")
        assert found.tobytes() == expected.tobytes(), width


@pytest.mark.parametrize("metric", KERNEL_METRICS)
@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 127, 128, 129, 143, 257, 1000])
def test_distances_are_those_of_the_definition(width: int, metric: str) -> None:
    rng = np.random.default_rng(width)
    vectors = rng.standard_normal((3, width)).astype(np.float32)
    query = units(rng, 1, width)
    expected = [distance(vector, query[0], metric) for vector in vectors]
    assert compiled([vectors], query, metric)[0].tolist() == expected


def test_every_half_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    # From -1, so that the sign counts, and at a scale at which the smallest half counts too.
    query = np.full((1, 1), -(2.0**-20))
    with np.errstate(invalid="ignore"):
        expected = np.abs(halves.astype(np.float64) - query[0])
    found = compiled([halves.reshape(-1, 1)], query, "euclidean")[0]
    np.testing.assert_array_equal(found, np.sqrt(expected**2))


@given(
    n=st.integers(1, 30),
    m=st.integers(1, 12),
    k=st.integers(1, 14),
    cuts=st.lists(st.integers(0, 30), max_size=3),
    dtype=st.sampled_from(["int8", "float16", "float32"]),
    metric=st.sampled_from(KERNEL_METRICS),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_candidates_are_ranked_by_distance_and_id_whatever_arrays_they_are_in(
    n: int, m: int, k: int, cuts: list[int], dtype: str, metric: str, threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(1, 3, (n, 3)).astype(dtype)  # few distinct ones, so that they tie
    queries = units(rng, 5, 3)
    rows = np.stack([rng.permutation(max(n, m))[:m] for _ in queries])
    rows[rows >= n] = -1
    ids = np.where(rows < 0, -1, 1000 - 7 * rows)
    distances, nearest = np.empty((5, k)), np.empty((5, k), np.int64)
    arrays = np.split(vectors, sorted(cut % (n + 1) for cut in cuts))
    _core.rank_candidates(arrays, queries, rows, ids, metric, threads, False, distances, nearest)
    for query, places, found, near in zip(queries, rows, distances, nearest, strict=True):
        pairs = [
            (distance(vectors[row], query, metric), 1000 - 7 * row) for row in places if row >= 0
        ]
        expected = sorted(pairs)[:k] + [(np.inf, -1)] * max(0, k - len(pairs))
        assert list(zip(found.tolist(), near.tolist(), strict=True)) == expected


def test_rows_that_are_not_numbers_come_last() -> None:
    vectors = np.array([[np.nan], [3.0], [np.inf], [1.0], [np.nan]], np.float32)
    rows = np.arange(5).reshape(1, 5)
    distances, nearest = np.empty((1, 5)), np.empty((1, 5), np.int64)
    _core.rank_candidates(
        [vectors], np.zeros((1, 1)), rows, rows, "euclidean", 1, False, distances, nearest
    )
    assert nearest.tolist() == [[3, 1, 2, 0, 4]]


def call(**changes: Any) -> None:
    arguments = {
        "vectors": [np.ones((4, 3), np.float32)],
        "queries": np.ones((2, 3)),
        "rows": np.zeros((2, 1), np.int64),
        "ids": np.zeros((2, 1), np.int64),
        "metric": "euclidean",
        "threads": 1,
        "cap_threads": True,
        "distances": np.empty((2, 1)),
        "nearest": np.empty((2, 1), np.int64),
        **changes,
    }
    _core.rank_candidates(**arguments)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"rows": np.full((2, 1), 4)}, IndexError, "no such row"),
        ({"queries": np.ones((2, 4))}, ValueError, "another width"),
        ({"queries": np.ones((3, 3))}, ValueError, "do not fit the queries"),
        ({"ids": np.zeros((2, 2), np.int64)}, ValueError, "do not fit the queries"),
        ({"nearest": np.empty((2, 2), np.int64)}, ValueError, "do not fit the queries"),
        ({"vectors": [np.ones((4, 3))]}, ValueError, "int8, float16 or float32"),
        (
            {"vectors": [np.ones((4, 3), np.float32), np.ones((4, 3), np.float16)]},
            ValueError,
            "one dtype",
        ),
        (
            {"vectors": [np.ones((4, 3), np.int8), np.ones((4, 3), np.float16)]},
            ValueError,
            "one dtype",
        ),
        ({"vectors": []}, IndexError, "no such row"),
        ({"vectors": ["a"]}, RuntimeError, "cast"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    changes: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        call(**changes)


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=20),
    st.lists(st.integers(-3, 45), max_size=20),
)
def test_ids_are_found_where_they_are(ids: list[int], wanted: list[int]) -> None:
    places = np.full(len(wanted), -7)
    _core.find_sorted(np.array(sorted(ids), np.int64), np.array(wanted, np.int64), places)
    expected = [sorted(ids).index(value) if value in ids else -1 for value in wanted]
    assert places.tolist() == expected


def test_an_id_without_a_vector_is_damage() -> None:
    kept = Vectors.of_arrays(np.array([3, 5]), np.ones((2, 2), np.float32))
    candidates = np.array([[5, 4, -1]])
    out = np.empty((1, 2)), np.empty((1, 2), np.int64)
    with pytest.raises(CorruptFileError, match="the id 4 has no vector"):
        rank(kept, np.ones((1, 2)), candidates, "euclidean", None, *out)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rerank", ["float16", "float32"])
def test_a_distance_depends_on_neither_batch_nor_neighbours_nor_threads(
    metric: Any, rerank: Any
) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((500, 37))
    index = VectorIndex(n_bits=16, hasher="lsh", metric=metric, rerank=rerank).fit(rows)
    index.add(rows[:300])
    index.add(rows[300:])
    queries = rng.standard_normal((40, 37))
    everything = index.search(queries, 500, rerank_from=500, threads=1)
    for threads in (2, 7, None):
        again = index.search(queries, 500, rerank_from=500, threads=threads)
        assert again.distances.tobytes() == everything.distances.tobytes()
        assert again.ids.tobytes() == everything.ids.tobytes()
    for number in (0, 17, 39):
        known = dict(
            zip(everything.ids[number].tolist(), everything.distances[number].tolist(), strict=True)
        )
        near = index.search(queries[number], 3, rerank_from=10)
        assert [known[found] for found in near.ids.tolist()] == near.distances.tolist()
        within = index.range_search(queries[number], known[int(near.ids[-1])])
        assert [known[found] for found in within.ids.tolist()] == within.distances.tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="the rounding mode is set by glibc's numbers")
def test_the_rounding_mode_of_the_calling_thread_changes_no_distance() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((20, 50)).astype(np.float32)
    queries = rng.standard_normal((3, 50))
    found: list[bytes] = []

    def upwards() -> None:
        ctypes.CDLL("libm.so.6").fesetround(0x800)
        found.extend(compiled([vectors], queries, "euclidean", n).tobytes() for n in (1, 2))

    thread = threading.Thread(target=upwards)  # the mode is that of a thread, and ends with it
    thread.start()
    thread.join()
    assert found == [compiled([vectors], queries, "euclidean").tobytes()] * 2


def test_ranking_lets_other_threads_run() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2000, 256)).astype(np.float32)
    queries = rng.standard_normal((400, 256))
    distances = np.empty((400, 2000))
    ticks, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks[0] += 1
            done.wait(0.001)

    other = threading.Thread(target=count)
    other.start()
    _core.vector_distances([vectors], queries, np.arange(2000), "euclidean", 1, False, distances)
    done.set()
    other.join()
    assert ticks[0] > 3


def test_what_was_found_is_sorted_query_by_query() -> None:
    distances = np.array([3.0, 1.0, np.inf, 1.0, 2.0, 0.5])
    ids = np.array([4, 9, 2, 1, 7, 8])
    _core.sort_found(distances, ids, np.array([0, 4, 4, 6]))
    assert distances.tolist() == [1.0, 1.0, 3.0, np.inf, 0.5, 2.0]
    assert ids.tolist() == [1, 9, 4, 2, 8, 7]


@pytest.mark.parametrize("ends", [[], [1, 6], [0, 5], [0, 7], [0, 4, 3, 6], [0, -1, 6]])
def test_ends_that_do_not_fit_are_refused(ends: list[int]) -> None:
    with pytest.raises(ValueError, match="ends must ascend from 0"):
        _core.sort_found(np.zeros(6), np.zeros(6, np.int64), np.array(ends, np.int64))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_BLOCK_QUERIES", 16)
    monkeypatch.setattr(ranking, "_BLOCK_DISTANCES", 2**9)


@pytest.mark.usefixtures("small_blocks")
def test_vectors_within_a_radius_are_found_for_any_number_of_queries() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, (100, 3)).astype(np.float32)  # so that distances are equal
    index = VectorIndex(n_bits=4, hasher="lsh", rerank="float32").fit(rows)
    ids = rng.permutation(1000)[:100]
    index.add(rows, ids)
    queries = rng.integers(-2, 3, (50, 3)).astype(np.float64)
    radii = rng.choice([-1.0, 1.0, 2.0, np.inf], 50)
    lims, distances, found = index.range_search(queries, radii)
    for number, query in enumerate(queries):
        expected = np.sqrt(((rows - query) ** 2).sum(axis=1))
        order = np.lexsort((ids, expected))
        order = order[expected[order] <= radii[number]]
        here = slice(lims[number], lims[number + 1])
        assert found[here].tolist() == ids[order].tolist()
        assert distances[here].tolist() == expected[order].tolist()
    with pytest.raises(LimitError, match="more than limit=9 vectors within its radius") as caught:
        index.range_search(queries, radii, limit=9)
    assert caught.value.limit == 9
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.query, str(again)) == (caught.value.query, str(caught.value))


@pytest.mark.usefixtures("small_blocks")
def test_queries_and_blocks_without_results_take_no_memory() -> None:
    rows = np.random.default_rng(0).standard_normal((1000, 2))
    index = VectorIndex(n_bits=2, hasher="lsh", rerank="float32").fit(rows)
    index.add(rows)
    queries = np.full((500, 2), 1e6)
    tracemalloc.start()
    try:
        assert len(index.range_search(queries, 1.0).ids) == 0
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
