"""Answers as tables: one row for each neighbour."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_choice, taken_array
from bitweigh._results import RangeResult, SearchResult
from bitweigh.frames._sources import Frame, optional

__all__ = ["AsFrame", "check_as_frame", "framed", "to_frame"]

Kind: TypeAlias = Literal["pandas", "polars", "arrow", "dict"]
KINDS = ("pandas", "polars", "arrow", "dict")
_PACKAGES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
AsFrame: TypeAlias = Literal[True, "pandas", "polars", "arrow", "dict"]
"""What callers of a search ask for: True is pandas."""


def to_frame(
    result: SearchResult | RangeResult,
    kind: Kind = "pandas",
    queries: ArrayLike | None = None,
) -> Frame:
    """What a search returned as a table with one row for each neighbour.

    Its columns are ``query``, ``rank`` (1 is the nearest), ``id`` and ``distance``. The padding of
    answers with fewer than k neighbours is left out.

    Parameters
    ----------
    result : SearchResult or RangeResult
        Of one query or of several.
    kind : "pandas", "polars", "arrow" or "dict"
        A DataFrame of pandas or of polars, a Table of pyarrow, or a dict of NumPy arrays.
    queries : (nq,), optional
        Names of the queries for the first column; by default their numbers from 0 on.

    Returns
    -------
    DataFrame, Table or dict

    Raises
    ------
    ImportError
        The package of that kind is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh import frames
    >>> index = bitweigh.Index(n_bits=8)
    >>> index.add(np.array([[0], [1], [255]], dtype=np.uint8))
    >>> found = index.search(bitweigh.costs.hamming(np.array([[3]], dtype=np.uint8), 8), k=2)
    >>> table = frames.to_frame(found, "dict", queries=["first"])
    >>> table["query"].tolist(), table["rank"].tolist(), table["id"].tolist()
    (['first', 'first'], [1, 2], [1, 0])

    """
    chosen = as_choice(kind, "kind", KINDS)
    columns = _columns(result, None if queries is None else taken_array(queries, "queries"))
    if chosen == "dict":
        return columns
    package = optional(_PACKAGES[chosen])
    return package.table(columns) if chosen == "arrow" else package.DataFrame(columns)


def check_as_frame(as_frame: object) -> None:
    """Raise before the search for what `framed` does not know or has no package for."""
    kind = "pandas" if as_frame is True else as_choice(as_frame, "as_frame", KINDS)
    if kind in _PACKAGES:
        optional(_PACKAGES[kind])


def framed(result: SearchResult | RangeResult, as_frame: AsFrame) -> Frame:
    """What a search that was asked for a table returns."""
    return to_frame(result, "pandas" if as_frame is True else as_frame)


def _columns(
    result: SearchResult | RangeResult, names: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    if isinstance(result, RangeResult):
        counts = np.diff(result.lims)
        distances, ids = result.distances, result.ids
    elif isinstance(result, SearchResult):
        rows = np.atleast_2d(result.ids)
        there = rows >= 0
        counts = there.sum(axis=1)
        distances, ids = np.atleast_2d(result.distances)[there], rows[there]
    else:
        raise TypeError(
            f"result must be a SearchResult or a RangeResult, got {type(result).__name__}"
        )
    if names is not None and names.shape != (len(counts),):
        raise ValueError(f"queries must have shape ({len(counts)},), got {names.shape}")
    number = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return {
        "query": number if names is None else names[number],
        "rank": np.arange(len(number)) - starts[number] + 1,
        "id": ids,
        "distance": distances,
    }
