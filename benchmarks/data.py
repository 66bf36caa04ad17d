"""Codes and queries to measure with: two generators and two real data sets.

Everything is packed in little bit order. The generators draw the rows in chunks of fixed size, each
from a Philox stream of its own, so that memory stays small and the first rows are the same for any
n. What they make is kept under build/bench-data.

The costs are those of asymmetric distances by expectation: ``costs[i, v]`` is the squared distance
of the query's projection i to the mean projection i of the items whose bit i is v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["CACHE", "Dataset", "Kind", "NoDataError", "load"]

Kind: TypeAlias = Literal["mixture", "random", "glove", "dsift"]
Codes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
OnChunk: TypeAlias = Callable[[int, int], None]
"""Told the chunks made so far and the chunks there will be."""

CACHE = Path(__file__).resolve().parents[1] / "build" / "bench-data"
N_QUERIES = 1000
_VERSION = 1  # part of the cached files' names: raise it when a generator changes
_SEED = 20200207
_CHUNK_ROWS = 50_000
_SAMPLE_ROWS = 100_000
# Numbers of the random streams; chunk i has stream _FIRST_CHUNK + i.
_PARAMETERS, _SAMPLE, _QUERIES, _FIRST_CHUNK = 0, 1, 2, 16


class NoDataError(Exception):
    """A real data set is not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """What a search needs."""

    codes: Codes
    """uint8 (n, n_bytes), little bit order"""
    costs: Floats
    """float32 (1000, n_bits, 2)"""


def load(
    kind: Kind,
    n: int | None,
    n_bits: int,
    folder: Path | None = None,
    *,
    on_chunk: OnChunk | None = None,
    memory_map: bool = False,
) -> Dataset:
    """Make a data set or take it from the cache.

    `n` is for the generators only; `folder` holds the real data, which has the rows it has.
    """
    if kind == "glove":
        return _hashed(_glove(_real_file(folder, "glove341k_int8.npz")), 1, n_bits)
    if kind == "dsift":
        # 16 descriptors of each image follow each other.
        return _hashed(np.load(_real_file(folder, "dsift480k_u8.npy")), 16, n_bits)
    if n is None:
        raise ValueError(f"{kind} needs a number of rows")
    stem = f"{kind}-v{_VERSION}-{n}x{n_bits}"
    codes_file, costs_file = CACHE / f"{stem}-codes.npy", CACHE / f"{stem}-costs.npy"
    if not (codes_file.exists() and costs_file.exists()):
        CACHE.mkdir(parents=True, exist_ok=True)
        generator: _Generator = _Mixture(n_bits) if kind == "mixture" else _Random(n_bits)
        _save_codes(codes_file, generator, n, on_chunk)
        np.save(costs_file, generator.costs())
    codes = np.load(codes_file, mmap_mode="r" if memory_map else None)
    return Dataset(codes, np.load(costs_file))


