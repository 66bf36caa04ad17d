"""What can be done to an index of vectors: learning, adding, removing, and tidying up.

Codes and vectors change together: what is held is replaced whole, in one step.
"""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice, as_ids, check_distinct, id_in_use_error
from bitweigh._index.state import State
from bitweigh._vectors.codes import held_codes
from bitweigh._vectors.learning import fit_weigher, sample_for
from bitweigh._vectors.progress import bar
from bitweigh._vectors.ranking import blocks_for
from bitweigh._vectors.searching import Searchable
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._vectors import as_vectors
from bitweigh.index import Index
from bitweigh.typing import Ids, Metric, OnDuplicate, OnMissing, VectorDtype
from bitweigh.weighers._base import Weigher

__all__ = ["Changeable"]


class Changeable(Searchable):
    """Changes what is held, one thread at a time."""

    _seed: int
    _hasher: Hasher
    _weigher: Weigher
    _metric: Metric
    _rerank: VectorDtype | None
    _options: dict[str, Any]
    _bits_may_be_fewer: bool
    """Whether nobody asked for so many bits, and there can be no more of them than features."""
    _held: VectorState | None
    _writing: threading.Lock

    def fit(self, X: ArrayLike, *, progress: bool = False) -> Self:
        """Learn hasher and weigher, from at most as many rows as the hasher's `max_fit_rows`.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors like those to come. A memory map will do: only the rows drawn are read.
        progress : bool
            Show a progress bar; needs rich.

        Returns
        -------
        the index itself

        Raises
        ------
        ValueError
            If there are vectors in the index: their codes would mean something else. Remove them
            first; ids are counted on from there.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4)).n_features
        4

        """
        vectors = as_vectors(X, type(self).__name__)
        with self._writing, bar(progress, "learning", 3) as advance:
            before = self._held
            if before is not None and len(before.index):
                raise ValueError(
                    f"fit needs an empty index, this one has {len(before.index)} vectors"
                )
            generator = np.random.default_rng(self._seed)
            sample = sample_for(self._hasher, vectors, self._metric, generator)
            advance(1)
            hasher = copy.deepcopy(self._hasher)
            if self._bits_may_be_fewer:
                hasher.set_params(
                    n_bits=max(1, min(hasher.get_params()["n_bits"], sample.shape[1]))
                )
            hasher.fit(sample)
            advance(1)
            weigher = copy.deepcopy(self._weigher)
            fit_weigher(weigher, hasher, sample, generator)
            advance(1)
            index = Index(hasher.n_bits_, bitorder=hasher.bitorder, **self._options)
            if before is not None:
                index._state = State(next_id=before.index._state.next_id)
            kept = None
            if self._rerank is not None:
                kept = Vectors.empty(self._rerank, hasher.n_features_in_)
            self._held = VectorState(
                held_codes(index), hasher, weigher, kept, self._metric, self._rerank, self._seed
            )
        return self

    def add(
        self,
        X: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
    ) -> None:
        """Add vectors, all of them or, if it raises, none.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, finite. Read block by block, so a memory map larger than memory will do.
        ids : int64 (n,), optional
            Ids of your own, not negative and distinct. By default the numbers from the largest id
            ever used plus one on, starting at 0.
        on_duplicate : "error" or "replace"
            What to do where an id is in the index already: refuse all vectors, or replace the one
            that has it.
        progress : bool
            Show a progress bar; needs rich.

        Raises
        ------
        OSError
            With `rerank`: if the folder of temporary files is full. The space is given back.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4), ids=[10, 20, 30, 40])
        >>> index.ids
        array([10, 20, 30, 40])

        """
        replacing = as_choice(on_duplicate, "on_duplicate", ("error", "replace")) == "replace"
        own_ids = None if ids is None else as_ids(ids)
        with self._writing:
            held = self._now()
            vectors = as_vectors(X, type(self).__name__, held.hasher.n_features_in_)
            if own_ids is not None:
                _check_ids(held, own_ids, len(vectors), replacing)
            if len(vectors) == 0:
                return
            try:
                self._held = _with_vectors(held, vectors, own_ids, progress)
            except BaseException:
                # Where what is held was replaced all the same, the new rows are in use.
                if held.vectors is not None and self._held is held:
                    held.vectors.cut()
                raise

    def remove(self, ids: ArrayLike, *, on_missing: OnMissing = "error") -> int:
        """Remove vectors by id and say how many; KeyError for the first that is not there.

        With ``on_missing="ignore"`` ids that are not there are ignored. What was kept of them is
        forgotten by `compact` and `save`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.remove([1, 2])
        2

        """
        with self._writing:
            held = self._now()
            index = held.index.copy()
            count = index.remove(ids, on_missing=on_missing)
            self._held = replace(held, index=held_codes(index))
            return count

    def compact(self) -> None:
        """Let go of what was removed or replaced; put the codes into as few segments as can be."""
        with self._writing:
            held = self._now()
            index = held.index.copy()
            index.compact()
            kept = held.vectors
            if kept is not None:
                kept.cut()
                if kept.n_rows != len(index):
                    kept = kept.only(index.ids)
            self._held = replace(held, index=held_codes(index), vectors=kept)

    def build(self) -> None:
        """Build the bands of all codes that have none yet; see `Index.build`."""
        self._now().index.build()


def _check_ids(held: VectorState, ids: Ids, rows: int, replacing: bool) -> None:
    """Raise ValueError for ids that these rows cannot have."""
    if len(ids) != rows:
        raise ValueError(f"ids must have shape ({rows},), one for each vector, got {ids.shape}")
    check_distinct(ids)
    used = held.index.contains(ids)
    if used.any() and not replacing:
        raise id_in_use_error(ids, used, "vector")


def _with_vectors(
    held: VectorState, vectors: NDArray[Any], ids: Ids | None, progress: bool
) -> VectorState:
    """What is held with these vectors; those of ids that are in use take their place."""
    writer = None if held.vectors is None else held.vectors.writer()
    codes = np.empty((len(vectors), (held.index.n_bits + 7) // 8), np.uint8)
    with bar(progress, "adding", len(vectors)) as advance:
        for first, block in blocks_for(held, vectors, "X"):
            held.hasher.transform(block, out=codes[first : first + len(block)])
            if writer is not None:
                writer.write(block)
            advance(len(block))
    index = held.index.copy()
    first_id = index._state.next_id
    index.add(codes, ids, on_duplicate="replace")
    given = range(first_id, first_id + len(codes)) if ids is None else ids
    kept = None if writer is None else writer.finish(given)
    return replace(held, index=held_codes(index), vectors=kept)
