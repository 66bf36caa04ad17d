"""Range search, ties and the iterator: the same rows as the reference, to the last bit."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from cases import Case, Setting, cases, settings_to_run
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import bitweigh
from bitweigh import RangeResult, SearchResult


def ordered(case: Case) -> list[SearchResult]:
    """Return all rows of each query by the reference, nearest first."""
    costs = case.costs if case.costs.ndim == 3 else case.costs[np.newaxis]
    return [
        bitweigh.reference.search(
            case.codes, own, max(1, len(case.codes)), ids=case.ids, bitorder=case.bitorder
        )
        for own in costs
    ]


def assert_has(found: RangeResult, query: int, expected: SearchResult, n: int) -> None:
    own = slice(found.lims[query], found.lims[query + 1])
    np.testing.assert_array_equal(found.ids[own], expected.ids[:n])
    np.testing.assert_array_equal(
        found.distances[own].view(np.int64), expected.distances[:n].view(np.int64)
    )


@settings(max_examples=examples(300))
@given(cases(), settings_to_run(), st.floats(0, 1.2), st.booleans())
def test_range_search_equals_the_definition(
    case: Case, setting: Setting, share: float, exactly: bool
) -> None:
    index = setting.index(case)
    everything = ordered(case)
    n = len(case.codes)
    # Each radius is the distance of a row, or just below or above it: from no row to all rows.
    places = [min(n - 1, int(share * n)) for _ in everything]
    radii = np.array(
        [one.distances[place] if n else 1.0 for one, place in zip(everything, places, strict=True)]
    )
    if not exactly:
        radii = np.nextafter(radii, np.where(share < 0.5, -np.inf, np.inf))
    found = index.range_search(case.costs, radii, threads=setting.threads, method=setting.method)
    assert found.lims[0] == 0
    assert found.lims[-1] == len(found.ids) == len(found.distances)
    for query, one in enumerate(everything):
        assert_has(found, query, one, int((one.distances[:n] <= radii[query]).sum()))


@settings(max_examples=examples(150))
@given(cases(), settings_to_run())
def test_all_ties_are_what_is_as_near_as_the_last_one(case: Case, setting: Setting) -> None:
    index = setting.index(case)
    found = index.search_with_ties(
        case.costs, case.k, threads=setting.threads, method=setting.method
    )
    n = len(case.codes)
    for query, one in enumerate(ordered(case)):
        last = one.distances[min(case.k, n) - 1] if n else 0.0
        assert_has(found, query, one, int((one.distances[:n] <= last).sum()))


@settings(max_examples=examples(100))
@given(cases(most_queries=1), settings_to_run(), st.integers(0, 200))
def test_the_iterator_gives_the_rows_in_order(case: Case, setting: Setting, wanted: int) -> None:
    index = setting.index(case)
    if len(case.costs) == 0:
        return
    costs = case.costs if case.costs.ndim == 2 else case.costs[0]
    (expected,) = ordered(Case(case.n_bits, case.bitorder, case.codes, case.ids, costs, 1))
    found = list(islice(index.iterate(costs), wanted))
    n = min(wanted, len(case.codes))
    assert [one for _, one in found] == expected.ids[:n].tolist()
    assert [one for one, _ in found] == expected.distances[:n].tolist()


def test_the_iterator_ends_with_the_last_row_and_does_not_see_later_ones() -> None:
    index = bitweigh.Index(8)
    index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
    neighbours = index.iterate(np.ones((8, 2)))
    next(neighbours)
    index.add(np.array([[255]], dtype=np.uint8))
    assert [one for _, one in neighbours] == list(range(1, 100))


def test_an_infinite_radius_takes_all_rows_and_a_negative_one_none() -> None:
    index = bitweigh.Index(8)
    index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
    index.build()
    costs = np.ones((3, 8, 2))
    found = index.range_search(costs, [np.inf, -np.inf, -1.0])
    assert found.lims.tolist() == [0, 100, 100, 100]


def test_an_empty_index_has_nothing_within_any_radius() -> None:
    found = bitweigh.Index(8).range_search(np.ones((2, 8, 2)), 100.0)
    assert found.lims.tolist() == [0, 0, 0]


@pytest.mark.parametrize("method", ["scan", "probe"])
def test_a_limit_is_raised_and_never_cuts(method: str) -> None:
    index = bitweigh.Index(16)
    index.add(np.random.default_rng(0).integers(0, 256, (500, 2), dtype=np.uint8))
    costs = bitweigh.costs.hamming(np.zeros(2, dtype=np.uint8), 16)
    n = len(index.range_search(costs, 6).ids)
    assert len(index.range_search(costs, 6, limit=n, method=method).ids) == n
    with pytest.raises(bitweigh.LimitError, match=f"query 0 has more than limit={n - 1} codes"):
        index.range_search(costs, 6, limit=n - 1, method=method)


def at(distance: float) -> tuple[bitweigh.Index, np.ndarray]:
    """Return an index of one code, and costs that put it at this distance."""
    index = bitweigh.Index(8)
    index.add(np.array([[128]], dtype=np.uint8))
    costs = np.zeros((8, 2))
    costs[0, 1] = distance
    return index, costs


BELOW_ONE = np.longdouble(1) - np.longdouble(2) ** -60


@pytest.mark.parametrize(
    ("distance", "radius", "found"),
    [
        (2.0**53 + 4, 2**53 + 3, 0),
        (2.0**53 + 4, 2**53 + 4, 1),
        (2.0**53 + 4, 2**53 + 5, 1),
        (2.0**53 + 4, [2**53 + 3], 0),
        (2.0**53 + 4, np.array(2**53 + 3), 0),
        (2.0**53 + 4, np.array([2**53 + 3], dtype=np.uint64), 0),
        (-(2.0**53) - 4, -(2**53) - 5, 0),
        (-(2.0**53) - 4, -(2**53) - 4, 1),
        (2.0**63, 2**63 - 1, 0),
        (2.0**64, np.uint64(2**64 - 1), 0),
        (2.0**64, 2**64, 1),
        (2.0**64, 2**64 - 1, 0),
        (2.0**1000, 10**400, 1),
        (-(2.0**1000), -(10**400), 0),
        (1.0, np.float32(1.0), 1),
        (1.0, np.float16(1.0), 1),
        (1.0, np.inf, 1),
        (1.0, -np.inf, 0),
        pytest.param(
            1.0,
            BELOW_ONE,
            0,
            marks=pytest.mark.skipif(bool(BELOW_ONE == 1), reason="no longer floats here"),
        ),
    ],
)
def test_no_code_beyond_the_radius_is_found_however_the_radius_is_given(
    distance: float, radius: object, found: int
) -> None:
    index, costs = at(distance)
    lims = index.range_search(costs, radius).lims  # type: ignore[arg-type]
    assert lims.tolist() == [0, found]


def test_radii_of_both_signs_are_each_rounded_by_itself() -> None:
    index, costs = at(2.0**63)
    lims = index.range_search(np.stack([costs, costs]), [2**63 - 1, -1]).lims
    assert lims.tolist() == [0, 0, 0]


@pytest.mark.parametrize("radius", [True, "1", None, [1.0, None], 1j, [True]])
def test_what_is_no_radius_is_refused(radius: object) -> None:
    index, costs = at(1.0)
    with pytest.raises(TypeError, match="radius must be numbers"):
        index.range_search(costs, radius)  # type: ignore[arg-type]
