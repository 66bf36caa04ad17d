"""Binary-quantised embeddings, ranked by their inner product with a float query.

Every embedding is ranked by its bits, not a shortlist; the best may then be ranked by the vectors
themselves, if these are kept. Any number of threads may search while another changes it. Methods
check their arguments; functions of `bitweigh._embeddings` do the work.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import (
    MAX_BITS,
    as_choice,
    as_deadline,
    as_ids,
    as_integer,
    as_k,
    as_min_scores,
    as_optional_integer,
)
from bitweigh._embeddings import files
from bitweigh._embeddings.changing import check_mergeable, with_embeddings, with_merged
from bitweigh._embeddings.inputs import as_embeddings, as_queries, one_query, signs_of
from bitweigh._embeddings.quantizing import quantize
from bitweigh._embeddings.scaling import scales_from
from bitweigh._embeddings.scoring import (
    Limits,
    best,
    in_order_of_bits,
    in_order_of_vectors,
    n_to_rescore,
    scored,
)
from bitweigh._embeddings.state import EmbeddingsState, no_vectors
from bitweigh._forks import renew_lock_after_fork
from bitweigh._index.evidence import DEFAULT_K
from bitweigh._index.explain import Explanation
from bitweigh._index.filters import Filter
from bitweigh._index.id_queries import IdQueries
from bitweigh._index.request import MAX_LIMIT
from bitweigh._results import Memory, ScoredRangeResult, ScoredResult
from bitweigh._storage import note_text
from bitweigh._vectors.codes_and_vectors import (
    MappedFrom,
    added_attributes,
    copied,
    kept_vectors,
    ranks_by_vectors,
    refuse_k_alone,
    with_bands,
    with_note,
)
from bitweigh._vectors.compacting import compact
from bitweigh._vectors.store import check_vectors
from bitweigh.costs import inner_product
from bitweigh.index import Index
from bitweigh.typing import (
    BuildMode,
    By,
    Codes,
    Ids,
    Method,
    OnDuplicate,
    OnMissing,
    RescoreDtype,
)

__all__ = ["BinaryEmbeddings", "quantize"]

AnyEmbeddings = TypeVar("AnyEmbeddings", bound="BinaryEmbeddings")


class BinaryEmbeddings:
    """Embeddings of one bit per dimension, searched with float queries.

    The score of an embedding is the inner product of the query with its bits: the score usually
    computed for a shortlist only, here for all embeddings. Answers are exact, with equal scores in
    ascending id. With `rescore` the vectors are kept in a file, and the best by their bits are
    ranked by the inner product with the vectors.

    Any number of threads may search while others change or save it; each search sees one state.

    Parameters
    ----------
    dim : int
        Dimensions of an embedding before it was quantised, 1 to 8192.
    rescore : "int8", "float16" or "float32", optional
        Keep the vectors, rounded to this dtype, and rank the best by them. `add` takes floats then,
        and computes the bits from them.
    calibration : float (n, dim), optional
        With "int8": embeddings like those to come, from which the range of each dimension is taken.
        Larger values are clipped to it. The ``ranges`` of
        ``sentence_transformers.quantize_embeddings``, (2, dim), will do. By default it is taken
        from what has been added when there are 100 embeddings, not all zeros; until then they are
        kept in float32.
    bands, band_bits, memory_limit, build
        As in :class:`Index`.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh.embeddings import BinaryEmbeddings, quantize
    >>> x = np.random.default_rng(1).standard_normal((1000, 64)).astype(np.float32)  # (1000, 64)
    >>> embeddings = BinaryEmbeddings(dim=64)
    >>> embeddings.add(quantize(x))  # (1000, 8) uint8
    >>> scores, ids = embeddings.search(x[:3], k=5)  # (3, 5) float64, (3, 5) int64
    >>> ids[:, 0]
    array([0, 1, 2])
    >>> rescored = BinaryEmbeddings(dim=64, rescore="int8")
    >>> rescored.add(x)
    >>> rescored.search(x[7], k=1).ids
    array([7])

    """

    _base_attributes: ClassVar[frozenset[str]]
    """Names of the attributes of every collection; a derived class may add others."""

    def __init__(
        self,
        dim: int,
        *,
        rescore: RescoreDtype | None = None,
        calibration: ArrayLike | None = None,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
        build: BuildMode = "auto",
    ) -> None:
        """Create an empty collection."""
        dim = as_integer(dim, "dim", 1, MAX_BITS)
        vectors = scales = None
        if rescore is not None:
            as_choice(rescore, "rescore", get_args(RescoreDtype))
        if calibration is not None:
            if rescore != "int8":
                raise ValueError("calibration goes with rescore='int8'")
            given = as_embeddings(calibration, dim, "calibration")
            if not len(given):
                raise ValueError("calibration must have at least one row")
            scales = scales_from(given, "calibration")
        if rescore is not None:
            vectors = no_vectors(rescore, scales, dim)
        index = Index(dim, bands=bands, band_bits=band_bits, memory_limit=memory_limit, build=build)
        calibrated = scales is not None
        self._start(EmbeddingsState(index, rescore, vectors, scales, calibrated))

    def _start(self, state: EmbeddingsState, source: MappedFrom | None = None) -> None:
        """Set the attributes that every collection has."""
        self._state = state
        self._source = source
        self._writing = threading.Lock()
        renew_lock_after_fork(self)

    @property
    def dim(self) -> int:
        """Dimensions of an embedding before it was quantised."""
        return self._state.index.n_bits

    @property
    def rescore(self) -> RescoreDtype | None:
        """The dtype that vectors are kept in, or None if they are not kept."""
        return self._state.rescore

    @property
    def index(self) -> Index:
        """A copy of the index of the bits: changing it does not change the collection.

        Takes microseconds, as `Index.copy` does.
        """
        return self._state.index.copy()

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._state.index.ids

    @property
    def note(self) -> dict[str, Any]:
        """The note that was saved or loaded last, as a copy, as `Index.note`."""
        return self._state.index.note

    def __len__(self) -> int:
        """Return the number of embeddings."""
        return len(self._state.index)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is an embedding with this id."""
        return id in self._state.index

    def __repr__(self) -> str:
        """Summarise the collection."""
        state = self._state
        rescored = "" if state.rescore is None else f", rescored by {state.rescore}"
        return (
            f"<bitweigh.BinaryEmbeddings: {len(state.index)} embeddings of {state.index.n_bits} "
            f"dimensions{rescored}>"
        )

    def add(
        self,
        embeddings: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        on_duplicate: OnDuplicate = "error",
    ) -> None:
        """Add embeddings: all of them, or none if it raises.

        Parameters
        ----------
        embeddings : uint8 or int8 (n, n_bytes), or with `rescore` float (n, dim)
            The dtype says which of the two layouts of bits: uint8 is what the precision "ubinary"
            gives, ``np.packbits(x > 0, axis=-1)``; int8 what "binary" gives, that minus 128.
            n_bytes is dim / 8 rounded up. With `rescore`: the embeddings as the model returns them,
            float16, float32 or float64, finite.
        ids : int64 (n,), optional
            Ids of your own, not negative and distinct. By default consecutive numbers after the
            largest id ever used, starting at 0.
        on_duplicate : "error" or "replace"
            What to do if an id is already in use: raise ValueError and add nothing, or replace its
            embedding.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or an id is negative, repeated or in use.
            Nothing is added then.
        UserWarning
            With "int8": if more than 1 % of the values are more than twice as large as the range of
            their dimension. They are clipped.
        OSError
            With `rescore`: if the disk of the folder of temporary files is full. Nothing is added
            then, and the space is freed.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=16)
        >>> embeddings.add(np.array([[3, 255]], dtype=np.uint8), ids=[10])
        >>> embeddings.add(np.array([[-125, 127]], dtype=np.int8), ids=[20])
        >>> embeddings.codes_of([10, 20])
        array([[  3, 255],
               [  3, 255]], dtype=uint8)

        """
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        with self._writing:
            self._state = with_embeddings(self._state, embeddings, ids, replacing=replacing)

    def replace(self, embeddings: ArrayLike, ids: ArrayLike) -> None:
        """Replace the embeddings of ids that are in use, all in one step.

        Parameters
        ----------
        embeddings : (n, n_bytes) or (n, dim)
            Embeddings, as in `add`.
        ids : int64 (n,)
            Distinct ids.

        Raises
        ------
        KeyError
            If there is no embedding with an id; the error names the first such id, and nothing is
            replaced.
        TypeError, ValueError
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.replace(np.array([[5]], dtype=np.uint8), ids=[1])
        >>> embeddings.codes_of([0, 1])
        array([[1],
               [5]], dtype=uint8)

        """
        if ids is None:
            raise TypeError("ids must be those of the embeddings to replace, got None")
        known_ids = as_ids(ids)
        with self._writing:
            if not (found := self._state.index.contains(known_ids)).all():
                raise KeyError(int(known_ids[np.argmin(found)]))
            self._state = with_embeddings(self._state, embeddings, known_ids, replacing=True)

    def remove(self, ids: ArrayLike, *, on_missing: OnMissing = "error") -> int:
        """Remove embeddings by id, and return how many were removed.

        `compact` frees the space of kept vectors; `save` leaves them out.

        Parameters
        ----------
        ids : int64 (n,)
            Ids to remove.
        on_missing : "error" or "ignore"
            What to do if an id is unknown: raise KeyError and remove nothing, or ignore it.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.remove([0])
        1

        """
        with self._writing:
            index = self._state.index_to_change()
            count = index.remove(ids, on_missing=on_missing)
            if count:
                self._state = replace(self._state, index=index)
            return count

    def merge(self, other: BinaryEmbeddings, *, on_duplicate: OnDuplicate = "error") -> None:
        """Add all embeddings of another collection, with their ids, in one step.

        Parameters
        ----------
        other : BinaryEmbeddings
            A collection with the same `dim` and `rescore`, and with "int8" of the same calibration;
            it does not change.
        on_duplicate : "error" or "replace"
            As in `add`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings, more = BinaryEmbeddings(dim=8), BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> more.add(np.array([[3]], dtype=np.uint8), ids=[7])
        >>> embeddings.merge(more)
        >>> embeddings.ids
        array([0, 1, 7])

        """
        if not isinstance(other, BinaryEmbeddings):
            raise TypeError(f"other must be BinaryEmbeddings, got {type(other).__name__}")
        replacing = as_choice(on_duplicate, "on_duplicate", get_args(OnDuplicate)) == "replace"
        added = other._state
        with self._writing:
            check_mergeable(self._state, added)
            self._state = with_merged(self._state, added, replacing=replacing)

    def reset(self) -> None:
        """Remove everything: the collection is like a new one, and numbers from 0 again.

        With "int8" the ranges of `calibration`, or of the folder it was loaded from, stay; ranges
        taken from the embeddings are forgotten.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.reset()
        >>> len(embeddings)
        0

        """
        with self._writing:
            state = self._state
            index = state.index_to_change()
            index.reset()
            scales = state.scales if state.calibrated else None
            vectors = None if state.rescore is None else no_vectors(state.rescore, scales, self.dim)
            self._state = replace(state, index=index, vectors=vectors, scales=scales)

    def compact(self) -> None:
        """Free the space of removed and replaced embeddings, and merge the segments of the bits.

        Other threads can search and change the collection meanwhile. Needs memory for a second copy
        of the bits while it runs and, with `rescore`, disk space for a second copy of the vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> embeddings.remove(range(90))
        90
        >>> embeddings.compact()
        >>> embeddings.memory().removed
        0

        """
        state = self._state
        if state.vectors is None:
            state.index.compact()
        else:
            compact(lambda: self._state, self._publish, self._writing)

    def build(
        self,
        *,
        sample_queries: ArrayLike | None = None,
        k: int | None = None,
        rebuild: bool = False,
        threads: int | None = None,
    ) -> None:
        """Build bands for bits that have none, if they make searches faster; see `Index.build`.

        Parameters
        ----------
        sample_queries : float (nq, dim), optional
            Queries like those to come, by which bands are chosen.
        k : int, optional
            How many embeddings they are searched for; by default 10.
        rebuild, threads
            As in `Index.build`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=16)
        >>> embeddings.add(np.arange(5000, dtype=">u2").view(np.uint8).reshape(-1, 2))
        >>> embeddings.build()

        """
        refuse_k_alone(sample_queries, k)
        costs = None
        if sample_queries is not None:
            n_found = DEFAULT_K if k is None else as_k(k)
            k = n_to_rescore(self._state, n_found, None) or n_found
            costs = inner_product(as_queries(sample_queries, self.dim, "sample_queries"))
        state = self._state
        before = state.index
        built = state.index_to_change()
        built.build(sample_costs=costs, k=k, rebuild=rebuild, threads=threads)
        if state.vectors is None:
            return
        with self._writing:
            self._state = with_bands(self._state, before, built)

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """Find the k embeddings with the largest inner product with a float query.

        Without `rescore` the product is that with the bits, and the answer is exact. With `rescore`
        it is that with the kept vectors, for the `rescore_from` embeddings that are best by their
        bits. Their number grows with k by default, so the answer for a smaller k need not be the
        beginning of that for a larger one; with the same `rescore_from` it is.

        Parameters
        ----------
        queries : float (dim,) or (nq, dim)
            Embeddings as the model returns them, not quantised; float16, float32 or float64.
        k : int
            Number of results, at least 1.
        rescore_from : int, optional
            With `rescore`: number of embeddings to rank by their vectors, at least k; 0 to rank by
            bits alone. By default ``max(10 * k, 100)``.
        signed : bool
            Count the bits as -1 and +1 instead of 0 and 1. That changes the scores of a query by a
            factor of 2 and a constant, and with it their rounding: embeddings whose scores differ
            by no more than the rounding may change places, all others keep theirs.
        threads, allow, deny, filter, timeout
            As in `Index.search`.

        Returns
        -------
        ScoredResult
            ``scores`` float64 (nq, k) and ``ids`` int64 (nq, k), largest score first, equal scores
            in ascending id; ``(k,)`` for a single query. If there are fewer than k embeddings, the
            rest is -inf and -1. A score of bits is exactly minus the distance that `Index.search`
            gives for ``bitweigh.costs.inner_product(queries)``. A score of a vector v is
            ``(queries * v).sum()`` in float64, and for "int8" ``(queries * scales * v).sum()``.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or a query is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> query = np.array([0.5, -1.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0])
        >>> embeddings.add(np.packbits([[1, 0, 1, 0, 0, 0, 0, 0]], axis=1))
        >>> embeddings.add(np.packbits([[0, 1, 0, 0, 0, 0, 0, 0]], axis=1))
        >>> embeddings.search(query, k=3)
        ScoredResult(scores=array([ 0.75, -1.  ,  -inf]), ids=array([ 0,  1, -1]))

        """
        limits = Limits(threads, allow, deny, filter, as_deadline(timeout))
        state = self._state
        checked = as_queries(queries, state.index.n_bits)
        k = as_k(k)
        return best(state, checked, k, n_to_rescore(state, k, rescore_from), signed, limits)

    def range_search(
        self,
        queries: ArrayLike,
        min_score: ArrayLike,
        *,
        by: By | None = None,
        limit: int | None = None,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredRangeResult:
        """Find all embeddings whose score is at least `min_score`, exactly.

        With `rescore` scores are those of the kept vectors. Bits cannot tell which of them are
        large enough, so all vectors are read, block by block: the answer takes time proportional to
        their number.

        Parameters
        ----------
        queries : float (dim,) or (nq, dim)
            As in `search`.
        min_score : number or (nq,)
            The smallest score to return, not NaN.
        by : "vectors" or "codes", optional
            Which scores count. By default "vectors" with `rescore`, else "codes", the bits.
        limit : int, optional
            The most embeddings allowed for one query. More raise `LimitError`; nothing is cut off.
        signed, threads, allow, deny, filter, timeout
            As in `search`.

        Returns
        -------
        ScoredRangeResult
            ``lims`` int64 (nq + 1,), ``scores`` float64 and ``ids`` int64 of all queries, one query
            after the other; within a query largest score first, equal scores in ascending id.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[255], [15], [1]], dtype=np.uint8))
        >>> embeddings.range_search(np.ones(8), min_score=4)
        ScoredRangeResult(lims=array([0, 2]), scores=array([8., 4.]), ids=array([0, 1]))

        """
        limits = Limits(threads, allow, deny, filter, as_deadline(timeout))
        state = self._state
        checked = as_queries(queries, state.index.n_bits)
        bounds = as_min_scores(min_score, 1 if checked.ndim == 1 else len(checked))
        limit = as_optional_integer(limit, "limit", 0, MAX_LIMIT)
        by_vectors = ranks_by_vectors(state, by, "rescore")
        return scored(state, checked, bounds, by_vectors, signed, limit, limits)

    def iterate(
        self,
        query: ArrayLike,
        *,
        by: By | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> Iterator[tuple[float, int]]:
        """Iterate over all embeddings in descending score. Later changes are not seen.

        Bits are searched only as far as the iterator is consumed. With `rescore` all vectors are
        scored at the first step.

        Parameters
        ----------
        query : float (dim,)
            One query.
        by
            As in `range_search`.
        allow, deny, filter
            As in `search`.

        Yields
        ------
        (score, id), largest score first, equal scores in ascending id

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[255], [15], [1]], dtype=np.uint8))
        >>> next(embeddings.iterate(np.ones(8)))
        (8.0, 0)

        """
        state = self._state
        checked = one_query(query, state.index.n_bits)
        limits = Limits(allow=allow, deny=deny, filter=filter)
        if ranks_by_vectors(state, by, "rescore") and state.vectors is not None:
            return in_order_of_vectors(state, state.vectors, checked, limits)
        return in_order_of_bits(state, checked, limits)

    def search_by_id(
        self,
        ids: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        include_self: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """Find the k embeddings most like embeddings of the collection.

        The queries are the kept vectors of `ids`, or without `rescore` their bits as -1 and +1.

        Parameters
        ----------
        ids : int or int64 (n,)
            Ids of the embeddings to search for.
        k : int
            Number of results, at least 1.
        include_self : bool
            Whether an embedding may be in its own answer.
        rescore_from, threads, allow, deny, filter, timeout
            As in `search`.

        Returns
        -------
        ScoredResult
            As `search` returns it; ``(k,)`` for a single id.

        Raises
        ------
        KeyError
            If there is no embedding with an id; the error names the first such id.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[240], [15], [248]], dtype=np.uint8))
        >>> embeddings.search_by_id(0, k=1).ids
        array([2])

        """
        limits = Limits(threads, allow, deny, filter, as_deadline(timeout))
        asked = IdQueries(ids, k, include_self=include_self)
        state = self._state
        if state.vectors is None:
            state = replace(state, index=state.index.copy())  # which nobody changes meanwhile
            queries = signs_of(state.index.codes_of(asked.ids), state.index.n_bits)
        else:
            queries = _vectors_of(state, asked.ids).astype(np.float64)
        n_rescored = n_to_rescore(state, asked.k, rescore_from, asked.extra)
        found = best(state, queries, asked.asked, n_rescored, False, limits)
        return ScoredResult(*asked.without_themselves(*found))

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches: only these embeddings, or all but these.

        It works as that of `Index.filter`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> unseen = embeddings.filter(deny=[0, 1])
        >>> embeddings.search(np.ones(8), k=2, filter=unseen).ids
        array([ 2, -1])

        """
        return Filter(allow=allow, deny=deny)

    def explain(
        self,
        query: ArrayLike,
        k: int,
        *,
        rescore_from: int | None = None,
        method: Method = "auto",
    ) -> Explanation:
        """Search the bits for one query, and explain how it was done and why.

        Parameters
        ----------
        query : float (dim,)
            One query.
        k, rescore_from
            As in `search`: with `rescore`, the search for all `rescore_from` is explained.
        method : "auto", "scan" or "probe"
            As in `Index.search`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> embeddings.explain(np.ones(8), k=3).plan
        'scan'

        """
        state = self._state
        checked = one_query(query, state.index.n_bits)
        k = as_k(k)
        n_found = n_to_rescore(state, k, rescore_from) or k
        return state.index.explain(inner_product(checked), n_found, method=method)

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are embeddings with these ids; ``id in embeddings`` asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.contains([1, 7])
        array([ True, False])

        """
        return self._state.index.contains(ids)

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Return bits by id, packed as by "ubinary", uint8 (n, n_bytes).

        KeyError names the first id without an embedding.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.codes_of([1])
        array([[2]], dtype=uint8)

        """
        return self._state.index.codes_of(ids)

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Return kept vectors by id, (n, dim), in float16 with that `rescore`, else in float32.

        With "int8" they are rounded to steps of 1/127 of the range of each dimension. KeyError
        names the first id without an embedding.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=3, rescore="float16")
        >>> embeddings.add(np.array([[0.5, -0.25, 1.0]]))
        >>> embeddings.vectors_of([0])
        array([[ 0.5 , -0.25,  1.  ]], dtype=float16)

        """
        state = self._state
        vectors = _vectors_of(state, as_ids(ids))
        return vectors.astype(np.float32) if state.rescore == "int8" else vectors

    def memory(self) -> Memory:
        """Count the bytes that the bits take, by part; see `Index.memory`.

        Vectors that are kept are in a file, which the operating system caches in memory as far as
        there is room: ``len(embeddings) * dim`` numbers of 1, 2 or 4 bytes.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=64)
        >>> embeddings.add(np.zeros((320, 8), dtype=np.uint8))
        >>> embeddings.memory().codes
        2560

        """
        return self._state.index.memory()

    def verify(self) -> None:
        """Check that bits, ids and vectors agree, and that nothing read from files has changed.

        Raises
        ------
        CorruptFileError
            If something is damaged; the error names the file or the part.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8, rescore="int8")
        >>> embeddings.add(np.eye(8))
        >>> embeddings.verify()

        """
        state, source = self._state, self._source
        state.index.verify()
        if state.vectors is not None:
            check_vectors(state.vectors, state.index.ids)
            if source is not None and source.state.vectors is state.vectors:
                files.check_files(source.files.folder)

    def copy(self) -> Self:
        """An independent collection with the same embeddings; changing one does not change another.

        Takes microseconds: the two share everything that neither has changed.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> other = embeddings.copy()
        >>> embeddings.reset()
        >>> len(other)
        2

        """
        state, source = self._state, self._source
        copied_state = copied(state)
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._start(copied_state, None if source is None else source.copied(state, copied_state))
        return other

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Save to a folder, atomically: if this fails, it keeps its old contents.

        Without `rescore` the folder is that of an index, which ``bitweigh.load`` opens as an
        `Index`; with `rescore` it opens it as `BinaryEmbeddings`.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds the same kind, which is replaced.
        note : dict, optional
            A small JSON object to keep with the embeddings, as in `Index.save`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embeddings.save(folder)
        ...     BinaryEmbeddings.load(folder)
        <bitweigh.BinaryEmbeddings: 2 embeddings of 8 dimensions>

        """
        state = self._state
        if note is None:
            files.save(state, path, state.index._note)
            return
        text = note_text(note)
        files.save(state, path, text)
        with self._writing:
            if self._state.vectors is None:
                self._state.index._note = text
            else:
                self._state = with_note(self._state, text)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = False,
        *,
        verify: bool | None = None,
        build: BuildMode = "auto",
    ) -> Self:
        """Load from a folder; the arguments and errors are those of `Index.load`.

        Raises
        ------
        ValueError
            If the folder has an index with ``bitorder="little"``: its bits are not in the order of
            the dimensions.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     BinaryEmbeddings(dim=256).save(folder)
        ...     BinaryEmbeddings.load(folder).dim
        256

        """
        as_choice(build, "build", get_args(BuildMode))
        state, source = files.load(path, mmap, (not mmap) if verify is None else verify, build)
        loaded = cls.__new__(cls)
        loaded._start(state, MappedFrom(source, state) if mmap else None)
        return loaded

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
        """Pickle all of a collection without vectors, or the path of the folder of a mapped one.

        Raises TypeError for others: vectors that are kept may be larger than memory.
        """
        source, state = self._source, self._state
        added = added_attributes(self, self._base_attributes)
        if state.vectors is None:
            return _from_index, (type(self), state.index, added)
        if source is not None and source.state is state and source.files.is_still_there():
            folder, checksum = source.files.folder, source.files.checksum
            build = state.index._policy.build
            return _from_source, (type(self), str(folder), checksum, build, added)
        raise TypeError(
            "BinaryEmbeddings that keep vectors can be pickled only while they are the same as in "
            "a folder: save them to one, and load that with mmap=True"
        )

    def _publish(self, state: EmbeddingsState) -> None:
        self._state = state


BinaryEmbeddings._base_attributes = frozenset(vars(BinaryEmbeddings(1)))


def _from_source(
    cls: type[AnyEmbeddings], folder: str, checksum: str, build: BuildMode, added: dict[str, Any]
) -> AnyEmbeddings:
    loaded = cls.load(Path(folder), mmap=True, build=build)
    if loaded._source is None or loaded._source.files.checksum != checksum:
        raise ValueError(f"{folder} has other embeddings than when these were pickled")
    vars(loaded).update(added)
    return loaded


def _from_index(cls: type[AnyEmbeddings], index: Index, added: dict[str, Any]) -> AnyEmbeddings:
    loaded = cls.__new__(cls)
    vars(loaded).update(added)
    loaded._start(EmbeddingsState(index))
    return loaded


def _vectors_of(state: EmbeddingsState, ids: Ids) -> NDArray[Any]:
    """Kept vectors by id, (n, dim); int8 as float64. KeyError for the first unknown id."""
    vectors = kept_vectors(state, ids, "rescore")
    return vectors if state.scales is None else vectors * state.scales
