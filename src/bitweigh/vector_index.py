"""VectorIndex: hashes float vectors, searches their codes exactly, ranks by true distance.

Its state is replaced as a whole, never changed: any number of threads may search while another
changes it. Methods check their arguments; functions of `bitweigh._vectors` do the work.
"""
# ruff: noqa: N803 X is scikit-learn's name, Q goes with it

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import (
    MAX_BITS,
    as_choice,
    as_deadline,
    as_ids,
    as_integer,
    as_k,
    as_n_bits,
    as_optional_integer,
    as_radii,
)
from bitweigh._forks import renew_lock_after_fork
from bitweigh._index.evidence import DEFAULT_K
from bitweigh._index.explain import Explanation
from bitweigh._index.filters import Filter, as_filter
from bitweigh._index.request import MAX_LIMIT, nearest, search_options
from bitweigh._index.request import within as codes_within
from bitweigh._index.state import State
from bitweigh._progress import ProgressBar
from bitweigh._results import Memory, RangeResult, SearchResult
from bitweigh._storage import note_text
from bitweigh._vectors import files
from bitweigh._vectors.adding import check_ids, with_vectors
from bitweigh._vectors.hashing import as_queries, cost_blocks
from bitweigh._vectors.learning import MAX_DEFAULT_BITS, as_hasher, as_weigher, learn
from bitweigh._vectors.ranking import rank, within
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors, check_vectors
from bitweigh.errors import CorruptFileError
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import not_fitted_error
from bitweigh.hashers._vectors import as_vectors
from bitweigh.index import Index
from bitweigh.typing import (
    BuildMode,
    HasherName,
    Ids,
    Method,
    Metric,
    OnDuplicate,
    OnMissing,
    VectorDtype,
    WeigherName,
)
from bitweigh.weighers._base import Weigher

__all__ = ["VectorIndex"]

AnyVectorIndex = TypeVar("AnyVectorIndex", bound="VectorIndex")


