"""Levels: thermometer codes, whose costs add up to the distance to the means of their cells."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import LONG
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import VectorIndex, reference
from bitweigh._vectors.bit_weights import costs_of_codes
from bitweigh.evaluation import euclidean_top, precision_at_k
from bitweigh.hashers import ITQ, LSH, Levels, Scalar
from bitweigh.hashers import load as load_hasher
from bitweigh.hashers._cells import cells_of_features
from bitweigh.hashers._files import from_bytes, to_bytes
from bitweigh.typing import Metric
from bitweigh.weighers import Decoded

RNG = np.random.default_rng(0)


def mixed(n: int, width: int = 12) -> NDArray[np.float64]:
    """Rows whose features differ in spread and depend on each other."""
    mixing = np.random.default_rng(3).standard_normal((width, width))
    return RNG.standard_normal((n, width)) * np.geomspace(4.0, 0.1, width) @ mixing + 2.0


def some_rows(rng: np.random.Generator, kind: str, n: int, width: int) -> NDArray[np.float64]:
    rows = rng.standard_normal((n, width))
    if kind == "heavy":
        rows *= np.exp(2.5 * rng.standard_normal((n, 1)))
    elif kind == "constant":
        rows[:, :: 2 if width > 1 else 1] = 3.25
    elif kind == "far":
        rows += 1000.0
    elif kind == "integers":
        rows = np.rint(rows)
    elif kind == "tiny":
        rows *= 1e-30
    return rows


@pytest.mark.timeout(1800)
@settings(max_examples=10_000 if LONG else 100)
@given(data=st.data())
def test_answers_are_the_smallest_sums_of_costs_which_are_distances(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    metric: Metric = data.draw(st.sampled_from(["euclidean", "cosine", "inner_product"]))
    width = data.draw(st.sampled_from([1, 2, 7, 16, 33]))
    n_bits = data.draw(st.sampled_from([1, 2, 9, 33, 100]))
    kind = data.draw(st.sampled_from(["normal", "heavy", "constant", "far", "integers", "tiny"]))
    rotation: Any = data.draw(st.sampled_from(["pca", "random"]))
    bitorder: Any = data.draw(st.sampled_from(["big", "little"]))
    fitted = some_rows(rng, kind, data.draw(st.sampled_from([1, 2, 40])), width)
    rows = np.concatenate([fitted, 1.5 * some_rows(rng, kind, 25, width)])
    queries = some_rows(rng, kind, 3, width)
    if metric == "cosine":
        fitted, rows, queries = (
            part[np.abs(part).max(axis=1) > 0] for part in (fitted, rows, queries)
        )
        if not (len(fitted) and len(queries)):
            return
    hasher = Levels(n_bits, rotation=rotation, bitorder=bitorder)
    index = VectorIndex(hasher=hasher, metric=metric).fit(fitted)
    index.add(rows)
    learned = index.hasher
    assert isinstance(learned, Levels)
    ids = np.arange(len(rows))
    codes, costs = index.codes_of(ids), index.costs(queries)
    k = data.draw(st.sampled_from([1, 5, 100]))
    found = index.search(queries, k)
    expected = reference.search(codes, costs, k, ids=ids, bitorder=bitorder)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found.ids.tobytes() == expected.ids.tobytes()
    decoded = learned.decode(codes)
    for query, its_costs, distances, found_ids in zip(
        queries, costs, found.distances, found.ids, strict=True
    ):
        unit = query / np.linalg.norm(query) if metric == "cosine" else query
        present = found_ids >= 0
        own = distances_to(decoded[found_ids[present]], unit, metric, learned)
        size = np.square(decoded).sum(axis=1).max() + np.square(unit).sum()
        allowed = 1e-12 * (size + np.abs(its_costs).sum()) + 1e-280
        assert np.abs(own - distances[present]).max(initial=0.0) <= allowed


def distances_to(
    decoded: NDArray[np.float64], query: NDArray[np.float64], metric: Metric, hasher: Levels
) -> NDArray[np.float64]:
    """What costs stand for: distances in the directions that have bits, or inner products."""
    if metric == "inner_product":
        return -(decoded @ query)
    gaps = (decoded - query) @ hasher.directions_
    return np.square(gaps).sum(axis=1) * (0.5 if metric == "cosine" else 1.0)


def test_cosines_of_codes_are_near_those_of_vectors() -> None:
    rows = mixed(2000)
    index = VectorIndex(n_bits=200, hasher="levels", metric="cosine").fit(rows)
    index.add(rows)
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = index.search(rows[:20], 2000)
    own = 1 - np.take_along_axis(units[:20] @ units.T, found.ids, axis=1)
    assert np.abs(found.distances - own).mean() < 0.03


def test_bits_are_in_order_of_features_and_thresholds() -> None:
    rows = RNG.standard_normal((3000, 3)) * np.array([1.0, 9.0, 3.0])
    hasher = Levels(14).fit(rows)
    assert (np.diff(hasher.features_) >= 0).all()
    counts = np.bincount(hasher.features_)
    assert counts.tolist() == sorted(counts, reverse=True)  # the components that vary most
    for feature in range(len(counts)):
        thresholds = hasher.thresholds_[hasher.features_ == feature]
        assert (np.diff(thresholds) > 0).all()
    bits = np.unpackbits(hasher.transform(rows), axis=1, count=14).astype(int)
    same = np.diff(hasher.features_) == 0
    assert (np.diff(bits, axis=1)[:, same] <= 0).all()  # a thermometer has no gaps
    np.testing.assert_array_equal(bits, hasher.project(rows) > hasher.thresholds_)


def test_thresholds_are_between_the_means_of_their_cells() -> None:
    rows = mixed(4000)
    hasher = Levels(30).fit(rows)
    values = hasher.project(rows)
    first_cell = 0
    for feature in range(hasher.directions_.shape[1]):
        bits = np.flatnonzero(hasher.features_ == feature)
        means = hasher.means_[first_cell : first_cell + len(bits) + 1]
        first_cell += len(bits) + 1
        own = values[:, bits[0]]
        cells = (own[:, np.newaxis] > hasher.thresholds_[bits]).sum(axis=1)
        expected = [own[cells == cell].mean() for cell in range(len(means))]
        np.testing.assert_allclose(means, expected, atol=1e-9 * np.abs(own).max())
        middles = (means[1:] + means[:-1]) / 2
        np.testing.assert_allclose(hasher.thresholds_[bits], middles, atol=0.02 * own.std())


def test_four_cells_of_a_normal_feature_are_those_of_lloyd_and_max() -> None:
    (three,) = cells_of_features(RNG.standard_normal((200_000, 1)), 3)
    # The optimal quantiser of a standard normal with four cells, Max (1960).
    np.testing.assert_allclose(three.thresholds, [-0.9816, 0.0, 0.9816], atol=0.02)
    np.testing.assert_allclose(three.means, [-1.510, -0.4528, 0.4528, 1.510], atol=0.02)


@pytest.mark.parametrize(("ratio", "n_bits"), [(0.5, 12), (0.8, 20), (0.95, 25)])
def test_bits_go_where_they_gain_most(ratio: float, n_bits: int) -> None:
    values = RNG.standard_normal((5000, 8)) * ratio ** np.arange(8)
    counts = [len(cells.thresholds) for cells in cells_of_features(values.copy(), n_bits)]
    assert sum(counts) == n_bits
    assert counts == sorted(counts, reverse=True)

    def error_of(feature: int, n: int) -> float:
        if n == 0:
            return float(np.square(values[:, feature] - values[:, feature].mean()).sum())
        (cells,) = cells_of_features(values[:, [feature]].copy(), n)
        places = np.searchsorted(cells.thresholds, values[:, feature])
        return float(np.square(values[:, feature] - cells.means[places]).sum())

    # What the last bit of a feature gained is more than what one more would gain elsewhere.
    last = [error_of(d, n - 1) - error_of(d, n) for d, n in enumerate(counts) if n]
    further = [error_of(d, n) - error_of(d, n + 1) for d, n in enumerate(counts)]
    assert min(last) >= 0.97 * max(further)


def test_constant_vectors_and_few_values_leave_bits_that_cost_nothing() -> None:
    for rows in (np.full((50, 3), 7.0), np.repeat([[0.0, 1.0], [4.0, 1.0]], 20, axis=0)):
        hasher = Levels(11).fit(rows)
        assert len(hasher.thresholds_) == 11
        np.testing.assert_allclose(hasher.decode(hasher.transform(rows)), rows, atol=1e-12)
        weigher = Decoded().fit_hasher(hasher)
        assert np.isfinite(weigher.costs(hasher.project(rows))).all()
        idle = (weigher.gains_ == 0) & (weigher.extras_ == 0)
        assert idle.sum() >= 10


@pytest.mark.parametrize("rotation", ["pca", "random"])
def test_a_code_depends_on_its_row_alone(rotation: Any) -> None:
    rows = mixed(300, 40)
    hasher = Levels(100, rotation=rotation).fit(rows)
    # Some values at the thresholds, where rounding decides, and must decide alike.
    chosen = RNG.integers(0, 100, 500)
    at = np.zeros((500, hasher.directions_.shape[1]))
    at[np.arange(500), hasher.features_[chosen]] = hasher.thresholds_[chosen]
    rows = np.concatenate([rows, at @ hasher.directions_.T + hasher.mean_])
    together = hasher.transform(rows)
    alone = np.concatenate([hasher.transform(row[np.newaxis]) for row in rows])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, hasher.transform(rows[::-1].copy())[::-1])
    bits = hasher.project(rows) > hasher.thresholds_
    assert np.array_equal(together, np.packbits(bits, axis=1))


def test_they_find_more_than_other_hashers_of_as_many_bits() -> None:
    rows = mixed(5100, 32)
    rows, queries = rows[100:], rows[:100]
    truth = euclidean_top(rows, queries, 10)

    def precision(hasher: Any) -> float:
        index = VectorIndex(hasher=hasher).fit(rows)
        index.add(rows)
        assert index.n_bits == 32
        return precision_at_k(index.search(queries, 10).ids, truth)

    assert precision(Levels(32)) > max(map(precision, (ITQ(32), LSH(32), Scalar(1))))


@pytest.mark.parametrize("weigher", ["asym", "wh"])
def test_other_weighers_take_the_bits_one_by_one(weigher: Any) -> None:
    rows = mixed(2000)
    index = VectorIndex(n_bits=40, hasher="levels", weigher=weigher).fit(rows)
    index.add(rows)
    queries = mixed(50)
    found = index.search(queries, 10).ids
    assert precision_at_k(found, euclidean_top(rows, queries, 10)) > 0.1


def test_a_mean_far_away_does_not_change_inner_products() -> None:
    rows = mixed(2000) + 50.0
    index = VectorIndex(n_bits=60, hasher="levels", metric="inner_product").fit(rows)
    index.add(rows)
    hasher = index.hasher
    assert isinstance(hasher, Levels)
    assert not hasher.mean_.any()
    queries = RNG.standard_normal((20, 12))
    products = queries @ hasher.decode(index.codes_of(np.arange(2000))).T
    found = index.search(queries, 10)
    own = np.take_along_axis(products, found.ids, axis=1)
    np.testing.assert_allclose(-found.distances, own, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(own[:, -1], np.sort(products, axis=1)[:, -10], rtol=1e-9)
    with pytest.raises(ValueError, match="needs a hasher with origin='zero'"):
        Decoded().fit_hasher(Levels(9).fit(rows), "inner_product")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_bits": 0}, "n_bits must be from 1"),
        ({"n_bits": 4 * 255 + 1}, "at most 255 bits per feature"),
        ({"n_bits": 8, "rotation": None}, "rotation must be 'pca' or 'random', got None"),
        ({"n_bits": 8, "origin": "median"}, "origin must be 'mean' or 'zero'"),
    ],
)
def test_wrong_parameters_are_refused(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Levels(**options).fit(np.eye(4))


def test_all_bits_of_one_feature_are_possible() -> None:
    hasher = Levels(255).fit(RNG.standard_normal((3000, 1)))
    assert hasher.means_.shape == (256,)
    assert (np.diff(hasher.thresholds_) > 0).all()


def test_numbers_of_any_size_are_divided() -> None:
    rows = RNG.standard_normal((500, 2))
    one = cells_of_features(rows.copy(), 9)
    for scale in (2.0**-500, 2.0**600):
        for small, other in zip(one, cells_of_features(rows * scale, 9), strict=True):
            np.testing.assert_allclose(other.thresholds, scale * small.thresholds, rtol=1e-9)
            np.testing.assert_allclose(other.means, scale * small.means, rtol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("rerank", [None, "float16"])
def test_folders_with_levels_live(tmp_path: Path, metric: Metric, rerank: Any) -> None:
    rows = mixed(400).astype(np.float32)
    index = VectorIndex(hasher=Levels(50, seed=4), metric=metric, rerank=rerank).fit(rows)
    index.add(rows[:300])
    index.save(tmp_path / "index")
    expected = index.search(rows[:9], 5)
    for mmap in (False, True):
        loaded = VectorIndex.load(tmp_path / "index", mmap=mmap)
        loaded.verify()
        found = loaded.search(rows[:9], 5)
        assert found.distances.tobytes() == expected.distances.tobytes()
        other = index.copy()
        other.reset()
        other.add(rows[300:], ids=np.arange(1000, 1100))
        loaded.merge(other)
        assert len(loaded) == 400


def changed(hasher: Levels, name: str, values: NDArray[np.float64]) -> bytes:
    with np.load(io.BytesIO(to_bytes(hasher))) as loaded:
        arrays = {**loaded, name: values}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("features_", lambda one: one + 1, "features_ must number"),
        ("features_", lambda one: one + 0.5 * (one == 1), "features_ must number"),
        ("features_", lambda one: one[::-1], "features_ must number"),
        ("features_", lambda one: 0 * one, "features_ must number"),
        ("directions_", lambda one: one[:, :-1], "features_ must number"),
        ("means_", lambda one: one[:-1], "a number for each cell"),
        ("threshold_", lambda one: one[::-1], "must ascend"),
    ],
)
def test_parts_of_a_file_that_do_not_fit_are_refused(name: str, change: Any, error: str) -> None:
    hasher = Levels(12).fit(RNG.standard_normal((500, 3)))
    attribute = "thresholds_" if name == "threshold_" else name
    values = np.asarray(getattr(hasher, attribute), np.float64)
    assert from_bytes(changed(hasher, name, values), Path("x"), (Levels,)).n_bits_ == 12
    with pytest.raises(bitweigh.CorruptFileError, match=error):
        from_bytes(changed(hasher, name, change(values)), Path("x"), (Levels,))


def test_a_file_with_the_rotation_of_another_hasher_is_refused() -> None:
    with np.load(io.BytesIO(to_bytes(Levels(12).fit(mixed(100, 3))))) as loaded:
        arrays = dict(loaded)
    arrays["about"] = np.array(str(arrays["about"]).replace('"pca"', "null"))
    file = io.BytesIO()
    np.savez(file, **arrays)
    with pytest.raises(bitweigh.CorruptFileError, match="rotation must be"):
        from_bytes(file.getvalue(), Path("x"), (Levels,))


def test_a_loaded_hasher_decodes_alike(tmp_path: Path) -> None:
    rows = mixed(300)
    hasher = Levels(31, origin="zero").fit(rows)
    hasher.save(tmp_path / "hasher.npz")
    loaded = load_hasher(tmp_path / "hasher.npz")
    assert isinstance(loaded, Levels)
    codes = hasher.transform(rows)
    assert loaded.decode(codes).tobytes() == hasher.decode(codes).tobytes()
    assert loaded.features_.dtype == np.int64


def test_bands_are_chosen_by_what_codes_stand_for_and_change_no_answer() -> None:
    rows = mixed(9000)
    plain = VectorIndex(n_bits=48, hasher="levels", bands=0).fit(rows)
    banded = VectorIndex(n_bits=48, hasher="levels", bands=3, band_bits=8).fit(rows)
    for index in (plain, banded):
        index.add(rows)
        index.build()
    assert costs_of_codes(banded.hasher, banded.weigher) is not None
    assert banded.index._state.segments[0].segment.bands
    queries = mixed(40)
    expected = plain.search(queries, 10)
    probed = banded.index.search(banded.costs(queries), 10, method="probe")
    assert probed.distances.tobytes() == expected.distances.tobytes()
    assert np.array_equal(probed.ids, expected.ids)
