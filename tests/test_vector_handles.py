"""What a VectorIndex shares with Index: replace, merge, copy, reset, iterate, search by id."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from vector_cases import DATA, QUERIES, fitted_index, same_bytes

import bitweigh
from bitweigh._index.policy import SegmentPolicy
from bitweigh._vectors.store import Vectors
from bitweigh.hashers import ITQ, LSH, Sign
from bitweigh.vector_index import VectorIndex

RERANKS = pytest.mark.parametrize("rerank", [None, "float32"])


def same_answers(one: VectorIndex, other: VectorIndex) -> bool:
    """Whether two indexes have the same ids, codes, vectors and answers."""
    same = np.array_equal(one.ids, other.ids)
    same = same and same_bytes([one.codes_of(one.ids)], [other.codes_of(other.ids)])
    if one.rerank is not None:
        same = same and same_bytes([one.vectors_of(one.ids)], [other.vectors_of(other.ids)])
    return same and same_bytes(one.search(QUERIES, 9), other.search(QUERIES, 9))


def rows_stored(index: VectorIndex) -> int:
    vectors = index._fitted().vectors
    assert vectors is not None
    return vectors.n_rows


@pytest.mark.parametrize("hasher", ["itq", "lsh", "sign"])
@pytest.mark.parametrize("n_features", [1, 3, 100])
def test_without_arguments_any_number_of_features_will_do(hasher: Any, n_features: int) -> None:
    rows = np.random.default_rng(0).standard_normal((40, n_features)).astype(np.float32)
    index = VectorIndex(hasher=hasher).fit(rows)
    index.add(rows)
    assert index.n_bits == (128 if hasher == "lsh" else n_features)
    assert index.search(rows, 5).ids.shape == (40, 5)


@pytest.mark.parametrize("hasher", ["itq", "lsh", "sign"])
def test_the_default_bits_of_wide_vectors_are_128_or_those_of_signs(
    hasher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eigenvectors of 3000 features take a minute.
    monkeypatch.setattr(
        "bitweigh.hashers._itq.leading_components",
        lambda rows, _, n_bits, __: np.eye(rows.shape[1], n_bits),
    )
    rows = np.random.default_rng(0).standard_normal((5, 3000)).astype(np.float32)
    assert VectorIndex(hasher=hasher).fit(rows).n_bits == (3000 if hasher == "sign" else 128)


def test_bits_that_contradict_a_hasher_object_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"n_bits=16 contradicts LSH\(n_bits=8\), .* 8 bits"):
        VectorIndex(n_bits=16, hasher=LSH(8))
    assert VectorIndex(n_bits=8, hasher=LSH(8)).fit(DATA).n_bits == 8


@pytest.mark.parametrize("hasher", ["sign", Sign()])
def test_bits_that_contradict_the_signs_are_refused_by_fit(hasher: Any) -> None:
    index = VectorIndex(n_bits=10, hasher=hasher)
    with pytest.raises(ValueError, match=r"n_bits=10 contradicts Sign\(\), .* 12 bits of vectors"):
        index.fit(DATA)
    assert VectorIndex(n_bits=12, hasher=hasher).fit(DATA).n_bits == 12


def test_a_hasher_that_was_changed_since_is_checked_again_by_fit() -> None:
    hasher = LSH(8)
    index = VectorIndex(n_bits=8, hasher=hasher)
    hasher.set_params(n_bits=9)
    with pytest.raises(ValueError, match=r"n_bits=8 contradicts LSH\(n_bits=9\)"):
        index.fit(DATA)


class RecordingBar:
    """Stands in for a progress bar."""

    steps: list[float]

    def __init__(self, _: str, total: float, *, shown: bool) -> None:
        assert (total, shown) == (1, True)
        RecordingBar.steps = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, count: float) -> None:
        self.steps.append(count)


@pytest.mark.parametrize("hasher", [ITQ(8, n_rounds=30), LSH(8)])
def test_the_bar_of_fit_moves_with_each_round_to_its_end(
    hasher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitweigh.vector_index.ProgressBar", RecordingBar)
    index = VectorIndex(hasher=hasher).fit(DATA, progress=True)
    steps = RecordingBar.steps
    assert sum(steps) == pytest.approx(1)
    assert (len(steps) > 30) == isinstance(hasher, ITQ)
    assert all(0 <= step < 0.95 for step in steps)
    assert "_on_progress" not in vars(index.hasher)


def test_a_hasher_that_fails_is_left_without_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[LSH] = []

    def fail(hasher: LSH, *_: object) -> None:
        failed.append(hasher)
        raise MemoryError

    monkeypatch.setattr(LSH, "_learn", fail)
    with pytest.raises(MemoryError):
        VectorIndex(hasher="lsh").fit(DATA, progress=True)
    assert "_on_progress" not in vars(failed[0])


@RERANKS
def test_replace_changes_vectors_that_are_there_and_no_others(rerank: Any) -> None:
    index, expected = fitted_index(rerank=rerank), fitted_index(rerank=rerank)
    index.replace(DATA[10:12], ids=[5, 3])
    expected.add(DATA[10:12], ids=[5, 3], on_duplicate="replace")
    assert same_answers(index, expected)
    with pytest.raises(KeyError, match="900"):
        index.replace(DATA[:2], ids=[4, 900])
    with pytest.raises(TypeError, match="ids must be those of the vectors to replace"):
        index.replace(DATA[:2], ids=None)  # type: ignore[arg-type]
    assert same_answers(index, expected)


@RERANKS
def test_merging_parts_gives_the_index_of_all_vectors(rerank: Any, tmp_path: Path) -> None:
    expected = fitted_index(rerank=rerank)
    index = VectorIndex(n_bits=10, hasher="lsh", rerank=rerank).fit(DATA)
    index.save(tmp_path)
    part, loaded = index.copy(), VectorIndex.load(tmp_path)
    index.add(DATA[:200])
    part.add(DATA[200:450], ids=range(200, 450))
    part.add(DATA[7:8], ids=[9000])
    part.remove([9000])
    loaded.add(DATA[450:], ids=range(450, 600))
    index.merge(part)
    index.merge(loaded)
    assert same_answers(index, expected)
    index.add(DATA[:1])
    assert index.ids[-1] in (600, 9001)
    with pytest.raises(ValueError, match=r"200 is in use"):
        index.merge(part)
    part.replace(DATA[:1], ids=[300])
    index.merge(part, on_duplicate="replace")
    assert same_bytes([index.codes_of([300])], [index.codes_of([0])])
    assert len(index) == 601


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metric": "cosine"}, "other must have metric='euclidean', got 'cosine'"),
        ({"rerank": "float16"}, "other must have rerank='float32', got 'float16'"),
        ({"seed": 1}, "other must have the same fitted hasher"),
        ({"weigher": "wh"}, "other must have the same fitted weigher"),
        ({"hasher": "itq"}, "other must have the same fitted hasher"),
    ],
)
def test_codes_that_mean_something_else_are_not_merged(options: Any, match: str) -> None:
    index = fitted_index(rerank="float32")
    with pytest.raises(ValueError, match=match):
        index.merge(fitted_index(**{"rerank": "float32", **options}), on_duplicate="replace")
    with pytest.raises(TypeError, match="other must be a VectorIndex, got Index"):
        index.merge(index.index)  # type: ignore[arg-type]


@pytest.mark.parametrize("weigher", ["asym", "wh", "inner_product"])
@pytest.mark.parametrize("hasher", ["itq", "lsh", "sign"])
def test_what_was_loaded_can_be_merged_with_what_was_saved(
    hasher: Any, weigher: Any, tmp_path: Path
) -> None:
    index = VectorIndex(hasher=hasher, weigher=weigher).fit(DATA)
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    loaded.add(DATA[:3])
    index.merge(loaded)
    assert len(index) == 3


@RERANKS
@pytest.mark.parametrize("make", [VectorIndex.copy, copy.copy, copy.deepcopy])
def test_a_copy_and_its_original_change_independently(
    rerank: Any, make: Callable[[VectorIndex], VectorIndex]
) -> None:
    index, expected = fitted_index(rerank=rerank), fitted_index(rerank=rerank)
    other, expected_other = make(index), fitted_index(rerank=rerank)
    for changed in (index, expected):
        changed.add(DATA[:50] + 7)
    for changed in (other, expected_other):
        changed.add(DATA[50:120] - 3)
        changed.remove([4])
    for changed in (index, expected):
        changed.add(DATA[:20] + 9)
    second = other.copy()
    other.add(DATA[:1])
    assert same_answers(index, expected)
    assert same_answers(second, expected_other)
    second.compact()
    index.compact()
    assert same_answers(index, expected)
    assert same_answers(second, expected_other)
    other.verify()


def test_a_failed_addition_to_one_of_two_copies_harms_neither() -> None:
    index = fitted_index(rerank="float16")
    other = index.copy()
    expected = index.search(QUERIES, 9)
    bad = np.concatenate([DATA, np.full((1, 12), 1e9)])
    for changed in (other, index, other):
        with pytest.raises(ValueError, match="X must fit in float16"):
            changed.add(bad)
        assert same_bytes(index.search(QUERIES, 9), expected)
        assert same_bytes(other.search(QUERIES, 9), expected)


def test_a_copy_never_truncates_the_file_of_its_original() -> None:
    index = fitted_index(rerank="float32")
    other = index.copy()
    index.add(DATA)  # beyond the rows that the copy knows
    vectors = index._fitted().vectors
    assert vectors is not None
    before = os.fstat(vectors._log._file.fileno()).st_size
    other.compact()
    with pytest.raises(ValueError, match="X must be finite"):
        other.add(np.full((1, 12), np.nan))
    # Reading rows behind the end of a file would end the process.
    assert os.fstat(vectors._log._file.fileno()).st_size == before


def test_copies_of_copies_do_not_collect_files_for_ever() -> None:
    index = VectorIndex(n_bits=10, hasher="lsh", rerank="float32").fit(DATA)
    for row in range(30):
        index = index.copy()
        index.add(DATA[row : row + 1])
        if row % 10 == 9:
            index.compact()
    vectors = index._fitted().vectors
    assert vectors is not None
    assert len(vectors.arrays) < 12
    np.testing.assert_array_equal(index.vectors_of(range(30)), DATA[:30])


@RERANKS
def test_copies_of_a_mapped_index_are_pickled_as_its_folder(rerank: Any, tmp_path: Path) -> None:
    fitted_index(rerank=rerank).save(tmp_path)
    mapped = VectorIndex.load(tmp_path, mmap=True)
    mapped.compact()  # changes nothing
    for index in (mapped, mapped.copy(), copy.deepcopy(mapped)):
        assert len(pickle.dumps(index)) < 1000
        index.verify()
    other = mapped.copy()
    other.remove([3])
    assert len(pickle.dumps(mapped)) < 1000
    other.copy().verify()


class Derived(VectorIndex):
    """Of a user."""


def test_a_deep_copy_of_a_derived_class_has_its_attributes_copied() -> None:
    index = Derived(rerank="float32").fit(DATA)
    index.labels = ["a"]  # type: ignore[attr-defined]
    shallow, deep = copy.copy(index), copy.deepcopy(index)
    assert type(shallow) is type(deep) is Derived
    index.labels.append("b")  # type: ignore[attr-defined]
    assert (shallow.labels, deep.labels) == (["a", "b"], ["a"])  # type: ignore[attr-defined]


@RERANKS
def test_reset_leaves_what_was_learned_and_numbers_from_0(rerank: Any) -> None:
    index = fitted_index(rerank=rerank)
    index.reset()
    assert len(index) == 0
    assert index.search(QUERIES, 2).ids.tolist() == [[-1, -1]] * 9
    index.add(DATA)
    assert same_answers(index, fitted_index(rerank=rerank))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("by", [None, "codes"])
@RERANKS
def test_iterating_goes_through_the_answer_of_an_endless_range(
    rerank: Any, by: Any, metric: Any
) -> None:
    index = fitted_index(rerank=rerank, metric=metric)
    index.remove(range(30, 60))
    for filtered in ({}, {"deny": range(100)}, {"filter": index.filter(allow=[5, 70, 900])}):
        expected = index.range_search(QUERIES[0], np.inf, by=by, **filtered)  # type: ignore[arg-type]
        neighbours = index.iterate(QUERIES[0], by=by, **filtered)  # type: ignore[arg-type]
        pairs = zip(expected.distances.tolist(), expected.ids.tolist(), strict=True)
        assert list(neighbours) == list(pairs)


@RERANKS
def test_iterating_sees_the_index_as_it_was(rerank: Any) -> None:
    index = fitted_index(rerank=rerank)
    neighbours = index.iterate(QUERIES[0])
    index.reset()
    assert len(list(neighbours)) == 600
    assert list(index.iterate(QUERIES[0])) == []
    with pytest.raises(ValueError, match=r"q must be one query, \(n_features,\), got \(9, 12\)"):
        index.iterate(QUERIES)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_searching_by_id_is_searching_for_the_vector_without_itself(metric: Any) -> None:
    index = fitted_index(rerank="float16", metric=metric)
    ids = [40, 3, 40]
    vectors = index.vectors_of(ids)
    everything = index.search(vectors, 600, rerank_from=600)
    found = index.search_by_id(ids, 5, rerank_from=600)
    for number, id_ in enumerate(ids):
        rest = everything.ids[number] != id_
        np.testing.assert_array_equal(found.ids[number], everything.ids[number][rest][:5])
        np.testing.assert_array_equal(
            found.distances[number], everything.distances[number][rest][:5]
        )
    assert same_bytes(index.search_by_id(ids, 5, include_self=True), index.search(vectors, 5))
    assert index.search_by_id(3, 2, deny=[8]).ids.shape == (2,)
    with pytest.raises(KeyError, match="9000"):
        index.search_by_id([1, 9000], 2)
    with pytest.raises(ValueError, match="rerank_from must be from 5 to"):
        index.search_by_id(ids, 5, rerank_from=4)


def test_codes_and_contributions_are_those_of_the_codes() -> None:
    index = fitted_index(rerank="float32")
    codes = index.index
    assert same_bytes([index.codes_of([7, 2])], [codes.codes_of([7, 2])])
    paid = index.contributions(QUERIES[0], [7, 2])
    assert same_bytes([paid], [codes.contributions(index.costs(QUERIES[0]), [7, 2])])
    found = index.search(QUERIES, 3).to_frame("dict")
    assert found["id"].tolist() == index.search(QUERIES, 3).ids.ravel().tolist()


class Interfering:
    """Lets another thread change an index while it is compacted, and waits for that thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self._monkeypatch, self._owner, self._name = monkeypatch, owner, name

    def run(self, index: VectorIndex, change: Callable[[], object]) -> None:
        plain = getattr(self._owner, self._name)
        changed = threading.Thread(target=change, daemon=True)

        def and_change(*arguments: Any) -> Any:
            result = plain(*arguments)
            if not changed.ident:
                changed.start()
                changed.join(30)
            return result

        self._monkeypatch.setattr(self._owner, self._name, and_change)
        index.compact()
        self._monkeypatch.undo()
        assert changed.ident
        assert not changed.is_alive(), "compact kept a writer waiting"