class _Generator(ABC):
    """Draws chunks of codes, and queries."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits

    @abstractmethod
    def chunk(self, number: int) -> Codes:
        """The codes of chunk `number`, always _CHUNK_ROWS of them."""

    @abstractmethod
    def costs(self) -> Floats:
        """The queries, (N_QUERIES, n_bits, 2)."""


class _Random(_Generator):
    """Independent random bits, the hardest data: no two rows are alike."""

    def chunk(self, number: int) -> Codes:
        """Uniformly random bytes."""
        rng = _stream(_FIRST_CHUNK + number)
        return rng.integers(0, 256, (_CHUNK_ROWS, self.n_bits // 8), dtype=np.uint8)

    def costs(self) -> Floats:
        """As if each bit were the sign of a standard normal number: its means are ±sqrt(2 / π)."""
        mean = np.full(self.n_bits, np.sqrt(2 / np.pi), dtype=np.float32)
        queries = _stream(_QUERIES).standard_normal((N_QUERIES, self.n_bits), dtype=np.float32)
        return _expectation_costs(queries, -mean, mean)


class _Mixture(_Generator):
    """Locality-sensitive hashing of 1000 Gaussian clusters in 24 dimensions."""

    def __init__(self, n_bits: int) -> None:
        super().__init__(n_bits)
        latent, clusters = 24, 1000
        rng = _stream(_PARAMETERS)
        scale = np.arange(1, latent + 1) ** -0.35
        centres = rng.standard_normal((clusters, latent)) * scale
        spreads = rng.uniform(0.35, 0.75, (clusters, latent)) * scale
        projection = rng.standard_normal((latent, n_bits)) / np.sqrt(latent)
        self._centres = centres.astype(np.float32)
        self._spreads = spreads.astype(np.float32)
        self._projection = projection.astype(np.float32)
        self._threshold: Floats = np.zeros(n_bits, dtype=np.float32)
        sample = self._project(_SAMPLE, _SAMPLE_ROWS)
        self._threshold = sample.mean(axis=0)
        sample -= self._threshold
        self._means = _means_by_bit(sample)

    def chunk(self, number: int) -> Codes:
        """One bit for the sign of each projection."""
        return _packed_signs(self._project(_FIRST_CHUNK + number, _CHUNK_ROWS))

    def costs(self) -> Floats:
        """Expectation costs of points drawn like the items."""
        return _expectation_costs(self._project(_QUERIES, N_QUERIES), *self._means)

    def _project(self, stream: int, rows: int) -> Floats:
        """Projections of `rows` points with a little noise, minus the threshold."""
        rng = _stream(stream)
        cluster = rng.integers(0, len(self._centres), rows)
        points = rng.standard_normal((rows, self._centres.shape[1]), dtype=np.float32)
        points *= self._spreads[cluster]
        points += self._centres[cluster]
        projected: Floats = rng.standard_normal((rows, self.n_bits), dtype=np.float32)
        projected *= np.float32(0.1)
        projected += points @ self._projection
        projected -= self._threshold
        return projected


def _stream(number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([_SEED, number], dtype=np.uint64)))


def _save_codes(file: Path, generator: _Generator, n: int, on_chunk: OnChunk | None) -> None:
    """Write n codes chunk by chunk; the file gets its name once it is whole."""
    unfinished = file.with_suffix(".part")
    codes = np.lib.format.open_memmap(
        unfinished, mode="w+", dtype=np.uint8, shape=(n, generator.n_bits // 8)
    )
    n_chunks = -(-n // _CHUNK_ROWS)
    for number in range(n_chunks):
        rows = codes[number * _CHUNK_ROWS : (number + 1) * _CHUNK_ROWS]
        rows[:] = generator.chunk(number)[: len(rows)]
        if on_chunk is not None:
            on_chunk(number + 1, n_chunks)
    codes.flush()
    unfinished.rename(file)


def _real_file(folder: Path | None, name: str) -> Path:
    if folder is None:
        raise NoDataError(f"{name}: give its folder with --data")
    if not (folder / name).exists():
        raise NoDataError(f"{name} is not in the folder that --data names")
    return folder / name


def _glove(file: Path) -> Floats:
    """Word vectors of length 1: their truth is the cosine."""
    with np.load(file) as arrays:
        vectors: Floats = (arrays["vectors"] * arrays["scale"]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=np.finfo(np.float32).tiny)
    return vectors


def _hashed(vectors: NDArray[np.float32 | np.uint8], group: int, n_bits: int) -> Dataset:
    """Hash real vectors by random projections, random groups of rows held out for the queries."""
    rng = _stream(_PARAMETERS)
    held_out = np.zeros(len(vectors) // group, dtype=np.bool_)
    held_out[rng.choice(len(held_out), -(-N_QUERIES // group), replace=False)] = True
    is_query = np.repeat(held_out, group)
    items, queries = vectors[~is_query], vectors[is_query][:N_QUERIES]
    projection = rng.standard_normal((vectors.shape[1], n_bits), dtype=np.float32)
    threshold = items.mean(axis=0, dtype=np.float64).astype(np.float32) @ projection

    def project(rows: NDArray[np.float32 | np.uint8]) -> Floats:
        projected: Floats = rows.astype(np.float32) @ projection - threshold
        return projected

    sample = project(items[rng.choice(len(items), _SAMPLE_ROWS, replace=False)])
    codes = [
        _packed_signs(project(items[first : first + _CHUNK_ROWS]))
        for first in range(0, len(items), _CHUNK_ROWS)
    ]
    return Dataset(
        np.concatenate(codes), _expectation_costs(project(queries), *_means_by_bit(sample))
    )


def _packed_signs(projected: Floats) -> Codes:
    return np.packbits(projected > 0, axis=1, bitorder="little")


def _means_by_bit(projected: Floats) -> tuple[Floats, Floats]:
    """The mean projections of the items whose bit is 0, and of those whose bit is 1."""
    one = projected > 0
    return projected.mean(axis=0, where=~one), projected.mean(axis=0, where=one)


def _expectation_costs(queries: Floats, mean0: Floats, mean1: Floats) -> Floats:
    distances: Floats = queries[:, :, np.newaxis] - np.stack([mean0, mean1], axis=1)
    return np.square(distances)
