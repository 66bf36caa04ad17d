"""Codes and costs of vectors, by the library's hashers and weighers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.sources import Kind, Source, source
from bitweigh import costs, hashers, weighers

__all__ = ["Codes", "Costs", "Hashed", "HasherName", "WeigherName", "hashed"]

HasherName: TypeAlias = Literal["lsh", "itq", "sign"]
WeigherName: TypeAlias = Literal["asym", "wh", "ip"]
Codes: TypeAlias = NDArray[np.uint8]
Costs: TypeAlias = NDArray[np.float32]
_Hasher: TypeAlias = hashers.LSH | hashers.ITQ | hashers.Sign

_N_FEATURES = 128
"""Features of generated vectors, unless each bit is a feature."""


class Hashed:
    """Vectors and a hasher fitted on a sample of them; codes are in little bit order."""

    def __init__(self, vectors: Source, hasher: _Hasher) -> None:
        """Fit the hasher."""
        self._vectors = vectors
        self._hasher = hasher.fit(vectors.sample())

    def rows(self, n: int | None) -> int:
        """Return the number of codes there will be for a request of n."""
        return self._vectors.rows(n)

    def chunks(self, n: int) -> Iterator[Codes]:
        """Yield the first n codes, chunk by chunk."""
        return map(self._hasher.transform, self._vectors.chunks(n))

    def costs(self, weigher: WeigherName) -> Costs:
        """Return the queries, (1000, n_bits, 2)."""
        queries = self._hasher.project(self._vectors.queries())
        threshold = self._hasher.thresholds_
        if weigher == "ip":
            return costs.inner_product(queries - threshold).astype(np.float32)
        sample = self._vectors.sample()
        projected = self._hasher.project(sample)
        fitted = (
            weighers.Asym().fit(projected, threshold)
            if weigher == "asym"
            else weighers.Wh().fit(projected, threshold, vectors=sample)
        )
        return fitted.costs(queries).astype(np.float32)


# One entry is enough: workloads that share codes are adjacent. Fitting may take seconds.
@lru_cache(maxsize=1)
def hashed(kind: Kind, n_bits: int, hasher: HasherName, folder: Path | None) -> Hashed:
    """Return vectors of a kind with a fitted hasher; for "random" the bits are always the signs."""
    if kind == "random":
        return Hashed(source(kind, n_bits, folder), hashers.Sign(bitorder="little"))
    vectors = source(kind, n_bits if hasher == "sign" else _N_FEATURES, folder)
    if hasher == "sign":
        return Hashed(vectors, hashers.Sign(threshold="median", bitorder="little"))
    make = hashers.LSH if hasher == "lsh" else hashers.ITQ
    return Hashed(vectors, make(n_bits, bitorder="little"))
