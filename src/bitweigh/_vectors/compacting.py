"""Compacting beside writers: work on one state, published as the compact form of a later one.

Vectors that were added meanwhile are copied after the others, and what was removed stays removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bitweigh._vectors.codes_and_vectors import AnyState, StateWithVectors
from bitweigh._vectors.store import MAX_FILES, Vectors
from bitweigh.index import Index

__all__ = ["compact"]

# Times that work starts again because others have merged segments, before it keeps them out.
_MAX_ATTEMPTS = 3


def compact(
    present: Callable[[], AnyState], publish: Callable[[AnyState], None], writing: threading.Lock
) -> None:
    """Compact the codes and vectors of a state, which others may replace while they hold the lock.

    `present` returns the present state, and `publish` replaces it.
    """
    with writing:
        state = present()
        if state.vectors is not None:
            state.vectors.cut()
    vectors = CompactVectors(state)
    for _ in range(_MAX_ATTEMPTS):
        before = present()
        compacted = before.index.copy()
        compacted.compact()
        # What came meanwhile may be long, too, so most of it is copied without the lock.
        vectors.follow(before)
        with writing:
            after = with_compact_parts(present(), before, compacted, vectors)
            if after is not None:
                publish(after)
                return
    with writing:
        before = present()
        compacted = before.index.copy()
        compacted.compact()
        after = with_compact_parts(before, before, compacted, vectors)
        assert after is not None, "nobody else changes the index"
        publish(after)


class CompactVectors:
    """A copy of the vectors of a state, without removed ones, that can follow later states."""

    def __init__(self, state: StateWithVectors) -> None:
        """Copy the vectors to a new file, unless nothing would be gained."""
        self._copied: Vectors | None = None
        self._seen = vectors = state.vectors
        if vectors is not None and (
            vectors.n_rows != len(state.index) or len(vectors.arrays) > MAX_FILES
        ):
            self._copied = vectors.only(state.index.ids)

    def follow(self, state: StateWithVectors) -> Vectors | None:
        """Copy what was added since, and return the vectors for this state.

        They are the state's own if nothing would be gained, or if it does not continue the state
        before, because another thread has compacted or emptied the index.
        """
        vectors = state.vectors
        if vectors is None or self._seen is None or self._copied is None:
            return vectors
        if not vectors.continues(self._seen):
            self._copied = None
            return vectors
        if vectors.n_rows > self._seen.n_rows:
            ids = state.index.ids
            new_ids = ids[vectors.rows_of(ids) >= self._seen.n_rows]
            self._copied = self._copied.joined_by(vectors, new_ids.astype(np.int64, copy=False))
        self._seen = vectors
        return self._copied


def with_compact_parts(
    now: AnyState, before: AnyState, compacted: Index, vectors: CompactVectors
) -> AnyState | None:
    """The present state with compact vectors, and `compacted` in place of the codes of `before`.

    None if the segments of `before` have been merged with others meanwhile.
    """
    codes = now.index._state.with_compacted(before.index._state, compacted._state)
    if codes is None:
        return None
    stored = vectors.follow(now)
    if codes is now.index._state and stored is now.vectors:
        return now
    index = now.index.copy()
    index._state = codes
    return replace(now, index=index, vectors=stored)
