"""Bands: which bits they use, what they cost, and when an index has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh._index.bands import BandLayout, BandOptions, layout_of
from bitweigh._index.request import METHODS, Request
from bitweigh._index.segments import Segment
from bitweigh.typing import BitOrder, Codes, Method


def layout_for(options: BandOptions, codes: Codes, n_bits: int, bitorder: BitOrder) -> BandLayout:
    return layout_of(codes, n_bits, bitorder, *options.shape(len(codes), n_bits))


def filled(n: int, n_bits: int = 64, **options: Any) -> bitweigh.Index:
    rng = np.random.default_rng(0)
    index = bitweigh.Index(n_bits, **options)
    index._policy.min_gain = 0  # bands of random codes never pay
    index.add(rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8))
    return index


def test_a_directory_takes_little_memory_unless_longer_keys_are_asked_for() -> None:
    assert BandOptions().shape(10**8, 32) == (1, 24)
    assert BandOptions(band_bits=27).shape(10**8, 32) == (1, 27)


@given(
    st.integers(1, 2**40),
    st.integers(1, 8192),
    st.none() | st.integers(1, 30),
    st.none() | st.integers(1, 28),
)
def test_the_shape_of_bands_fits_the_code(
    n: int, n_bits: int, bands: int | None, band_bits: int | None
) -> None:
    count, width = BandOptions(bands, band_bits).shape(n, n_bits)
    assert count == (min(bands, n_bits) if bands else count)
    assert 1 <= count <= max(16, bands or 0)
    assert 1 <= width <= min(28, n_bits)


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
    assert probes_of(index, costs, "probe") == 0
    index.build()
    assert probes_of(index, costs, "probe") > 0


def probes_of(index: bitweigh.Index, costs: NDArray[np.float64], method: Method = "auto") -> int:
    stats = index.search(costs, 1, stats=True, method=method).stats
    assert stats is not None
    return int(stats.probes)


def test_a_large_index_gets_its_bands_when_codes_are_added() -> None:
    index = filled(200_000)
    assert index.memory().directories > 0
    costs = bitweigh.costs.hamming(index.codes_of([17])[0], 64)
    assert index.search(costs, 1).ids.tolist() == [17]
    assert probes_of(index, costs) > 0


def test_reads_build_nothing(tmp_path: Path) -> None:
    index = filled(200_000, build="manual")
    costs = np.ones((64, 2))
    before = index._state
    index.save(tmp_path / "index")
    for reader in (index, bitweigh.Index.load(tmp_path / "index", mmap=True)):
        for method in METHODS:
            reader.search(costs, 1, method=method)
            reader.search_with_ties(costs, 1, method=method)
            reader.range_search(costs, -1.0, method=method)
            reader.search_by_id(3, 1, method=method)
            reader.explain(costs, 1, method=method)
        next(reader.iterate(costs))
        reader.verify()
        assert reader.memory().directories == 0
    assert index._state is before
    assert not list((tmp_path / "index").glob("starts-*"))


def test_only_build_builds_bands_of_a_manual_index() -> None:
    index = filled(200_000, build="manual")
    index.compact()
    assert index.memory().directories == 0
    assert "build='manual'" in index.explain(np.ones((64, 2)), 1).reason
    index.build()
    assert index.memory().directories > 0
    index.remove([7])
    index.compact()
    assert index.memory().directories > 0


def test_few_codes_are_why_there_are_no_bands_even_if_nothing_was_decided(tmp_path: Path) -> None:
    index = filled(2000, build="manual")
    index.save(tmp_path / "index")
    for reader in (index, bitweigh.Index.load(tmp_path / "index")):
        reason = reader.explain(np.ones((64, 2)), 1).reason
        assert "scanning fewer than 131,072 codes is as fast" in reason


def test_building_again_uses_memory_that_was_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("bitweigh._index.bands.free_memory", lambda: 5_000_000)
        index = filled(200_000)
    costs = np.ones((64, 2))
    (facts,) = index.explain(costs, 1).segments
    assert 0 == facts.bands < facts.wanted_bands
    index.build(threads=1)
    (facts,) = index.explain(costs, 1).segments
    assert facts.bands == facts.wanted_bands


def test_explain_gives_the_reason_why_there_are_no_bands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    costs = np.ones((64, 2))
    assert "fewer than 131,072" in filled(5000).explain(costs, 1).reason
    assert "memory_limit=1000" in filled(200_000, memory_limit=1000).explain(costs, 1).reason
    with monkeypatch.context() as patch:
        patch.setattr("bitweigh._index.bands.free_memory", lambda: 0)
        index = filled(200_000)
    assert "too little free memory" in index.explain(costs, 1).reason
    index.save(tmp_path / "index")
    assert "saved without" in bitweigh.Index.load(tmp_path / "index").explain(costs, 1).reason


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
    index._policy.segment_rows, index._policy.min_gain = 5000, 0
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
    assert "faster than setting up probes" in small.reason
    given_up = index.explain(np.random.default_rng(1).standard_normal((64, 2)), 10)
    assert given_up.plan == "probe, then scan"
    assert index.explain(costs, 300_000).reason == "k is larger than the number of codes"


@pytest.mark.parametrize("method", ["scan", "auto"])
def test_explain_has_what_it_found(method: Any) -> None:
    index = filled(200_000)
    costs = bitweigh.costs.hamming(index.codes_of([17])[0], 64)
    found = index.explain(costs, 3, method=method).found
    wanted = index.search(costs, 3)
    assert np.array_equal(found.ids, wanted.ids)
    assert np.array_equal(found.distances, wanted.distances)


def test_explain_speaks_of_the_codes_that_it_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled(5000)
    request = index._request

    def and_another_thread_adds(*arguments: Any, **options: Any) -> Request:
        index.add(index.codes_of(range(1000)))
        return request(*arguments, **options)

    monkeypatch.setattr(index, "_request", and_another_thread_adds)
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


def test_compact_builds_the_bands_of_a_large_index_that_was_saved_without(tmp_path: Path) -> None:
    n_rows = bitweigh.Index(64)._policy.banded_rows
    index = bitweigh.Index(64, build="manual")
    index.add(np.random.default_rng(0).integers(0, 256, (n_rows, 8), dtype=np.uint8))
    index.compact()
    assert index.memory().directories == 0
    index.save(tmp_path)
    loaded = bitweigh.Index.load(tmp_path, mmap=True)
    loaded._policy.min_gain = 0
    loaded.compact()
    assert loaded.memory().directories > 0
    segments = loaded._state.segments
    loaded.compact()
    assert loaded._state.segments == segments


def test_an_empty_index_is_explained_as_one() -> None:
    assert bitweigh.Index(8).explain(np.ones((8, 2)), 3).reason == "the index is empty"


def test_ties_count_the_work_of_both_searches() -> None:
    index = bitweigh.Index(64)
    index.add(np.random.default_rng(0).integers(0, 256, (500, 8), dtype=np.uint8))
    costs = np.random.default_rng(1).random((3, 64, 2))
    both = index.search_with_ties(costs, 5, stats=True).stats
    nearest = index.search(costs, 5, stats=True).stats
    assert both is not None
    assert nearest is not None
    looked_at = both.rows_scanned + both.rows_scored_directly
    assert (looked_at >= nearest.rows_scanned + nearest.rows_scored_directly + 500).all()
