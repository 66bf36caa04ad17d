"""The three kinds of collections: what an item's value is, and which index searches it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh import costs as make_costs
from bitweigh.server.contents import Answer, AnyIndex, CodesOf, Contents
from bitweigh.server.definition import Definition
from bitweigh.server.item_values import (
    as_vector,
    as_vectors,
    rows_of_bytes,
    unused_mask,
    wrong_value,
)
from bitweigh.server.problems import Problem
from bitweigh.typing import Codes

__all__ = ["contents_of", "kind_of"]


class CodeContents(Contents):
    """Packed codes, searched with costs."""

    def new(self) -> bitweigh.Index:
        """An empty index of codes."""
        assert self.definition.n_bits is not None
        return bitweigh.Index(
            self.definition.n_bits,
            bitorder=self.definition.bitorder,
            **self.definition.bands_options(),
        )

    def load(self, folder: Path) -> bitweigh.Index:
        """The index of a checkpoint."""
        return bitweigh.Index.load(folder, mmap=True, verify=True, build="manual")

    def value_of(self, vector: object, code: str | None, where: str) -> bytes:
        """The packed code."""
        if vector is not None or code is None:
            raise wrong_value(f"{where} must have a code, and no vector")
        return self.checked_code(code, f"{where}.code").tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:
        """Packed codes, as they are."""
        if not is_code or rows.shape[1] != self.n_bytes:
            return None
        mask = unused_mask(self.code_bits(), self.definition.bitorder)
        return None if (rows[:, -1] & mask).any() else rows

    @property
    def n_bytes(self) -> int:
        """Bytes of a packed code."""
        return (self.code_bits() + 7) // 8

    def array_of(self, values: Sequence[bytes]) -> Codes:
        """Codes (n, n_bytes)."""
        return rows_of_bytes(values, self.n_bytes)

    def codes_index(self, index: AnyIndex) -> bitweigh.Index:
        """The index itself."""
        assert isinstance(index, bitweigh.Index)
        return index

    @property
    def reranks(self) -> bool:
        """Never: there is nothing but codes."""
        return False

    def costs_of(self, index: AnyIndex, vectors: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Those of the inner product."""
        return make_costs.inner_product(vectors)

    def _dim(self) -> int:
        return self.code_bits()

    def code_bits(self) -> int:
        """Those of the definition."""
        assert self.definition.n_bits is not None
        return self.definition.n_bits


