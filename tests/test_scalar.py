"""Scalar codes: their costs add up to the distance between a query and what a code stands for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import LONG
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import Index, VectorIndex, reference
from bitweigh._index.bands import layout_of
from bitweigh._index.evidence import from_decoded, weights_of
from bitweigh._vectors.bit_weights import costs_of_codes
from bitweigh.hashers import ITQ, LSH, Scalar, Sign
from bitweigh.hashers import load as load_hasher
from bitweigh.typing import Metric
from bitweigh.weighers import Asym, Decoded
from bitweigh.weighers import load as load_weigher

RNG = np.random.default_rng(0)


def rounding_of(*parts: NDArray[np.float64]) -> float:
    """More than float64 rounding can change in sums of so many terms of this size."""
    size = sum(float(np.abs(part).max(initial=0.0)) for part in parts)
    return 1e-12 * size + 1e-280


def distances_to(
    decoded: NDArray[np.float64], query: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """The distances that codes stand for."""
    if metric == "euclidean":
        return np.square(decoded - query).sum(axis=1)
    products = decoded @ query
    return 1 - products if metric == "cosine" else -products


def some_rows(rng: np.random.Generator, kind: str, n: int, width: int) -> NDArray[np.float64]:
    rows = rng.standard_normal((n, width))
    if kind == "heavy":
        rows *= np.exp(2.5 * rng.standard_normal((n, 1)))
    elif kind == "constant":
        rows[:, :: 2 if width > 1 else 1] = 3.25
    elif kind == "far":
        rows += 1000.0
    elif kind == "integers":
        rows = np.rint(2 * rows)
    elif kind == "tiny":
        rows *= 1e-30
    return rows


@pytest.mark.timeout(1800)
@settings(max_examples=10_000 if LONG else 100)
@given(data=st.data())
def test_answers_are_the_smallest_sums_of_costs_which_are_distances(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    metric: Metric = data.draw(st.sampled_from(["euclidean", "cosine", "inner_product"]))
    bits = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    width = data.draw(st.sampled_from([1, 2, 7, 16, 33]))
    kind = data.draw(st.sampled_from(["normal", "heavy", "constant", "far", "integers", "tiny"]))
    rotation = data.draw(st.sampled_from(["random", None]))
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
    norm_bits = None if metric == "euclidean" else 0
    hasher = Scalar(bits, rotation=rotation, norm_bits=norm_bits, bitorder=bitorder)
    index = VectorIndex(hasher=hasher, metric=metric).fit(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values out of range are meant
        index.add(rows)
    fitted_hasher = index.hasher
    assert isinstance(fitted_hasher, Scalar)
    k = data.draw(st.sampled_from([1, 5, 100]))
    found = index.search(queries, k)
    codes = index.codes_of(np.arange(len(rows)))
    costs = index.costs(queries)
    ids = np.arange(len(rows))
    expected = reference.search(codes, costs, k, ids=ids, bitorder=bitorder)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found.ids.tobytes() == expected.ids.tobytes()
    decoded = fitted_hasher.decode(codes)
    for number, query in enumerate(queries):
        unit = query / np.linalg.norm(query) if metric == "cosine" else query
        present = found.ids[number] >= 0
        own = distances_to(decoded[found.ids[number][present]], unit, metric)
        bound = rounding_of(np.square(decoded), np.square(unit), costs[number]) * costs.shape[1]
        if metric == "euclidean":
            bound += allowed_norm_error(fitted_hasher, decoded)
        assert np.abs(own - found.distances[number][present]).max(initial=0.0) <= bound


def allowed_norm_error(hasher: Scalar, decoded: NDArray[np.float64]) -> float:
    """Half a step of stored norms, and what is cut off of those out of range."""
    low, step = hasher.norm_range_
    if not hasher.norm_bits_:
        return 0.0
    norms = np.square(decoded - hasher.mean_).sum(axis=1)
    high = low + step * (2**hasher.norm_bits_ - 1)
    outside = max(0.0, float((norms - high).max()), float((low - norms).max()))
    return step / 2 + outside


def test_feature_and_bit_are_where_the_docs_say() -> None:
    hasher = Scalar(3, rotation=None, norm_bits=4).fit(
        np.array([[0.0, 0.0], [7.0, 14.0], [7.0, 0.0]])
    )
    assert hasher.steps_.tolist() == [1.0, 2.0]
    codes = hasher.transform([[5.0, 12.0]])  # levels 5 = 0b101 and 6 = 0b110
    bits = np.unpackbits(codes, axis=1, count=10)[0]
    for feature, level in enumerate((5, 6)):
        for place in range(3):
            assert bits[3 * feature + 3 - 1 - place] == (level >> place) & 1
    low, step = hasher.norm_range_
    norm = np.square(np.array([5.0, 12.0]) - hasher.mean_).sum()
    assert int("".join(map(str, bits[6:])), 2) == round((norm - low) / step)


def test_a_constant_feature_has_level_0_and_costs_nothing() -> None:
    rows = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    hasher = Scalar(2, rotation=None, norm_bits=0).fit(rows)
    assert hasher.steps_[1] == 0
    assert hasher.decode(hasher.transform([[1.0, 99.0]]))[0, 1] == 5.0
    bits = np.unpackbits(hasher.transform([[1.0, 99.0]]), axis=1, count=4)
    assert bits[0, 2:].tolist() == [0, 0]
    costs = Decoded().fit_hasher(hasher, "inner_product").costs(hasher.project([[1.0, 7.0]]))
    gaps = costs[0, :, 1] - costs[0, :, 0]
    assert (gaps[2:] == 0).all()


@pytest.mark.parametrize("rotation", ["random", None])
def test_a_code_depends_on_its_row_alone(rotation: Any) -> None:
    rows = RNG.standard_normal((300, 40))
    hasher = Scalar(4, rotation=rotation).fit(rows)
    together = hasher.transform(rows)
    alone = np.concatenate([hasher.transform(row[np.newaxis]) for row in rows])
    backwards = hasher.transform(rows[::-1].copy())[::-1]
    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_rows_next_to_the_border_of_a_level_are_decided_row_by_row() -> None:
    rows = RNG.standard_normal((200, 24))
    hasher = Scalar(2).fit(rows)
    # The middle between two levels, rotated back: rounding decides, and must decide alike.
    middles = hasher.lows_ + hasher.steps_ * (RNG.integers(0, 3, (500, 24)) + 0.5)
    assert hasher.rotation_ is not None
    vectors = middles @ hasher.rotation_.T + hasher.mean_
    together = hasher.transform(vectors)
    alone = np.concatenate([hasher.transform(row[np.newaxis]) for row in vectors])
    assert np.array_equal(together, alone)


def test_values_and_norms_out_of_range_are_clipped_and_reported() -> None:
    rows = RNG.standard_normal((500, 8))
    index = VectorIndex(hasher="scalar").fit(rows)
    index.add(rows)  # says nothing
    with pytest.warns(UserWarning, match="of 3 vectors, 24 values and 3 norms are outside"):
        index.add(np.full((3, 8), 1e6))
    hasher = index.hasher
    assert isinstance(hasher, Scalar)
    decoded = hasher.decode(index.codes_of([500]))
    largest = hasher.lows_ + 15 * hasher.steps_
    assert hasher.rotation_ is not None
    rotated = (np.full((1, 8), 1e6) - hasher.mean_) @ hasher.rotation_
    expected = np.where(rotated > 0, largest, hasher.lows_) @ hasher.rotation_.T + hasher.mean_
    assert np.allclose(decoded, expected)
    assert np.unpackbits(index.codes_of([500]), axis=1, count=hasher.n_bits_)[0, 32:].all()


def test_heavy_tailed_norms_get_more_bits() -> None:
    rows = RNG.standard_normal((3000, 16))
    usual = Scalar(4).fit(rows)
    rows[0] *= 3000
    heavy = Scalar(4).fit(rows)
    assert heavy.norm_bits_ > usual.norm_bits_ + 16
    near = np.square(rows[1:200, np.newaxis] - rows[np.newaxis, 1:]).sum(axis=2)
    tenth = float(np.median(np.sort(near, axis=1)[:, 10]))
    assert heavy.norm_range_[1] < 0.02 * tenth


def test_too_many_bits_name_the_number_that_fits() -> None:
    wide = RNG.standard_normal((20, 2048))
    with pytest.raises(ValueError, match="at most 3 a feature fit"):
        Scalar(4).fit(wide)
    assert Scalar(4, norm_bits=0).fit(wide).n_bits_ == 8192
    assert Scalar(3).fit(wide).n_bits_ <= 8192
    with pytest.raises(ValueError, match="at most 4 a feature fit"):
        Scalar(8).fit(wide)
    with pytest.raises(ValueError, match="not even one a feature fits"):
        Scalar(1).fit(np.ones((2, 9000)))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"bits": 0}, "bits"),
        ({"bits": 9}, "bits"),
        ({"norm_bits": -1}, "norm_bits"),
        ({"norm_bits": 41}, "norm_bits"),
        ({"rotation": "pca"}, "rotation must be 'random' or None"),
    ],
)
def test_wrong_parameters_are_refused(options: Any, error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        Scalar(**options).fit(np.eye(4))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hasher": "scalar", "weigher": "asym"}, "digits"),
        ({"hasher": "itq", "weigher": "decoded"}, "Decoded is for Scalar and Levels"),
        ({"hasher": "itq", "metric": "inner_product"}, "needs codes that stand for vectors"),
        ({"hasher": "sign", "metric": "inner_product"}, "needs codes that stand for vectors"),
        ({"hasher": LSH(8), "weigher": Asym(), "metric": "inner_product"}, "stand for vectors"),
    ],
)
def test_what_does_not_go_together_is_refused(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        VectorIndex(**options)


def test_norm_bits_are_for_the_euclidean_distance() -> None:
    index = VectorIndex(hasher=Scalar(4, norm_bits=8), metric="cosine")
    with pytest.raises(ValueError, match="'cosine' needs none"):
        index.fit(RNG.standard_normal((20, 4)))
    plain = Scalar(4, norm_bits=0).fit(RNG.standard_normal((20, 4)))
    with pytest.raises(ValueError, match="needs the norms"):
        Decoded().fit_hasher(plain)
    with pytest.raises(ValueError, match="norm_bits=0"):
        Decoded().fit_hasher(Scalar(4).fit(RNG.standard_normal((20, 4))), "inner_product")
    with pytest.raises(TypeError, match="does not say what its codes stand for"):
        Decoded().fit_hasher(ITQ(4).fit(RNG.standard_normal((20, 4))))


def test_the_largest_inner_products_are_found_among_rows_of_very_different_lengths() -> None:
    rows = RNG.standard_normal((4000, 24)) * np.exp(1.5 * RNG.standard_normal((4000, 1)))
    queries = RNG.standard_normal((50, 24))
    index = VectorIndex(hasher=Scalar(8), metric="inner_product").fit(rows)
    index.add(rows)
    hasher = index.hasher
    assert isinstance(hasher, Scalar)
    products = queries @ hasher.decode(index.codes_of(np.arange(4000))).T
    expected = np.argsort(-products, axis=1, kind="stable")[:, :10]
    found = index.search(queries, 10)
    assert np.array_equal(found.ids, expected)
    own = np.take_along_axis(products, found.ids, axis=1)
    assert np.abs(found.distances + own).max() < 1e-9


def test_inner_products_of_signs_are_those_of_binary_embeddings() -> None:
    rows = RNG.standard_normal((300, 16)).astype(np.float32)
    index = VectorIndex(hasher="sign", weigher="inner_product", metric="inner_product").fit(rows)
    index.add(rows)
    embeddings = bitweigh.BinaryEmbeddings(16)
    embeddings.add(bitweigh.embeddings.quantize(rows))
    found, expected = index.search(rows[:9], 5), embeddings.search(rows[:9], 5)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.distances, 0.0 - expected.scores)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("rerank", [None, "float32"])
def test_folders_with_scalar_codes_live(tmp_path: Path, metric: Metric, rerank: Any) -> None:
    rows = RNG.standard_normal((400, 12)).astype(np.float32)
    index = VectorIndex(hasher=Scalar(3, seed=4), metric=metric, rerank=rerank).fit(rows)
    index.add(rows[:300])
    index.save(tmp_path / "index")
    expected = index.search(rows[:9], 5)
    for mmap in (False, True):
        loaded = VectorIndex.load(tmp_path / "index", mmap=mmap)
        loaded.verify()
        assert repr(loaded.hasher).startswith("Scalar(bits=3")
        found = loaded.search(rows[:9], 5)
        assert found.distances.tobytes() == expected.distances.tobytes()
        loaded.add(rows[300:])
        loaded.remove(range(10))
        loaded.save(tmp_path / "more")
        index_more = VectorIndex.load(tmp_path / "more")
        assert np.array_equal(loaded.search(rows[:9], 5).ids, index_more.search(rows[:9], 5).ids)
        merged = VectorIndex.load(tmp_path / "index")
        merged.merge(_numbered_from(index, rows[300:], 1000))
        assert len(merged) == 400


def _numbered_from(index: VectorIndex, rows: NDArray[Any], first: int) -> VectorIndex:
    other = index.copy()
    other.reset()
    other.add(rows, ids=np.arange(first, first + len(rows)))
    return other


@pytest.mark.parametrize("rotation", ["random", None])
def test_a_hasher_and_its_weigher_are_the_same_after_saving(tmp_path: Path, rotation: Any) -> None:
    rows = RNG.standard_normal((100, 6))
    hasher = Scalar(5, rotation=rotation).fit(rows)
    hasher.save(tmp_path / "hasher.npz")
    loaded = load_hasher(tmp_path / "hasher.npz")
    assert isinstance(loaded, Scalar)
    assert np.array_equal(loaded.transform(rows), hasher.transform(rows))
    assert (loaded.bits_, loaded.norm_bits_) == (hasher.bits_, hasher.norm_bits_)
    weigher = Decoded().fit_hasher(hasher)
    weigher.save(tmp_path / "weigher.npz")
    again = load_weigher(tmp_path / "weigher.npz")
    projected = hasher.project(rows)
    assert np.array_equal(again.costs(projected), weigher.costs(projected))


def test_parameters_set_after_fitting_change_nothing_yet() -> None:
    rows = RNG.standard_normal((50, 6))
    hasher = Scalar(4).fit(rows)
    before = hasher.transform(rows)
    hasher.set_params(bits=2, rotation=None, norm_bits=3)
    assert np.array_equal(hasher.transform(rows), before)


def test_bands_take_the_bits_that_weigh_most() -> None:
    rows = RNG.standard_normal((20_000, 12)) * np.array([8.0] * 6 + [0.1] * 6)
    hasher = Scalar(4, rotation=None).fit(rows)
    weigher = Decoded().fit_hasher(hasher)
    costs = costs_of_codes(hasher, weigher)
    assert costs is not None
    codes = hasher.transform(rows)
    weights = weights_of(from_decoded(codes, costs))
    layout = layout_of(codes, hasher.n_bits_, "big", 2, 9, weights)
    used = {int(bit) for band in layout for bit in band if bit < 48}
    # The features that hardly vary, and the lowest digits, are not worth a key.
    assert all(bit // 4 < 6 for bit in used)
    most_significant = {4 * feature for feature in range(6)}
    assert most_significant <= used
    index = VectorIndex(hasher=hasher, bands=2, band_bits=9).fit(rows)
    index.add(rows)
    index.build()
    built = {int(bit) for band in index.index._state.segments[0].segment.bands for bit in band.bits}
    assert most_significant <= built
    assert costs_of_codes(Sign().fit(rows), Asym()) is None


def test_bands_never_change_an_answer() -> None:
    rows = RNG.standard_normal((9000, 8))
    hasher = Scalar(4)
    plain = VectorIndex(hasher=hasher, bands=0).fit(rows)
    banded = VectorIndex(hasher=hasher, bands=3, band_bits=8).fit(rows)
    for index in (plain, banded):
        index.add(rows)
        index.build()
    assert banded.index._state.segments[0].segment.bands
    queries = RNG.standard_normal((40, 8))
    expected = plain.search(queries, 10)
    found = banded.search(queries, 10)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert np.array_equal(found.ids, expected.ids)
    probed = Index.search(banded.index, banded.costs(queries), 10, method="probe")
    assert probed.distances.tobytes() == expected.distances.tobytes()
