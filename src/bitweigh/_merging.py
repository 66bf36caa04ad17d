"""Results of several indexes merged into the result that one index of all rows would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_k
from bitweigh._results import RangeResult, ScoredRangeResult, ScoredResult, SearchResult
from bitweigh.typing import Ids

__all__ = ["first_of", "merge"]

AnyResult: TypeAlias = SearchResult | ScoredResult | RangeResult | ScoredRangeResult
_KINDS = (SearchResult, ScoredResult, RangeResult, ScoredRangeResult)


@overload
def merge(results: Sequence[SearchResult], k: int) -> SearchResult: ...
@overload
def merge(results: Sequence[ScoredResult], k: int) -> ScoredResult: ...
@overload
def merge(results: Sequence[RangeResult]) -> RangeResult: ...
@overload
def merge(results: Sequence[ScoredRangeResult]) -> ScoredRangeResult: ...
def merge(results: Sequence[Any], k: int | None = None) -> AnyResult:
    """Merge results of the same queries from indexes that have no id in common, such as shards.

    The merged result is the one that a single index of all their rows gives, to the last bit.

    Parameters
    ----------
    results : sequence of SearchResult, ScoredResult, RangeResult or ScoredRangeResult
        A result of each index, for the same queries, in any order. Those with k neighbours may have
        different numbers of them.
    k : int
        Number of neighbours, for results that have a number of them. Each result must have at least
        as many, or be padded because its index has no more: others may lack some of the k nearest.

    Returns
    -------
    the class of the results
        Nearest first, equal distances in ascending id: (nq, k), or (k,) for single queries, padded
        as by `Index.search`. Range results are joined query by query, without a limit.

    Raises
    ------
    TypeError, ValueError
        If the results are not of one class and shape, if one is too short, or if an id occurs twice
        for a query.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> shards = [bitweigh.Index(n_bits=8), bitweigh.Index(n_bits=8)]
    >>> shards[0].add(np.array([[0], [1]], dtype=np.uint8), ids=[0, 1])
    >>> shards[1].add(np.array([[2], [255]], dtype=np.uint8), ids=[2, 3])
    >>> costs = bitweigh.costs.hamming(np.array([3], dtype=np.uint8), 8)
    >>> bitweigh.merge([shard.search(costs, k=3) for shard in shards], k=3)
    SearchResult(distances=array([1., 1., 2.]), ids=array([1, 2, 0]))

    """
    parts = list(results)
    if not parts:
        raise ValueError("results must have at least one result, got none")
    kind = type(parts[0])
    for result in parts:
        if not isinstance(result, _KINDS):
            raise TypeError(f"results must be results of searches, got {type(result).__name__}")
        if type(result) is not kind:
            raise TypeError(
                f"results must be of one class, got {kind.__name__} and {type(result).__name__}"
            )
    if kind in (RangeResult, ScoredRangeResult):
        if k is not None:
            raise ValueError("k must not be given for range results: all of their codes are merged")
        if kind is RangeResult:
            return _merged_ranges(parts)
        found = [RangeResult(lims, 0.0 - scores, ids) for lims, scores, ids in parts]
        lims, distances, ids = _merged_ranges(found)
        return ScoredRangeResult(lims, 0.0 - distances, ids)
    if k is None:
        raise TypeError("k must be given, the number of neighbours to return")
    k = as_k(k)
    if kind is SearchResult:
        return SearchResult(*_merged_nearest([(found[0], found[1]) for found in parts], k))
    distances, ids = _merged_nearest([(0.0 - scores, near) for scores, near in parts], k)
    return ScoredResult(0.0 - distances, ids)


def _merged_nearest(
    parts: list[tuple[NDArray[np.float64], Ids]], k: int
) -> tuple[NDArray[np.float64], Ids]:
    """The first k of all parts by (distance, id), each (k_i,) or (nq, k_i)."""
    shapes = [distances.shape for distances, _ in parts]
    if any(ids.shape != shape for (_, ids), shape in zip(parts, shapes, strict=True)):
        raise ValueError("results must have as many ids as distances")
    if len({(len(shape), shape[:-1]) for shape in shapes}) > 1 or len(shapes[0]) not in (1, 2):
        raise ValueError(
            "results must be for the same queries, with shapes (k,) or (nq, k), got "
            f"{', '.join(map(str, dict.fromkeys(shapes)))}"
        )
    single = len(shapes[0]) == 1
    rows = [(np.atleast_2d(distances), np.atleast_2d(ids)) for distances, ids in parts]
    for number, (_, ids) in enumerate(rows):
        found = ids.shape[1]
        # A result that ends with padding has all rows of its index.
        if found < k and (found == 0 or (ids[:, -1] >= 0).any()):
            raise ValueError(
                f"results[{number}] has {found} neighbours and its index may have more: search for "
                f"at least k={k}"
            )
    distances = np.concatenate([distances for distances, _ in rows], axis=1)
    ids = np.concatenate([ids for _, ids in rows], axis=1)
    in_order = np.sort(ids, axis=1)
    _refuse_repeated(
        in_order[:, :-1], (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    )
    merged_distances, merged_ids = first_of(distances, ids, k)
    return (merged_distances[0], merged_ids[0]) if single else (merged_distances, merged_ids)


def first_of(distances: NDArray[np.float64], ids: Ids, k: int) -> tuple[NDArray[np.float64], Ids]:
    """The first k of each row (nq, m) by (distance, id), padded to (nq, k)."""
    order = _order_without_ties(distances, k)
    if order is None:
        # Padding last: also behind the NaN that a damaged vector has.
        order = np.lexsort((ids, distances, ids < 0), axis=-1)[:, :k]
    first_distances = np.full((len(ids), k), np.inf)
    first_ids = np.full((len(ids), k), -1, dtype=np.int64)
    kept = order.shape[1]
    first_distances[:, :kept] = np.take_along_axis(distances, order, axis=1)
    first_ids[:, :kept] = np.take_along_axis(ids, order, axis=1)
    return first_distances, first_ids


def _order_without_ties(distances: NDArray[np.float64], k: int) -> NDArray[np.int64] | None:
    """The order of the first k, by distance alone; None if that does not decide.

    A stable sort merges runs that are sorted already, such as the results of several shards, in a
    fraction of the time that sorting by two keys takes.
    """
    order = np.argsort(distances, axis=1, kind="stable")[:, : k + 1]
    nearest = np.take_along_axis(distances, order, axis=1)
    # Padding is at +inf, and real distances are finite, so it comes last without being asked to.
    tied = (nearest[:, 1:] == nearest[:, :-1]) & (nearest[:, 1:] < np.inf)
    if tied.any() or np.isnan(distances).any():
        return None
    return order[:, :k]


def _merged_ranges(parts: list[RangeResult]) -> RangeResult:
    """All codes of all parts, query by query."""
    counts = [np.diff(found.lims) for found in parts]
    if len({len(count) for count in counts}) > 1:
        raise ValueError(
            "results must be for the same queries, got "
            f"{', '.join(str(len(count)) for count in counts)} queries"
        )
    nq = len(counts[0])
    queries = np.concatenate([np.repeat(np.arange(nq), count) for count in counts])
    distances = np.concatenate([found.distances for found in parts])
    ids = np.concatenate([found.ids for found in parts])
    by_id = np.lexsort((ids, queries))
    same = (np.diff(ids[by_id]) == 0) & (np.diff(queries[by_id]) == 0)
    if same.any():
        first = by_id[int(np.argmax(same))]
        raise _repeated_error(int(ids[first]), int(queries[first]))
    order = np.lexsort((ids, distances, queries))
    lims = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.sum(counts, axis=0))])
    return RangeResult(lims.astype(np.int64), distances[order], ids[order])


def _refuse_repeated(ids: Ids, repeated: NDArray[np.bool_]) -> None:
    """Raise ValueError for the first of the ids (nq, n) that is marked."""
    if repeated.any():
        query, place = np.argwhere(repeated)[0].tolist()
        raise _repeated_error(int(ids[query, place]), query)


def _repeated_error(id_: int, query: int) -> ValueError:
    return ValueError(
        f"results must be from indexes without common ids, but {id_} occurs twice for query {query}"
    )
