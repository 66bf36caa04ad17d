"""Data sets: the checks of Dataset, and generated rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh.evaluation import euclidean_top
from bitweigh_experiments import datasets


def test_every_public_name_has_an_example() -> None:
    for name in datasets.__all__:
        assert ">>>" in getattr(datasets, name).__doc__, name


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"queries": np.zeros((2, 5))}, r"queries must be \(n, d\) with the d of base"),
        ({"learn": np.zeros(4)}, "learn must be"),
        ({"neighbours": np.zeros((3, 1), dtype=int)}, "neighbours must be 2 long, got 3"),
        ({"neighbours": np.full((2, 1), 6)}, "must be rows of base, 0 to 5, got 6 to 6"),
        ({"neighbours": np.full((2, 1), -1)}, "got -1 to -1"),
        ({"labels": np.zeros(5)}, "labels must be 6 long"),
        ({"query_labels": np.zeros(6)}, "query_labels must be 2 long"),
    ],
)
def test_the_parts_of_a_dataset_must_fit(parts: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "x", "base": np.zeros((6, 4)), "queries": np.zeros((2, 4))}
    datasets.Dataset(**good)
    with pytest.raises(ValueError, match=message):
        datasets.Dataset(**{**good, **parts})


def test_nothing_that_could_download_is_imported() -> None:
    for path in Path(datasets.__file__).parent.glob("*.py"):
        for word in ("urllib", "requests", "http", "socket", "ftplib", "subprocess"):
            assert f"import {word}" not in path.read_text(), path


def test_generated_descriptors_are_decided_by_the_seed() -> None:
    first, again = (datasets.descriptors(2000, 16, n_queries=9, seed=5) for _ in range(2))
    other = datasets.descriptors(2000, 16, n_queries=9, seed=6)
    assert np.array_equal(first.base, again.base)
    assert np.array_equal(first.queries, again.queries)
    assert not np.array_equal(first.base, other.base)


def test_generated_queries_do_not_depend_on_the_number_of_rows() -> None:
    small, large = (datasets.descriptors(n, 16, n_queries=9) for n in (10, 3000))
    assert np.array_equal(small.queries, large.queries)


def test_generated_labels_are_those_of_near_rows() -> None:
    data = datasets.descriptors(5000, 32, n_queries=200, labelled=True)
    assert data.labels is not None
    assert data.query_labels is not None
    nearest = euclidean_top(data.base, data.queries, 1)[:, 0]
    # There are 40 classes: chance agreement would be 1 in 40.
    assert (data.labels[nearest] == data.query_labels).mean() > 0.5


def test_generated_rows_are_nearer_to_each_other_than_noise_is() -> None:
    data = datasets.descriptors(5000, 64, n_queries=100)
    assert data.labels is None
    rows = data.base.astype(np.float64)
    spread = np.sqrt(2 * rows.var(axis=0).sum())  # the distance of two rows at random
    nearest = rows[euclidean_top(data.base, data.queries, 1)[:, 0]]
    gaps = np.linalg.norm(nearest - data.queries, axis=1)
    assert gaps.mean() < 0.6 * spread


@pytest.mark.parametrize("arguments", [{"n": 0}, {"d": 0}, {"n_queries": 0}, {"seed": -1}])
def test_wrong_sizes_of_generated_rows_are_refused(arguments: dict[str, int]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"{name} must be from"):
        datasets.descriptors(**arguments)


@pytest.mark.parametrize("value", [True, 1.5, "3", None])
def test_sizes_that_are_no_integers_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="n must be an integer, got"):
        datasets.descriptors(value)
