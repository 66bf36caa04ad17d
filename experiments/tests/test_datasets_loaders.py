"""Data sets: the named loaders on tiny folders in the original layout, and the real sets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from io_cases import real_data, some_rows, write_vecs

from bitweigh_experiments import datasets
from bitweigh_experiments.datasets import Dataset

TEXMEX: list[tuple[Callable[[Path], Dataset], str, int]] = [
    (datasets.gist1m, "gist", 960),
    (datasets.sift1m, "sift", 128),
]


def true_neighbours(base: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    gaps = np.square(queries[:, np.newaxis] - base).sum(axis=2)
    return np.argsort(gaps, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize(("load", "stem", "d"), TEXMEX)
def test_texmex(tmp_path: Path, load: Callable[[Path], Dataset], stem: str, d: int) -> None:
    base, learn, queries = some_rows(20, d), some_rows(8, d, seed=1), some_rows(3, d, seed=2)
    truth = true_neighbours(base, queries, 5)
    write_vecs(tmp_path / f"{stem}_base.fvecs", base)
    write_vecs(tmp_path / f"{stem}_query.fvecs", queries)
    bare = load(tmp_path)
    assert bare.learn is None
    assert bare.neighbours is None
    write_vecs(tmp_path / f"{stem}_learn.fvecs", learn)
    write_vecs(tmp_path / f"{stem}_groundtruth.ivecs", truth)
    data = load(tmp_path)
    for part, written in (
        (data.base, base),
        (data.queries, queries),
        (data.learn, learn),
        (data.neighbours, truth),
    ):
        assert isinstance(part, np.memmap)
        assert np.array_equal(part, written)
    assert data.base.dtype == np.float32
    assert data.labels is None


@pytest.mark.parametrize(("load", "stem", "d"), TEXMEX)
def test_missing_texmex_files_are_listed(
    tmp_path: Path, load: Callable[[Path], Dataset], stem: str, d: int
) -> None:
    with pytest.raises(
        FileNotFoundError, match=f"{stem}_base.fvecs, {stem}_query.fvecs are missing.*TEXMEX.*INRIA"
    ):
        load(tmp_path)
    write_vecs(tmp_path / f"{stem}_base.fvecs", some_rows(2, d))
    with pytest.raises(FileNotFoundError, match=f": {stem}_query.fvecs is missing"):
        load(tmp_path / ".")


def test_texmex_files_that_do_not_fit(tmp_path: Path) -> None:
    write_vecs(tmp_path / "sift_base.fvecs", some_rows(20, 128))
    write_vecs(tmp_path / "sift_query.fvecs", some_rows(3, 64))
    with pytest.raises(ValueError, match="SIFT1M: queries must be"):
        datasets.sift1m(tmp_path)
    write_vecs(tmp_path / "sift_query.fvecs", some_rows(3, 128))
    write_vecs(tmp_path / "sift_groundtruth.ivecs", np.full((3, 2), 20))
    with pytest.raises(ValueError, match="SIFT1M: neighbours must be rows of base, 0 to 19"):
        datasets.sift1m(tmp_path)


def test_sift1b(tmp_path: Path) -> None:
    base, learn, queries = some_rows(20, 128), some_rows(8, 128, 1), some_rows(3, 128, 2)
    truth = true_neighbours(base, queries, 5)
    with pytest.raises(FileNotFoundError, match=r"_base\.bvecs, bigann_query\.bvecs are missing"):
        datasets.sift1b(tmp_path)
    write_vecs(tmp_path / "bigann_base.bvecs", base)
    write_vecs(tmp_path / "bigann_learn.bvecs", learn)
    write_vecs(tmp_path / "bigann_query.bvecs", queries)
    write_vecs(tmp_path / "gnd" / "idx_1000M.ivecs", truth)
    data = datasets.sift1b(tmp_path)
    assert data.base.dtype == np.uint8
    assert isinstance(data.base, np.memmap)
    assert np.array_equal(data.base, base)
    assert data.learn is not None
    assert np.array_equal(data.learn, learn)
    assert data.neighbours is not None
    assert np.array_equal(data.neighbours, truth)
    part = datasets.sift1b(tmp_path, max_rows=7)
    assert np.array_equal(part.base, base[:7])
    assert part.neighbours is None  # TEXMEX has none for 7 rows


def test_sift1b_takes_the_neighbours_of_as_many_rows(tmp_path: Path) -> None:
    """A sparse file of 2,000,001 rows gives the prefixes their real sizes."""
    write_vecs(tmp_path / "bigann_query.bvecs", some_rows(2, 4))
    for millions in (1, 2, 1000):
        write_vecs(tmp_path / "gnd" / f"idx_{millions}M.ivecs", np.full((2, 1), millions))
    base = np.memmap(tmp_path / "bigann_base.bvecs", np.uint8, "w+", shape=(2_000_001, 8))
    base[:, 0] = 4
    base.flush()
    for max_rows, expected in ((10**6, 1), (2 * 10**6, 2), (10**6 + 1, None), (None, 1000)):
        neighbours = datasets.sift1b(tmp_path, max_rows=max_rows).neighbours
        assert (None if neighbours is None else neighbours[0, 0]) == expected


@pytest.mark.parametrize("layout", ["npy", "npz"])
def test_places205(tmp_path: Path, layout: str) -> None:
    labels = np.repeat(np.arange(5), 12)  # sorted by label
    features = np.zeros((60, 128), dtype=np.float32)
    features[:, 0] = np.arange(60)
    features[:, 1] = labels
    if layout == "npy":
        np.save(tmp_path / "places205_features.npy", features)
        np.save(tmp_path / "places205_labels.npy", labels)
    else:
        np.savez(tmp_path / "places205.npz", features=features, labels=labels)
    data = datasets.places205(tmp_path, per_class=7, queries_per_class=2, seed=3)
    assert data.labels is not None
    assert data.query_labels is not None
    assert np.bincount(data.labels).tolist() == [7] * 5
    assert np.bincount(data.query_labels).tolist() == [2] * 5
    assert np.array_equal(data.base[:, 1], data.labels)
    assert np.array_equal(data.queries[:, 1], data.query_labels)
    used = np.concatenate([data.base[:, 0], data.queries[:, 0]])
    assert len(np.unique(used)) == 45  # no query is in the base
    assert np.any(np.diff(data.labels) < 0)  # shuffled
    again = datasets.places205(tmp_path, per_class=7, queries_per_class=2, seed=3)
    assert np.array_equal(again.base, data.base)
    other = datasets.places205(tmp_path, per_class=7, queries_per_class=2, seed=4)
    assert not np.array_equal(other.base, data.base)
    with pytest.raises(ValueError, match="class 0 has 12 rows, which leaves none beside its 50"):
        datasets.places205(tmp_path)


def test_places205_files_that_are_missing_or_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"places205_features\.npy, places205_labels\.npy.*not public.*MIT"
    ):
        datasets.places205(tmp_path)
    np.save(tmp_path / "places205_features.npy", np.zeros((10, 64)))
    np.save(tmp_path / "places205_labels.npy", np.zeros(10, dtype=int))
    with pytest.raises(ValueError, match=r"must be floats \(n, 128\), got float64 \(10, 64\)"):
        datasets.places205(tmp_path)
    np.save(tmp_path / "places205_features.npy", np.zeros((11, 128)))
    with pytest.raises(ValueError, match=r"must be integers \(11,\), got int64 \(10,\)"):
        datasets.places205(tmp_path)


def make_dsift(folder: Path, images: int) -> Path:
    """Write descriptors whose first two bytes are their image and their position in it."""
    rows = np.zeros((images, 16, 128), dtype=np.uint8)
    rows[:, :, 0] = np.arange(images)[:, np.newaxis]
    rows[:, :, 1] = np.arange(16)
    np.save(folder / "dsift480k_u8.npy", rows.reshape(-1, 128))
    return folder


def test_dsift_holds_whole_images_out(tmp_path: Path) -> None:
    data = datasets.dsift(make_dsift(tmp_path, 50), n_queries=40, seed=1)
    assert data.queries.shape == (40, 128)
    assert data.base.shape == (47 * 16, 128)  # 3 images for 40 queries
    assert not set(data.base[:, 0].tolist()) & set(data.queries[:, 0].tolist())
    assert np.any(np.diff(data.base[:, 0].astype(int)) < 0)
    assert np.array_equal(data.base, datasets.dsift(tmp_path, n_queries=40, seed=1).base)
    for n_queries, error in ((0, "from 1"), (50 * 16, "from 1 to 784"), (785, "from 1 to 784")):
        with pytest.raises(ValueError, match=f"n_queries must be {error}"):
            datasets.dsift(tmp_path, n_queries=n_queries)


def test_dsift512_joins_neighbours_of_an_image(tmp_path: Path) -> None:
    data = datasets.dsift512(make_dsift(tmp_path, 50), n_queries=6)
    assert data.queries.shape == (6, 512)
    assert data.base.shape == (48 * 4, 512)
    image, position = data.base[:, ::128].astype(int), data.base[:, 1::128].astype(int)
    assert np.all(image == image[:, :1])
    assert np.all(position == position[:, :1] + np.arange(4))
    assert np.all(position[:, 0] % 4 == 0)
    assert not set(image[:, 0].tolist()) & set(data.queries[:, 0].tolist())


def test_glove_scales_its_rows(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).integers(-127, 128, (30, 100), dtype=np.int8)
    vectors[7] = 0
    scale = np.linspace(0.01, 0.03, 100, dtype=np.float32)
    np.savez(tmp_path / "glove341k_int8.npz", vectors=vectors, scale=scale)
    data = datasets.glove(tmp_path, n_queries=5)
    both = np.concatenate([data.base, data.queries])
    assert both.dtype == np.float32
    expected = vectors * scale
    assert np.array_equal(np.unique(both, axis=0), np.unique(expected, axis=0))
    unit = datasets.glove(tmp_path, n_queries=5, unit=True)
    lengths = np.linalg.norm(np.concatenate([unit.base, unit.queries]), axis=1)
    assert np.allclose(np.sort(lengths), [0] + [1] * 29)


def test_cifar_keeps_rows_and_labels_together(tmp_path: Path) -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), 6)
    vectors = np.repeat(labels[:, np.newaxis], 128, axis=1).astype(np.float16)
    np.savez(tmp_path / "cifar60k_cnn128_f16.npz", vectors=vectors, labels=labels)
    data = datasets.cifar(tmp_path, n_queries=20)
    assert data.base.shape == (40, 128)
    assert data.base.dtype == np.float32
    assert np.array_equal(data.base[:, 0], data.labels)
    assert np.array_equal(data.queries[:, 0], data.query_labels)
    assert data.labels is not None
    assert np.any(np.diff(data.labels.astype(int)) < 0)


@pytest.mark.parametrize(
    "load", [datasets.dsift, datasets.dsift512, datasets.glove, datasets.cifar]
)
def test_missing_real_files_are_named(tmp_path: Path, load: Callable[[Path], Dataset]) -> None:
    with pytest.raises(FileNotFoundError, match=r"(npy|npz) is missing: save .* with np\.save"):
        load(tmp_path)


def test_real_files_that_are_wrong(tmp_path: Path) -> None:
    np.save(tmp_path / "dsift480k_u8.npy", np.zeros((17, 128), dtype=np.uint8))
    with pytest.raises(ValueError, match="16 rows for each image"):
        datasets.dsift(tmp_path)
    np.savez(tmp_path / "glove341k_int8.npz", vectors=np.zeros((4, 3)), scale=np.ones(2))
    with pytest.raises(ValueError, match=re.escape("got (4, 3) and (2,)")):
        datasets.glove(tmp_path)
    np.savez(tmp_path / "cifar60k_cnn128_f16.npz", vectors=np.zeros((4, 3)), labels=np.ones(2))
    with pytest.raises(ValueError, match=re.escape("got (4, 3) and (2,)")):
        datasets.cifar(tmp_path)


@pytest.mark.parametrize(
    ("load", "file", "shape"),
    [
        (datasets.dsift, "dsift480k_u8.npy", (478_992, 128)),
        (datasets.dsift512, "dsift480k_u8.npy", (119_000, 512)),
        (datasets.glove, "glove341k_int8.npz", (340_479, 100)),
        (datasets.cifar, "cifar60k_cnn128_f16.npz", (59_000, 128)),
    ],
)
def test_the_real_sets(load: Callable[[Path], Dataset], file: str, shape: tuple[int, int]) -> None:
    data = load(real_data(file))
    assert data.base.shape == shape
    assert data.queries.shape == (1000, shape[1])
