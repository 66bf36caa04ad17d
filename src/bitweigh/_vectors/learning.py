"""What an index of vectors learns before it takes any: its hasher and its weigher."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_integer
from bitweigh.hashers import ITQ, LSH, Sign
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._vectors import blocks, sample_rows, unit_rows
from bitweigh.typing import Metric
from bitweigh.weighers import Asym, InnerProduct, Wh
from bitweigh.weighers._base import Weigher

__all__ = [
    "MOST_BITS_BY_DEFAULT",
    "as_hasher",
    "as_weigher",
    "fit_weigher",
    "sample_for",
]


MOST_BITS_BY_DEFAULT = 128
# Projections that a weigher learns from: 128 MB.
_WEIGHER_VALUES = 2**24


def as_hasher(hasher: object, n_bits: int, seed: int) -> Hasher:
    """A hasher by its name, or the one that came."""
    if isinstance(hasher, Hasher):
        return hasher
    if hasher == "itq":
        return ITQ(n_bits, seed=seed)
    if hasher == "lsh":
        return LSH(n_bits, seed=seed)
    if hasher == "sign":
        return Sign(seed=seed)
    raise ValueError(f"hasher must be 'itq', 'lsh', 'sign' or a hasher, got {hasher!r}")


def as_weigher(weigher: object, seed: int) -> Weigher:
    """A weigher by its name, or the one that came."""
    if isinstance(weigher, Weigher):
        return weigher
    if weigher == "asym":
        return Asym()
    if weigher == "wh":
        return Wh(seed=seed)
    if weigher == "inner_product":
        return InnerProduct()
    raise ValueError(f"weigher must be 'asym', 'wh', 'inner_product' or a weigher, got {weigher!r}")


def sample_for(
    hasher: Hasher, vectors: NDArray[Any], metric: Metric, generator: np.random.Generator
) -> NDArray[Any]:
    """The rows to learn from: as many as the hasher looks at, of length 1 for the cosine."""
    most = as_integer(hasher.max_fit_rows, "max_fit_rows", 1, 2**63 - 1)
    sample = sample_rows(vectors, most, generator)
    if metric == "euclidean":
        return sample
    made = np.empty(sample.shape, np.result_type(sample.dtype, np.float32))
    for first, block in blocks(sample):
        made[first : first + len(block)] = unit_rows(block, first)
    return made


def fit_weigher(
    weigher: Weigher, hasher: Hasher, sample: NDArray[Any], generator: np.random.Generator
) -> None:
    """Fit a weigher on what a fitted hasher makes of the sample, or of some of it."""
    rows = sample_rows(sample, max(1000, _WEIGHER_VALUES // hasher.n_bits_), generator)
    projected = hasher.project(rows)
    if isinstance(weigher, Wh):
        weigher.fit(projected, hasher.threshold_, vectors=rows)
    else:
        weigher.fit(projected, hasher.threshold_)
