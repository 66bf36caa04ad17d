"""Bands: which bits they take, what they cost, and when an index has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitweigh
from bitweigh._index.bands import BandLayout, BandOptions, layout_of
from bitweigh._index.segments import Segment
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, Codes, Method


def layout_for(options: BandOptions, codes: Codes, n_bits: int, bitorder: BitOrder) -> BandLayout:
    return layout_of(codes, n_bits, bitorder, *options.shape(len(codes), n_bits))


def filled(n: int, n_bits: int = 64, **options: int) -> bitweigh.Index:
    rng = np.random.default_rng(0)
    index = bitweigh.Index(n_bits, **options)
    index.add(rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8))
    return index


@given(
    st.integers(1, 2**40),
    st.integers(1, 8192),
    st.none() | st.integers(1, 30),
    st.none() | st.integers(1, 24),
)
def test_the_shape_of_bands_fits_the_code(
    n: int, n_bits: int, bands: int | None, band_bits: int | None
) -> None:
    count, width = BandOptions(bands, band_bits).shape(n, n_bits)
    assert count == (min(bands, n_bits) if bands else count)
    assert 1 <= count <= max(16, bands or 0)
    assert 1 <= width <= min(24, n_bits)


@given(
    st.integers(1, 300),
    st.integers(1, 200),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(1, 24),
    st.sampled_from(["big", "little"]),
)
def test_bands_take_distinct_bits_of_the_code(
    n: int, n_bits: int, bands: int | None, band_bits: int | None, bitorder: BitOrder
) -> None:
    bits = np.random.default_rng(n).random((n, n_bits)) < 0.3
    codes = np.packbits(bits, axis=1, bitorder=bitorder)
    layout = layout_for(BandOptions(bands, band_bits), codes, n_bits, bitorder)
    taken = np.concatenate(layout)
    assert len(np.unique(taken)) == len(taken)
    assert taken.max() < n_bits
    assert all(1 <= len(bits) <= 24 for bits in layout)


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_bits_that_say_the_same_go_to_different_bands(bitorder: BitOrder) -> None:
    # From the one that varies most to the one that varies least: taken in turn, bits 0 and 2,
    # which nearly always agree, would share a band.
    rng = np.random.default_rng(0)
    bits = np.zeros((8000, 4), dtype=np.bool_)
    bits[:, 0] = rng.permutation(8000) < 4000
    bits[:, 1] = rng.permutation(8000) < 3840
    bits[:, 2] = bits[:, 0] & (rng.random(8000) < 0.95)
    bits[:, 3] = rng.permutation(8000) < 3600
    codes = np.packbits(bits, axis=1, bitorder=bitorder)
    layout = layout_for(BandOptions(2, 2), codes, 4, bitorder)
    assert sorted(band.tolist() for band in layout) == [[0, 3], [1, 2]]


def test_a_bit_that_never_changes_is_left_out_where_not_all_are_wanted() -> None:
    bits = np.random.default_rng(0).random((3000, 24)) < 0.5
    bits[:, [3, 17]] = True
    taken = np.concatenate(layout_for(BandOptions(2, 11), np.packbits(bits, axis=1), 24, "big"))
    assert sorted(set(range(24)) - set(taken.tolist())) == [3, 17]


def test_a_small_index_has_no_bands_until_they_are_asked_for() -> None:
    index = filled(5000)
    costs = bitweigh.costs.hamming(index.codes_of([17])[0], 64)
    _, stats = index.search(costs, 1, stats=True)
    assert stats.probes == 0
    index.build()
    _, stats = index.search(costs, 1, stats=True, method="probe")
    assert stats.probes > 0


def test_a_large_index_gets_its_bands_at_the_first_search() -> None:
    index = filled(200_000)
    assert index.memory().directories == 0
    costs = bitweigh.costs.hamming(index.codes_of([17])[0], 64)
    found, stats = index.search(costs, 1, stats=True)
    assert found.ids.tolist() == [17]
    assert stats.probes > 0
    assert stats.rows_scanned < 200_000
    assert index.memory().directories > 0


def test_a_scan_builds_nothing() -> None:
    index = filled(200_000)
    index.search(np.ones((64, 2)), 1, method="scan")
    assert index.memory().directories == 0


def test_codes_and_ids_stay_together_when_bands_reorder_the_rows() -> None:
    index = filled(3000)
    before = index.codes_of(np.arange(3000))
    index.build()
    np.testing.assert_array_equal(index.codes_of(np.arange(3000)), before)


@pytest.mark.parametrize("limit", [700_000, 1_500_000, 3_000_000])
def test_a_memory_limit_is_kept(limit: int) -> None:
    index = filled(20_000, memory_limit=limit, band_bits=10)
    index.build()
    assert index.memory().total <= limit
    assert index.memory().directories > 0


def test_a_memory_limit_is_that_of_all_segments_together() -> None:
    index = bitweigh.Index(64, memory_limit=2_000_000, band_bits=10)
    index._growth.segment_rows = 5000
    index.add(np.random.default_rng(0).integers(0, 256, (20_000, 8), dtype=np.uint8))
    index.build()
    assert sum(bool(part.segment.bands) for part in index._state.parts()) > 1
    assert index.memory().total <= 2_000_000


def test_a_memory_limit_that_allows_no_band_leaves_the_scan() -> None:
    index = filled(20_000, memory_limit=1000)
    index.build()
    assert index.memory().directories == 0
    state = index._state
    assert index.search(np.ones((64, 2)), 3, method="probe").ids.tolist() == [0, 1, 2]
    assert index._state is state, "bands were tried again"


def test_a_search_that_finds_no_memory_for_bands_asks_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free, now, asked = 0, 1000.0, 0

    def free_memory() -> int:
        nonlocal asked
        asked += 1
        return free

    monkeypatch.setattr("bitweigh._index.bands.free_memory", free_memory)
    monkeypatch.setattr("time.monotonic", lambda: now)
    index = filled(5000)
    costs = np.ones((64, 2))
    for _ in range(3):
        index.search(costs, 3, method="probe")
        index.add(index.codes_of([0]))
        index.search(costs, 3, method="probe")
        index.add(index.codes_of(range(2000)))
        index.search(costs, 3, method="probe")
        index.remove([len(index) - 1])
    assert index.memory().directories == 0
    assert asked == 1, "asking takes longer than a search"
    free, now = 2**40, now + 60
    assert index.search(costs, 3, method="probe").ids.tolist() == [0, 1, 2]
    assert index.memory().directories > 0


def test_build_asks_for_memory_whenever_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(5000)
    monkeypatch.setattr("bitweigh._index.bands.free_memory", lambda: 0)
    index.build()
    assert index.memory().directories == 0
    monkeypatch.setattr("bitweigh._index.bands.free_memory", lambda: 2**40)
    index.build()
    assert index.memory().directories > 0


def test_explain_says_what_was_done_and_why() -> None:
    index = filled(200_000)
    costs = bitweigh.costs.hamming(index.codes_of([17])[0], 64)
    assert index.explain(costs, 1, method="scan").plan == "scan"
    probed = index.explain(costs, 1)
    assert probed.plan == "probe"
    assert probed.counters["probes"] > 0
    assert probed.predicted_us > 0
    assert probed.segments[0].bands > 1
    assert probed.as_dict()["k"] == 1
    assert "200,000 codes of 64 bits, k = 1" in str(probed)
    small = index.explain(costs, 2000)
    assert small.plan == "scan"
    assert "before probing would pay" in small.reason
    given_up = index.explain(np.random.default_rng(1).standard_normal((64, 2)), 10)
    assert given_up.plan == "probe, then scan"
    assert index.explain(costs, 300_000).reason == "as many codes are wanted as there are"


def test_explain_speaks_of_the_codes_that_it_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(5000)
    state_for = index._state_for

    def and_another_thread_adds(method: Method) -> State:
        state = state_for(method)
        index.add(index.codes_of(range(1000)))
        return state

    monkeypatch.setattr(index, "_state_for", and_another_thread_adds)
    explained = index.explain(np.ones((64, 2)), np.int64(7), method="scan")
    assert len(index) == 6000
    assert sum(one.rows for one in explained.segments) == 5000
    assert explained.counters["rows_scanned"] <= 5000
    assert type(explained.k) is int


def test_rows_are_not_unpacked_where_there_is_no_memory_for_bands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = filled(5000, memory_limit=0)

    def unpack(*_: object) -> None:
        raise AssertionError("rows were unpacked for nothing")

    monkeypatch.setattr(Segment, "codes", unpack)
    index.build()
    assert index.explain(np.ones((64, 2)), 1).segments[0].bands == 0