class VectorIndex:
    """An index of float vectors: hashes them, searches their codes, and reranks if asked to.

    A hasher turns vectors into codes. A query keeps its real numbers, which a weigher turns into
    costs; the search over the codes is exact for these costs. With `rerank` the vectors are kept in
    a file, and candidates found by their codes are ranked by true distance.

    Any number of threads may search while others change or save it; each search sees one state.

    Parameters
    ----------
    n_bits : int, optional
        Bits of a code. By default 128, but with "itq" no more than there are features. Not used
        with "sign", which has one bit per feature, or with a hasher object, which has its own.
    hasher : "itq", "lsh", "sign" or a hasher
        Turns vectors into codes; docs/choosing.md compares them. A copy of an object is fitted.
    weigher : "asym", "wh", "inner_product" or a weigher
        Turns queries into costs. A copy of an object is fitted.
    metric : "euclidean" or "cosine"
        With "cosine" all vectors are divided by their length; zero vectors are refused.
    rerank : "float16" or "float32", optional
        Keep the vectors, rounded to this dtype, and rank candidates by true distance.
    seed : int
        Random seed of the choice of rows to learn from, and of a hasher or weigher given by name.
    bands, band_bits, memory_limit, build
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
        n_bits: int | None = None,
        hasher: HasherName | Hasher = "itq",
        weigher: WeigherName | Weigher = "asym",
        metric: Metric = "euclidean",
        rerank: VectorDtype | None = None,
        seed: int = 0,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
        build: BuildMode = "auto",
    ) -> None:
        """Create an empty index, not fitted yet."""
        bits = MAX_DEFAULT_BITS if n_bits is None else as_n_bits(n_bits)
        self._seed = as_integer(seed, "seed", 0, 2**63 - 1)
        self._hasher = as_hasher(hasher, bits, self._seed)
        # ITQ has at most one bit per feature; only the default number of bits may be lowered.
        self._bits_may_be_fewer = n_bits is None and hasher == "itq"
        self._weigher = as_weigher(weigher, self._seed)
        as_choice(metric, "metric", ("euclidean", "cosine"))
        self._metric: Metric = metric
        if rerank is not None:
            as_choice(rerank, "rerank", ("float16", "float32"))
        self._rerank: VectorDtype | None = rerank
        self._options: dict[str, Any] = {
            "bands": bands,
            "band_bits": band_bits,
            "memory_limit": memory_limit,
            "build": build,
        }
        # Raises for options that no index would accept. The bits of "sign" are not known yet.
        Index(self._hasher.get_params().get("n_bits", MAX_BITS), **self._options)
        self._state: VectorState | None = None
        self._source: _Source | None = None
        self._writing = threading.Lock()
        renew_lock_after_fork(self)

    @property
    def index(self) -> Index:
        """A copy of the current codes: changing it does not change the vector index.

        Takes microseconds, as `Index.copy` does.
        """
        return self._fitted().index.copy()

    @property
    def hasher(self) -> Hasher:
        """A copy of the fitted hasher: fitting it again does not change the index."""
        return copy.copy(self._fitted().hasher)

    @property
    def weigher(self) -> Weigher:
        """A copy of the fitted weigher."""
        return copy.copy(self._fitted().weigher)

    @property
    def n_features(self) -> int:
        """The number of features of a vector."""
        return self._fitted().hasher.n_features_in_

    @property
    def metric(self) -> Metric:
        """The metric that vectors are compared by."""
        return self._metric

    @property
    def rerank(self) -> VectorDtype | None:
        """The dtype that vectors are kept in, or None if they are not kept."""
        return self._rerank

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._fitted().index.ids

    @property
    def note(self) -> dict[str, Any]:
        """The note that was saved or loaded last, as a copy; ``{}`` if there is none.

        ``save(path, note={...})`` sets it. Changes of the index keep it, and so do copies and
        pickles.
        """
        return {} if self._state is None else self._state.index.note

    def __len__(self) -> int:
        """Return the number of vectors."""
        return 0 if self._state is None else len(self._state.index)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a vector with this id."""
        return self._state is not None and id in self._state.index

    def __repr__(self) -> str:
        """Summarise the index."""
        state = self._state
        if state is None:
            return "<bitweigh.VectorIndex: not fitted>"
        names = f"{type(state.hasher).__name__} and {type(state.weigher).__name__}"
        return (
            f"<bitweigh.VectorIndex: {len(state.index)} vectors of {state.hasher.n_features_in_}, "
            f"{state.index.n_bits} bits by {names}, {self._metric}>"
        )

    def fit(self, X: ArrayLike, *, progress: bool = False) -> Self:
        """Fit the hasher and the weigher, on at most as many rows as the hasher's `max_fit_rows`.

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
            If there are vectors in the index: their codes would become meaningless. Remove them
            first; later ids still continue after theirs.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4)).n_features
        4

        """
        vectors = as_vectors(X, type(self).__name__)
        with self._writing, ProgressBar("learning", 3, shown=progress) as bar:
            before = self._state
            if before is not None and len(before.index):
                raise ValueError(
                    f"fit needs an empty index, but this one has {len(before.index)} vectors"
                )
            hasher, weigher = learn(
                self._hasher,
                self._weigher,
                vectors,
                self._metric,
                self._seed,
                self._bits_may_be_fewer,
                bar.advance,
            )
            index = Index(hasher.n_bits_, bitorder=hasher.bitorder, **self._options)
            if before is not None:
                index._state = State(next_id=before.index._state.next_id)
                index._note = before.index._note
            stored = None
            if self._rerank is not None:
                stored = Vectors.empty(self._rerank, hasher.n_features_in_)
            self._state = VectorState(
                index, hasher, weigher, stored, self._metric, self._rerank, self._seed
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
            Ids of your own, not negative and distinct. By default consecutive numbers after the
            largest id ever used, starting at 0.
        on_duplicate : "error" or "replace"
            What to do if an id is already in the index: raise ValueError and add nothing, or
            replace its vector.
        progress : bool
            Show a progress bar; needs rich.

        Raises
        ------
        OSError
            With `rerank`: if the disk of the folder of temporary files is full. Nothing is added
            then, and the space is freed.

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
        checked_ids = None if ids is None else as_ids(ids)
        with self._writing:
            state = self._fitted()
            vectors = as_vectors(X, type(self).__name__, state.hasher.n_features_in_)
            if checked_ids is not None:
                check_ids(state, checked_ids, len(vectors), replacing)
            if len(vectors) == 0:
                return
            try:
                self._state = with_vectors(state, vectors, checked_ids, progress)
            except BaseException:
                # If the state was replaced nevertheless, the new rows are in use.
                if state.vectors is not None and self._state is state:
                    state.vectors.cut()
                raise

    def remove(self, ids: ArrayLike, *, on_missing: OnMissing = "error") -> int:
        """Remove vectors by id and return how many were removed.

        `compact` frees the space of the vectors; `save` leaves them out.

        Parameters
        ----------
        ids : int64 (n,)
            Ids to remove; repeated ones are removed once.
        on_missing : "error" or "ignore"
            What to do if an id is not in the index: raise KeyError for the first one and remove
            nothing, or ignore it.

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
            state = self._fitted()
            index = state.index.copy()
            count = index.remove(ids, on_missing=on_missing)
            self._state = replace(state, index=index)
            return count

    def compact(self) -> None:
        """Free the space of removed and replaced vectors, and merge the segments of the codes.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.remove([1, 2])
        2
        >>> index.compact()
        >>> index.memory().removed
        0

        """
        with self._writing:
            state = self._fitted()
            index = state.index.copy()
            index.compact()
            stored = state.vectors
            if stored is not None:
                stored.cut()
                if stored.n_rows != len(index):
                    stored = stored.only(index.ids)
            self._state = replace(state, index=index, vectors=stored)

    def build(
        self,
        *,
        sample_queries: ArrayLike | None = None,
        k: int | None = None,
        rebuild: bool = False,
        threads: int | None = None,
    ) -> None:
        """Build bands for codes that have none, if they make searches faster; see `Index.build`.

        Parameters
        ----------
        sample_queries : real numbers (nq, n_features), optional
            Queries like those to come, by which bands are chosen.
        k : int, optional
            How many neighbours they are searched for; by default 10.
        rebuild, threads
            As in `Index.build`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.build()

        """
        sample_costs = None
        if sample_queries is not None:
            state = self._fitted()
            n_codes = _n_codes_to_find(state, DEFAULT_K if k is None else as_k(k), None)
            k, sample_costs = n_codes, self.costs(sample_queries)
        before = self._fitted().index
        built = before.copy()
        built.build(sample_costs=sample_costs, k=k, rebuild=rebuild, threads=threads)
        with self._writing:
            state = self._fitted()
            index = state.index.copy()
            index._state = index._state.with_rebuilt(before._state, built._state)
            self._state = replace(state, index=index)

    def search(
        self,
        Q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
        progress: bool = False,
    ) -> SearchResult:
        """Find the k nearest vectors, by their codes and, with `rerank`, by true distance.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        k : int
            Number of neighbours, at least 1.
        rerank_from : int, optional
            With `rerank`: number of nearest codes to rank by true distance, at least k; by default
            ``max(10 * k, 100)``.
        threads, allow, deny, filter, timeout
            As in `Index.search`. Queries are hashed in blocks; the time is checked after each, and
            all the time during the search and the ranking.
        progress : bool
            Show a progress bar; needs rich.

        Returns
        -------
        SearchResult
            ``distances`` float64 (nq, k) and ``ids`` int64 (nq, k), nearest first, equal distances
            in ascending id; ``(k,)`` for a single query. Distances are the weighted ones of the
            codes, or, with `rerank`, Euclidean ones or 1 - cosine. If there are fewer than k
            vectors, the rest is +inf and -1.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.search([0.0, 0.0, 3.0, 0.0], k=1)
        SearchResult(distances=array([2.]), ids=array([2]))

        """
        deadline = as_deadline(timeout)
        state = self._fitted()
        queries, single = as_queries(state, Q)
        k = as_k(k)
        n_codes = _n_codes_to_find(state, k, rerank_from)
        distances = np.empty((len(queries), k))
        ids = np.empty((len(queries), k), np.int64)
        options = search_options(threads=threads, deadline=deadline)
        request = state.index._request(options, allow, deny, filter)
        with ProgressBar("searching", len(queries), unit="queries", shown=progress) as bar:
            for block, rows, costs in cost_blocks(state, queries):
                if allow is None and deny is None and filter is None:
                    state.index._recent.add(costs, n_codes)
                found = nearest(request, costs, n_codes)
                if state.vectors is None:
                    distances[block], ids[block] = found.distances, found.ids
                else:
                    rank(
                        state.vectors,
                        rows,
                        found.ids,
                        state.metric,
                        threads,
                        distances[block],
                        ids[block],
                        deadline,
                    )
                bar.advance(len(rows))
        return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)

    def range_search(
        self,
        Q: ArrayLike,
        radius: ArrayLike,
        *,
        by: Literal["vectors", "codes"] | None = None,
        limit: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> RangeResult:
        """Find all vectors within a radius, by the same distances as `search`.

        With `rerank` the radius is a Euclidean distance, or 1 - cosine. Codes cannot tell which
        vectors are within it, so all vectors are read, block by block: the answer is exact, and
        takes time proportional to their number. Without `rerank` the radius is a weighted distance
        of the codes.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        radius : number or (nq,)
            The largest distance that counts, not NaN.
        by : "vectors" or "codes", optional
            What the radius is a distance of. By default "vectors" with `rerank`, else "codes";
            "codes" is faster, and always possible.
        limit, threads, allow, deny, filter, timeout
            As in `Index.range_search`.

        Returns
        -------
        RangeResult
            As `Index.range_search` returns it.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.range_search([1.0, 0.0, 0.0, 0.0], 0.5)
        RangeResult(lims=array([0, 1]), distances=array([0.]), ids=array([0]))
        >>> index.range_search(np.ones(4), np.inf, by="codes").lims
        array([0, 4])

        """
        deadline = as_deadline(timeout)
        state = self._fitted()
        queries, _ = as_queries(state, Q)
        radii = as_radii(radius, len(queries))
        limit = as_optional_integer(limit, "limit", 0, MAX_LIMIT)
        if by is not None:
            as_choice(by, "by", ("vectors", "codes"))
        if by == "vectors" and state.vectors is None:
            raise ValueError("by='vectors' needs an index that keeps vectors, created with rerank=")
        if state.vectors is not None and by != "codes":
            id_filter = as_filter(allow, deny, filter)
            return within(state, state.vectors, queries, radii, limit, id_filter, threads, deadline)
        options = search_options(threads=threads, limit=limit, deadline=deadline)
        request = state.index._request(options, allow, deny, filter)
        found = [
            codes_within(request, costs, radii[block], first=block.start)
            for block, _, costs in cost_blocks(state, queries)
        ]
        counts = [np.diff(result.lims) for result in found]
        return RangeResult(
            np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts])),
            np.concatenate([np.empty(0), *(result.distances for result in found)]),
            np.concatenate([np.empty(0, np.int64), *(result.ids for result in found)]),
        )

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches: only these vectors, or all but these.

        It works as that of `Index.filter`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.search(np.ones(4), k=4, filter=index.filter(allow=[2])).ids
        array([ 2, -1, -1, -1])

        """
        return Filter(allow=allow, deny=deny)

    def costs(self, Q: ArrayLike) -> NDArray[np.float64]:
        """Compute the costs of queries, with which `search` searches the codes.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.

        Returns
        -------
        float64 (n_bits, 2) for a single query, (nq, n_bits, 2) for several

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.costs(np.ones((3, 4))).shape
        (3, 8, 2)

        """
        state = self._fitted()
        queries, single = as_queries(state, Q)
        costs = np.empty((len(queries), state.index.n_bits, 2))
        for block, _, values in cost_blocks(state, queries):
            costs[block] = values
        return costs[0] if single else costs

    def explain(
        self,
        q: ArrayLike,
        k: int,
        *,
        rerank_from: int | None = None,
        method: Method = "auto",
    ) -> Explanation:
        """Search the codes for one query, and explain how it was done and why.

        Parameters
        ----------
        q : real numbers (n_features,)
            One query, finite.
        k, rerank_from
            As in `search`: with `rerank`, the search for all `rerank_from` candidates is explained.
        method : "auto", "scan" or "probe"
            As in `Index.search`.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.explain([0.0, 0.0, 3.0, 0.0], k=1).plan
        'scan'

        """
        state = self._fitted()
        queries, single = as_queries(state, q)
        if not single:
            raise ValueError(f"q must be one query, (n_features,), got {queries.shape}")
        n_codes = _n_codes_to_find(state, as_k(k), rerank_from)
        ((_, _, costs),) = cost_blocks(state, queries)
        return state.index.explain(costs[0], n_codes, method=method)

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are vectors with these ids, bool (n,); ``id in index`` asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.contains([2, 9])
        array([ True, False])

        """
        return self._fitted().index.contains(ids)

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Return vectors by id as they are kept: rounded, and of length 1 with "cosine".

        KeyError names the first id that is not in the index.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float16").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.vectors_of([2])
        array([[0., 0., 1., 0.]], dtype=float16)

        """
        state = self._fitted()
        if state.vectors is None:
            raise ValueError("only an index that is created with rerank= keeps vectors")
        checked_ids = as_ids(ids)
        found = state.index.contains(checked_ids)
        if not found.all():
            raise KeyError(int(checked_ids[np.argmin(found)]))
        return state.vectors.of(checked_ids)

    def memory(self) -> Memory:
        """Count the bytes that the codes take, by part; see `Index.memory`.

        Vectors that are kept are in a file, which the operating system caches in memory as far as
        there is room: ``len(index) * n_features`` numbers of 2 or 4 bytes.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=64, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.ones((320, 4)))
        >>> index.memory().codes
        2560

        """
        return self._fitted().index.memory()

    def verify(self) -> None:
        """Check that codes, ids and vectors agree, and that nothing read from files has changed.

        Takes about as long as building the index, and reads all vectors.

        Raises
        ------
        CorruptFileError
            If something is damaged; the error names the file or the part of the index.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float16").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.verify()

        """
        state = self._fitted()
        state.index.verify()
        if state.vectors is not None:
            check_vectors(state.vectors, state.index.ids)
        if self._source is not None and self._source.state.vectors is state.vectors:
            files.check_files(self._source.folder)

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Save everything to a folder, atomically: if this fails, it keeps its old contents.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds a vector index, which is replaced.
        note : dict, optional
            A small JSON object to keep with the index, as in `Index.save`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder, note={"model": "v2"})
        ...     bitweigh.VectorIndex.load(folder).note
        {'model': 'v2'}

        """
        state = self._fitted()
        if note is None:
            files.save(state, path, state.index._note)
            return
        text = note_text(note)
        files.save(state, path, text)
        with self._writing:
            state = self._fitted()
            index = state.index.copy()
            index._note = text
            self._state = replace(state, index=index)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = False,
        *,
        verify: bool | None = None,
        build: BuildMode = "auto",
    ) -> Self:
        """Load an index from the folder that it was saved to.

        Parameters
        ----------
        path : str or path
            The folder.
        mmap : bool
            Leave codes and vectors in their files, and read them when they are needed. Otherwise
            codes are read and vectors copied to a temporary file.
        verify : bool, optional
            Whether to check every file against its checksum; by default only if not mapped.
        build : "auto" or "manual"
            As in :class:`Index`.

        Raises
        ------
        CorruptFileError
            If a file is damaged or missing; it says which.
        FileNotFoundError
            If there is no vector index in that folder.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder)
        ...     mapped = bitweigh.VectorIndex.load(folder, mmap=True)
        >>> len(mapped)
        4

        """
        as_choice(build, "build", get_args(BuildMode))
        state, source = files.load(path, mmap, (not mmap) if verify is None else verify, build)
        options = state.index._policy.band_options
        index = cls(
            n_bits=state.index.n_bits,
            hasher=state.hasher,
            weigher=state.weigher,
            metric=state.metric,
            rerank=state.rerank,
            seed=state.seed,
            bands=options.bands,
            band_bits=options.band_bits,
            memory_limit=options.memory_limit,
            build=build,
        )
        index._state = state
        if mmap:
            index._source = _Source(source.folder, source.checksum, state)
        return index

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle the path of the folder of a mapped index, or all of an index without vectors.

        Raises TypeError for others: vectors that are kept may be larger than memory.
        """
        source, state = self._source, self._state
        if source is not None and state is source.state and source.is_still_there():
            build = self._options["build"]
            return _from_source, (type(self), str(source.folder), source.checksum, build)
        if self._rerank is not None:
            raise TypeError(
                "a VectorIndex that keeps vectors can be pickled or copied only while it is the "
                "same as in a folder: save it to one, and load that with mmap=True"
            )
        attributes = {**vars(self)}
        del attributes["_writing"], attributes["_source"]
        return _from_attributes, (type(self), attributes)

    def _fitted(self) -> VectorState:
        """The current state; raises if the index is not fitted."""
        state = self._state
        if state is None:
            raise not_fitted_error()("This VectorIndex is not fitted yet: call fit first")
        return state


