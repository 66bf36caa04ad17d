"""The demo's documents as data sets of vectors, for benchmarks."""

from __future__ import annotations

import numpy as np

from bitweigh_experiments.datasets import Dataset
from bitweigh_experiments.demo.collection import as_unit
from bitweigh_experiments.demo.documents import choose, shipped
from bitweigh_experiments.demo.model import load_model

__all__ = ["descriptions", "embedded"]

# The length of the noise that is added to a document's vector of length 1.
NOISE = 0.5


def descriptions(*, n_queries: int = 500, seed: int = 0) -> Dataset:
    """Embed the documents that the demo would search here: vectors of length 1, float32.

    They are the descriptions of Debian's packages where apt has them, else the shipped documents.
    Queries are documents that are not among the rows.
    """
    documents = choose()
    vectors = as_unit(load_model().embed([document.embedded for document in documents.documents]))
    np.random.default_rng(seed).shuffle(vectors)
    return Dataset(documents.source, vectors[n_queries:], vectors[:n_queries])


def embedded(n_rows: int, *, n_queries: int = 500, seed: int = 0) -> Dataset:
    """Embed the shipped documents, filled up with noisy copies: vectors of length 1, float32.

    Queries are documents that are not among the rows, and neither are copies of them.
    """
    rng = np.random.default_rng(seed)
    vectors = as_unit(load_model().embed([document.text for document in shipped().documents]))
    rng.shuffle(vectors)
    queries, documents = vectors[:n_queries], vectors[n_queries:]
    rows = documents[np.arange(n_rows) % len(documents)]
    copies = rows[len(documents) :]
    noise = rng.standard_normal(copies.shape, dtype=np.float32)
    copies += np.float32(NOISE) * as_unit(noise)
    return Dataset("documents", as_unit(rows), queries)
