"""The vectors to search: rows, and queries that are not among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh_experiments import datasets
from bitweigh_experiments.demo.embedded import descriptions

__all__ = ["REAL", "Floats", "Vectors", "digits", "load"]

Floats: TypeAlias = NDArray[np.float32]

_SEED = 20200207
_TITLES = {
    "text": "descriptions of software by wordllama, of length 1",
    "sift": "dense SIFT descriptors",
    "glove": "GloVe word vectors of length 1",
    "cifar": "CNN features of CIFAR-10",
}
REAL = tuple(_TITLES)
"""Names of the real sets. "text" needs no folder: its documents are those of the demo."""


class Vectors(NamedTuple):
    """Rows to search and queries that are not among them."""

    name: str
    rows: Floats
    queries: Floats


def digits() -> Vectors:
    """Return scikit-learn's images of digits, 64 grey levels each."""
    from sklearn.datasets import load_digits

    images = load_digits(return_X_y=True)[0].astype(np.float32)
    images = images[np.random.default_rng(_SEED).permutation(len(images))]
    return Vectors("digits", images[200:], images[:200])


def load(name: str, folder: Path, n_rows: int, n_queries: int) -> Vectors:
    """Return the first rows and queries of a real set, both shuffled; see `REAL` for the names."""
    loaders: dict[str, Callable[[], datasets.Dataset]] = {
        "text": lambda: descriptions(n_queries=n_queries, seed=_SEED),
        "sift": lambda: datasets.dsift(folder, n_queries=n_queries, seed=_SEED),
        "glove": lambda: datasets.glove(folder, n_queries=n_queries, seed=_SEED, unit=True),
        "cifar": lambda: datasets.cifar(folder, n_queries=n_queries, seed=_SEED),
    }
    loaded = loaders[name]()
    rows, queries = (
        np.ascontiguousarray(part, dtype=np.float32)
        for part in (loaded.base[:n_rows], loaded.queries)
    )
    return Vectors(_TITLES[name], rows, queries)
