"""The `Dataset` that loaders return: rows to search, queries, and true neighbours if known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Vectors to hash and search, with queries that are not among them.

    The parts must fit each other: one dimension, a row of `neighbours` per query, a label per row.
    The vectors have the dtype of their files: uint8 for SIFT1B, which as float32 would take 512 GB.
    Convert them batch by batch.

    Raises
    ------
    ValueError
        Two parts do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh_experiments import datasets
    >>> rows = np.eye(3, dtype=np.float32)
    >>> data = datasets.Dataset("corners", rows, rows[:1] + 0.1)
    >>> data
    Dataset('corners': 3 rows of 3 float32, 1 query)
    >>> data.neighbours is None
    True

    """

    name: str
    """The name of the set, for titles of tables."""
    base: NDArray[Any]
    """(n, d): the rows to search."""
    queries: NDArray[Any]
    """(nq, d): the queries."""
    learn: NDArray[Any] | None = None
    """(n_learn, d): rows to fit hashers on, neither in `base` nor in `queries`."""
    neighbours: NDArray[np.integer[Any]] | None = None
    """(nq, k): rows of `base`, nearest first."""
    labels: NDArray[Any] | None = None
    """(n,): the class of each row of `base`."""
    query_labels: NDArray[Any] | None = None
    """(nq,): the class of each query."""

    def __post_init__(self) -> None:
        """Check that the parts fit each other."""
        for part, rows in (("base", self.base), ("queries", self.queries), ("learn", self.learn)):
            if rows is not None and (rows.ndim != 2 or rows.shape[1] != self.base.shape[-1]):
                raise ValueError(
                    f"{self.name}: {part} must be (n, d) with the d of base, got {rows.shape} "
                    f"where base is {self.base.shape}"
                )
        for part, values, rows in (
            ("neighbours", self.neighbours, self.queries),
            ("labels", self.labels, self.base),
            ("query_labels", self.query_labels, self.queries),
        ):
            if values is not None and len(values) != len(rows):
                raise ValueError(f"{self.name}: {part} must be {len(rows)} long, got {len(values)}")
        if self.neighbours is not None and self.neighbours.size:
            low, high = int(self.neighbours.min()), int(self.neighbours.max())
            if low < 0 or high >= len(self.base):
                raise ValueError(
                    f"{self.name}: neighbours must be rows of base, 0 to {len(self.base) - 1}, "
                    f"got {low} to {high}"
                )

    def __repr__(self) -> str:
        """Return the name and the sizes, without the values."""
        n, d = self.base.shape
        nq = len(self.queries)
        return (
            f"Dataset({self.name!r}: {n} rows of {d} {self.base.dtype}, "
            f"{nq} {'query' if nq == 1 else 'queries'})"
        )
