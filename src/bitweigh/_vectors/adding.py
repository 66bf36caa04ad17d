"""Adding vectors: their codes, ids and rows become part of a new state together, or not at all."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._progress import ProgressBar
from bitweigh._vectors.hashing import row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh.hashers._base import Clipped
from bitweigh.hashers._estimator import Estimator
from bitweigh.typing import Ids

__all__ = ["check_mergeable", "with_merged", "with_vectors"]

# Values beyond those of a sample are few, if it is like all vectors.
_MAX_SHARE_OUTSIDE = 0.01


def with_vectors(
    state: VectorState, vectors: NDArray[Any], ids: Ids | None, progress: bool
) -> VectorState:
    """A new state with these vectors added; they replace vectors with the same ids.

    If this raises, rows may have been written that no state refers to: see `Vectors.cut`.
    """
    writer = None if state.vectors is None else state.vectors.writer()
    codes = np.empty((len(vectors), (state.index.n_bits + 7) // 8), np.uint8)
    outside = Clipped()
    with ProgressBar("adding", len(vectors), unit="vectors", shown=progress) as bar:
        for first, block in row_blocks(state, vectors, "X"):
            made, clipped = state.hasher._codes_and_clipped(block)
            codes[first : first + len(block)] = made
            outside = Clipped(outside.values + clipped.values, outside.norms + clipped.norms)
            if writer is not None:
                writer.write(block)
            bar.advance(len(block))
    index = state.index.copy()
    first_id = index._state.next_id
    index.add(codes, ids, on_duplicate="replace")
    new_ids = range(first_id, first_id + len(codes)) if ids is None else ids
    stored = None if writer is None else writer.finish(new_ids)
    _report(outside, vectors)
    return replace(state, index=index, vectors=stored)


def _report(outside: Clipped, vectors: NDArray[Any]) -> None:
    """Warn about values that were clipped, if they are many, and about norms in any case."""
    if outside.norms or outside.values > _MAX_SHARE_OUTSIDE * vectors.size:
        warnings.warn(
            f"of {len(vectors)} vectors, {outside.values} values and {outside.norms} norms are "
            "outside the range of those that `fit` saw, and were clipped: distances of these "
            "vectors are wrong; fit on vectors like all those to come",
            stacklevel=5,
        )


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
    facts, others = ({**vars(each), **each._fitted_params()} for each in (first, second))
    if type(first) is not type(second) or facts.keys() != others.keys():
        return False
    return all(
        value is others[name] or np.array_equal(value, others[name])
        for name, value in facts.items()
    )
