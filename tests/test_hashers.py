"""Hashers: the meaning of bits, independence of rows, streaming, scikit-learn's checks."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

from bitweigh import _blas
from bitweigh._blas import one_blas_thread
from bitweigh.hashers import ITQ, LSH, Levels, Sign
from bitweigh.hashers import _estimator as estimator
from bitweigh.hashers import _itq as itq
from bitweigh.hashers._base import Hasher

# scikit-learn's checks that cannot apply to packed output, by name, each with the reason. None:
# codes are an array (n_samples, n_bytes) of numbers like any other to it, and its tags say that the
# dtype of the input is not kept.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}
# Checks that skip themselves: this one compares array libraries if SCIPY_ARRAY_API is set.
SKIPPED_CHECKS = {"check_array_api_input"}


def vectors(n: int, d: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 1.0).astype(dtype)


def hashers(d: int) -> list[Hasher]:
    return [
        LSH(13),
        LSH(65, bitorder="little"),
        ITQ(min(d, 9), n_rounds=5),
        Sign(),
        Sign(threshold="median"),
        Levels(20),
        Levels(7, rotation="random", bitorder="little"),
    ]


@pytest.mark.parametrize(
    "hasher",
    [LSH(4), LSH(12), ITQ(1), ITQ(2), Sign(), Sign(threshold="median"), Levels(3)],
    ids=repr,
)
def test_scikit_learns_own_checks_pass(hasher: Hasher) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not inherit from")
        results = check_estimator(
            hasher, expected_failed_checks=EXPECTED_FAILED_CHECKS, on_skip=None
        )
    assert len(results) > 40
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= SKIPPED_CHECKS
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILED_CHECKS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int64])
@pytest.mark.parametrize("number", range(7))
def test_a_bit_says_whether_the_projection_exceeds_the_threshold(number: int, dtype: Any) -> None:
    rows = (10 * vectors(300, 11)).clip(0, 200).astype(dtype)
    hasher = hashers(11)[number].fit(rows)
    projected, codes = hasher.project(rows), hasher.transform(rows)
    bits = projected > hasher.thresholds_
    assert projected.dtype == np.float64
    assert projected.shape == (300, hasher.n_bits_)
    np.testing.assert_array_equal(codes, np.packbits(bits, axis=1, bitorder=hasher.bitorder))
    np.testing.assert_array_equal(codes, hasher.fit_transform(rows))


def test_lsh_projects_on_independent_normal_directions_from_the_mean() -> None:
    rows = vectors(500, 40, np.float64)
    hasher = LSH(600).fit(rows)
    np.testing.assert_allclose(hasher.mean_, rows.mean(axis=0))
    wanted = (rows - rows.mean(axis=0)) @ hasher.projection_
    np.testing.assert_allclose(hasher.project(rows), wanted, atol=1e-9)
    assert abs(hasher.projection_.mean()) < 0.03
    assert abs(hasher.projection_.std() - 1) < 0.03
    assert not hasher.thresholds_.any()


@given(st.integers(2, 60), st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60)
def test_the_quantisation_error_of_itq_never_rises(n: int, d: int, seed: int, few: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (n, d)).astype(np.float64) if few else rng.standard_normal((n, d))
    hasher = ITQ(int(rng.integers(1, d + 1)), n_rounds=20, seed=seed).fit(rows)
    errors = hasher.quantisation_errors_
    assert errors.shape == (20,)
    assert (np.diff(errors) <= 1e-9 * errors[:-1]).all()


def test_itq_keeps_orthonormal_directions_that_span_the_leading_components() -> None:
    rows = vectors(400, 12, np.float64)
    hasher = ITQ(5).fit(rows)
    p = hasher.projection_
    np.testing.assert_allclose(p.T @ p, np.eye(5), atol=1e-12)
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0))
    np.testing.assert_allclose(p @ p.T, axes[:5].T @ axes[:5], atol=1e-9)
    assert hasher.quantisation_errors_[-1] < hasher.quantisation_errors_[0]


def test_the_error_of_itq_is_that_of_its_own_bits() -> None:
    rows = vectors(400, 8, np.float64)
    before, after = ITQ(8, n_rounds=7).fit(rows), ITQ(8, n_rounds=8).fit(rows)
    rotated = before.project(rows)
    signs = np.where(rotated > 0, 1.0, -1.0)
    assert np.linalg.norm(signs - rotated) == pytest.approx(after.quantisation_errors_[7])


def test_the_sign_of_zero_is_minus_one_as_its_bit_is_0() -> None:
    projected = np.array([[1.0, 0.0], [1.0, 3.0]])
    rotation, errors = itq._rotate(projected, np.eye(2), 1, 1, lambda: None)
    signs = np.array([[1.0, -1.0], [1.0, 1.0]])
    u, _, a_transposed = np.linalg.svd(signs.T @ projected)
    np.testing.assert_allclose(rotation, (u @ a_transposed).T)
    assert errors[0] == pytest.approx(np.linalg.norm(signs - projected))


def test_sign_compares_with_zero_or_with_the_median() -> None:
    rows = np.array([[1.0, -1.0, 0.0], [5.0, -2.0, 3.0], [6.0, -3.0, 4.0]])
    assert Sign().fit(rows).thresholds_.tolist() == [0, 0, 0]
    assert Sign(threshold="median").fit(rows).thresholds_.tolist() == [5, -2, 3]
    assert np.unpackbits(Sign().fit_transform(rows), axis=1, count=3).tolist() == [
        [1, 0, 0],
        [1, 0, 1],
        [1, 0, 1],
    ]


@pytest.mark.parametrize(("d", "n_bits"), [(300, 300), (301, 65), (17, 13), (1, 7), (33, 1)])
def test_what_a_row_becomes_does_not_depend_on_the_rows_beside_it(d: int, n_bits: int) -> None:
    rng = np.random.default_rng(1)
    rows = vectors(2000, d)
    hasher = LSH(n_bits).fit(rows)
    projected, codes = hasher.project(rows), hasher.transform(rows)
    order = rng.permutation(2000)
    np.testing.assert_array_equal(hasher.project(rows[order]), projected[order])
    for few in (slice(0, 1), slice(7, 8), slice(3, 70), slice(1999, 2000), order[:31]):
        np.testing.assert_array_equal(hasher.project(rows[few]), projected[few])
        np.testing.assert_array_equal(hasher.transform(rows[few]), codes[few])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-3, 1e100, 1e-160, 1e-170]))
@settings(max_examples=40)
def test_close_calls_are_decided_by_the_projection_itself(seed: int, scale: float) -> None:
    """Rows nearly orthogonal to the directions: rounding decides, and must do so consistently."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((90, 24)) * scale
    hasher = LSH(20, seed=seed).fit(rows)
    basis = np.linalg.qr(hasher.projection_)[0]
    rows = hasher.mean_ + (rows - rows @ basis @ basis.T)
    bits = hasher.project(rows) > 0
    np.testing.assert_array_equal(hasher.transform(rows), np.packbits(bits, axis=1))


