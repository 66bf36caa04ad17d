"""Rescored embeddings: scores against a definition in NumPy, changes, copies, errors."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding_cases import (
    RESCORE,
    best_by_hand,
    rescored,
    scales_by_hand,
    scores_by_hand,
    some_embeddings,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_cases import same_bytes

import bitweigh
from bitweigh.embeddings import BinaryEmbeddings, quantize

X = some_embeddings(300)
QUERIES = some_embeddings(5, seed=1)


@given(
    n=st.integers(0, 30),
    dim=st.integers(1, 40),
    k=st.integers(1, 12),
    more=st.integers(0, 20),
    rescore=st.sampled_from(RESCORE),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    few_values=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=100)
def test_the_answer_is_that_of_the_definition_to_the_last_bit(
    n: int, dim: int, k: int, more: int, rescore: Any, dtype: Any, few_values: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim)).astype(dtype)
    if few_values:  # so that scores are equal
        x = np.sign(x)
    ids = rng.permutation(100)[:n]
    queries = rng.standard_normal((2, dim)).astype(rng.choice([np.float32, np.float64]))
    ranges = rng.random((1, dim)) + 3.0 if rescore == "int8" else None
    embeddings = BinaryEmbeddings(dim, rescore=rescore, calibration=ranges)
    embeddings.add(x, ids)
    scales = np.ones(dim) if ranges is None else scales_by_hand(ranges)
    found = embeddings.search(queries, k, rescore_from=k + more)
    for query, scores, near in zip(queries, *found, strict=True):
        expected = best_by_hand(x, ids, query, k, k + more, rescore, scales)
        assert scores.tobytes() == np.array(expected[0]).tobytes()
        assert near.tolist() == expected[1]


@pytest.mark.parametrize("rescore", RESCORE)
def test_a_hundred_embeddings_are_enough_for_a_scale_of_each_dimension(rescore: Any) -> None:
    x = X * np.linspace(0.1, 3.0, X.shape[1])
    x[:, 4] = 0.0
    embeddings = rescored(x, rescore)
    scales = scales_by_hand(x)
    expected = scores_by_hand(x, QUERIES[0], rescore, scales)
    found = embeddings.search(QUERIES[0], 300, rescore_from=300)
    assert found.scores.tobytes() == expected[found.ids].tobytes()
    assert np.allclose(embeddings.vectors_of([7, 3]), x[[7, 3]], atol=0.02)


def test_embeddings_of_zeros_have_a_score_of_zero_without_sign() -> None:
    embeddings = rescored(np.zeros((2, 8)), "int8")
    found = embeddings.search(np.full(8, -1.0), 2)
    assert found.scores.tobytes() == np.zeros(2).tobytes()
    assert found.ids.tolist() == [0, 1]


@pytest.mark.parametrize("rescore", RESCORE)
def test_bits_alone_give_the_answer_of_a_collection_without_vectors(rescore: Any) -> None:
    plain = BinaryEmbeddings(24)
    plain.add(quantize(X))
    embeddings = rescored(X, rescore)
    for signed in (False, True):
        found = embeddings.search(QUERIES, 9, rescore_from=0, signed=signed)
        assert same_bytes(found, plain.search(QUERIES, 9, signed=signed))
    assert same_bytes(
        embeddings.range_search(QUERIES, 0.5, by="codes"), plain.range_search(QUERIES, 0.5)
    )
    assert embeddings.codes_of([3]).tolist() == quantize(X[3:4]).tolist()
    steps = zip(embeddings.iterate(QUERIES[0], by="codes"), plain.iterate(QUERIES[0]), strict=True)
    assert all(one == other for one, other in steps)


@pytest.mark.parametrize("rescore", [None, *RESCORE])
def test_everything_with_enough_score_is_found(rescore: Any) -> None:
    embeddings = BinaryEmbeddings(24, rescore=rescore)
    embeddings.add(quantize(X) if rescore is None else X)
    every = embeddings.search(QUERIES, 300, rescore_from=None if rescore is None else 300)
    bounds = every.scores[:, 20]
    lims, scores, ids = embeddings.range_search(QUERIES, bounds)
    for number in range(len(QUERIES)):
        count = int((every.scores[number] >= bounds[number]).sum())
        part = slice(lims[number], lims[number + 1])
        assert ids[part].tolist() == every.ids[number, :count].tolist()
        assert scores[part].tobytes() == every.scores[number, :count].tobytes()
    assert list(embeddings.iterate(QUERIES[1])) == list(
        zip(every.scores[1].tolist(), every.ids[1].tolist(), strict=True)
    )


def test_the_smallest_score_may_be_a_number_that_float64_cannot_hold() -> None:
    embeddings = BinaryEmbeddings(1)
    embeddings.add(np.array([[128]], np.uint8))
    query = np.array([2.0**53])
    assert len(embeddings.range_search(query, 2**53).ids) == 1
    assert len(embeddings.range_search(query, 2**53 + 1).ids) == 0
    assert len(embeddings.range_search(query, np.uint64(2**53 + 1)).ids) == 0


def test_filters_and_limits_hold_for_vectors() -> None:
    embeddings = rescored(X)
    some = embeddings.filter(allow=range(40, 60))
    found = embeddings.search(QUERIES[0], 30, filter=some)
    assert set(found.ids.tolist()) == {*range(40, 60), -1}
    assert sorted(embeddings.range_search(QUERIES[0], -9, filter=some).ids) == list(range(40, 60))
    assert len(list(embeddings.iterate(QUERIES[0], deny=range(290)))) == 10
    with pytest.raises(bitweigh.LimitError, match="limit=3 embeddings with a score of at"):
        embeddings.range_search(QUERIES, -9, limit=3)
    with pytest.raises(bitweigh.DeadlineError):
        embeddings.range_search(QUERIES, -9, timeout=0)


@pytest.mark.parametrize("rescore", [None, *RESCORE])
def test_neighbours_of_stored_embeddings_are_found_by_id(rescore: Any) -> None:
    embeddings = BinaryEmbeddings(24, rescore=rescore)
    embeddings.add(quantize(X) if rescore is None else X)
    found = embeddings.search_by_id([7, 9], 4)
    query = np.where(X[9] > 0, 1.0, -1.0)
    if rescore is not None:
        kept = embeddings._state.vectors.of(np.array([9]))[0].astype(np.float64)
        query = kept * embeddings._state.scales if rescore == "int8" else kept
    expected = embeddings.search(query, 5, deny=[9])
    assert same_bytes((found.scores[1], found.ids[1]), (a[:4] for a in expected))
    assert embeddings.search_by_id(9, 1, include_self=True).ids.tolist() == [9]
    with pytest.raises(KeyError, match="999"):
        embeddings.search_by_id([3, 999], 1)


def test_range_results_are_merged_and_become_tables() -> None:
    ranges = X[:100]
    whole, left, right = (
        BinaryEmbeddings(24, rescore="int8", calibration=ranges) for _ in range(3)
    )
    whole.add(X)
    left.add(X[:120])
    right.add(X[120:], ids=range(120, 300))
    parts = [each.range_search(QUERIES, 0.1) for each in (left, right)]
    merged = bitweigh.merge(parts)
    assert type(merged) is bitweigh.ScoredRangeResult
    assert same_bytes(merged, whole.range_search(QUERIES, 0.1))
    table = merged.to_frame("dict")
    assert table["score"].tobytes() == merged.scores.tobytes()
    left.merge(right)
    assert same_bytes(left.search(QUERIES, 9), whole.search(QUERIES, 9))


@pytest.mark.parametrize("rescore", RESCORE)
def test_a_new_collection_takes_over_what_is_merged_into_it(rescore: Any) -> None:
    embeddings, other = BinaryEmbeddings(24, rescore=rescore), rescored(X, rescore)
    embeddings.merge(other)
    assert same_bytes(embeddings.search(QUERIES, 9), other.search(QUERIES, 9))
    with pytest.raises(ValueError, match="is in use"):
        embeddings.merge(other)
    embeddings.merge(other, on_duplicate="replace")
    assert len(embeddings) == 300


class Model:
    """A collection and a dict with the same changes."""

    def __init__(self, rescore: Any, rng: np.random.Generator) -> None:
        self.rescore = rescore
        self.rng = rng
        self.scales = scales_by_hand(X)
        self.embeddings = BinaryEmbeddings(
            24, rescore=rescore, calibration=X if rescore == "int8" else None
        )
        self.kept: dict[int, np.ndarray] = {}

    def change(self, folder: Path) -> None:
        step = self.rng.choice(["add", "own", "replace", "remove", "compact", "files", "copy"])
        rows = X[self.rng.integers(0, 300, self.rng.integers(1, 9))]
        chosen = list(self.rng.permutation(sorted(self.kept))[: len(rows)])
        if step == "add":
            first = self.embeddings._state.index._state.next_id
            self.embeddings.add(rows)
            self.kept |= dict(zip(range(first, first + len(rows)), rows, strict=True))
        elif step == "own":
            ids = self.rng.permutation(60)[: len(rows)]
            self.embeddings.add(rows, ids, on_duplicate="replace")
            self.kept |= dict(zip(ids.tolist(), rows, strict=True))
        elif step == "replace":
            self.embeddings.replace(rows[: len(chosen)], np.array(chosen, np.int64))
            self.kept |= dict(zip(chosen, rows, strict=False))
        elif step == "remove":
            assert self.embeddings.remove(np.array(chosen, np.int64)) == len(chosen)
            for id_ in chosen:
                del self.kept[id_]
        elif step == "compact":
            self.embeddings.compact()
        elif step == "files":
            self.embeddings.save(folder)
            self.embeddings = BinaryEmbeddings.load(folder, mmap=bool(self.rng.integers(2)))
        else:
            before = self.embeddings
            self.embeddings = before.copy()
            before.add(X[:5])  # into a file that the copy does not share

    def check(self) -> None:
        self.embeddings.verify()
        ids = np.array(sorted(self.kept), np.int64)
        assert self.embeddings.ids.tolist() == ids.tolist()
        found = self.embeddings.range_search(QUERIES[0], -np.inf)
        x = np.stack([self.kept[id_] for id_ in ids.tolist()]) if len(ids) else X[:0]
        scores = scores_by_hand(x, QUERIES[0], self.rescore, self.scales)
        order = np.lexsort((ids, -scores))
        assert found.ids.tolist() == ids[order].tolist()
        assert found.scores.tobytes() == scores[order].tobytes()
        assert self.embeddings.codes_of(ids).tobytes() == np.packbits(x > 0, axis=1).tobytes()


@pytest.mark.parametrize("rescore", RESCORE)
def test_bits_and_vectors_stay_together_through_all_changes(rescore: Any, tmp_path: Path) -> None:
    model = Model(rescore, np.random.default_rng(RESCORE.index(rescore)))
    for _ in range(60):
        model.change(tmp_path / "saved")
        model.check()


def test_a_search_beside_a_writer_sees_one_state() -> None:
    embeddings = rescored(X, "float32")
    answers = []
    for sign in (1, -1):
        embeddings.replace(sign * X, range(300))
        answers.append(embeddings.search(QUERIES, 20).ids.tobytes())
    done = threading.Event()

    def write() -> None:
        for number in range(60):
            embeddings.replace((-1) ** number * X, range(300))
            if number % 20 == 0:
                embeddings.compact()
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert embeddings.search(QUERIES, 20).ids.tobytes() in answers
    writer.join()


@pytest.mark.parametrize("rescore", RESCORE)
def test_a_failed_add_changes_nothing(rescore: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = rescored(X, rescore)
    before = embeddings._state
    bad = X.copy()
    bad[299, 3] = np.nan
    with pytest.raises(ValueError, match=r"embeddings must be finite, got NaN at embeddings\[299"):
        embeddings.add(bad)
    with pytest.raises(ValueError, match="is in use"):
        embeddings.add(X[:2], ids=[500, 7])
    with pytest.raises(KeyError, match="500"):
        embeddings.replace(X[:2], ids=[7, 500])
    monkeypatch.setattr(bitweigh.Index, "add", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        embeddings.add(X[:2])
    assert embeddings._state is before
    assert before.vectors is not None
    size = before.vectors._log._file.seek(0, 2)
    assert size == 300 * 24 * np.dtype(rescore).itemsize


def test_a_vector_that_the_dtype_cannot_hold_is_refused() -> None:
    embeddings = BinaryEmbeddings(4, rescore="float16")
    with pytest.raises(ValueError, match=r"embeddings must fit in float16, .*see embeddings\[1\]"):
        embeddings.add(np.array([[0.0, 0, 0, 0], [0, 0, 1e6, 0]]))
    assert len(embeddings) == 0


@pytest.mark.parametrize("rescore", [None, *RESCORE])
def test_copies_are_independent(rescore: Any) -> None:
    rows = quantize(X) if rescore is None else X
    embeddings = BinaryEmbeddings(24, rescore=rescore)
    embeddings.add(rows[:200])
    for copied in (embeddings.copy(), copy.copy(embeddings), copy.deepcopy(embeddings)):
        before = copied.search(QUERIES, 9)
        embeddings.add(rows[200:210])
        copied.add(rows[250:260])
        for each, first in ((embeddings, 200), (copied, 250)):
            alone = BinaryEmbeddings(24, rescore=rescore)
            alone.add(rows[:200])  # for the same scales
            alone.add(rows[first : first + 10], ids=each.ids[200:])
            assert same_bytes(
                each.range_search(QUERIES, -np.inf), alone.range_search(QUERIES, -np.inf)
            )
        copied.remove(range(200, 300), on_missing="ignore")
        assert same_bytes(copied.search(QUERIES, 9), before)
        embeddings.remove(range(200, 300), on_missing="ignore")
        assert same_bytes(embeddings.search(QUERIES, 9), before)
    index = embeddings.index
    index.reset()
    assert len(embeddings) == 200


@pytest.mark.parametrize("rescore", [None, "int8"])
def test_resetting_leaves_an_empty_collection(rescore: Any) -> None:
    embeddings = BinaryEmbeddings(24, rescore=rescore)
    rows = quantize(X) if rescore is None else X
    embeddings.add(rows)
    expected = embeddings.search(QUERIES, 5)
    embeddings.reset()
    assert embeddings.search(QUERIES[0], 1).ids.tolist() == [-1]
    assert embeddings._state.vectors is None or embeddings._state.vectors.n_rows == 0
    embeddings.add(rows)
    assert same_bytes(embeddings.search(QUERIES, 5), expected)


def test_bands_are_built_and_explained() -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (3000, 16)) * rng.random((3000, 16))
    embeddings = rescored(x, bands=2)
    embeddings.build(sample_queries=x[:20], k=1)
    assert embeddings.memory().directories > 0
    assert embeddings.explain(x[0], 1, rescore_from=5).plan in {"scan", "probe"}
    expected = rescored(x, bands=0).search(x[:9], 4)
    assert same_bytes(embeddings.search(x[:9], 4), expected)


class Derived(BinaryEmbeddings):
    """Of a user."""


def test_mapped_embeddings_are_pickled_as_the_place_of_their_folder(tmp_path: Path) -> None:
    rescored(X).save(tmp_path)
    mapped = Derived.load(tmp_path, mmap=True)
    mapped.label = "mine"  # type: ignore[attr-defined]
    for embeddings in (mapped, mapped.copy()):
        raw = pickle.dumps(embeddings)
        assert len(raw) < 1000
        again = pickle.loads(raw)
        assert type(again) is Derived
        assert again.label == "mine"
        assert same_bytes(again.search(QUERIES, 5), mapped.search(QUERIES, 5))
    mapped.remove([0])
    for changed in (mapped, rescored(X)):
        with pytest.raises(TypeError, match="load that with mmap=True"):
            pickle.dumps(changed)
    rescored(X[:50]).save(tmp_path)
    with pytest.raises(ValueError, match="has other embeddings"):
        pickle.loads(raw)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: e.add(quantize(X)), TypeError, "got uint8: with rescore= the vectors are kept"),
        (lambda e: e.add(X[:, :9]), ValueError, r"shape \(n, 24\), got \(300, 9\)"),
        (lambda e: e.add(X[0]), ValueError, r"pass a single embedding as embeddings\[np"),
        (lambda e: e.add(X[:2], ids=[900]), ValueError, r"ids must have shape \(2,\)"),
        (lambda e: e.add(X[:2], ids=[900, 900]), ValueError, "ids must be distinct"),
        (lambda e: e.replace(X[:2], None), TypeError, "ids must be those"),
        (lambda e: e.search(QUERIES, 5, rescore_from=3), ValueError, "rescore_from must be from 5"),
        (lambda e: e.search(QUERIES, 5, signed=True), ValueError, "pass rescore_from=0 with it"),
        (lambda e: e.range_search(QUERIES, 1, signed=True), ValueError, "pass by='codes' with it"),
        (lambda e: e.range_search(QUERIES, np.nan), ValueError, "min_score must not be NaN"),
        (lambda e: e.range_search(QUERIES, 1, by="bits"), ValueError, "by must be 'vectors' or"),
        (lambda e: e.search(np.full(24, 1e250), 5), ValueError, "queries are too large"),
        (lambda e: e.iterate(QUERIES), ValueError, r"must be one query, \(dim,\), got \(5, 24\)"),
        (lambda e: e.merge(e.index), TypeError, "other must be BinaryEmbeddings, got Index"),
        (lambda e: e.merge(rescored(X, "float32")), ValueError, "got 24 dimensions, rescore='fl"),
        (lambda e: e.merge(rescored(X * 2)), ValueError, "same calibration="),
        (lambda e: e.vectors_of([900]), KeyError, "900"),
    ],
)
def test_wrong_calls_are_refused(call: Any, error: type[Exception], message: str) -> None:
    embeddings = rescored(X.astype(np.float64))
    with pytest.raises(error, match=message):
        call(embeddings)
    assert len(embeddings) == 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rescore": "int4"}, "rescore must be 'int8' or 'float16' or 'float32'"),
        ({"calibration": X}, "calibration goes with rescore='int8'"),
        ({"rescore": "int8", "calibration": X[:0]}, "at least one row"),
        ({"rescore": "int8", "calibration": X[:, :3]}, r"calibration must have shape \(n, 24\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BinaryEmbeddings(24, **options)


def test_what_needs_vectors_is_refused_without_them() -> None:
    plain = BinaryEmbeddings(24)
    plain.add(quantize(X))
    for call in (
        lambda: plain.search(QUERIES, 5, rescore_from=9),
        lambda: plain.range_search(QUERIES, 5, by="vectors"),
        lambda: plain.vectors_of([0]),
    ):
        with pytest.raises(ValueError, match="rescore="):
            call()
