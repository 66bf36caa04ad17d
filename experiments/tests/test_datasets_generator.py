"""MixtureGenerator: its rows resemble the fitted ones and do not depend on n."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from io_cases import real_data
from numpy.typing import NDArray

from bitweigh_experiments.datasets import Dataset, MixtureGenerator, dsift, dsift512
from bitweigh_experiments.datasets.kmeans import cluster, nearest

Rows = NDArray[np.float32]


def clustered(n: int, seed: int, d: int = 32, clusters: int = 150) -> Rows:
    """Draw rows of clusters that differ in size and have full covariances."""
    world = np.random.default_rng(7)
    centres = world.standard_normal((clusters, d)) * np.arange(1, d + 1) ** -0.4
    turns = world.standard_normal((clusters, d, d)) * (0.4 / np.sqrt(d))
    shares = world.dirichlet(np.full(clusters, 2.0))
    rng = np.random.default_rng(seed)
    which = rng.choice(clusters, n, p=shares)
    noise = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.4
    rows = centres[which] + np.einsum("ni,nij->nj", noise, turns[which])
    return rows.astype(np.float32)


def bucket_seen(rows: Rows, middle: Rows, seed: int) -> float:
    """Return the mean bucket size of a row, keyed by the signs of 16 random projections."""
    directions = np.random.default_rng(seed).standard_normal((rows.shape[1], 16), dtype=np.float32)
    bits = np.packbits((rows - middle) @ directions > 0, axis=1)
    sizes = np.bincount(bits.view(np.uint16).reshape(-1)).astype(np.float64)
    return float(np.square(sizes).sum() / len(rows))


def bucket_gaps(generator: MixtureGenerator, fitted: Rows, held_out: Rows) -> Rows:
    """Return how much fuller the buckets of generated rows are, for four hash functions."""
    middle = fitted.mean(axis=0)
    drawn = generator.sample(len(held_out))
    return np.array(
        [
            bucket_seen(drawn, middle, seed) / bucket_seen(held_out, middle, seed) - 1
            for seed in range(4)
        ]
    )


@pytest.fixture(scope="module")
def fitted() -> MixtureGenerator:
    return MixtureGenerator(n_clusters=128, seed=1, chunk_rows=1000).fit(clustered(30_000, 1))


def test_buckets_are_as_full_as_those_of_held_out_rows(fitted: MixtureGenerator) -> None:
    rows, held_out = clustered(30_000, 1), clustered(30_000, 2)
    assert np.abs(bucket_gaps(fitted, rows, held_out)).max() < 0.15
    # A single Gaussian is not good enough, which is why there are clusters.
    single = MixtureGenerator(n_clusters=1).fit(rows)
    assert np.abs(bucket_gaps(single, rows, held_out)).max() > 0.15


def test_mean_and_covariance_are_kept(fitted: MixtureGenerator) -> None:
    rows, drawn = clustered(30_000, 1), fitted.sample(60_000)
    scale = rows.std(axis=0)
    assert np.abs((drawn.mean(axis=0) - rows.mean(axis=0)) / scale).max() < 0.03
    gaps = np.cov(drawn / scale, rowvar=False) - np.cov(rows / scale, rowvar=False)
    assert np.abs(gaps).max() < 0.05


@pytest.mark.parametrize("n", [0, 1, 999, 1000, 1001, 4321])
def test_rows_do_not_depend_on_n(fitted: MixtureGenerator, n: int) -> None:
    rows = fitted.sample(n)
    assert rows.shape == (n, 32)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, fitted.sample(5000)[:n])
    chunks = list(fitted.chunks(n))
    assert len(chunks) == -(-n // 1000)
    assert n == 0 or np.array_equal(np.concatenate(chunks), rows)


def test_chunks_come_in_any_order_and_differ(fitted: MixtureGenerator) -> None:
    last = fitted.chunk(4)
    assert np.array_equal(last, fitted.sample(5000)[4000:])
    assert not np.array_equal(last, fitted.chunk(3))
    assert np.isfinite(fitted.chunk(10**9)).all()


def test_the_seed_decides() -> None:
    rows = clustered(3000, 1)
    first, again = (MixtureGenerator(16, seed=5).fit(rows) for _ in range(2))
    assert np.array_equal(first.sample(100), again.sample(100))
    assert np.array_equal(first.queries(20), again.queries(20))
    assert not np.array_equal(first.sample(100), MixtureGenerator(16, seed=6).fit(rows).sample(100))


def nearest_distances(queries: Rows, rows: Rows) -> Rows:
    return np.sqrt(np.maximum(nearest(queries, rows)[1], 0))


def test_queries_are_fresh_or_near_rows(fitted: MixtureGenerator) -> None:
    base = fitted.sample(1000)
    exact = fitted.queries(50, perturbed=1.0, noise=0.0)
    assert len({row.tobytes() for row in exact} & {row.tobytes() for row in base}) == 50
    fresh = nearest_distances(fitted.queries(200, perturbed=0.0), base)
    assert fresh.min() > 0.1
    near = nearest_distances(fitted.queries(200, perturbed=1.0, noise=0.1), base)
    assert near.max() < fresh.mean()
    half = nearest_distances(fitted.queries(200, perturbed=0.5, noise=0.01), base)
    assert np.sum(half < fresh.min()) == 100
    among_7 = fitted.queries(30, perturbed=1.0, noise=0.0, among=7)
    assert {row.tobytes() for row in among_7} <= {row.tobytes() for row in base[:7]}
    among_3000 = fitted.queries(300, perturbed=1.0, noise=0.0, among=3000)
    assert {row.tobytes() for row in among_3000} <= {row.tobytes() for row in fitted.sample(3000)}
    assert fitted.queries(0).shape == (0, 32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"perturbed": -0.1}, "perturbed must be from 0 to 1"),
        ({"perturbed": np.nan}, "perturbed must be from 0 to 1"),
        ({"noise": -1.0}, "noise must be finite"),
        ({"noise": np.inf}, "noise must be finite"),
        ({"among": 0}, "among must be from 1"),
    ],
)
def test_wrong_queries(fitted: MixtureGenerator, arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.queries(3, **arguments)  # type: ignore[arg-type]


def test_padded_rows_stay_padded() -> None:
    rows = np.zeros((4000, 512), dtype=np.float32)
    rows[:, 100:132] = clustered(4000, 1)
    drawn = MixtureGenerator(n_clusters=32).fit(rows).sample(500)
    assert drawn.shape == (500, 512)
    assert np.abs(np.delete(drawn, np.s_[100:132], axis=1)).max() < 1e-5
    assert drawn[:, 100].std() > 0.1


def test_few_or_equal_rows() -> None:
    two = MixtureGenerator().fit(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert two.n_clusters_ == 1
    assert np.allclose(two.means_, [[2.0, 2.0]])
    equal = MixtureGenerator(n_clusters=4).fit(np.full((100, 3), 7, dtype=np.uint8))
    assert np.array_equal(equal.sample(5), np.full((5, 3), 7))


def test_small_clusters_are_merged() -> None:
    far = np.concatenate([clustered(2000, 1), np.full((3, 32), 50.0, dtype=np.float32)])
    generator = MixtureGenerator(n_clusters=200).fit(far)
    assert generator.n_clusters_ < 200
    assert generator.weights_.min() * len(far) > 7.9
    assert generator.weights_.sum() == pytest.approx(1)
    assert len(generator.factors_) == len(generator.means_) == generator.n_clusters_


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (np.zeros(5), ValueError),
        (np.zeros((1, 5)), ValueError),
        (np.zeros((5, 0)), ValueError),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), ValueError),
        (np.array([[1e20, 0.0], [1.0, 2.0]]), ValueError),
        (np.array([[1e200, 0.0], [1.0, 2.0]]), ValueError),
        (np.array([["a"], ["b"]]), TypeError),
    ],
)
def test_rows_that_cannot_be_fitted(rows: NDArray[np.float64], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^rows must"):
        MixtureGenerator().fit(rows)


def test_drawing_before_fitting_is_an_error() -> None:
    for draw in (MixtureGenerator().sample, MixtureGenerator().queries, MixtureGenerator().chunk):
        with pytest.raises(ValueError, match="not fitted yet"):
            draw(3)
    with pytest.raises(ValueError, match="not fitted yet"):
        list(MixtureGenerator().chunks(3))


@pytest.mark.parametrize("argument", ["n_clusters", "chunk_rows"])
def test_wrong_settings(argument: str) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be from 1"):
        MixtureGenerator(**{argument: 0}).fit(np.eye(4))
    with pytest.raises(ValueError, match="seed must be from 0"):
        MixtureGenerator(seed=-1).fit(np.eye(4))


def test_k_means_finds_clusters_that_are_apart() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 100)
    rows = (100 * truth[:, np.newaxis] + rng.standard_normal((300, 2))).astype(np.float32)
    for seed in range(5):
        members = cluster(rows, 8, 20, np.random.default_rng(seed))
        for label in range(8):
            assert len(set(truth[members == label].tolist())) <= 1


@pytest.mark.parametrize("load", [dsift, dsift512])
def test_buckets_of_real_rows(load: Callable[[Path], Dataset]) -> None:
    data = load(real_data("dsift480k_u8.npy"))
    rows = data.base.astype(np.float32)
    half = len(rows) // 2
    generator = MixtureGenerator().fit(rows[:half])
    assert np.abs(bucket_gaps(generator, rows[:half], rows[half : half + 100_000])).max() < 0.15