class EmbeddingContents(Contents):
    """Binary embeddings, searched with float queries, and ranked by kept vectors on request."""

    rerank_option = "rescore_from"

    def new(self) -> bitweigh.BinaryEmbeddings:
        """Empty embeddings."""
        return bitweigh.BinaryEmbeddings(
            self._dim(), rescore=self.definition.rescore, **self.definition.bands_options()
        )

    def load(self, folder: Path) -> bitweigh.BinaryEmbeddings:
        """Those of a checkpoint."""
        return bitweigh.BinaryEmbeddings.load(folder, mmap=True, verify=True, build="manual")

    @property
    def keeps_vectors(self) -> bool:
        """Whether a value is a vector rather than its bits."""
        return self.definition.rescore is not None

    def value_of(self, vector: object, code: str | None, where: str) -> bytes:
        """The vector, or the bits of a vector, or the bits themselves."""
        if (vector is None) == (code is None):
            raise wrong_value(f"{where} must have either a vector or a code")
        if code is not None:
            if self.keeps_vectors:
                raise wrong_value(f"{where} must have a vector: the collection keeps vectors")
            return self.checked_code(code, f"{where}.code").tobytes()
        numbers = as_vector(vector, self._dim(), f"{where}.vector")
        return (numbers if self.keeps_vectors else np.packbits(numbers > 0)).tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:
        """Vectors, or their bits, or packed codes as they are."""
        if is_code and self.takes_codes:
            wrong = rows.shape[1] != self.n_bytes
            return None if wrong or (rows[:, -1] & unused_mask(self._dim(), "big")).any() else rows
        numbers = as_vectors(rows, self._dim())
        if numbers is None:
            return None
        return numbers.view(np.uint8) if self.keeps_vectors else np.packbits(numbers > 0, axis=1)

    @property
    def n_bytes(self) -> int:
        """Bytes of a vector, or of its bits."""
        return 4 * self._dim() if self.keeps_vectors else (self._dim() + 7) // 8

    def array_of(self, values: Sequence[bytes]) -> NDArray[Any]:
        """Vectors (n, dim), or codes (n, n_bytes)."""
        rows = rows_of_bytes(values, self.n_bytes)
        return rows.view("<f4") if self.keeps_vectors else rows

    def codes_index(self, index: AnyIndex) -> bitweigh.Index:
        """That of the bits."""
        assert isinstance(index, bitweigh.BinaryEmbeddings)
        return index.index

    @property
    def takes_codes(self) -> bool:
        """If vectors are not kept."""
        return not self.keeps_vectors

    @property
    def reranks(self) -> bool:
        """If vectors are kept."""
        return self.keeps_vectors

    def _reranked(
        self,
        index: Any,  # noqa: ANN401
        vectors: NDArray[Any],
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """Those with the largest inner product; a distance is minus the score."""
        scores, ids = index.search(vectors, k, **options)
        return Answer(-scores, ids)

    def _reranked_by_id(
        self,
        index: Any,  # noqa: ANN401
        id_: int,
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """Those most like one of them; a distance is minus the score."""
        scores, ids = index.search_by_id([id_], k, **options)
        return Answer(-scores, ids)

    def _unweighted_costs(
        self,
        index: Any,  # noqa: ANN401
        codes: CodesOf,
        id_: int,
        code: Codes,
    ) -> NDArray[Any]:
        """The inner product with the kept vector, or with the item's bits as -1 and +1."""
        if self.reranks:
            return make_costs.inner_product(index.vectors_of([id_])[0].astype(np.float64))
        bits = np.unpackbits(code, count=codes.n_bits, bitorder=codes.bitorder)
        return make_costs.inner_product(np.where(bits, 1.0, -1.0))

    def costs_of(self, index: AnyIndex, vectors: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Those of the inner product with the bits."""
        return make_costs.inner_product(vectors)

    def _dim(self) -> int:
        assert self.definition.dim is not None
        return self.definition.dim

    def code_bits(self) -> int:
        """One for each number of an embedding."""
        return self._dim()


class VectorContents(Contents):
    """Float vectors, hashed, weighed, and ranked by true distance on request."""

    def new(self) -> bitweigh.VectorIndex:
        """An index that is not fitted."""
        given = self.definition
        return bitweigh.VectorIndex(
            n_bits=given.n_bits,
            hasher=given.hasher,
            weigher=given.weigher,
            metric=given.metric,
            rerank=given.rerank,
            seed=given.seed,
            **given.bands_options(),
        )

    def load(self, folder: Path) -> bitweigh.VectorIndex:
        """The index of a checkpoint, fitted."""
        return bitweigh.VectorIndex.load(folder, mmap=True, verify=True, build="manual")

    def value_of(self, vector: object, code: str | None, where: str) -> bytes:
        """The vector."""
        if code is not None or vector is None:
            raise wrong_value(f"{where} must have a vector, and no code")
        numbers = as_vector(vector, self._dim(), f"{where}.vector")
        if self.definition.metric == "cosine" and not numbers.any():
            raise wrong_value(f"{where}.vector must not be zero: the metric is cosine")
        return numbers.tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:  # noqa: ARG002
        """Vectors; an array of bytes holds numbers like any other."""
        numbers = as_vectors(rows, self._dim())
        if numbers is None:
            return None
        if self.definition.metric == "cosine" and not numbers.any(axis=1).all():
            return None
        return numbers.view(np.uint8)

    @property
    def n_bytes(self) -> int:
        """Bytes of a vector."""
        return 4 * self._dim()

    def array_of(self, values: Sequence[bytes]) -> NDArray[np.float32]:
        """Vectors (n, dim)."""
        return rows_of_bytes(values, self.n_bytes).view("<f4")

    def codes_index(self, index: AnyIndex) -> bitweigh.Index:
        """That of the codes."""
        assert isinstance(index, bitweigh.VectorIndex)
        return index.index

    @property
    def takes_codes(self) -> bool:
        """Never."""
        return False

    @property
    def reranks(self) -> bool:
        """If vectors are kept."""
        return self.definition.rerank is not None

    def _unweighted_costs(
        self,
        index: Any,  # noqa: ANN401
        codes: CodesOf,
        id_: int,
        code: Codes,
    ) -> NDArray[Any]:
        """Those of the kept vector; without any, those of the code."""
        if not self.reranks:
            return super()._unweighted_costs(index, codes, id_, code)
        costs: NDArray[Any] = index.costs(index.vectors_of([id_])[0].astype(np.float32))
        return costs

    def costs_of(self, index: AnyIndex, vectors: NDArray[Any]) -> NDArray[Any]:
        """Those of the weigher."""
        assert isinstance(index, bitweigh.VectorIndex)
        return index.costs(vectors)

    def _dim(self) -> int:
        assert self.definition.dim is not None
        return self.definition.dim

    def code_bits(self) -> int:
        """No code may be a query: what its bits mean was learned."""
        raise wrong_value("code is not for collections of kind 'vectors': give a vector or costs")


_KINDS: dict[str, type[Contents]] = {
    "codes": CodeContents,
    "embeddings": EmbeddingContents,
    "vectors": VectorContents,
}


def kind_of(definition: Definition) -> Contents:
    """The kind of a definition that is known to be right."""
    return _KINDS[definition.kind](definition)


def contents_of(definition: Definition) -> Contents:
    """The kind that a definition asks for; raises Problem 422 if no index is like that."""
    contents = kind_of(definition.check())
    try:
        contents.new()
    except (ValueError, TypeError) as error:
        raise Problem(422, "invalid-collection", str(error)) from error
    return contents
