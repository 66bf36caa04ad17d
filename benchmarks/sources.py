"""Vectors to hash: two generators and three real sets.

The generators draw rows in chunks of fixed size, each from a separate Philox stream, so that memory
stays small and the first rows are the same for any n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh_experiments import datasets

__all__ = ["CHUNK_ROWS", "Kind", "NoDataError", "Source", "source"]

Kind: TypeAlias = Literal["mixture", "random", "glove", "dsift", "cifar"]
Vectors: TypeAlias = NDArray[Any]

CHUNK_ROWS = 50_000
_SEED = 20200207
_SAMPLE_ROWS = 50_000
_N_QUERIES = 1000
# Numbers of the random streams; chunk i has stream _FIRST_CHUNK + i.
_PARAMETERS, _SAMPLE, _QUERIES, _FIRST_CHUNK = 0, 1, 2, 16


class NoDataError(Exception):
    """A real data set is missing."""


class Source(ABC):
    """Rows to search, rows to fit hashers on, and queries, all with the same features."""

    @abstractmethod
    def sample(self) -> Vectors:
        """Return rows to fit on, drawn like those to search."""

    @abstractmethod
    def queries(self) -> Vectors:
        """Return 1000 vectors that are not among the rows."""

    @abstractmethod
    def rows(self, n: int | None) -> int:
        """Return the number of rows there will be for a request of n."""

    @abstractmethod
    def chunks(self, n: int) -> Iterator[Vectors]:
        """Yield the first n rows, at most CHUNK_ROWS at a time."""


class _Generator(Source):
    """Any number of rows from random streams."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]: ...

    def sample(self) -> Vectors:
        return self._draw(_stream(_SAMPLE), _SAMPLE_ROWS)

    def queries(self) -> Vectors:
        return self._draw(_stream(_QUERIES), _N_QUERIES)

    def rows(self, n: int | None) -> int:
        if n is None:
            raise ValueError("a generator needs a number of rows")
        return n

    def chunks(self, n: int) -> Iterator[Vectors]:
        for number, first in enumerate(range(0, n, CHUNK_ROWS)):
            yield self._draw(_stream(_FIRST_CHUNK + number), CHUNK_ROWS)[: n - first]


class _Random(_Generator):
    """Independent normal numbers; their signs are independent random bits, the hardest data."""

    def __init__(self, n_features: int) -> None:
        """Store the number of features."""
        self._n_features = n_features

    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
        return rng.standard_normal((rows, self._n_features), dtype=np.float32)


class _Mixture(_Generator):
    """A thousand Gaussian clusters in 24 dimensions of a wider space, with noise in all of them."""

    def __init__(self, n_features: int) -> None:
        """Draw the clusters and their positions."""
        latent, clusters = 24, 1000
        rng = _stream(_PARAMETERS)
        scale = np.arange(1, latent + 1) ** -0.35
        centres = rng.standard_normal((clusters, latent)) * scale
        spreads = rng.uniform(0.35, 0.75, (clusters, latent)) * scale
        axes = np.linalg.qr(rng.standard_normal((n_features, latent)))[0].T
        self._centres = centres.astype(np.float32)
        self._spreads = spreads.astype(np.float32)
        self._axes = axes.astype(np.float32)
        # A random projection then has 0.1 of noise if the clusters alone give it |x|^2 / latent.
        self._noise = np.float32(0.1 * np.sqrt(latent / n_features))

    def _draw(self, rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
        cluster = rng.integers(0, len(self._centres), rows)
        points = rng.standard_normal((rows, self._centres.shape[1]), dtype=np.float32)
        points *= self._spreads[cluster]
        points += self._centres[cluster]
        drawn: NDArray[np.float32] = rng.standard_normal(
            (rows, self._axes.shape[1]), dtype=np.float32
        )
        drawn *= self._noise
        drawn += points @ self._axes
        return drawn


class _Real(Source):
    """All rows of a real data set."""

    def __init__(self, dataset: datasets.Dataset) -> None:
        self._dataset = dataset

    def sample(self) -> Vectors:
        # The loaders shuffle.
        return self._dataset.base[:_SAMPLE_ROWS]

    def queries(self) -> Vectors:
        return self._dataset.queries

    def rows(self, n: int | None) -> int:
        if n is not None:
            raise ValueError(
                f"{self._dataset.name} has a fixed number of rows, so n must be None, got n={n}"
            )
        return len(self._dataset.base)

    def chunks(self, n: int) -> Iterator[Vectors]:
        for first in range(0, n, CHUNK_ROWS):
            yield self._dataset.base[first : min(first + CHUNK_ROWS, n)]


def source(kind: Kind, n_features: int, folder: Path | None) -> Source:
    """Return the vectors of a kind; NoDataError if they are not in the user's folder.

    `n_features` applies to generated vectors only.
    """
    if kind == "mixture":
        return _Mixture(n_features)
    if kind == "random":
        return _Random(n_features)
    if folder is None:
        raise NoDataError("needs the folder of the real data sets, --data DIR")
    try:
        if kind == "dsift":
            return _Real(datasets.dsift(folder, n_queries=_N_QUERIES, seed=_SEED))
        if kind == "cifar":
            return _Real(datasets.cifar(folder, n_queries=_N_QUERIES, seed=_SEED))
        # Unit length: word vectors are compared by cosine.
        return _Real(datasets.glove(folder, n_queries=_N_QUERIES, seed=_SEED, unit=True))
    except FileNotFoundError:
        raise NoDataError("its file is not in the folder that --data names") from None


def _stream(number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([_SEED, number], dtype=np.uint64)))
