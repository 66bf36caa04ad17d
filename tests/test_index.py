"""The index: adding in pieces, ids, shapes, getting codes back."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitweigh


def random_codes(n: int, n_bytes: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, n_bytes), dtype=np.uint8)


@pytest.fixture
def index() -> bitweigh.Index:
    index = bitweigh.Index(64)
    index.add(random_codes(100))
    return index


def test_a_single_query_gives_flat_arrays(index: bitweigh.Index) -> None:
    found = index.search(np.ones((64, 2)), 5)
    assert isinstance(found, bitweigh.SearchResult)
    assert found.distances.shape == found.ids.shape == (5,)
    assert found.distances.dtype == np.float64
    assert found.ids.dtype == np.int64


def test_several_queries_give_one_row_each(index: bitweigh.Index) -> None:
    distances, ids = index.search(np.ones((3, 64, 2)), 5)
    assert distances.shape == ids.shape == (3, 5)


def test_no_query_gives_no_row(index: bitweigh.Index) -> None:
    found = index.search(np.ones((0, 64, 2)), 5)
    assert found.distances.shape == found.ids.shape == (0, 5)


def test_an_empty_index_pads_everything() -> None:
    found = bitweigh.Index(12).search(np.ones((2, 12, 2)), 3)
    assert (found.ids == -1).all()
    assert np.isposinf(found.distances).all()


def test_results_can_be_written_to(index: bitweigh.Index) -> None:
    found = index.search(np.ones((64, 2)), 5)
    found.ids[0] = 7
    found.distances[0] = 7


def test_stats_come_beside_the_result(index: bitweigh.Index) -> None:
    found = index.search(np.ones((3, 64, 2)), 5, stats=True)
    (distances, ids), stats = found, found.stats
    assert stats is not None
    assert distances.shape == ids.shape == (3, 5)
    assert stats.rows_scored_directly.tolist() == [100, 100, 100]
    single = index.search(np.ones((64, 2)), 5, stats=True).stats
    assert single is not None
    assert single.rows_scored_directly == 100


def test_counters_of_the_engine_are_the_fields_of_the_stats() -> None:
    from bitweigh import _core

    assert _core.counter_names == bitweigh.SearchStats._fields


def test_each_counter_says_what_it_counts() -> None:
    (stats,) = ast.parse(textwrap.dedent(inspect.getsource(bitweigh.SearchStats))).body
    assert isinstance(stats, ast.ClassDef)
    documented = [
        field.target.id
        for field, text in itertools.pairwise(stats.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    ]
    assert tuple(documented) == bitweigh.SearchStats._fields


def test_every_option_of_the_engine_is_set_by_name() -> None:
    from bitweigh import _core
    from bitweigh._index.request import search_options

    deadline = _core.Deadline(100.0)
    options = search_options("probe", 3, 7, deadline)
    fields = [name for name in vars(_core.SearchOptions) if not name.startswith("_")]
    assert {name: getattr(options, name) for name in fields} == {
        "method": _core.Method.probe,
        "threads": 3,
        "cap_threads": False,
        "limit": 7,
        "deadline": options.deadline,
    }
    assert search_options("probe", 3, 7) is not options


def test_threads_that_nobody_asked_for_are_as_many_as_the_work_is_worth() -> None:
    from bitweigh._index.request import search_options

    assert search_options().cap_threads
    assert search_options().threads == bitweigh.info().threads


def test_length_bits_and_repr(index: bitweigh.Index) -> None:
    assert len(index) == 100
    assert index.n_bits == 64
    assert index.bitorder == "big"
    assert repr(index) == "<bitweigh.Index: 100 codes of 64 bits, big>"


def test_ids_go_on_after_the_largest_ever_used() -> None:
    index = bitweigh.Index(64)
    index.add(random_codes(2))
    index.add(random_codes(1), ids=[40])
    index.add(random_codes(2))
    assert sorted(index.search(np.ones((64, 2)), 5).ids.tolist()) == [0, 1, 40, 41, 42]


def test_adding_nothing_changes_nothing(index: bitweigh.Index) -> None:
    index.add(np.empty((0, 8), dtype=np.uint8))
    index.add(np.empty((0, 8), dtype=np.uint8), ids=[])
    assert len(index) == 100


def test_a_refused_add_changes_nothing(index: bitweigh.Index) -> None:
    with pytest.raises(ValueError, match="7 is in use"):
        index.add(random_codes(2), ids=[500, 7])
    assert len(index) == 100
    index.add(random_codes(1))
    assert index.codes_of([100]).shape == (1, 8)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_ids_of_any_integer_dtype_are_taken(dtype: type) -> None:
    index = bitweigh.Index(64)
    index.add(random_codes(3), ids=np.array([5, 3, 9], dtype=dtype))
    assert sorted(index.search(np.ones((64, 2)), 3).ids.tolist()) == [3, 5, 9]


def test_the_largest_id_can_be_used_but_nothing_follows_it() -> None:
    index = bitweigh.Index(64)
    index.add(random_codes(1), ids=[2**63 - 1])
    assert index.search(np.ones((64, 2)), 1).ids.tolist() == [2**63 - 1]
    with pytest.raises(ValueError, match="ids must be given"):
        index.add(random_codes(1))


def test_the_index_keeps_no_reference_to_what_was_added() -> None:
    codes, ids = random_codes(50), np.arange(50)
    index = bitweigh.Index(64)
    index.add(codes, ids)
    kept = codes.copy()
    codes[:] = 0
    ids[:] = 0
    np.testing.assert_array_equal(index.codes_of(np.arange(50)), kept)


def test_codes_of_any_strides_are_taken() -> None:
    wide = random_codes(60, 16)
    index = bitweigh.Index(64)
    index.add(wide[::2, ::-2])
    index.add(np.asfortranarray(wide[:5, :8]))
    np.testing.assert_array_equal(index.codes_of(np.arange(30)), wide[::2, ::-2])
    np.testing.assert_array_equal(index.codes_of(np.arange(30, 35)), wide[:5, :8])


def test_codes_of_gives_codes_back_in_the_order_asked(index: bitweigh.Index) -> None:
    codes = random_codes(100)
    wanted = np.array([99, 3, 3, 50])
    np.testing.assert_array_equal(index.codes_of(wanted), codes[wanted])
    assert index.codes_of([]).shape == (0, 8)


def test_codes_of_an_unknown_id_names_it(index: bitweigh.Index) -> None:
    with pytest.raises(KeyError, match="100"):
        index.codes_of([5, 100, 200])


def test_costs_of_any_strides_and_both_floats_give_the_same_answer(index: bitweigh.Index) -> None:
    costs = np.random.default_rng(2).standard_normal((3, 64, 2)).astype(np.float32)
    expected = index.search(costs.astype(np.float64), 9)
    views = [
        costs,
        np.asfortranarray(costs),
        np.repeat(costs, 2, axis=1)[:, ::2],
        costs[::-1, :, ::-1].copy()[::-1, :, ::-1],
        costs.tolist(),
    ]
    views[0].flags.writeable = False
    for view in views:
        found = index.search(view, 9)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.distances, expected.distances)


@settings(max_examples=80)
@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.integers(1, 40),
    st.integers(1, 100),
    st.integers(0, 2**32 - 1),
)
def test_adding_in_pieces_equals_adding_at_once(
    pieces: list[int], tail_rows: int, segment_rows: int, seed: int
) -> None:
    n = sum(pieces)
    codes = random_codes(n, seed=seed)
    ids = np.random.default_rng(seed).permutation(n)
    index = bitweigh.Index(64)
    index._policy.tail_rows, index._policy.segment_rows = tail_rows, segment_rows
    start = 0
    for size in pieces:
        index.add(codes[start : start + size], ids[start : start + size])
        start += size
        assert len(index) == start
    assert all(0 < len(part) <= segment_rows for part in index._state.parts())
    np.testing.assert_array_equal(index.codes_of(ids), codes)
    costs = np.random.default_rng(seed).standard_normal((64, 2))
    expected = bitweigh.reference.search(codes, costs, 7, ids=ids)
    found = index.search(costs, 7)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_many_small_adds_leave_few_segments() -> None:
    index = bitweigh.Index(8)
    index._policy.tail_rows = 16
    for _ in range(3000):
        index.add(np.zeros((1, 1), dtype=np.uint8))
    assert len(index) == 3000
    assert len(index._state.segments) <= 8


def test_a_state_read_before_an_add_still_answers_as_before(index: bitweigh.Index) -> None:
    before = index._state
    index.add(random_codes(10_000, seed=1))
    assert before.rows == 100
    assert index._state.rows == 10_100


def test_ids_given_later_do_not_lower_the_next_one() -> None:
    index = bitweigh.Index(8)
    index.add(np.zeros((1, 1), dtype=np.uint8), ids=[100])
    index.add(np.zeros((1, 1), dtype=np.uint8), ids=[5])
    index.add(np.zeros((1, 1), dtype=np.uint8))
    assert index.search(np.ones((8, 2)), 3).ids.tolist() == [5, 100, 101]
