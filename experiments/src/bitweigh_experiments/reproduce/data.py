"""The data of a reproduction: the paper's own sets where the user has them, else stand-ins.

CIFAR-10 features stand in for Places205, which has labels. Rows drawn from a mixture fitted on
dense SIFT descriptors, of 512 and 128 dimensions, stand in for GIST1M and SIFT1B. Without a folder
all three are generated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitweigh.evaluation import Truth, euclidean_top
from bitweigh_experiments import datasets
from bitweigh_experiments.datasets import Dataset
from bitweigh_experiments.reproduce.results import EXTRA_ROLES, ROLES, DataFacts

__all__ = ["GENERATED", "Scale", "Stage", "roles_in", "set_stage"]

GENERATED = "generated"
"""The word in the name of every set that needs no folder."""

DRAWN_ROWS = 1_000_000
CLUSTERS, ROWS_PER_CLUSTER = 512, 100
TRUE_NEIGHBOURS = 1000  # "the top 1000 identifiers selected by linear scan"
ROWS_IN_PAPER = {"Places205": 1_025_000, "GIST1M": 1_000_000, "SIFT1B": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a run."""

    max_rows: int | None = None
    """Sets are cut to, or generated with, this many rows; by default whole sets, a million rows."""
    n_queries: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A data set with its truth, ready to be hashed."""

    data: Dataset
    facts: DataFacts
    truth: Truth


def roles_in(folder: Path | None) -> tuple[str, ...]:
    """Return the paper's sets, and the other real sets that the folder has."""
    present = [role for role in EXTRA_ROLES if folder and (folder / _EXTRA[role][0]).exists()]
    return (*ROLES, *present)


def set_stage(role: str, folder: Path | None, scale: Scale) -> Stage:
    """Load or generate the set for a role, shuffled, with queries, and find its truth."""
    data, genuine = _dataset(role, folder, scale)
    queries = data.queries[: scale.n_queries]
    truth: Truth
    truth_name = f"Euclidean top {TRUE_NEIGHBOURS}"
    if data.labels is not None and data.query_labels is not None:
        truth = (data.query_labels[: len(queries)], data.labels)
        truth_name = "same label"
    elif data.neighbours is not None and data.neighbours.shape[1] >= TRUE_NEIGHBOURS:
        truth = data.neighbours[: len(queries), :TRUE_NEIGHBOURS]
    else:
        truth = euclidean_top(data.base, queries, min(TRUE_NEIGHBOURS, len(data.base)))
    n, d = data.base.shape
    n_paper = ROWS_IN_PAPER.get(role) or n
    facts = DataFacts(role, data.name, genuine, n, n_paper, d, len(queries), truth_name)
    return Stage(data, facts, truth)


def _dataset(role: str, folder: Path | None, scale: Scale) -> tuple[Dataset, bool]:
    """Return the set, and whether it is the paper's own."""
    if role in _EXTRA:
        if folder is None:
            raise FileNotFoundError(f"{role} needs a folder with {_EXTRA[role][0]}")
        return _EXTRA[role][1](folder, scale), False
    if folder is not None:
        for file, load in _GENUINE[role]:
            if (folder / file).exists():
                return load(folder, scale), True
        for file, load in _STAND_INS[role]:
            if (folder / file).exists():
                return load(folder, scale), False
    return _generated(role, scale), False


def _places(folder: Path, scale: Scale) -> Dataset:
    return _cut(datasets.places205(folder, seed=scale.seed), scale)


def _gist(folder: Path, scale: Scale) -> Dataset:
    """Load GIST1M shuffled: ties go to the lowest id, so the file's order could bias precision."""
    data = datasets.gist1m(folder)
    order = np.random.default_rng(scale.seed).permutation(len(data.base))
    return _cut(Dataset(data.name, data.base[order], data.queries, learn=data.learn), scale)


def _sift_billion(folder: Path, scale: Scale) -> Dataset:
    return datasets.sift1b(folder, max_rows=scale.max_rows)


def _cifar(folder: Path, scale: Scale) -> Dataset:
    return _cut(datasets.cifar(folder, n_queries=scale.n_queries, seed=scale.seed), scale)


def _dsift(folder: Path, scale: Scale) -> Dataset:
    return _cut(datasets.dsift(folder, n_queries=scale.n_queries, seed=scale.seed), scale)


def _glove(folder: Path, scale: Scale) -> Dataset:
    return _cut(datasets.glove(folder, n_queries=scale.n_queries, seed=scale.seed), scale)


def _like_dsift(folder: Path, scale: Scale) -> Dataset:
    rows = datasets.dsift(folder, seed=scale.seed).base
    return _drawn("mixture fitted on dense SIFT", rows, scale)


def _like_dsift512(folder: Path, scale: Scale) -> Dataset:
    rows = datasets.dsift512(folder, seed=scale.seed).base
    return _drawn("mixture fitted on dense SIFT, four side by side", rows, scale)


def _generated(role: str, scale: Scale) -> Dataset:
    """Generate descriptors: with labels for Places205, of 512 dimensions for GIST1M."""
    long = role == "GIST1M"
    data = datasets.descriptors(
        scale.max_rows or DRAWN_ROWS,
        512 if long else 128,
        n_queries=scale.n_queries,
        labelled=role == "Places205",
        seed=scale.seed,
    )
    return replace(data, name=f"{data.name} of 512 dimensions") if long else data


def _drawn(name: str, rows: NDArray[np.generic], scale: Scale) -> Dataset:
    n = scale.max_rows or DRAWN_ROWS
    fitted = rows[: 2 * n]  # the fit should not take longer than drawing n rows
    clusters = min(CLUSTERS, max(1, len(fitted) // ROWS_PER_CLUSTER))
    generator = datasets.MixtureGenerator(clusters, scale.seed).fit(fitted)
    return Dataset(name, generator.sample(n), generator.queries(scale.n_queries, among=n))


def _cut(data: Dataset, scale: Scale) -> Dataset:
    """Return the first `scale.max_rows` rows of an already shuffled set."""
    n = scale.max_rows
    if n is None or n >= len(data.base):
        return data
    labels = None if data.labels is None else data.labels[:n]
    return Dataset(
        data.name,
        data.base[:n],
        data.queries,
        learn=data.learn,
        labels=labels,
        query_labels=data.query_labels,
    )


_Load = Callable[[Path, Scale], Dataset]
# A file whose presence shows that the folder has the set, and its loader.
_GENUINE: dict[str, list[tuple[str, _Load]]] = {
    "Places205": [("places205.npz", _places), ("places205_features.npy", _places)],
    "GIST1M": [("gist_base.fvecs", _gist)],
    "SIFT1B": [("bigann_base.bvecs", _sift_billion)],
}
_STAND_INS: dict[str, list[tuple[str, _Load]]] = {
    "Places205": [("cifar60k_cnn128_f16.npz", _cifar)],
    "GIST1M": [("dsift480k_u8.npy", _like_dsift512)],
    "SIFT1B": [("dsift480k_u8.npy", _like_dsift)],
}
_EXTRA: dict[str, tuple[str, _Load]] = {
    "dense SIFT": ("dsift480k_u8.npy", _dsift),
    "GloVe": ("glove341k_int8.npz", _glove),
}
