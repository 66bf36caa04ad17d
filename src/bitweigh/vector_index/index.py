"""VectorIndex: float vectors in, their codes searched exactly, candidates ranked by true distance.

What it holds is replaced whole, never changed: any number of threads may search while one changes
it.
"""
# ruff: noqa: N803 X is scikit-learn's name

from __future__ import annotations

import copy
import os
import threading
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh.changing import OnDuplicate, OnMissing, survive_fork
from bitweigh.checks import MAX_BITS, Ids, as_choice, as_ids, as_integer, as_n_bits
from bitweigh.hashers.base import Hasher
from bitweigh.hashers.estimator import not_fitted_error
from bitweigh.hashers.vectors import as_vectors
from bitweigh.index import Index
from bitweigh.vector_index import files
from bitweigh.vector_index.files import Held
from bitweigh.vector_index.learning import (
    HasherName,
    WeigherName,
    as_hasher,
    as_weigher,
    fit_weigher,
    sample_for,
)
from bitweigh.vector_index.manifest import Metric
from bitweigh.vector_index.progress import bar
from bitweigh.vector_index.searching import Searchable, blocks_for
from bitweigh.vector_index.store import Kept, Vectors
from bitweigh.weighers.base import Weigher

__all__ = ["VectorIndex"]


class VectorIndex(Searchable):
    """Nearest vectors by binary codes: hashes, weighs and searches, and keeps it all in step.

    A hasher makes codes of the vectors. A query keeps its real numbers, and a weigher makes costs
    of them; the search over the codes is exact for these costs. With `rerank` the vectors are kept
    in a file, and the best of more candidates by true distance are returned.

    Any number of threads may search while others change or save it; each search sees one state.

    Parameters
    ----------
    n_bits : int
        Bits of a code. With "sign" there is one for each feature instead, and a hasher of your own
        has its own number.
    hasher : "itq", "lsh", "sign" or a hasher
        What makes codes of vectors; docs/choosing.md compares them. A copy of it is fitted.
    weigher : "asym", "wh", "inner_product" or a weigher
        What makes costs of queries. A copy of it is fitted.
    metric : "euclidean" or "cosine"
        With "cosine" all vectors are divided by their length; zero vectors are refused.
    rerank : "float16" or "float32", optional
        Keep the vectors, rounded to this, and rank candidates by their distance to the query.
    seed : int
        Draws the rows to learn from, and is the seed of what is named "itq", "lsh", "sign" or "wh".
    bands, band_bits, memory_limit : int, optional
        As in :class:`Index`.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> rng = np.random.default_rng(1)
    >>> vectors = rng.standard_normal((1000, 32)).astype(np.float32)  # (1000, 32)
    >>> index = bitweigh.VectorIndex(n_bits=32, rerank="float32").fit(vectors)
    >>> index.add(vectors)
    >>> index.search(vectors[7], k=3).ids[0]
    np.int64(7)

    """

    def __init__(
        self,
        *,
        n_bits: int = 128,
        hasher: HasherName | Hasher = "itq",
        weigher: WeigherName | Weigher = "asym",
        metric: Metric = "euclidean",
        rerank: Kept | None = None,
        seed: int = 0,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        """Make an empty index that has learned nothing yet."""
        bits = as_n_bits(n_bits)
        self._seed = as_integer(seed, "seed", 0, 2**63 - 1)
        self._hasher = as_hasher(hasher, bits, self._seed)
        self._weigher = as_weigher(weigher, self._seed)
        as_choice(metric, "metric", ("euclidean", "cosine"))
        self._metric: Metric = metric
        if rerank is not None:
            as_choice(rerank, "rerank", ("float16", "float32"))
        self._rerank: Kept | None = rerank
        self._options: dict[str, Any] = {
            "bands": bands,
            "band_bits": band_bits,
            "memory_limit": memory_limit,
        }
        Index(MAX_BITS, **self._options)  # refuses what no index would take
        self._held: Held | None = None
        self._writing = threading.Lock()
        survive_fork(self)  # type: ignore[arg-type]  # it needs the lock alone

    @property
    def index(self) -> Index:
        """The codes, as they are now: to look at, explain, build or verify, not to change."""
        return self._now().index

    @property
    def hasher(self) -> Hasher:
        """The fitted hasher."""
        return self._now().hasher

    @property
    def weigher(self) -> Weigher:
        """The fitted weigher."""
        return self._now().weigher

    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
        return self._now().hasher.n_features_in_

    @property
    def metric(self) -> Metric:
        """What vectors are compared by."""
        return self._metric

    @property
    def rerank(self) -> Kept | None:
        """How the vectors are kept, if they are."""
        return self._rerank

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._now().index.ids

    def __len__(self) -> int:
        """Return the number of vectors."""
        return 0 if self._held is None else len(self._held.index)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a vector with this id."""
        return self._held is not None and id in self._held.index

    def __repr__(self) -> str:
        """Say what the index holds."""
        held = self._held
        if held is None:
            return "<bitweigh.VectorIndex: not fitted>"
        names = f"{type(held.hasher).__name__} and {type(held.weigher).__name__}"
        return (
            f"<bitweigh.VectorIndex: {len(self)} vectors of {self.n_features}, "
            f"{held.index.n_bits} bits by {names}, {self._metric}>"
        )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: what is kept may be larger than memory."""
        raise TypeError(
            "a VectorIndex cannot be pickled or copied: save it to a folder, and load that"
        )

    def _now(self) -> Held:
        held = self._held
        if held is None:
            raise not_fitted_error()("This VectorIndex is not fitted yet: call fit first")
        return held

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
            If there are vectors in the index: their codes would mean something else.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4)).n_features
        4

        """
        vectors = as_vectors(X, type(self).__name__)
        with self._writing, bar(progress, "learning", 3) as advance:
            if len(self):
                raise ValueError(f"fit needs an empty index, this one has {len(self)} vectors")
            generator = np.random.default_rng(self._seed)
            sample = sample_for(self._hasher, vectors, self._metric, generator)
            advance(1)
            hasher = copy.deepcopy(self._hasher).fit(sample)
            advance(1)
            weigher = copy.deepcopy(self._weigher)
            fit_weigher(weigher, hasher, sample, generator)
            advance(1)
            index = Index(hasher.n_bits_, bitorder=hasher.bitorder, **self._options)
            kept = None
            if self._rerank is not None:
                kept = Vectors.empty(self._rerank, hasher.n_features_in_)
            self._held = Held(index, hasher, weigher, kept, self._metric, self._rerank, self._seed)
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

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4), ids=[10, 20, 30, 40])
        >>> index.ids
        array([10, 20, 30, 40])

        """
        as_choice(on_duplicate, "on_duplicate", ("error", "replace"))
        own_ids = None if ids is None else as_ids(ids)
        with self._writing:
            held = self._now()
            vectors = as_vectors(X, type(self).__name__, held.hasher.n_features_in_)
            if own_ids is not None and len(own_ids) != len(vectors):
                raise ValueError(
                    f"ids must have shape ({len(vectors)},), one for each vector, got "
                    f"{own_ids.shape}"
                )
            if len(vectors) == 0:
                return
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
            index.add(codes, own_ids, on_duplicate=on_duplicate)
            given = range(first_id, first_id + len(codes)) if own_ids is None else own_ids
            kept = None if writer is None else writer.finish(given)
            self._held = replace(held, index=index, vectors=kept)

    def remove(self, ids: ArrayLike, *, missing: OnMissing = "error") -> int:
        """Remove vectors by id and say how many; KeyError for the first that is not there.

        With ``missing="ignore"`` ids that are not there are passed over. What was kept of them is
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
            count = index.remove(ids, missing=missing)
            self._held = replace(held, index=index)
            return count

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are vectors with these ids, bool (n,); ``id in index`` asks for one."""
        return self._now().index.contains(ids)

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Get vectors back by id, as they are kept: rounded, and of length 1 with "cosine".

        KeyError names the first id that is not in the index.
        """
        held = self._now()
        if held.vectors is None:
            raise ValueError("vectors are kept only by an index that is made with rerank=")
        wanted = as_ids(ids)
        found = held.index.contains(wanted)
        if not found.all():
            raise KeyError(int(wanted[np.argmin(found)]))
        return held.vectors.of(wanted)

    def compact(self) -> None:
        """Let go of what was removed or replaced; put the codes into as few segments as can be."""
        with self._writing:
            held = self._now()
            index = held.index.copy()
            index.compact()
            kept = held.vectors
            if kept is not None and kept.n_rows != len(index):
                kept = kept.only(index.ids)
            self._held = replace(held, index=index, vectors=kept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a folder, which then holds what it held before or this.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds a vector index, which is replaced.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder)
        ...     bitweigh.VectorIndex.load(folder)
        <bitweigh.VectorIndex: 0 vectors of 4, 8 bits by LSH and Asym, euclidean>

        """
        files.save(self._now(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = False) -> Self:
        """Load an index from the folder that it was saved to.

        Parameters
        ----------
        path : str or path
            The folder.
        mmap : bool
            Leave codes and vectors in their files, and read them when they are needed. Else codes
            are read and vectors copied to a temporary file, and all compared with their checksums.

        Raises
        ------
        CorruptIndexError
            If a file is damaged or missing; it says which.
        FileNotFoundError
            If there is no vector index in that folder.

        """
        held = files.load(path, mmap)
        options = held.index._growth.band_options
        index = cls(
            n_bits=held.index.n_bits,
            hasher=held.hasher,
            weigher=held.weigher,
            metric=held.metric,
            rerank=held.rerank,
            seed=held.seed,
            bands=options.bands,
            band_bits=options.band_bits,
            memory_limit=options.memory_limit,
        )
        index._held = held
        return index
