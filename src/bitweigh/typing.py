"""Types in public signatures: literal choices, and arrays by their dtype."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Batches",
    "BitOrder",
    "BuildMode",
    "By",
    "Codes",
    "Floats",
    "FrameKind",
    "HasherChoice",
    "HasherName",
    "Ids",
    "Method",
    "Metric",
    "OnDuplicate",
    "OnMissing",
    "Precision",
    "RescoreDtype",
    "RowLayout",
    "VectorDtype",
    "WeigherName",
]

Codes: TypeAlias = NDArray[np.uint8]
"""Packed codes, uint8 (n, n_bytes)."""
Ids: TypeAlias = NDArray[np.int64]
"""Ids of rows, int64 (n,)."""
Floats: TypeAlias = NDArray[np.float32 | np.float64]
"""Real numbers in one of the two dtypes that convert to float64 without loss."""

Batches: TypeAlias = (
    str
    | os.PathLike[str]
    | Sequence[str | os.PathLike[str]]
    | NDArray[Any]
    | Iterable[NDArray[Any] | tuple[NDArray[Any], NDArray[np.integer[Any]]]]
)
"""Codes, or vectors for a hasher, in files or in batches, each with its ids or without."""

BitOrder: TypeAlias = Literal["big", "little"]
"""Order of the bits inside a byte, as in ``np.packbits``."""
Method: TypeAlias = Literal["auto", "scan", "probe"]
"""How to search; never changes the answer."""
BuildMode: TypeAlias = Literal["auto", "manual"]
"""Whether adding codes builds bands, or only ``build()`` does."""
RowLayout: TypeAlias = Literal["plain", "lean"]
"""How rows are stored: whole codes, or without the bits that their position implies."""
OnDuplicate: TypeAlias = Literal["error", "replace"]
"""What to do with an id that is already in the index."""
OnMissing: TypeAlias = Literal["error", "ignore"]
"""What to do with an id that is not in the index."""

Metric: TypeAlias = Literal["euclidean", "cosine", "inner_product"]
"""Distance between vectors."""
VectorDtype: TypeAlias = Literal["float16", "float32"]
"""Precision in which a vector index stores the vectors it reranks by."""
RescoreDtype: TypeAlias = Literal["int8", "float16", "float32"]
"""Precision in which binary embeddings keep the vectors that they are rescored by."""
By: TypeAlias = Literal["vectors", "codes"]
"""What distances or scores are those of: kept vectors, or codes."""
HasherName: TypeAlias = Literal["itq", "lsh", "sign", "scalar", "levels"]
"""Hashers that can be chosen by name."""
HasherChoice: TypeAlias = Literal[HasherName, "auto"]
"""The same, or the one that finds most of the true neighbours."""
WeigherName: TypeAlias = Literal["asym", "wh", "inner_product", "decoded"]
"""Weighers that can be chosen by name."""
Precision: TypeAlias = Literal["ubinary", "binary"]
"""The two layouts of binary-quantised embeddings."""
FrameKind: TypeAlias = Literal["pandas", "polars", "arrow", "dict"]
"""Kinds of tables: a DataFrame of pandas or polars, a Table of pyarrow, a dict of NumPy arrays."""