@pytest.mark.parametrize("number", range(7))
def test_the_same_seed_gives_the_same_hasher_and_pickling_keeps_it(number: int) -> None:
    rows = vectors(500, 11)
    one, two = (hashers(11)[number].set_params(max_fit_rows=100).fit(rows) for _ in range(2))
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.transform(rows), two.transform(rows))
    np.testing.assert_array_equal(one.transform(rows), copy.transform(rows))
    other = hashers(11)[number].set_params(max_fit_rows=100, seed=1).fit(rows)
    if number != 3:  # Sign at zero learns nothing
        assert (one.transform(rows) != other.transform(rows)).any()


@pytest.mark.parametrize("kind", [LSH, ITQ])
def test_a_memory_map_streams_through_out_with_bounded_memory(
    kind: type[LSH | ITQ], tmp_path: Path
) -> None:
    n, d, limit = 200_000, 64, 24 * 2**20
    path = tmp_path / "vectors.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    mapped[:] = np.random.default_rng(2).standard_normal((n, d), dtype=np.float32)
    mapped.flush()
    assert path.stat().st_size > 2 * limit
    rows = np.load(path, mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "codes.npy", mode="w+", dtype=np.uint8, shape=(n, 4))
    tracemalloc.start()
    try:
        hasher = kind(32, max_fit_rows=5000).fit(rows)
        assert hasher.transform(rows, out=out) is out
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit
    np.testing.assert_array_equal(out[-100:], hasher.transform(np.array(rows[-100:])))


