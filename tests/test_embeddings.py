"""Binary embeddings: both layouts, scores against plain arithmetic, shortlists, changes, files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitweigh
import bitweigh.evaluation
from bitweigh.embeddings import BinaryEmbeddings, ScoredResult, quantize


def clustered(n: int, nq: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw embeddings and queries of unit length around the same centres.

    They are multiples of 2**-20, so that their sums are exact in any order.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, dim))
    rows = [
        centres[rng.integers(20, size=size)] + 0.9 * rng.standard_normal((size, dim))
        for size in (n, nq)
    ]
    units = [row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows]
    stored, queries = (np.round(unit * 2.0**20) / 2.0**20 for unit in units)
    return stored.astype(np.float32), queries.astype(np.float32)


def by_hand(x: np.ndarray, queries: np.ndarray, k: int) -> ScoredResult:
    """Return the k largest products of queries and bits, in float64, ties by row number."""
    scores = queries.astype(np.float64) @ (x > 0).astype(np.float64).T
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return ScoredResult(np.take_along_axis(scores, ids, axis=1), ids)


def filled(x: np.ndarray, **kwargs: Any) -> BinaryEmbeddings:
    embeddings = BinaryEmbeddings(x.shape[1])
    embeddings.add(quantize(x), **kwargs)
    return embeddings


@pytest.mark.parametrize("shape", [(5, 64), (3, 13), (64,), (1, 8), (0, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_quantize_gives_what_the_packages_give(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    x.flat[::7] = 0.0  # a zero is no set bit
    ubinary, binary = quantize(x), quantize(x, "binary")
    packed = np.packbits(x > 0, axis=-1)
    assert ubinary.dtype == np.uint8
    assert np.array_equal(ubinary, packed)
    assert binary.dtype == np.int8
    assert np.array_equal(binary, (packed.astype(np.int16) - 128).astype(np.int8))


@pytest.mark.parametrize("dim", [1, 7, 8, 64, 100, 256])
def test_both_layouts_are_the_same_embeddings(dim: int) -> None:
    x = np.random.default_rng(dim).standard_normal((300, dim))
    packed = np.packbits(x > 0, axis=-1)
    unsigned, signed = BinaryEmbeddings(dim), BinaryEmbeddings(dim)
    unsigned.add(packed)
    signed.add((packed.astype(np.int16) - 128).astype(np.int8))
    assert np.array_equal(unsigned.index.codes_of(range(300)), packed)
    assert np.array_equal(signed.index.codes_of(range(300)), packed)


def test_the_layouts_are_told_apart_in_arrays_that_are_not_contiguous() -> None:
    packed = np.arange(64, dtype=np.uint8).reshape(8, 8)
    embeddings = BinaryEmbeddings(32)
    embeddings.add((packed.astype(np.int16) - 128).astype(np.int8)[::2, ::2])
    assert np.array_equal(embeddings.index.codes_of(range(4)), packed[::2, ::2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [64, 100, 256])
def test_the_answer_is_that_of_plain_arithmetic(dim: int, dtype: Any) -> None:
    x, queries = clustered(3000, 40, dim, seed=dim)
    found = filled(x).search(queries.astype(dtype), k=15)
    expected = by_hand(x, queries, 15)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.scores, expected.scores)
    assert found.scores.dtype == np.float64
    assert found.ids.dtype == np.int64


@pytest.mark.parametrize("signed", [False, True])
def test_scores_are_minus_the_distances_of_inner_product(signed: bool) -> None:
    rng = np.random.default_rng(2)
    x, queries = rng.standard_normal((500, 72)), rng.standard_normal((9, 72))
    found = filled(x).search(queries, k=20, signed=signed)
    costs = bitweigh.costs.inner_product(queries, signed=signed)
    expected = bitweigh.reference.search(np.packbits(x > 0, axis=1), costs, k=20)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(-found.scores, expected.distances)


def test_signed_scores_count_bits_as_minus_and_plus_one() -> None:
    x, queries = clustered(400, 5, 64, seed=4)
    found = filled(x).search(queries, k=7, signed=True)
    signs = np.where(x > 0, 1.0, -1.0)
    products = queries.astype(np.float64) @ signs.T
    assert np.array_equal(found.ids, filled(x).search(queries, k=7).ids)
    assert np.array_equal(found.scores, np.take_along_axis(products, found.ids, axis=1))


def test_a_hamming_shortlist_misses_what_the_exact_answer_has() -> None:
    k = 10
    x, queries = clustered(20_000, 50, 256, seed=7)
    embeddings = filled(x)
    exact = embeddings.search(queries, k).ids
    plain = bitweigh.costs.hamming(quantize(queries), 256)
    shares = {}
    for times in (2, 4, 10):
        shortlist = embeddings.index.search(plain, times * k).ids
        shares[times] = bitweigh.evaluation.recall_at_k(shortlist, exact)
    print("share of the exact ten in a Hamming shortlist:", shares)
    assert np.array_equal(exact, by_hand(x, queries, k).ids)
    assert shares[2] < shares[4] < shares[10]
    assert 0.3 < shares[2] < 0.9


def test_a_single_query_gives_single_arrays() -> None:
    x, queries = clustered(100, 3, 32, seed=3)
    embeddings = filled(x)
    single, several = embeddings.search(queries[1], k=4), embeddings.search(queries, k=4)
    assert single.scores.shape == single.ids.shape == (4,)
    assert several.scores.shape == several.ids.shape == (3, 4)
    assert np.array_equal(single.scores, several.scores[1])
    assert np.array_equal(single.ids, several.ids[1])


def test_what_is_missing_is_minus_infinity_and_minus_one() -> None:
    embeddings = BinaryEmbeddings(8)
    embeddings.add(np.array([[128], [64]], dtype=np.uint8), ids=[30, 20])
    found = embeddings.search(np.array([0.5, 2.0, 0, 0, 0, 0, 0, 0]), k=4)
    assert found.scores.tolist() == [2.0, 0.5, -np.inf, -np.inf]
    assert found.ids.tolist() == [20, 30, -1, -1]


def test_equal_scores_go_to_the_lowest_id() -> None:
    embeddings = BinaryEmbeddings(8)
    embeddings.add(np.full((4, 1), 129, dtype=np.uint8), ids=[9, 3, 7, 1])
    assert embeddings.search(np.ones(8), k=3).ids.tolist() == [1, 3, 7]


def test_a_score_of_zero_has_no_sign() -> None:
    embeddings = BinaryEmbeddings(8)
    embeddings.add(np.zeros((1, 1), dtype=np.uint8))
    assert not np.signbit(embeddings.search(np.ones(8), k=1).scores).any()


def test_filters_and_threads_are_passed_on() -> None:
    x, queries = clustered(500, 4, 64, seed=5)
    embeddings = filled(x)
    best = embeddings.search(queries, k=500, threads=2).ids
    allowed = embeddings.search(queries[0], k=5, allow=best[0, 100:200]).ids
    denied = embeddings.search(queries[0], k=5, deny=best[0, :3]).ids
    assert np.array_equal(allowed, best[0, 100:105])
    assert np.array_equal(denied, best[0, 3:8])
    with pytest.raises(ValueError, match="threads must be from 1"):
        embeddings.search(queries, k=1, threads=0)


def test_embeddings_can_be_removed_and_replaced() -> None:
    x, _ = clustered(50, 1, 16, seed=6)
    embeddings = filled(x, ids=np.arange(50) * 2)
    assert embeddings.remove([0, 4]) == 2
    assert embeddings.remove([0, 6], on_missing="ignore") == 1
    assert len(embeddings) == 47
    assert embeddings.contains([4, 8]).tolist() == [False, True]
    assert 8 in embeddings
    assert 4 not in embeddings
    assert embeddings.ids.tolist() == [2, *range(8, 100, 2)]
    with pytest.raises(ValueError, match="is in use"):
        embeddings.add(quantize(x[:1]), ids=[8])
    embeddings.add(quantize(x[:1], "binary"), ids=[8], on_duplicate="replace")
    assert np.array_equal(embeddings.index.codes_of([8]), quantize(x[:1]))


@pytest.mark.parametrize("mmap", [False, True])
def test_saved_embeddings_are_loaded_again(tmp_path: Path, mmap: bool) -> None:
    x, queries = clustered(300, 6, 100, seed=8)
    embeddings = filled(x, ids=np.arange(300) + 1000)
    embeddings.save(tmp_path / "saved")
    loaded = BinaryEmbeddings.load(tmp_path / "saved", mmap=mmap)
    assert type(loaded) is BinaryEmbeddings
    assert loaded.dim == 100
    assert repr(loaded) == "<bitweigh.BinaryEmbeddings: 300 embeddings of 100 dimensions>"
    assert len(bitweigh.load(tmp_path / "saved")) == 300
    for one, other in zip(loaded.search(queries, 9), embeddings.search(queries, 9), strict=True):
        assert np.array_equal(one, other)


def test_an_index_of_the_other_bit_order_is_not_taken_for_embeddings(tmp_path: Path) -> None:
    bitweigh.Index(16, bitorder="little").save(tmp_path / "little")
    with pytest.raises(ValueError, match=r"bitorder='little'.*open it with bitweigh\.Index\.load"):
        BinaryEmbeddings.load(tmp_path / "little")


def test_embeddings_can_be_pickled() -> None:
    x, queries = clustered(100, 2, 24, seed=9)
    again = pickle.loads(pickle.dumps(filled(x)))
    assert np.array_equal(again.search(queries, 5).ids, filled(x).search(queries, 5).ids)


@pytest.mark.parametrize(
    ("embeddings", "error", "message"),
    [
        (
            np.zeros((2, 16), np.float32),
            TypeError,
            r"got float32; .*bitweigh\.embeddings\.quantize",
        ),
        (np.zeros((2, 16), bool), TypeError, r"got bool; pack bits with np\.packbits"),
        (
            np.zeros((2, 2), np.int64),
            TypeError,
            r"must be uint8 \(precision 'ubinary'\) or int8 .*",
        ),
        (
            np.zeros((2, 16), np.int8),
            ValueError,
            r"shape \(n, 2\) for dim=16.*another quantisation",
        ),
        (np.zeros((2, 16), np.uint8), ValueError, r"got \(2, 16\); one number per dimension"),
        (np.zeros(2, np.int8), ValueError, r"pass a single embedding as embeddings\[np\.newaxis\]"),
        (np.zeros((2, 3), np.uint8), ValueError, r"shape \(n, 2\) for dim=16, got \(2, 3\)$"),
    ],
)
def test_what_is_no_binary_embedding_is_refused(
    embeddings: np.ndarray, error: type[Exception], message: str
) -> None:
    collection = BinaryEmbeddings(16)
    with pytest.raises(error, match=message):
        collection.add(embeddings)
    assert len(collection) == 0


def test_set_bits_beyond_the_last_dimension_are_refused_in_either_layout() -> None:
    collection = BinaryEmbeddings(12)
    for packed in (np.array([[0, 1]], np.uint8), np.array([[-128, -127]], np.int8)):
        with pytest.raises(ValueError, match="unused bits set"):
            collection.add(packed)


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (np.zeros((2, 16), ">f4"), TypeError, r"got >f4; .*astype\(np\.float32\)"),
        (np.zeros((2, 2), np.uint8), TypeError, "got uint8; pass queries as the model returns"),
        (np.zeros((2, 16), np.int64), TypeError, "must be float16, float32 or float64, got int64$"),
        (np.zeros((2, 15)), ValueError, r"shape \(16,\) or \(nq, 16\), got \(2, 15\)"),
        (np.zeros((2, 2, 16)), ValueError, r"got \(2, 2, 16\)"),
        (np.array([[0.0] * 16, [0.0] * 15 + [np.nan]]), ValueError, r"got nan at queries\[1, 15\]"),
        (np.array([np.inf] + [0.0] * 15), ValueError, r"got inf at queries\[0\]"),
    ],
)
def test_what_is_no_float_query_is_refused(
    queries: np.ndarray, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        filled(np.ones((3, 16))).search(queries, k=1)


@pytest.mark.parametrize(
    ("x", "precision", "error", "message"),
    [
        (np.zeros((2, 8), np.int8), "ubinary", TypeError, "x must be float embeddings, got int8"),
        (np.zeros((1, 2, 8)), "ubinary", ValueError, r"shape \(dim,\) or \(n, dim\)"),
        (np.array([[1.0], [np.nan]]), "binary", ValueError, r"got NaN at x\[1, 0\]"),
        (np.zeros((2, 8)), "int8", ValueError, "precision must be 'ubinary' or 'binary'"),
    ],
)
def test_what_cannot_be_quantised_is_refused(
    x: np.ndarray, precision: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        quantize(x, precision)


def test_no_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="dim must be from 1 to 8192, got 0"):
        BinaryEmbeddings(0)