@pytest.mark.parametrize(
    ("rerank", "during"),
    [
        (None, (SegmentPolicy, "compacted")),
        ("float32", (SegmentPolicy, "compacted")),
        ("float32", (Vectors, "only")),
    ],
)
def test_changes_made_while_an_index_is_compacted_are_kept(
    rerank: Any, during: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, expected = fitted_index(rerank=rerank), fitted_index(rerank=rerank)

    def change(changed: VectorIndex) -> None:
        changed.remove([3, 9, 11])
        changed.replace(DATA[100:101] + 1, ids=[5])
        changed.add(DATA[:2] + 2, ids=[3, 7000])
        changed.add(DATA[:700] - 1)

    for changed in (index, expected):
        changed.remove(range(300))
        changed.add(DATA[:20])
        changed.add(DATA[:20], ids=range(20))
    Interfering(monkeypatch, *during).run(index, lambda: change(index))
    change(expected)
    assert same_answers(index, expected)
    index.verify()
    index.add(DATA[:5])
    expected.add(DATA[:5])
    assert same_answers(index, expected)
    if rerank is not None:
        assert rows_stored(index) < rows_stored(expected) - 250


@pytest.mark.parametrize("change", ["reset", "compact", "fit"])
def test_an_index_that_was_emptied_or_compacted_meanwhile_stays_so(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = fitted_index(rerank="float32")
    index.remove(range(100))

    def other_change() -> None:
        if change == "compact":
            index.compact()
        else:
            index.remove(index.ids)
            index.reset() if change == "reset" else index.fit(DATA)
        index.add(DATA[:7], ids=range(7))

    Interfering(monkeypatch, Vectors, "only").run(index, other_change)
    assert len(index) == (507 if change == "compact" else 7)
    np.testing.assert_array_equal(index.vectors_of(range(7)), DATA[:7])
    index.verify()


def test_compacting_gives_up_working_beside_writers_that_never_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = fitted_index(rerank="float32")
    index.remove([0])
    compacted = SegmentPolicy.compacted
    rounds: list[int] = []

    def and_add(policy: SegmentPolicy, state: Any, evidence: Any = None) -> Any:
        result = compacted(policy, state, evidence)
        if not index._writing.locked():
            rounds.append(len(index))
            index.add(np.tile(DATA, (len(index) // 150, 1)))
            index.remove(index.ids[:1])
        return result

    monkeypatch.setattr(SegmentPolicy, "compacted", and_add)
    index.compact()
    assert len(rounds) == 3
    assert index.memory().removed == 0
    assert rows_stored(index) <= len(index) + 3
    index.verify()


def test_results_of_merged_copies_are_those_of_one_index() -> None:
    index = fitted_index(rerank="float32")
    halves = [index.copy(), index.copy()]
    halves[0].remove(range(300))
    halves[1].remove(range(300, 600))
    found = bitweigh.merge([half.search(QUERIES, 5, rerank_from=300) for half in halves], 5)
    assert same_bytes(found, index.search(QUERIES, 5, rerank_from=600))
