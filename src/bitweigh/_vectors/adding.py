"""Adding vectors: their codes, ids and rows become part of a new state together, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import check_distinct, id_in_use_error
from bitweigh._progress import ProgressBar
from bitweigh._vectors.hashing import row_blocks
from bitweigh._vectors.state import VectorState
from bitweigh.typing import Ids

__all__ = ["check_ids", "with_vectors"]


def check_ids(state: VectorState, ids: Ids, n_vectors: int, replacing: bool) -> None:
    """Raise ValueError unless these can be the ids of `n_vectors` new vectors."""
    if len(ids) != n_vectors:
        raise ValueError(
            f"ids must have shape ({n_vectors},), one for each vector, got {ids.shape}"
        )
    check_distinct(ids)
    used = state.index.contains(ids)
    if used.any() and not replacing:
        raise id_in_use_error(ids, used, "vector")


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