def test_project_writes_into_out_too() -> None:
    rows = vectors(50, 6)
    hasher = LSH(9).fit(rows)
    out = np.empty((50, 9))
    assert hasher.project(rows, out=out) is out
    np.testing.assert_array_equal(out, hasher.project(rows))


def test_no_rows_give_no_codes() -> None:
    hasher = LSH(9).fit(vectors(5, 6))
    assert hasher.transform(np.empty((0, 6))).shape == (0, 2)
    assert hasher.project(np.empty((0, 6))).shape == (0, 9)


@pytest.mark.parametrize(
    ("out", "error", "match"),
    [
        (np.empty((5, 2), np.int8), TypeError, "out must be an array of uint8, got int8"),
        ([0], TypeError, "got list"),
        (np.empty((5, 3), np.uint8), ValueError, r"out must have shape \(5, 2\), got \(5, 3\)"),
        (np.broadcast_to(np.uint8(0), (5, 2)), ValueError, "read-only"),
    ],
)
def test_out_must_fit(out: Any, error: type[Exception], match: str) -> None:
    rows = vectors(5, 6)
    with pytest.raises(error, match=match):
        LSH(9).fit(rows).transform(rows, out=out)


@pytest.mark.parametrize(
    ("hasher", "match"),
    [
        (ITQ(7), "at most one bit per feature, got n_bits=7 and n_features=6"),
        (LSH(0), "n_bits must be from 1"),
        (LSH(8, seed=-1), "seed must be from 0"),
        (LSH(8, max_fit_rows=0), "max_fit_rows must be from 1"),
        (LSH(8, bitorder="middle"), "bitorder must be 'big' or 'little'"),  # type: ignore[arg-type]
        (Sign(threshold="mean"), "threshold must be 'zero' or 'median', got 'mean'"),  # type: ignore[arg-type]
        (ITQ(2, n_rounds=-1), "n_rounds must be from 0"),
    ],
)
def test_wrong_parameters_are_named_by_fit(hasher: Hasher, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        hasher.fit(vectors(5, 6))


@pytest.mark.parametrize(
    ("rows", "error", "match"),
    [
        (np.full((2, 6), np.nan), ValueError, r"got NaN at X\[0, 0\]"),
        (np.full((2, 6), -np.inf), ValueError, "got infinity"),
        (np.ones((2, 5)), ValueError, "X has 5 features, but LSH is expecting 6"),
        (np.ones(6), ValueError, "Reshape your data"),
        (np.ones((2, 6)) * 1j, ValueError, "Complex data not supported"),
        ([["a"] * 6], ValueError, "must be numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "ragged"),
        (np.ma.masked_array(np.ones((2, 6))), TypeError, "masked"),
    ],
)
def test_wrong_vectors_are_refused(rows: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        LSH(8).fit(vectors(5, 6)).transform(rows)


def test_what_is_not_fitted_says_so() -> None:
    for method in (LSH(8).transform, ITQ(8).project, Sign().transform):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method(vectors(5, 6))


def test_without_scikit_learn_the_error_has_the_same_bases(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
    with pytest.raises(ValueError, match="not fitted yet") as caught:
        LSH(8).transform(vectors(5, 6))
    assert type(caught.value) is estimator._NotFittedError
    assert isinstance(caught.value, AttributeError)


def test_hashers_need_numpy_alone() -> None:
    program = (
        "import sys, bitweigh.hashers, bitweigh.weighers, bitweigh.evaluation;"
        "assert not {'sklearn', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_parameters_are_read_set_and_shown_by_name() -> None:
    hasher = ITQ(16, seed=3)
    assert hasher.get_params() == {
        "n_bits": 16,
        "n_rounds": 50,
        "seed": 3,
        "max_fit_rows": 50_000,
        "bitorder": "big",
    }
    assert repr(hasher.set_params(seed=0, n_rounds=7)) == "ITQ(n_bits=16, n_rounds=7)"
    with pytest.raises(ValueError, match="ITQ has no parameter 'bits', it has: n_bits"):
        hasher.set_params(bits=3)


def test_itq_learns_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitweigh.hashers._itq._ROUND_BLOCK_VALUES", 16 * 50)
    rows = np.random.default_rng(5).standard_normal((999, 24))
    rotations = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("BITWEIGH_THREADS", threads)
        rotations.append(ITQ(16, n_rounds=5).fit(rows).projection_.tobytes())
    assert len(set(rotations)) == 1


def test_itq_learns_without_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(6).standard_normal((200, 8))
    expected = ITQ(8, n_rounds=3).fit(rows).projection_
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    np.testing.assert_allclose(ITQ(8, n_rounds=3).fit(rows).projection_, expected, atol=1e-6)


def test_an_error_without_threadpoolctl_is_about_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(ZeroDivisionError) as caught, one_blas_thread():
        _ = 1 / 0
    assert caught.value.__context__ is None


def blas_threads() -> list[int]:
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def result_in_child(work: Callable[[], bool]) -> bool:
    """Return whether `work` returns true in a forked process, within a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for forks beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        ok = False
        try:
            ok = work()
        finally:
            os._exit(0 if ok else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_during_a_fit_has_its_own_limit() -> None:
    rows = np.random.default_rng(6).standard_normal((200, 8))
    before = blas_threads()

    def fits() -> bool:
        has_its_threads = blas_threads() == before
        ITQ(8, n_rounds=3).fit(rows)
        return has_its_threads and blas_threads() == before

    with threadpool_limits(2, "blas"):  # more than one, on any machine
        before = blas_threads()
        with one_blas_thread(), _blas._limit.changing:
            assert result_in_child(fits)
        assert blas_threads() == before


def test_a_limit_that_fails_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = blas_threads()
    with monkeypatch.context() as patched:
        patched.setattr("threadpoolctl.threadpool_limits", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            pass
    with one_blas_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_blas_has_its_threads_back_when_the_last_fit_is_done() -> None:
    before = blas_threads()
    first, second = one_blas_thread(), one_blas_thread()
    with first as limited:
        assert limited
        second.__enter__()
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


@pytest.mark.parametrize("scale", [2.0**-200, 1e-60, 1e60, 2.0**200])
def test_itq_learns_the_same_rotation_at_any_scale(scale: float) -> None:
    rows = np.random.default_rng(7).standard_normal((500, 8)) * np.linspace(1, 3, 8)
    expected, scaled = ITQ(8, n_rounds=5).fit(rows), ITQ(8, n_rounds=5).fit(rows * scale)
    np.testing.assert_allclose(scaled.projection_, expected.projection_, atol=1e-5)
    assert np.isfinite(scaled.quantisation_errors_).all()


def test_the_errors_of_itq_are_in_the_units_of_the_rows() -> None:
    rows = np.random.default_rng(7).standard_normal((500, 8)) * 1000
    projected = ITQ(8, n_rounds=1).fit(rows).project(rows)
    error = np.sqrt(((np.sign(projected) - projected) ** 2).sum())
    # The error of a round is that of the rotation before it.
    errors = ITQ(8, n_rounds=2).fit(rows).quantisation_errors_
    assert errors[1] == pytest.approx(error, rel=1e-6)
