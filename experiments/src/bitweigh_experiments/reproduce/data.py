"""The data of a reproduction: the paper's own sets where the user has them, else stand-ins.

Which stand-in a set gets: Places205, features with labels, gets the CIFAR-10 features; GIST1M and
SIFT1B get rows drawn like dense SIFT descriptors, of 512 and 128 dimensions. Without any folder all
three are generated.
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
"""In the name of every set that needs no folder."""

DRAWN_ROWS = 1_000_000
CLUSTERS, ROWS_PER_CLUSTER = 512, 100
TRUE_NEIGHBOURS = 1000  # "the top 1000 identifiers selected by linear scan"
ROWS_IN_PAPER = {"Places205": 1_025_000, "GIST1M": 1_000_000, "SIFT1B": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to do."""

    max_rows: int | None = None
    """Rows to cut sets to, and to draw; by default whole sets, and a million drawn."""
    n_queries: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A set with its truth, ready to be hashed."""

    data: Dataset
    facts: DataFacts
    truth: Truth


def roles_in(folder: Path | None) -> tuple[str, ...]:
    """The paper's sets, and the real sets beyond them that the folder has."""
    present = [role for role in EXTRA_ROLES if folder and (folder / _EXTRA[role][0]).exists()]
    return (*ROLES, *present)


def set_stage(role: str, folder: Path | None, scale: Scale) -> Stage:
    """Load or draw the set for a role, shuffled, with queries, and find its truth."""
    data, genuine = _dataset(role, folder, scale)
    queries = data.queries[: scale.n_queries]
    truth: Truth
    what = f"Euclidean top {TRUE_NEIGHBOURS}"
    if data.labels is not None and data.query_labels is not None:
        truth = (data.query_labels[: len(queries)], data.labels)
        what = "same label"
    elif data.neighbours is not None and data.neighbours.shape[1] >= TRUE_NEIGHBOURS:
        truth = data.neighbours[: len(queries), :TRUE_NEIGHBOURS]
    else:
        truth = euclidean_top(data.base, queries, min(TRUE_NEIGHBOURS, len(data.base)))
    n, d = data.base.shape
    in_paper = ROWS_IN_PAPER.get(role) or n
    facts = DataFacts(role, data.name, genuine, n, in_paper, d, len(queries), what)
    return Stage(data, facts, truth)


def _dataset(role: str, folder: Path | None, scale: Scale) -> tuple[Dataset, bool]:
    """The set, and whether it is the paper's own."""
    if role in _EXTRA:
        if folder is None:
            raise FileNotFoundError(f"{role} needs a folder with {_EXTRA[role][0]}")
        return _EXTRA[role][1](folder, scale), False
    if folder is not None:
        for mark, load in _OWN[role]:
            if (folder / mark).exists():
                return load(folder, scale), True
        for mark, load in _STAND_INS[role]:
            if (folder / mark).exists():
                return load(folder, scale), False
    return _generated(role, scale), False


def _places(folder: Path, scale: Scale) -> Dataset:
    return _cut(datasets.places205(folder, seed=scale.seed), scale)


def _gist(folder: Path, scale: Scale) -> Dataset:
    """Shuffled: ties go to the lowest id, and rows in the order of their origin would bias them."""
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
    """Descriptors that need no file: with labels for Places205, of 512 dimensions for GIST1M."""
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
    fitted = rows[: 2 * n]  # few rows are soon drawn: the fit should not take longer
    clusters = min(CLUSTERS, max(1, len(fitted) // ROWS_PER_CLUSTER))
    generator = datasets.MixtureGenerator(clusters, scale.seed).fit(fitted)
    return Dataset(name, generator.sample(n), generator.queries(scale.n_queries, among=n))


def _cut(data: Dataset, scale: Scale) -> Dataset:
    """The first rows of an already shuffled set."""
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
# The file that shows a set is there, and how to load it.
_OWN: dict[str, list[tuple[str, _Load]]] = {
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
