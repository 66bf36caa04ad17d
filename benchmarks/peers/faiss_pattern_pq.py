"""Product quantisers that hold binary codes as they are, for the FAISS peers.

A part's centroids are all patterns of its bits, so a part's code is the bits themselves and the
packed codes are valid PQ codes. With the metric inner product and q = cost0 - cost1 the score of a
code is the sum of all cost0 minus its weighted distance: the largest scores are the nearest codes.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Literal

import numpy as np

from benchmarks.peers import Codes, Costs, Query, UnavailableError

if TYPE_CHECKING:
    import faiss


def import_faiss() -> ModuleType:
    """Import FAISS with one thread; UnavailableError if it is not installed."""
    try:
        module = importlib.import_module("faiss")
    except ImportError:
        raise UnavailableError("faiss is not installed") from None
    module.omp_set_num_threads(1)
    return module


def pattern_pq(
    module: ModuleType, codes: Codes, n_bits: int, bits_per_part: Literal[4, 8]
) -> faiss.IndexPQ:
    """Return an IndexPQ of the codes with parts of 4 or 8 bits, without training or encoding."""
    n_parts = n_bits // bits_per_part
    patterns = np.unpackbits(
        np.arange(2**bits_per_part, dtype=np.uint8)[:, np.newaxis],
        axis=1,
        count=bits_per_part,
        bitorder="little",
    ).astype(np.float32)
    index: faiss.IndexPQ = module.IndexPQ(
        n_bits, n_parts, bits_per_part, module.METRIC_INNER_PRODUCT
    )
    module.copy_array_to_vector(np.tile(patterns, (n_parts, 1)).reshape(-1), index.pq.centroids)
    index.is_trained = True
    index.add_sa_codes(codes)
    return index


def inner_product_queries(costs: Costs) -> Query:
    """Return the queries q = cost0 - cost1, float32 (nq, n_bits)."""
    return np.ascontiguousarray(costs[:, :, 0] - costs[:, :, 1])
