"""Weighers: each cost against its formula, and the guards of the formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors

from bitweigh import Index, costs, evaluation, weighers
from bitweigh.hashers import LSH, Sign
from bitweigh.weighers import Asym, Wh
from bitweigh.weighers._base import Weigher
from bitweigh.weighers._wh import log_odds

WEIGHERS = [Asym(), Asym("lower_bound"), Wh()]
SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 20), st.integers(1, 9))
def test_the_expectation_is_the_squared_gap_to_the_mean_of_a_side(
    seed: int, n: int, n_bits: int
) -> None:
    rng = np.random.default_rng(seed)
    projected, thresholds = rng.standard_normal((n, n_bits)), rng.standard_normal(n_bits) / 4
    queries = rng.standard_normal((3, n_bits))
    made = Asym().fit(projected, thresholds).costs(queries)
    for k in range(n_bits):
        ones = projected[:, k] > thresholds[k]
        for v, side in enumerate([projected[~ones, k], projected[ones, k]]):
            mean = side.mean() if len(side) else thresholds[k]
            np.testing.assert_allclose(made[:, k, v], (queries[:, k] - mean) ** 2, atol=1e-12)


def test_a_side_without_training_rows_has_its_threshold_for_a_mean() -> None:
    weigher = Asym().fit(np.array([[3.0, -1.0], [5.0, -3.0]]), np.array([1.0, 2.0]))
    assert weigher.means_.tolist() == [[1.0, 4.0], [-2.0, 2.0]]


def test_the_lower_bound_costs_nothing_on_the_own_side() -> None:
    weigher = Asym("lower_bound").fit(np.zeros((1, 3)), np.array([0.0, 1.0, 2.0]))
    made = weigher.costs(np.array([3.0, -1.0, 2.0]))
    assert made.tolist() == [[9.0, 0.0], [0.0, 4.0], [0.0, 0.0]]


@given(SEEDS)
def test_the_lower_bound_is_below_every_distance_of_projections(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, query = rng.standard_normal((20, 8)), rng.standard_normal(8)
    made = Asym("lower_bound").fit(rows).costs(query)
    paid = made[np.arange(8), (rows > 0).astype(int)].sum(axis=1)
    assert (paid <= ((rows - query) ** 2).sum(axis=1) * (1 + 1e-12)).all()


def test_log_odds_agree_with_scipy() -> None:
    z = np.linspace(-40, 40, 160_001)
    z = z[np.abs(z) > 0.01]  # nearer to 0 the difference of scipy's logarithms cancels
    ours = np.copysign(log_odds(np.abs(z)), z)
    np.testing.assert_allclose(ours, log_ndtr(z) - log_ndtr(-z), rtol=1e-12)


def test_log_odds_are_precise_near_zero_and_finite_far_out() -> None:
    tiny = np.array([1e-300, 1e-20, 1e-9])
    np.testing.assert_allclose(log_odds(tiny), tiny * 4 / np.sqrt(2 * np.pi), rtol=1e-12)
    assert log_odds(np.array([0.0])).tolist() == [0.0]
    far = log_odds(np.array([1e3, 1e6, 1e150]))
    np.testing.assert_allclose(far, -log_ndtr(-np.array([1e3, 1e6, 1e150])), rtol=1e-12)


def test_log_odds_rise_without_ties() -> None:
    for z in (np.linspace(0, 60, 100_001), 20 + np.linspace(-1e-9, 1e-9, 101)):
        assert (np.diff(log_odds(z)) > 0).all()


@pytest.mark.parametrize("own_vectors", [True, False])
def test_wh_learns_sigma_from_near_neighbours(own_vectors: bool) -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((300, 6))
    hasher = LSH(10).fit(rows)
    projected = hasher.project(rows)
    near = rows if own_vectors else projected
    weigher = Wh(n_neighbours=4).fit(projected, vectors=rows if own_vectors else None)
    ids = NearestNeighbors(n_neighbors=5).fit(near).kneighbors(near, return_distance=False)[:, 1:]
    gaps = projected[ids] - projected[:, np.newaxis]
    np.testing.assert_allclose(weigher.sigmas_, np.sqrt((gaps**2).mean(axis=(0, 1))))


def test_wh_costs_are_the_log_odds_that_the_bit_is_shared() -> None:
    rng = np.random.default_rng(5)
    projected, thresholds = rng.standard_normal((50, 7)), rng.standard_normal(7) / 3
    queries = rng.standard_normal((4, 7))
    weigher = Wh().fit(projected, thresholds)
    z = np.abs(queries - thresholds) / weigher.sigmas_
    bits = (queries > thresholds).astype(int)
    made = weigher.costs(queries)
    own = np.take_along_axis(made, bits[..., np.newaxis], axis=-1)[..., 0]
    other = np.take_along_axis(made, 1 - bits[..., np.newaxis], axis=-1)[..., 0]
    assert not own.any()
    np.testing.assert_allclose(other, log_ndtr(z) - log_ndtr(-z), rtol=1e-9)


def test_wh_looks_at_some_rows_drawn_by_its_seed() -> None:
    projected = np.random.default_rng(6).standard_normal((200, 5))
    some, same, other = (Wh(n_rows=20, seed=seed).fit(projected) for seed in (0, 0, 1))
    np.testing.assert_array_equal(some.sigmas_, same.sigmas_)
    assert (some.sigmas_ != other.sigmas_).all()


def test_copies_and_constants_leave_sigma_positive() -> None:
    projected = np.repeat(np.array([[1.0, 7.0], [-1.0, 7.0]]), 30, axis=0)
    weigher = Wh().fit(projected)
    np.testing.assert_allclose(weigher.sigmas_, [1e-3, 1.0])
    assert np.isfinite(weigher.costs(np.array([[3.0, 7.0], [0.0, 0.0]]))).all()


def test_fewer_rows_than_neighbours_are_all_neighbours() -> None:
    projected = np.array([[-3.0], [-1.0], [2.0]])
    expected = np.sqrt((2**2 + 5**2 + 3**2) / 3)
    np.testing.assert_allclose(Wh().fit(projected).sigmas_, expected)


@pytest.mark.parametrize("weigher", WEIGHERS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_query_in_gives_one_out(weigher: Any, dtype: Any) -> None:
    projected = np.random.default_rng(7).standard_normal((30, 5)).astype(dtype)
    weigher.fit(projected)
    several, one = weigher.costs(projected[:4]), weigher.costs(projected[2])
    assert several.shape == (4, 5, 2)
    assert several.dtype == one.dtype == np.float64
    np.testing.assert_array_equal(several[2], one)
    assert weigher.costs(projected[:0]).shape == (0, 5, 2)


@pytest.mark.parametrize("weigher", WEIGHERS, ids=repr)
def test_weighted_bits_find_more_true_neighbours_than_plain_ones(weigher: Any) -> None:
    rng = np.random.default_rng(8)
    centres = rng.standard_normal((20, 16)) * 2
    rows = centres[rng.integers(0, 20, 3000)] + rng.standard_normal((3000, 16))
    queries = rows[:500] + rng.standard_normal((500, 16)) / 4
    hasher = LSH(32).fit(rows)
    projected = hasher.project(rows)
    weigher.fit(projected, hasher.thresholds_)
    index = Index(32)
    index.add(hasher.transform(rows))
    truth = evaluation.euclidean_top(rows, queries, 50)
    weighted = index.search(weigher.costs(hasher.project(queries)), 10).ids
    plain = index.search(costs.hamming(hasher.transform(queries), 32), 10).ids
    found = evaluation.precision_at_k(weighted, truth)
    assert found > evaluation.precision_at_k(plain, truth)


def test_median_thresholds_go_from_hasher_to_weigher() -> None:
    rows = np.random.default_rng(9).standard_normal((101, 6)) + 5
    hasher = Sign(threshold="median").fit(rows)
    weigher = Asym().fit(hasher.project(rows), hasher.thresholds_)
    assert (weigher.means_[:, 0] < hasher.thresholds_).all()
    assert (weigher.means_[:, 1] > hasher.thresholds_).all()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: Asym("other").fit(np.ones((2, 3))), ValueError, "variant must be"),  # type: ignore[arg-type]
        (lambda: Asym().fit(np.ones(3)), ValueError, r"shape \(n, n_bits\)"),
        (lambda: Asym().fit(np.ones((0, 3))), ValueError, "n > 0"),
        (lambda: Asym().fit(np.ones((2, 3), int)), TypeError, "projected must have dtype"),
        (lambda: Asym().fit(np.full((2, 3), np.nan)), ValueError, "projected must be finite"),
        (lambda: Asym().fit(np.ones((2, 3)), np.ones(2)), ValueError, r"thresholds .* \(3,\)"),
        (lambda: Wh().fit(np.ones((1, 3))), ValueError, "n >= 2"),
        (lambda: Wh().fit(np.ones((4, 3)), vectors=np.ones((3, 3))), ValueError, "vectors must"),
        (lambda: Wh(n_neighbours=0).fit(np.ones((4, 3))), ValueError, "n_neighbours must"),
        (lambda: Asym().fit(np.ones((4, 3))).costs(np.ones(4)), ValueError, r"\(3,\) or \(nq, 3\)"),
        (lambda: Asym().costs(np.ones(4)), NotFittedError, "not fitted yet"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_weighers_show_their_parameters() -> None:
    shown: list[Weigher] = [Asym(), Asym("lower_bound"), Wh(n_rows=5)]
    assert repr(shown) == "[Asym(), Asym(variant='lower_bound'), Wh(n_rows=5)]"


@pytest.mark.parametrize(
    ("fitted", "then"), [("expectation", "lower_bound"), ("lower_bound", "expectation")]
)
def test_a_parameter_that_changes_after_fit_counts_from_the_next_fit_on(
    fitted: Literal["expectation", "lower_bound"],
    then: Literal["expectation", "lower_bound"],
    tmp_path: Path,
) -> None:
    projected = np.random.default_rng(0).standard_normal((50, 6))
    weigher = Asym(fitted).fit(projected)
    expected = weigher.costs(projected[:3])
    weigher.set_params(variant=then)
    assert weigher.variant_ == fitted
    np.testing.assert_array_equal(weigher.costs(projected[:3]), expected)
    weigher.save(tmp_path / "weigher.npz")
    loaded = weighers.load(tmp_path / "weigher.npz")
    np.testing.assert_array_equal(loaded.costs(projected[:3]), expected)
    weigher.fit(projected)
    assert weigher.variant_ == then
    np.testing.assert_array_equal(
        weigher.costs(projected[:3]), Asym(then).fit(projected).costs(projected[:3])
    )
