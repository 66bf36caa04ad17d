"""Lean rows: searched, changed, saved and verified as rows that store whole codes are."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from cases import assert_same, with_lean_rows
from hypothesis import given
from hypothesis import strategies as st

import bitweigh
from bitweigh import _core
from bitweigh._index.bands import rests_of
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder, Method


def lean_index(
    n: int = 1000,
    n_bits: int = 40,
    bitorder: BitOrder = "big",
    *,
    clustered: bool = False,
    band_bits: int | None = None,
) -> bitweigh.Index:
    """Return an index with two bands of lean rows and scattered ids."""
    rng = np.random.default_rng(n + n_bits)
    bits = rng.integers(0, 2, (n, n_bits), dtype=np.uint8)
    if clustered:
        bits = bits[rng.integers(0, 20, n)] ^ (rng.random((n, n_bits)) < 0.03)
    band_bits = band_bits or max(1, n_bits // 4)
    index = bitweigh.Index(n_bits, bitorder=bitorder, bands=2, band_bits=band_bits)
    index._policy.banded_rows = index._policy.tail_rows = 1
    index.add(np.packbits(bits, axis=1, bitorder=bitorder), rng.permutation(3 * n)[:n])
    index.build()
    index._state = with_lean_rows(index._state, bitorder)
    return index


def whole(index: bitweigh.Index) -> bitweigh.Index:
    """Return an index with the same codes, each stored whole, without bands."""
    other = bitweigh.Index(index.n_bits, bitorder=index.bitorder, bands=0)
    other.add(index.codes_of(index.ids), index.ids)
    return other


def queries(n_bits: int, nq: int = 5) -> np.ndarray:
    return np.random.default_rng(nq).standard_normal((nq, n_bits, 2))


@given(
    n_bits=st.integers(1, 64), bitorder=st.sampled_from(["big", "little"]), seed=st.integers(0, 99)
)
def test_a_code_is_its_key_and_its_rest(n_bits: int, bitorder: BitOrder, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.integers(0, 2, (50, n_bits)), axis=1, bitorder=bitorder)
    bits = np.sort(rng.permutation(n_bits)[: rng.integers(1, min(n_bits, 12) + 1)]).astype("u2")
    rests = rests_of(codes, bits, n_bits, bitorder)
    assert rests.shape == (50, max(1, -(-(n_bits - len(bits)) // 8)))
    unpacked = np.unpackbits(codes, axis=1, count=n_bits, bitorder=bitorder)
    together = np.empty_like(unpacked)
    together[:, bits] = unpacked[:, bits]
    others = np.setdiff1d(np.arange(n_bits), bits)
    together[:, others] = np.unpackbits(rests, axis=1, count=len(others), bitorder="little")
    assert np.array_equal(together, unpacked)


def test_lean_rows_take_less_memory() -> None:
    index = lean_index(32_000, 64)
    memory = index.memory()
    assert memory.codes == memory.band_codes == 32_000 * 6
    assert memory.id_lookup == 0


def test_ids_are_sorted_when_they_are_first_looked_up() -> None:
    index = lean_index(500)
    expected = whole(index)  # looks codes up
    assert index.memory().id_lookup == 4 * 500
    assert np.array_equal(index.codes_of(index.ids), expected.codes_of(index.ids))
    with pytest.raises(KeyError, match="99999"):
        index.codes_of([99999])


def test_probing_and_scanning_are_both_tried() -> None:
    index = lean_index(20_000, 64, clustered=True)
    asked = queries(64, 20)
    scanned = index.search(asked, 5, method="scan", stats=True)
    probed = index.search(asked, 5, method="probe", stats=True)
    assert_same(scanned, probed)
    assert scanned.stats is not None
    assert probed.stats is not None
    assert (scanned.stats.rows_scanned > 0).all()
    assert (probed.stats.probes > 0).all()
    assert (probed.stats.blocks_probed > 0).all()


@pytest.mark.parametrize("method", ["scan", "probe"])
def test_keys_of_three_bytes_are_searched_as_shorter_ones_are(method: Method) -> None:
    index = lean_index(5000, 64, clustered=True, band_bits=20)
    assert [len(band.bits) for band in index._state.segments[0].segment.bands] == [20, 20]
    other = whole(index)
    assert np.array_equal(index.codes_of(index.ids), other.codes_of(index.ids))
    asked = queries(64, 20)
    assert_same(index.search(asked, 30, method=method), other.search(asked, 30))


@pytest.mark.parametrize("method", ["scan", "probe"])
@pytest.mark.parametrize("k", [1, 10, 700, 2000])
@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_among_rows_at_the_same_distance_those_of_least_id_are_found(
    method: Method, k: int, cost: float
) -> None:
    index = lean_index(5000, 64, clustered=True)
    # Only bits of the first key cost anything, so many keys are exactly at the worst distance.
    costs = np.zeros((64, 2))
    costs[index._state.segments[0].segment.bands[0].bits[:6], 1] = cost
    assert_same(index.search(costs, k, method=method), whole(index).search(costs, k))


def test_a_scan_skips_keys_that_are_too_far() -> None:
    index = lean_index(20_000, 64, clustered=True)
    found = index.range_search(index_costs(index), 3.0, method="scan", stats=True)
    assert found.distances[0] == 0.0
    assert found.stats is not None
    assert 0 < found.stats.rows_scanned < 5000


def index_costs(index: bitweigh.Index) -> np.ndarray:
    """Return the costs for which the first code has distance 0."""
    code = index.codes_of(index.ids[:1])
    return bitweigh.costs.hamming(code, index.n_bits, bitorder=index.bitorder)[0]


@pytest.mark.parametrize("n_bits", [7, 24, 33, 64])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_removing_filtering_and_ranges_work_as_with_whole_rows(
    n_bits: int, bitorder: BitOrder
) -> None:
    index = lean_index(700, n_bits, bitorder)
    other = whole(index)
    asked = queries(n_bits)
    for each in (index, other):
        each.remove(each.ids[::5])
    assert_same(index.search(asked, 20), other.search(asked, 20))
    few, many = index.ids[:30], index.ids[::2]
    for ids in (few, many):
        assert_same(index.search(asked, 9, allow=ids), other.search(asked, 9, allow=ids))
        assert_same(index.search(asked, 9, deny=ids), other.search(asked, 9, deny=ids))
    radius = float(other.search(asked[0], 40).distances[-1])
    for method in ("auto", "scan", "probe"):
        found = index.range_search(asked, radius, method=method)
        for ours, theirs in zip(found, other.range_search(asked, radius), strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_saved_index_is_of_version_2_and_answers_as_before(tmp_path: Path, mmap: bool) -> None:
    index = lean_index(900, 64)
    index.remove(index.ids[:3])
    index.save(tmp_path / "index")
    assert b'"version": 2' in (tmp_path / "index" / "manifest.json").read_bytes()
    loaded = bitweigh.Index.load(tmp_path / "index", mmap=mmap)
    loaded.verify()
    assert_same(loaded.search(queries(64), 10), index.search(queries(64), 10))
    assert loaded.memory()._replace(id_lookup=0) == index.memory()._replace(id_lookup=0)
    index.compact()
    index.save(tmp_path / "index")
    assert b'"version": 1' in (tmp_path / "index" / "manifest.json").read_bytes()


def test_an_index_of_lean_rows_can_be_pickled() -> None:
    index = lean_index(900, 64)
    copied = pickle.loads(pickle.dumps(index))
    assert_same(copied.search(queries(64), 10), index.search(queries(64), 10))


def test_verify_finds_a_rest_that_has_changed() -> None:
    index = lean_index(900, 64)
    index._state.segments[0].segment.bands[1].blocks[0] ^= 1
    with pytest.raises(CorruptFileError, match="band 1 has other codes than its segment"):
        index.verify()


def test_codes_of_more_than_64_bits_have_no_lean_rows() -> None:
    blocks = np.zeros(32 * 8, np.uint8)
    band = _core.Band(np.arange(8, dtype=np.uint16), np.zeros(257, np.uint32), blocks, None)
    with pytest.raises(ValueError, match="at most 64 bits"):
        _core.Segment(blocks, np.arange(32), None, 72, [band], "big")
