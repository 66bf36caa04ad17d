"""VectorIndex: hashes float vectors, searches their codes exactly, ranks by true distance.

Its state is replaced as a whole, never changed: any number of threads may search while another
changes it. Methods check their arguments; functions of `bitweigh._vectors` do the work.
"""
# ruff: noqa: N803 X is scikit-learn's name, Q goes with it

from __future__ import annotations

import copy
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

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
from bitweigh._index.id_queries import IdQueries
from bitweigh._index.request import MAX_LIMIT
from bitweigh._index.state import State
from bitweigh._progress import ProgressBar
from bitweigh._results import Memory, RangeResult, SearchResult
from bitweigh._storage import note_text
from bitweigh._vectors import files
from bitweigh._vectors.adding import check_mergeable, with_merged, with_vectors
from bitweigh._vectors.bit_weights import know_bits
from bitweigh._vectors.choosing import Trials, Wish
from bitweigh._vectors.codes_and_vectors import (
    MappedFrom,
    added_attributes,
    check_ids,
    copied,
    kept_vectors,
    n_candidates,
    ranks_by_vectors,
    refuse_k_alone,
    with_bands,
    with_note,
)
from bitweigh._vectors.compacting import compact
from bitweigh._vectors.hashing import as_queries, cost_blocks, costs_of, one_query
from bitweigh._vectors.learning import (
    MAX_DEFAULT_BITS,
    as_hasher,
    as_weigher,
    check_bits,
    check_together,
    learn,
)
from bitweigh._vectors.ranking import within
from bitweigh._vectors.searching import (
    Options,
    codes_in_order,
    codes_in_range,
    nearest_vectors,
    vectors_in_order,
)
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors, check_vectors
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import not_fitted_error
from bitweigh.hashers._vectors import as_vectors
from bitweigh.index import Index
from bitweigh.typing import (
    BuildMode,
    By,
    Codes,
    HasherChoice,
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
        Bits of a code. By default they follow from the hasher and the number of features: with
        "itq" one per feature but at most 128, with "lsh" 128, with "sign" one per feature, with
        "scalar" four per feature and some for the norm, with "levels" 128, and a hasher object has
        its own. A number that contradicts the hasher is an error. With "auto" it is the maximum,
        128 by default.
    hasher : "itq", "lsh", "sign", "scalar", "levels", "auto" or a hasher
        Turns vectors into codes; docs/choosing.md compares them. A copy of an object is fitted.
        With "auto", `fit` compares those that make at most `n_bits` bits on a sample, and takes the
        one whose codes find most of the true neighbours; `trials` has what it measured.
    weigher : "asym", "wh", "inner_product", "decoded" or a weigher, optional
        Turns queries into costs. A copy of an object is fitted. By default "decoded" with "scalar"
        and "levels", else "asym".
    metric : "euclidean", "cosine" or "inner_product"
        With "cosine" all vectors are divided by their length; zero vectors are refused. With
        "inner_product" the largest product is nearest, and a distance is minus the product; that
        needs "scalar" or "levels", or "sign" with the weigher "inner_product".
    rerank : "float16" or "float32", optional
        Keep the vectors, rounded to this dtype, and rank candidates by true distance. There is no
        "int8" as for `BinaryEmbeddings`.
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

    _base_attributes: ClassVar[frozenset[str]]
    """Names of the attributes of every vector index; a derived class may add others."""
    _pickles_vectors: ClassVar[bool] = False
    """Whether a pickle has the vectors that are kept: only if there is room for them in memory."""

    def __init__(
        self,
        *,
        n_bits: int | None = None,
        hasher: HasherChoice | Hasher = "itq",
        weigher: WeigherName | Weigher | None = None,
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
        as_choice(metric, "metric", get_args(Metric))
        self._metric: Metric = metric
        self._wish = Wish(bits, weigher, metric, self._seed) if hasher == "auto" else None
        if self._wish is not None:
            self._wish.check()
            hasher = "levels"  # until one is chosen: it makes any number of bits
            weigher = None
        self._trials = Trials()
        self._hasher = as_hasher(hasher, bits, self._seed)
        self._n_bits = None if n_bits is None else bits
        check_bits(self._n_bits, self._hasher)
        # ITQ has at most one bit per feature; only the default number of bits may be lowered.
        self._bits_may_be_fewer = n_bits is None and hasher == "itq"
        self._weigher = as_weigher(weigher, self._hasher, self._seed)
        check_together(self._hasher, self._weigher, metric)
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
        self._source: MappedFrom | None = None
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
    def trials(self) -> Trials:
        """What ``hasher="auto"`` measured in `fit`, the best first; empty with other hashers.

        A tuple of named tuples ``(hasher, n_bits, n_bytes, precision, seconds)``; printing it shows
        a table. It is not saved.
        """
        return self._trials

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._fitted().index.n_bits

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
            Show a progress bar with the time left; needs rich.

        Returns
        -------
        the index itself

        Raises
        ------
        ValueError
            If `n_bits` is not what the hasher makes of vectors with this number of features. If
            there are vectors in the index: their codes would become meaningless. Remove them first;
            later ids still continue after theirs.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4)).n_features
        4

        """
        return self._fit(X, progress)

    def _fit(self, X: ArrayLike, progress: bool | None) -> Self:
        """As `fit`; None shows a progress bar only on a terminal."""
        vectors = as_vectors(X, type(self).__name__)
        with self._writing:
            before = self._state
            if before is not None and len(before.index):
                raise ValueError(
                    f"fit needs an empty index, but this one has {len(before.index)} vectors"
                )
            hasher, weigher, trials = self._hasher, self._weigher, Trials()
            if self._wish is None:
                check_bits(self._n_bits, hasher, vectors.shape[1] or None)
            else:
                hasher, weigher, trials = self._wish.choose(vectors, progress)
            with ProgressBar("learning", 1, shown=progress) as bar:
                hasher, weigher = learn(
                    hasher,
                    weigher,
                    vectors,
                    self._metric,
                    self._seed,
                    self._bits_may_be_fewer,
                    None if progress is False else bar,
                )
            index = Index(hasher.n_bits_, bitorder=hasher.bitorder, **self._options)
            know_bits(index, hasher, weigher)
            if before is not None:
                index._state = State(next_id=before.index._state.next_id)
                index._note = before.index._note
            stored = self._no_vectors(hasher)
            self._state = VectorState(
                index, hasher, weigher, stored, self._metric, self._rerank, self._seed
            )
            self._trials = trials
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
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        checked_ids = None if ids is None else as_ids(ids)
        self._add(X, checked_ids, "any" if replacing else "unused", progress)

    def replace(self, X: ArrayLike, ids: ArrayLike, *, progress: bool = False) -> None:
        """Replace the vectors of ids that are in the index, all in one step.

        Parameters
        ----------
        X : real numbers (n, n_features)
            Vectors, as in `add`.
        ids : int64 (n,)
            Distinct ids.
        progress : bool
            Show a progress bar; needs rich.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id, and nothing is
            replaced.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.replace([[0.0, 0.0, 0.0, 5.0]], ids=[2])
        >>> index.vectors_of([2])
        array([[0., 0., 0., 5.]], dtype=float32)

        """
        if ids is None:
            raise TypeError(
                "ids must be those of the vectors to replace, got None; `add` adds vectors"
            )
        self._add(X, as_ids(ids), "used", progress)

    def _add(
        self,
        X: ArrayLike,
        ids: Ids | None,
        expected: Literal["unused", "used", "any"],
        progress: bool,
    ) -> None:
        """Add vectors whose ids are as expected, replacing those that are in use."""
        with self._writing:
            state = self._fitted()
            vectors = as_vectors(X, type(self).__name__, state.hasher.n_features_in_)
            if ids is not None:
                check_ids(state.index, ids, len(vectors), expected, "vector")
            if len(vectors):
                self._replace_state(lambda: with_vectors(state, vectors, ids, progress))

    def merge(self, other: VectorIndex, *, on_duplicate: OnDuplicate = "error") -> None:
        """Add all vectors of another index, with their ids, in one step.

        Parameters
        ----------
        other : VectorIndex
            An index with the same metric and `rerank`, and with the same fitted hasher and weigher:
            begun as a `copy` of this one, or loaded from the same folder. It does not change.
        on_duplicate : "error" or "replace"
            As in `add`.

        Raises
        ------
        ValueError
            If the codes of the two indexes do not mean the same, or an id is in use.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> more = index.copy()
        >>> index.add(np.eye(4))
        >>> more.add(np.eye(4), ids=[10, 11, 12, 13])
        >>> index.merge(more)
        >>> len(index)
        8

        """
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        if not isinstance(other, VectorIndex):
            raise TypeError(f"other must be a VectorIndex, got {type(other).__name__}")
        added = other._fitted()
        with self._writing:
            state = self._fitted()
            check_mergeable(state, added)
            ids = added.index.ids
            check_ids(state.index, ids, len(ids), "any" if replacing else "unused", "vector")
            if len(ids):
                self._replace_state(lambda: with_merged(state, added))

    def _replace_state(self, make: Callable[[], VectorState]) -> None:
        """Replace the state by one with more rows; if that fails, free the space they took."""
        state = self._fitted()
        try:
            self._state = make()
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
            if count:
                self._state = dataclasses.replace(state, index=index)
            return count

    def reset(self) -> None:
        """Remove all vectors, and number them from 0 again; what was learned stays.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.reset()
        >>> len(index), index.n_features
        (0, 4)

        """
        with self._writing:
            state = self._fitted()
            index = state.index.copy()
            index.reset()
            self._state = dataclasses.replace(
                state, index=index, vectors=self._no_vectors(state.hasher)
            )

    def compact(self) -> None:
        """Free the space of removed and replaced vectors, and merge the segments of the codes.

        Other threads can search and change the index meanwhile. Needs memory for a second copy of
        the codes while it runs and, with `rerank`, disk space for a second copy of the vectors.

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
        compact(self._fitted, self._publish, self._writing)

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
        refuse_k_alone(sample_queries, k)
        sample_costs = None
        if sample_queries is not None:
            n_found = DEFAULT_K if k is None else as_k(k)
            k = n_candidates(self._fitted(), n_found, None, "rerank") or n_found
            sample_costs = self.costs(sample_queries)
        before = self._fitted().index
        built = before.copy()
        built.build(sample_costs=sample_costs, k=k, rebuild=rebuild, threads=threads)
        with self._writing:
            self._state = with_bands(self._fitted(), before, built)

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

        With `rerank` the number of candidates grows with k by default, so the answer for a smaller
        k need not be the beginning of that for a larger one; with the same `rerank_from` it is.

        Parameters
        ----------
        Q : real numbers (n_features,) or (nq, n_features)
            Queries, finite.
        k : int
            Number of neighbours, at least 1.
        rerank_from : int, optional
            With `rerank`: number of nearest codes to rank by true distance, at least k; by default
            ``max(10 * k, 100)``. For an answer by codes alone, search ``index.index`` with
            ``index.costs(Q)``.
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
        n_codes = n_candidates(state, k, rerank_from, "rerank") or k
        options = Options(as_filter(allow, deny, filter), threads, deadline)
        with ProgressBar("searching", len(queries), unit="queries", shown=progress) as bar:
            distances, ids = nearest_vectors(state, queries, k, n_codes, options, bar)
        return SearchResult(distances[0], ids[0]) if single else SearchResult(distances, ids)

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        include_self: bool = False,
        rerank_from: int | None = None,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> SearchResult:
        """Find the k vectors nearest to vectors of the index.

        Without `rerank` there are only codes: the answer is that of `Index.search_by_id`, by the
        number of bits that differ.

        Parameters
        ----------
        ids : int or int64 (n,)
            Ids of the vectors whose neighbours to find.
        k : int
            Number of neighbours, at least 1.
        include_self : bool
            Whether a vector counts as its own neighbour.
        rerank_from, threads, allow, deny, filter, timeout
            As in `search`.

        Returns
        -------
        SearchResult
            As `search` returns it; ``(k,)`` for a single id.

        Raises
        ------
        KeyError
            If an id is not in the index; the error names the first such id.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add([[0.0, 0.0, 0.0, 1.0], [9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]])
        >>> index.search_by_id(0, k=1)
        SearchResult(distances=array([2.]), ids=array([2]))

        """
        deadline = as_deadline(timeout)
        state = self._fitted()
        asked = IdQueries(ids, k, include_self=include_self)
        n_codes = n_candidates(state, asked.k, rerank_from, "rerank", asked.extra)
        if n_codes == 0:
            return state.index.search_by_id(
                ids,
                k,
                include_self=include_self,
                threads=threads,
                allow=allow,
                deny=deny,
                filter=filter,
                timeout=timeout,
            )
        queries = kept_vectors(state, asked.ids, "rerank")
        options = Options(as_filter(allow, deny, filter), threads, deadline)
        with ProgressBar("searching", shown=False) as bar:
            found = nearest_vectors(state, queries, asked.asked, n_codes, options, bar)
        return SearchResult(*asked.without_themselves(*found))

    def range_search(
        self,
        Q: ArrayLike,
        radius: ArrayLike,
        *,
        by: By | None = None,
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
        by_vectors = ranks_by_vectors(state, by, "rerank")
        options = Options(as_filter(allow, deny, filter), threads, deadline)
        if by_vectors and state.vectors is not None:
            return within(state, state.vectors, queries, radii, limit, *options)
        return codes_in_range(state, queries, radii, limit, options)

    def iterate(
        self,
        q: ArrayLike,
        *,
        by: By | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all vectors in ascending distance, by the same distances as `range_search`.

        Codes are searched only as far as they are consumed. With `rerank` all vectors are read for
        the first one, as by `range_search`; ``by="codes"`` avoids that. Later changes of the index
        are not seen.

        Parameters
        ----------
        q : real numbers (n_features,)
            One query, finite.
        by : "vectors" or "codes", optional
            What distances are those of, as in `range_search`.
        allow, deny, filter
            As in `search`.

        Yields
        ------
        (distance, id), nearest first, equal distances in ascending id

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", rerank="float32").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> next(index.iterate([0.0, 0.0, 3.0, 0.0]))
        (2.0, 2)

        """
        state = self._fitted()
        row = one_query(state, q)
        id_filter = as_filter(allow, deny, filter)
        if ranks_by_vectors(state, by, "rerank") and state.vectors is not None:
            return vectors_in_order(state, state.vectors, row, id_filter)
        return codes_in_order(state, row, id_filter)

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
        row = one_query(state, q)
        k = as_k(k)
        n_codes = n_candidates(state, k, rerank_from, "rerank") or k
        return state.index.explain(costs_of(state, row)[0], n_codes, method=method)

    def contributions(self, q: ArrayLike, ids: ArrayLike) -> NDArray[np.float64]:
        """What each bit of the codes of these ids pays for one query, float64 (n, n_bits).

        As `Index.contributions`: a row adds up to the weighted distance of the code.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.contributions(np.ones(4), [2, 3]).shape
        (2, 8)

        """
        state = self._fitted()
        return state.index.contributions(costs_of(state, one_query(state, q))[0], ids)

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return codes by id, uint8 (n, n_bytes).

        KeyError names the first id that is not in the index.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(hasher="sign").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> index.codes_of([0, 3])
        array([[128],
               [ 16]], dtype=uint8)

        """
        return self._fitted().index.codes_of(ids)

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
        return kept_vectors(self._fitted(), as_ids(ids), "rerank")

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
            files.check_files(self._source.files.folder)

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
            self._state = with_note(self._fitted(), text)

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
        index = cls.__new__(cls)  # a derived class may take other arguments
        VectorIndex.__init__(
            index,
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
            index._source = MappedFrom(source, state)
        return index

    def copy(self) -> Self:
        """An independent index with the same vectors; changing one does not change the other.

        Takes microseconds: the two share everything that neither has changed, files too. Vectors
        added to the copy go to a file of its own. The copy has the class of this index, and the
        attributes that a derived class has added.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> index.add(np.eye(4))
        >>> other = index.copy()
        >>> index.reset()
        >>> len(other)
        4

        """
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        state, source = self._state, self._source
        if state is not None:
            other._state = copied(state)
            if source is not None:
                other._source = source.copied(state, other._state)
        other._writing = threading.Lock()
        renew_lock_after_fork(other)
        return other

    def __copy__(self) -> Self:
        """Return a copy."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a copy, with deep copies of the attributes that a derived class has added."""
        other = self.copy()
        memo[id(self)] = other
        for name, value in added_attributes(self, self._base_attributes).items():
            setattr(other, name, copy.deepcopy(value, memo))
        return other

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle the path of the folder of a mapped index, or all of an index without vectors.

        Raises TypeError for others: vectors that are kept may be larger than memory.
        """
        source, state = self._source, self._state
        if source is not None and state is source.state and files.is_still_there(source.files):
            folder, checksum = source.files.folder, source.files.checksum
            build, added = self._options["build"], added_attributes(self, self._base_attributes)
            return _from_source, (type(self), str(folder), checksum, build, added)
        attributes = {**vars(self)}
        del attributes["_writing"], attributes["_source"]
        if self._rerank is None or state is None or state.vectors is None:
            return _from_attributes, (type(self), attributes)
        if not self._pickles_vectors:
            raise TypeError(
                "a VectorIndex that keeps vectors can be pickled only while it is the same as in a "
                "folder: save it to one, and load that with mmap=True"
            )
        attributes["_state"] = dataclasses.replace(state, vectors=None)
        kept = state.vectors.of(state.index.ids)
        return _from_attributes, (type(self), attributes, kept)

    def _no_vectors(self, hasher: Hasher) -> Vectors | None:
        """The vectors of an empty index."""
        return None if self._rerank is None else Vectors.empty(self._rerank, hasher.n_features_in_)

    def _publish(self, state: VectorState) -> None:
        self._state = state

    def _fitted(self) -> VectorState:
        """The current state; raises if the index is not fitted."""
        state = self._state
        if state is None:
            raise not_fitted_error()("This VectorIndex is not fitted yet: call fit first")
        return state


def _from_source(
    cls: type[AnyVectorIndex], folder: str, checksum: str, build: BuildMode, added: dict[str, Any]
) -> AnyVectorIndex:
    index = cls.load(folder, mmap=True, build=build)
    if index._source is None or index._source.files.checksum != checksum:
        raise ValueError(f"{folder} has another index than when this one was pickled")
    vars(index).update(added)
    return index


def _from_attributes(
    cls: type[AnyVectorIndex], attributes: dict[str, Any], kept: NDArray[Any] | None = None
) -> AnyVectorIndex:
    index = cls.__new__(cls)
    vars(index).update(attributes, _source=None, _writing=threading.Lock())
    if kept is not None:
        state = index._fitted()
        ids = state.index.ids
        vectors = Vectors.of_arrays(ids, kept).only(ids)
        index._state = dataclasses.replace(state, vectors=vectors)
    renew_lock_after_fork(index)
    return index


VectorIndex._base_attributes = frozenset(vars(VectorIndex()))