class _Source(NamedTuple):
    """The folder that an index is mapped from."""

    folder: Path
    checksum: str
    state: VectorState
    """The state that was mapped."""

    def is_still_there(self) -> bool:
        """Whether the folder still holds the same index."""
        try:
            return files.checksum(self.folder) == self.checksum
        except (OSError, CorruptFileError):
            return False


def _from_source(
    cls: type[AnyVectorIndex], folder: str, checksum: str, build: BuildMode
) -> AnyVectorIndex:
    index = cls.load(folder, mmap=True, build=build)
    if index._source is None or index._source.checksum != checksum:
        raise ValueError(f"{folder} has another index than when this one was pickled")
    return index


def _from_attributes(cls: type[AnyVectorIndex], attributes: dict[str, Any]) -> AnyVectorIndex:
    index = cls.__new__(cls)
    vars(index).update(attributes, _source=None, _writing=threading.Lock())
    renew_lock_after_fork(index)
    return index


def _n_codes_to_find(state: VectorState, k: int, rerank_from: object) -> int:
    """The number of nearest codes to search for."""
    if state.vectors is None:
        if rerank_from is not None:
            raise ValueError("rerank_from needs an index that keeps vectors, created with rerank=")
        return k
    if rerank_from is None:
        n_codes = max(10 * k, 100)
    else:
        n_codes = as_integer(rerank_from, "rerank_from", k, 2**32)
    return max(1, min(n_codes, len(state.index)))
