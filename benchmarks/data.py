"""Codes and queries to measure with.

Everything is packed in little bit order. Generated data is cached under build/bench-data; real data
is read and hashed each time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from benchmarks.hashed import Codes, Costs, Hashed, HasherName, WeigherName, hashed
from benchmarks.sources import CHUNK_ROWS, Kind, NoDataError

__all__ = ["CACHE", "Dataset", "Kind", "NoDataError", "Recipe", "load", "load_codes", "load_costs"]

OnChunk: TypeAlias = Callable[[int, int], None]
"""Called with the number of chunks done and the number in all."""

CACHE = Path(__file__).resolve().parents[1] / "build" / "bench-data"
_VERSION = 2  # part of the cached files' names: raise it when a generator changes


class Recipe(NamedTuple):
    """The parameters of a set of codes."""

    kind: Kind
    n: int | None
    """Rows; None takes all rows of a real data set."""
    n_bits: int
    hasher: HasherName = "lsh"
    """The hasher; "random" ignores it, as its bits are the signs of the features."""


class Dataset(NamedTuple):
    """Codes to search and queries."""

    codes: Codes
    """Codes, uint8 (n, n_bytes), in little bit order."""
    costs: Costs
    """Queries, float32 (1000, n_bits, 2)."""


def load(
    kind: Kind,
    n: int | None,
    n_bits: int,
    folder: Path | None = None,
    *,
    hasher: HasherName = "lsh",
    weigher: WeigherName = "asym",
    on_chunk: OnChunk | None = None,
    memory_map: bool = False,
) -> Dataset:
    """Generate a data set or read it from the cache; `folder` holds the real data."""
    recipe = Recipe(kind, n, n_bits, hasher)
    return Dataset(
        load_codes(recipe, folder, on_chunk=on_chunk, memory_map=memory_map),
        load_costs(recipe, weigher, folder),
    )


def load_codes(
    recipe: Recipe,
    folder: Path | None = None,
    *,
    on_chunk: OnChunk | None = None,
    memory_map: bool = False,
) -> Codes:
    """Generate codes (n, n_bytes) or read them from the cache."""
    if not _is_generated(recipe):
        hashed_rows = _hashed(recipe, folder)
        return np.concatenate(list(hashed_rows.chunks(hashed_rows.rows(recipe.n))))
    file = CACHE / f"{_stem(recipe)}-codes.npy"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        _save_codes(file, _hashed(recipe, folder), recipe, on_chunk)
    codes: Codes = np.load(file, mmap_mode="r" if memory_map else None)
    return codes


def load_costs(recipe: Recipe, weigher: WeigherName, folder: Path | None = None) -> Costs:
    """Generate the queries (1000, n_bits, 2) for such codes or read them from the cache."""
    if not _is_generated(recipe):
        return _hashed(recipe, folder).costs(weigher)
    file = CACHE / f"{_stem(recipe)}-{weigher}-costs.npy"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        np.save(file, _hashed(recipe, folder).costs(weigher))
    costs: Costs = np.load(file)
    return costs


def _hashed(recipe: Recipe, folder: Path | None) -> Hashed:
    return hashed(recipe.kind, recipe.n_bits, recipe.hasher, folder)


def _is_generated(recipe: Recipe) -> bool:
    return recipe.kind in ("mixture", "random")


def _stem(recipe: Recipe) -> str:
    hasher = "" if recipe.hasher == "lsh" else f"-{recipe.hasher}"
    return f"{recipe.kind}-v{_VERSION}-{recipe.n}x{recipe.n_bits}{hasher}"


def _save_codes(file: Path, hashed_rows: Hashed, recipe: Recipe, on_chunk: OnChunk | None) -> None:
    """Write the codes chunk by chunk to a temporary file, and rename it when complete."""
    n = hashed_rows.rows(recipe.n)
    unfinished = file.with_suffix(".part")
    codes = np.lib.format.open_memmap(
        unfinished, mode="w+", dtype=np.uint8, shape=(n, recipe.n_bits // 8)
    )
    for number, chunk in enumerate(hashed_rows.chunks(n)):
        first = number * CHUNK_ROWS
        codes[first : first + len(chunk)] = chunk
        if on_chunk is not None:
            on_chunk(number + 1, -(-n // CHUNK_ROWS))
    codes.flush()
    unfinished.rename(file)
