"""Answers as tables: a row per neighbour, with query, rank, id, and distance or score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import as_array, as_choice
from bitweigh._optional import optional
from bitweigh.typing import FrameKind

__all__ = ["frame_of_rows", "frame_of_runs"]

_PACKAGES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
KINDS = (*_PACKAGES, "dict")

Column = NDArray[np.generic]


def frame_of_rows(
    ids: NDArray[np.int64],
    values: dict[str, NDArray[np.float64]],
    kind: FrameKind,
    queries: ArrayLike | None,
) -> Any:  # noqa: ANN401 a table of a package that may not be installed
    """A table of answers (nq, k) or (k,), without the padding, whose id is -1."""
    rows = np.atleast_2d(ids)
    present = rows >= 0
    lims = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    unpadded = {name: np.atleast_2d(value)[present] for name, value in values.items()}
    return frame_of_runs(lims, rows[present], unpadded, kind, queries)


def frame_of_runs(
    lims: NDArray[np.int64],
    ids: NDArray[np.int64],
    values: dict[str, NDArray[np.float64]],
    kind: FrameKind,
    queries: ArrayLike | None,
) -> Any:  # noqa: ANN401 a table of a package that may not be installed
    """A table of concatenated answers; those of query q are at lims[q]:lims[q + 1]."""
    package = as_choice(kind, "kind", KINDS)
    counts = np.diff(lims)
    numbers = np.repeat(np.arange(len(counts)), counts)
    names: Column = numbers
    if queries is not None:
        given = as_array(queries, "queries", allow_objects=True)
        if given.shape != counts.shape:
            raise ValueError(f"queries must have shape ({len(counts)},), got {given.shape}")
        names = given[numbers]
    columns: dict[str, Column] = {
        "query": names,
        "rank": np.arange(len(ids)) - lims[numbers] + 1,
        "id": ids,
        **values,
    }
    if package == "dict":
        return columns
    library = optional(_PACKAGES[package])
    return library.table(columns) if package == "arrow" else library.DataFrame(columns)
