"""bitweigh's own methods: hashers of different lengths, with and without reranking."""

from __future__ import annotations

from functools import partial

from benchmarks.quality.methods import Built, K, Method, Search
from benchmarks.quality.sets import Floats
from bitweigh.hashers import ITQ, LSH, Hasher, Levels, Scalar, Sign
from bitweigh.typing import VectorDtype
from bitweigh.vector_index import VectorIndex

__all__ = ["our_methods"]

_ITEM_BYTES: dict[VectorDtype, int] = {"float16": 2, "float32": 4}


def our_methods(n_features: int) -> list[Method]:
    """Return the methods for vectors with this number of features."""
    half, one, two = n_features // 2, n_features, 2 * n_features
    plain: list[tuple[str, Hasher]] = [
        ("LSH, ITQ, Sign", LSH(one)),
        ("LSH, ITQ, Sign", LSH(two)),
        ("LSH, ITQ, Sign", Sign(threshold="median")),
        ("LSH, ITQ, Sign", ITQ(half)),
        ("LSH, ITQ, Sign", ITQ(one)),
        *(("Levels", Levels(n_bits)) for n_bits in (half, one, two)),
        *(("Scalar", Scalar(bits)) for bits in (1, 2, 3, 4, 8)),
        *(("Scalar, not rotated", Scalar(bits, rotation=None)) for bits in (2, 4, 8)),
    ]
    reranked: list[tuple[Hasher, VectorDtype, tuple[int, ...]]] = [
        (ITQ(half), "float16", (100, 400)),
        (Levels(one), "float16", (100, 400)),
        (Scalar(1), "float16", (50, 100, 400)),
        (Scalar(4), "float16", (20, 50)),
        (Scalar(4), "float32", (20, 50)),
    ]
    return [
        *(
            Method(f"bitweigh {family}", _name(hasher), partial(_plain, hasher))
            for family, hasher in plain
        ),
        *(
            Method(
                "bitweigh + rerank",
                f"{_name(hasher)} + {dtype}",
                partial(_reranked, hasher, dtype, candidates),
            )
            for hasher, dtype, candidates in reranked
        ),
    ]


def _name(hasher: Hasher) -> str:
    kind = type(hasher).__name__
    parameters = hasher.get_params()
    if isinstance(hasher, Scalar):
        bits = f"{hasher.bits} {'bit' if hasher.bits == 1 else 'bits'} a feature"
        return f"{kind}, {bits}" if hasher.rotation else f"{kind}, {bits}, not rotated"
    return f"{kind}, {parameters['n_bits']} bits" if "n_bits" in parameters else kind


def _plain(hasher: Hasher, rows: Floats) -> Built:
    index = VectorIndex(hasher=hasher).fit(rows)
    index.add(rows)
    return Built(index.memory().total, {"": lambda query: index.search(query, K, threads=1).ids})


def _reranked(
    hasher: Hasher, dtype: VectorDtype, candidates: tuple[int, ...], rows: Floats
) -> Built:
    index = VectorIndex(hasher=hasher, rerank=dtype).fit(rows)
    index.add(rows)

    def search(count: int) -> Search:
        return lambda query: index.search(query, K, rerank_from=count, threads=1).ids

    vectors = _ITEM_BYTES[dtype] * rows.size
    return Built(
        index.memory().total + vectors, {f"from {count}": search(count) for count in candidates}
    )
