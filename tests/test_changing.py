"""Changing an index: removing, replacing, merging, copying, and looking codes up by id.

test_life.py compares long sequences of changes with a dict; here each call is tested separately.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh._index.code_queries import CodeQueries
from bitweigh.typing import Codes

N_BITS = 12


def codes(n: int, seed: int = 0) -> Codes:
    return np.packbits(np.random.default_rng(seed).random((n, N_BITS)) < 0.5, axis=1)


def filled(n: int = 5) -> bitweigh.Index:
    """Return an index of n codes with the ids 10, 11, 12, ..."""
    index = bitweigh.Index(N_BITS)
    index.add(codes(n), ids=range(10, 10 + n))
    return index


def codes_by_id(index: bitweigh.Index) -> dict[int, bytes]:
    ids = index.ids
    return dict(zip(ids.tolist(), map(bytes, index.codes_of(ids)), strict=True))


# By name: the call, the exception, and what its message must match.
WRONG: dict[str, tuple[Callable[[bitweigh.Index], Any], type[Exception], str]] = {
    "add: on_duplicate unknown": (
        lambda index: index.add(codes(1), on_duplicate="skip"), ValueError,
        "on_duplicate must be 'error' or 'replace', got 'skip'"),
    "add: an id repeated, though replacing": (
        lambda index: index.add(codes(2), [3, 3], on_duplicate="replace"), ValueError,
        r"ids must be distinct, but ids\[1\] = 3 is the same as ids\[0\]"),
    "add: an id in use": (
        lambda index: index.add(codes(2), [3, 11]), ValueError,
        r"ids must be new, but ids\[1\] = 11 is in use; on_duplicate='replace' replaces"),
    "replace: no ids": (
        lambda index: index.replace(codes(2), None), TypeError,
        "ids must be those of the codes to replace, got None; `add` adds"),
    "replace: an unknown id": (lambda index: index.replace(codes(2), [11, 99]), KeyError, "99"),
    "replace: an id repeated": (
        lambda index: index.replace(codes(2), [11, 11]), ValueError, r"distinct, .* ids\[1\] = 11"),
    "replace: too few ids": (
        lambda index: index.replace(codes(2), [11]), ValueError, r"ids must have shape \(2,\)"),
    "replace: codes of another dtype": (
        lambda index: index.replace(np.ones((1, 2)), [11]), TypeError, "codes must have dtype"),
    "replace: stray bits": (
        lambda index: index.replace(np.full((1, 2), 255, np.uint8), [11]), ValueError,
        r"codes\[0\] has unused bits set"),
    "replace: ids are floats": (
        lambda index: index.replace(codes(1), [11.0]), TypeError, "ids must be integers"),
    "remove: an unknown id": (lambda index: index.remove([11, 99, 98]), KeyError, "99"),
    "remove: missing unknown": (
        lambda index: index.remove([11], on_missing="skip"), ValueError,
        "on_missing must be 'error' or 'ignore', got 'skip'"),
    "remove: missing is no string": (
        lambda index: index.remove([11], on_missing=True), ValueError, "on_missing .* got True"),
    "remove: ids are floats": (
        lambda index: index.remove([11.0]), TypeError, "ids must be integers, got float64"),
    "remove: ids are booleans": (
        lambda index: index.remove([True]), TypeError, "ids must be integers, got bool"),
    "remove: ids are text": (lambda index: index.remove(["11"]), TypeError, "ids must be integers"),
    "remove: a single id": (
        lambda index: index.remove(11), ValueError, r"ids must have shape \(n,\), got \(\)"),
    "remove: a negative id": (
        lambda index: index.remove([11, -1]), ValueError, r"not be negative, got ids\[1\] = -1"),
    "contains: ids are floats": (
        lambda index: index.contains([11.0]), TypeError, "ids must be integers"),
    "search_by_id: an unknown id": (lambda index: index.search_by_id([11, 99], 1), KeyError, "99"),
    "search_by_id: an id is a float": (
        lambda index: index.search_by_id(11.0, 1), TypeError, "ids must be integers"),
    "search_by_id: no neighbours": (
        lambda index: index.search_by_id(11, 0), ValueError, "k must be from 1"),
    "search_by_id: weights of another length": (
        lambda index: index.search_by_id(11, 1, weights=np.ones(24)), ValueError,
        "must have shape"),
    "merge: of more bits": (
        lambda index: index.merge(bitweigh.Index(16)), ValueError,
        "other must have codes of 12 bits, big, got 16 bits, big"),
    "merge: of the other order": (
        lambda index: index.merge(bitweigh.Index(N_BITS, bitorder="little")), ValueError,
        "12 bits, big, got 12 bits, little"),
    "merge: no index": (
        lambda index: index.merge(codes(1)), TypeError, "other must be an Index, got ndarray"),
    "merge: with ids in use": (
        lambda index: index.merge(filled(2)), ValueError, r"ids\[0\] = 10 is in use"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(name: str) -> None:
    call, exception, message = WRONG[name]
    index = filled()
    before = codes_by_id(index)
    with pytest.raises(exception, match=message) as caught:
        call(index)
    assert type(caught.value) is exception
    assert codes_by_id(index) == before


def test_a_removed_code_is_found_by_nothing() -> None:
    index = filled()
    assert index.remove([12, 10]) == 2
    assert len(index) == 3
    assert index.ids.tolist() == [11, 13, 14]
    assert index.contains([10, 11, 12]).tolist() == [False, True, False]
    assert 12 not in index
    assert sorted(index.search(np.ones((N_BITS, 2)), 5).ids.tolist()) == [-1, -1, 11, 13, 14]
    with pytest.raises(KeyError, match="12"):
        index.codes_of([12])


def test_an_id_that_is_named_twice_is_removed_once() -> None:
    index = filled()
    assert index.remove([12, 12]) == 1
    assert index.remove([12, 13, 13], on_missing="ignore") == 1
    assert len(index) == 3


def test_nothing_to_change_is_no_change() -> None:
    index = filled()
    before = codes_by_id(index)
    assert index.remove([]) == 0
    index.replace(np.empty((0, 2), dtype=np.uint8), [])
    index.add(np.empty((0, 2), dtype=np.uint8), [], on_duplicate="replace")
    index.merge(bitweigh.Index(N_BITS))
    bitweigh.Index(N_BITS).compact()
    assert codes_by_id(index) == before


def test_a_removed_id_can_be_given_again_but_is_not_by_itself() -> None:
    index = filled()
    index.remove([14])
    index.add(codes(1, seed=1))
    assert index.ids.tolist() == [10, 11, 12, 13, 15]
    index.add(codes(1, seed=2), [14])
    assert bytes(index.codes_of([14])) == bytes(codes(1, seed=2))


def test_an_index_that_lost_all_codes_answers_with_padding_and_counts_on() -> None:
    index = filled()
    index.remove(index.ids)
    assert index.search(np.ones((N_BITS, 2)), 2).ids.tolist() == [-1, -1]
    index.add(codes(1))
    assert index.ids.tolist() == [15]


def test_reset_counts_from_zero_again() -> None:
    index = filled()
    index.reset()
    assert len(index) == 0
    index.add(codes(2))
    assert index.ids.tolist() == [0, 1]


def test_replacing_gives_new_codes_to_old_ids() -> None:
    index = filled()
    before = codes_by_id(index)
    new = codes(2, seed=1)
    index.replace(new, [13, 10])
    assert codes_by_id(index) == {**before, 13: bytes(new[0]), 10: bytes(new[1])}


def test_adding_may_replace_some_and_add_the_others() -> None:
    index = filled()
    before = codes_by_id(index)
    new = codes(2, seed=1)
    index.add(new, [12, 99], on_duplicate="replace")
    assert codes_by_id(index) == {**before, 12: bytes(new[0]), 99: bytes(new[1])}


def test_merging_adds_what_the_other_holds_and_leaves_it_as_it_is() -> None:
    index, other = filled(), bitweigh.Index(N_BITS)
    other.add(codes(4, seed=1), [1, 2, 11, 12])
    other.remove([2, 12])
    expected = {**codes_by_id(index), **codes_by_id(other)}
    before = codes_by_id(other)
    index.merge(other, on_duplicate="replace")
    assert codes_by_id(index) == expected
    assert codes_by_id(other) == before


@pytest.mark.parametrize("make", [bitweigh.Index.copy, copy.copy, copy.deepcopy])
def test_a_copy_does_not_see_what_is_done_to_the_original(
    make: Callable[[bitweigh.Index], bitweigh.Index],
) -> None:
    index = filled()
    index.remove([11])
    before = codes_by_id(index)
    other = make(index)
    index.remove([10])
    index.replace(codes(1, seed=1), [12])
    index.add(codes(3))
    index.compact()
    assert codes_by_id(other) == before
    other.add(codes(1))
    assert other.ids[-1] == 15


def test_a_copy_keeps_the_options() -> None:
    index = bitweigh.Index(N_BITS, bands=3, band_bits=2, memory_limit=10**6)
    assert index.copy()._policy.band_options == index._policy.band_options


def test_an_iterator_keeps_to_the_codes_there_were() -> None:
    index = filled()
    costs = np.ones((N_BITS, 2))
    going = index.iterate(costs)
    first = next(going)
    index.remove(index.ids)
    assert [first[1], *(one for _, one in going)] == [10, 11, 12, 13, 14]
    assert not list(index.iterate(costs))


def test_removed_rows_take_memory_until_compact() -> None:
    index = filled(100)
    assert index.memory().removed == 0
    index.remove(range(10, 90))
    memory = index.memory()
    assert memory.removed > 0
    assert memory.total == sum(memory)
    explanation = index.explain(np.ones((N_BITS, 2)), 1)
    assert [(one.rows, one.removed_rows) for one in explanation.segments] == [(20, 80)]
    assert "20 codes: without bands, 80 more removed" in str(explanation)
    before = codes_by_id(index)
    index.compact()
    assert index.memory().removed == 0
    assert index.memory().codes < memory.codes
    assert codes_by_id(index) == before


@pytest.mark.parametrize("own", [0, 3, 7])
@pytest.mark.parametrize("k", [1, 2, 7, 9])
def test_a_code_is_not_its_own_neighbour_among_equal_ones(own: int, k: int) -> None:
    index = bitweigh.Index(N_BITS)
    index.add(np.zeros((8, 2), dtype=np.uint8))
    others = [one for one in range(8) if one != own]
    found = index.search_by_id(own, k)
    assert found.ids.tolist() == [*others, -1, -1][:k]
    assert found.distances.tolist() == ([0.0] * 7 + [np.inf] * 2)[:k]
    itself = index.search_by_id(own, k, include_self=True)
    assert itself.ids.tolist() == [*range(8), -1][:k]


def test_neighbours_of_several_ids_are_those_of_each() -> None:
    index = filled(200)
    weights = np.random.default_rng(1).standard_normal(N_BITS)
    ids = np.array([150, 12, 12, 70])
    together = index.search_by_id(ids, 6, weights=weights, threads=2, method="probe")
    assert together.ids.shape == (4, 6)
    for place, one in enumerate(ids.tolist()):
        alone = index.search_by_id(one, 6, weights=weights)
        np.testing.assert_array_equal(together.ids[place], alone.ids)
        np.testing.assert_array_equal(together.distances[place], alone.distances)
        costs = bitweigh.costs.from_weights(index.codes_of([one])[0], weights)
        expected = [pair for pair in islice(index.iterate(costs), 7) if pair[1] != one][:6]
        assert list(zip(alone.distances, alone.ids, strict=True)) == expected


@pytest.mark.parametrize("what", ["10", 10.0, -1, 2**70, True, None, np.array([10, 11])])
def test_what_cannot_be_an_id_is_not_in_an_index(what: object) -> None:
    index = filled()
    index.add(codes(1), ids=[1])
    assert what not in index


def test_an_id_may_be_any_integer_type() -> None:
    index = filled()
    assert np.uint8(10) in index
    assert index.contains(np.array([10, 9], dtype=np.uint64)).tolist() == [True, False]
    assert index.remove(np.array([10], dtype=np.int8)) == 1


def test_the_neighbours_of_a_code_are_those_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(30)
    expected = index.search_by_id(10, 29)

    def and_another_thread_removes(*arguments: Any, **options: Any) -> Any:
        index.remove(range(11, 20))
        return CodeQueries(*arguments, **options)

    monkeypatch.setattr("bitweigh.index.CodeQueries", and_another_thread_removes)
    found = index.search_by_id(10, 29)
    assert len(index) == 21
    assert found.ids.tolist() == expected.ids.tolist()


@pytest.mark.parametrize(("include_self", "most"), [(False, 2**32 - 1), (True, 2**32)])
def test_too_many_neighbours_of_a_code_are_refused_by_the_number_that_came(
    include_self: bool, most: int
) -> None:
    with pytest.raises(ValueError, match=f"k must be from 1 to {most}, got {most + 1}"):
        filled().search_by_id(10, most + 1, include_self=include_self)


def test_memory_counts_the_masks_that_a_removal_writes() -> None:
    index = bitweigh.Index(8, build="manual")
    index.add(np.zeros((300_000, 1), dtype=np.uint8))
    index.remove([5])
    page = 131_072 // 8  # a bit for each row of a page
    assert index.memory().removed == page
    index.remove([6, 299_999])
    last_page = -(-(300_000 - 2 * 131_072) // 32) * 4
    assert index.memory().removed == page + last_page
