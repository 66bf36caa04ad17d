"""Changes: bits, ids and vectors become part of the state together, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_ids
from bitweigh._embeddings.inputs import as_embeddings, as_packed, float_blocks, sign_codes
from bitweigh._embeddings.scaling import MIN_ROWS, rounded_blocks, scales_of
from bitweigh._embeddings.state import EmbeddingsState, no_vectors
from bitweigh._vectors.codes_and_vectors import check_ids
from bitweigh._vectors.store import blocks_of
from bitweigh.typing import Codes, Ids

__all__ = ["check_mergeable", "with_embeddings", "with_merged"]

Block = NDArray[Any]


def with_embeddings(
    state: EmbeddingsState, embeddings: object, ids: object, *, replacing: bool
) -> EmbeddingsState:
    """The state with these embeddings, packed or, with `rescore`, floats."""
    dim = state.index.n_bits
    if state.vectors is None:
        codes = as_packed(embeddings, dim)
        state.index.add(codes, ids, on_duplicate="replace" if replacing else "error")  # type: ignore[arg-type]
        return state
    floats = as_embeddings(embeddings, dim)
    new_ids = None if ids is None else as_ids(ids)
    if new_ids is not None:
        check_ids(state.index, new_ids, len(floats), "any" if replacing else "unused", "embedding")
    if len(floats) == 0:
        return state
    codes = sign_codes(floats)
    return _with_floats(state, codes, partial(float_blocks, floats), new_ids)


def with_merged(
    state: EmbeddingsState, other: EmbeddingsState, *, replacing: bool
) -> EmbeddingsState:
    """The state with all embeddings of another; see `check_mergeable`."""
    if state.vectors is None or other.vectors is None:
        state.index.merge(other.index, on_duplicate="replace" if replacing else "error")
        return state
    ids = other.index.ids
    check_ids(state.index, ids, len(ids), "any" if replacing else "unused", "embedding")
    if state.scales is None and other.scales is not None:
        state = _with_scales(state, other.scales, other.calibrated)
    if len(ids) == 0:
        return state
    codes = other.index.codes_of(ids)
    if other.scales is None:
        return _with_floats(state, codes, partial(blocks_of, other.vectors, ids), ids)
    return _with_rows(state, codes, blocks_of(other.vectors, ids), ids)


def check_mergeable(state: EmbeddingsState, other: EmbeddingsState) -> None:
    """Raise ValueError unless the embeddings of one mean the same in the other."""
    expected, found = (
        f"{each.index.n_bits} dimensions, rescore={each.rescore!r}" for each in (state, other)
    )
    if expected != found:
        raise ValueError(f"other must have {expected}, got {found}")
    if state.scales is None or other.scales is None:
        return
    if not np.array_equal(state.scales, other.scales):
        raise ValueError(
            "other has int8 vectors of other ranges: create both with the same calibration="
        )


def _with_floats(
    state: EmbeddingsState, codes: Codes, blocks: Callable[[], Iterator[Block]], ids: Ids | None
) -> EmbeddingsState:
    """As `_with_rows`, for vectors as floats; `blocks` returns the same blocks at each call."""
    if state.rescore == "int8" and state.scales is None:
        assert state.vectors is not None
        kept_ids = state.index.ids
        if len(kept_ids) + len(codes) >= MIN_ROWS:
            every = chain(blocks_of(state.vectors, kept_ids), blocks())
            scales = scales_of(every, state.index.n_bits, "embeddings")
            if scales is not None:
                state = _with_scales(state, scales, calibrated=False)
    rows = blocks() if state.scales is None else rounded_blocks(blocks(), state.scales)
    return _with_rows(state, codes, rows, ids)


def _with_scales(
    state: EmbeddingsState, scales: NDArray[np.float64], calibrated: bool
) -> EmbeddingsState:
    """The state with its vectors as int8 of these scales instead of float32."""
    assert state.vectors is not None
    ids = state.index.ids
    writer = no_vectors("int8", scales, state.index.n_bits).writer()
    for block in rounded_blocks(blocks_of(state.vectors, ids), scales):
        writer.write(block)
    return replace(state, vectors=writer.finish(ids), scales=scales, calibrated=calibrated)


def _with_rows(
    state: EmbeddingsState, codes: Codes, blocks: Iterable[Block], ids: Ids | None
) -> EmbeddingsState:
    """A new state with these rows; they replace rows with the same ids.

    If this raises, vectors that were written and that no state refers to are cut off.
    """
    assert state.vectors is not None
    writer = state.vectors.writer()
    try:
        for block in blocks:
            writer.write(block, "embeddings")
        index = state.index_to_change()
        first_id = index._state.next_id
        index.add(codes, ids, on_duplicate="replace")
        new_ids = range(first_id, first_id + len(codes)) if ids is None else ids
        return replace(state, index=index, vectors=writer.finish(new_ids))
    except BaseException:
        state.vectors.cut()
        raise
