"""Rows like image descriptors, generated without any file from a seeded mixture of Gaussians.

They share what makes real descriptors easier to search than uniform noise: clusters of different
sizes and widths, and a few directions that hold most of the variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitweigh_experiments.arguments import as_integer
from bitweigh_experiments.datasets.dataset import Dataset
from bitweigh_experiments.datasets.splits import as_seed

__all__ = ["descriptors"]

_CLUSTERS = 400
_CLASSES = 40
# The spread of the i-th direction is i to the power of minus this.
_DECAY = 0.5
# Rows scatter around their cluster's centre, and centres around that of their class, both along the
# directions above. Widths differ by cluster: log-normal, with this sigma.
_WITHIN, _CENTRES, _WIDTHS = 0.8, 0.6, 0.3
# Values are bytes; some are clipped to 0, as in SIFT.
_MIDDLE, _UNIT = 40.0, 90.0
_CHUNK_ROWS = 1 << 14


def descriptors(
    n: int = 100_000, d: int = 128, *, n_queries: int = 1000, labelled: bool = False, seed: int = 0
) -> Dataset:
    """Generate descriptors, and queries drawn from the same mixture.

    Parameters
    ----------
    n : int
        Rows.
    d : int
        Dimensions.
    n_queries : int
        Queries, none of them among the rows.
    labelled : bool
        Include `labels` and `query_labels`: 40 classes, each a subset of the 400 clusters.
    seed : int
        Determines all rows.

    Returns
    -------
    Dataset
        uint8, the rows in random order.

    Examples
    --------
    >>> from bitweigh_experiments import datasets
    >>> datasets.descriptors(1000, 32, n_queries=10)
    Dataset('generated descriptors': 1000 rows of 32 uint8, 10 queries)

    """
    rows = as_integer(n, "n", 1, 2**40)
    query_count = as_integer(n_queries, "n_queries", 1, 2**40)
    mixture = _Mixture(as_integer(d, "d", 1, 2**16), as_seed(seed))
    # Queries are drawn first, so that they are the same for any n.
    queries, query_labels = mixture.draw(query_count)
    base, labels = mixture.draw(rows)
    if labelled:
        name = "generated descriptors with labels"
        return Dataset(name, base, queries, labels=labels, query_labels=query_labels)
    return Dataset("generated descriptors", base, queries)


class _Mixture:
    """Clusters grouped into classes; rows are drawn chunk by chunk."""

    def __init__(self, d: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        spreads = np.arange(1, d + 1, dtype=np.float32) ** np.float32(-_DECAY)
        basis = np.linalg.qr(self._rng.standard_normal((d, d)))[0].astype(np.float32)
        # Standard normal rows times this are spread along the directions.
        self._directions: NDArray[np.float32] = spreads[:, np.newaxis] * basis
        self._classes = self._rng.integers(0, _CLASSES, _CLUSTERS)
        class_centres = self._rng.standard_normal((_CLASSES, d), dtype=np.float32)
        offsets = self._rng.standard_normal((_CLUSTERS, d), dtype=np.float32)
        centres = class_centres[self._classes] * np.float32(np.sqrt(1 - _CENTRES**2))
        self._centres = (centres + np.float32(_CENTRES) * offsets) @ self._directions
        self._widths = (_WITHIN * np.exp(_WIDTHS * self._rng.standard_normal(_CLUSTERS))).astype(
            np.float32
        )
        self._ends = np.cumsum(self._rng.dirichlet(np.full(_CLUSTERS, 2.0)))[:-1]

    def draw(self, n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the next n rows (n, d) and their classes (n,)."""
        rows = np.empty((n, self._centres.shape[1]), dtype=np.uint8)
        labels = np.empty(n, dtype=np.int64)
        for first in range(0, n, _CHUNK_ROWS):
            count = min(_CHUNK_ROWS, n - first)
            clusters = np.searchsorted(self._ends, self._rng.random(count), side="right")
            noise = self._rng.standard_normal((count, rows.shape[1]), dtype=np.float32)
            noise *= self._widths[clusters, np.newaxis]
            values = noise @ self._directions + self._centres[clusters]
            scaled = np.float32(_UNIT) * values + np.float32(_MIDDLE)
            rows[first : first + count] = scaled.round().clip(0, 255)
            labels[first : first + count] = self._classes[clusters]
        return rows, labels
