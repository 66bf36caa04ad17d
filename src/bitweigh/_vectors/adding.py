"""Adding vectors: their codes, ids and rows become part of a new state together, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._progress import ProgressBar
from bitweigh._vectors.hashing import row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh.hashers._estimator import Estimator
from bitweigh.typing import Ids

__all__ = ["check_mergeable", "with_merged", "with_vectors"]


def with_vectors(
    state: VectorState, vectors: NDArray[Any], ids: Ids | None, progress: bool
) -> VectorState:
    """A new state with these vectors added; they replace vectors with the same ids.

    If this raises, rows may have been written that no state refers to: see `Vectors.cut`.
    """
    writer = None if state.vectors is None else state.vectors.writer()
    codes = np.empty((len(vectors), (state.index.n_bits + 7) // 8), np.uint8)
    with ProgressBar("adding", len(vectors), unit="vectors", shown=progress) as bar:
        for first, block in row_blocks(state, vectors, "X"):
            codes[first : first + len(block)] = state.hasher._codes_block(block)
            if writer is not None:
                writer.write(block)
            bar.advance(len(block))
    index = state.index.copy()
    first_id = index._state.next_id
    index.add(codes, ids, on_duplicate="replace")
    new_ids = range(first_id, first_id + len(codes)) if ids is None else ids
    stored = None if writer is None else writer.finish(new_ids)
    return replace(state, index=index, vectors=stored)


def check_mergeable(state: VectorState, other: VectorState) -> None:
    """Raise ValueError unless codes and vectors of both mean the same."""
    for name in ("metric", "rerank"):
        expected, found = getattr(state, name), getattr(other, name)
        if expected != found:
            raise ValueError(f"other must have {name}={expected!r}, got {found!r}")
    for name in ("hasher", "weigher"):
        if not _equal(getattr(state, name), getattr(other, name)):
            raise ValueError(
                f"other must have the same fitted {name}, got {getattr(other, name)} fitted "
                "otherwise: create it by `copy` and `reset`, or load the same folder"
            )


def with_merged(state: VectorState, other: VectorState) -> VectorState:
    """A new state with all codes and vectors of another, which replace those of the same ids.

    If this raises, rows may have been written that no state refers to: see `Vectors.cut`.
    """
    index = state.index.copy()
    index.merge(other.index, on_duplicate="replace")
    stored = state.vectors
    if stored is not None and other.vectors is not None:
        stored = stored.joined_by(other.vectors, other.index.ids)
    return replace(state, index=index, vectors=stored)


def _equal(first: Estimator, second: Estimator) -> bool:
    """Whether two estimators have the same parameters, and have learned the same."""
    if type(first) is not type(second) or vars(first).keys() != vars(second).keys():
        return False
    return all(
        value is vars(second)[name] or np.array_equal(value, vars(second)[name])
        for name, value in vars(first).items()
    )
