"""The three kinds of collections: what an item's value is, and which index searches it.

The record keeps a value as bytes: the packed code, or the vector as float32. Everything that
depends on the kind of a collection is here; the rest of the server sees bytes, ids and answers.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bitweigh
from bitweigh import costs as make_costs
from bitweigh.server.definition import Definition
from bitweigh.server.problems import Problem
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = [
    "Answer",
    "AnyIndex",
    "CodesOf",
    "Contents",
    "contents_of",
    "costs_of_code",
    "decoded_code",
    "kind_of",
]

AnyIndex = bitweigh.Index | bitweigh.BinaryEmbeddings | bitweigh.VectorIndex
# Rows that one call hands to an index when many are added.
_AT_ONCE = 65_536
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


class Answer(NamedTuple):
    """Distances and ids of several queries, (nq, k) each, padded as an index pads."""

    distances: NDArray[np.float64]
    ids: Ids
    rows: int = 0
    """Rows whose codes were looked at; 0 if vectors ranked again, where nobody counts."""
    probed: bool | None = None
    """Whether bands were used; None where nobody counts."""


class CodesOf(Protocol):
    """What has codes: an index, or shards of one."""

    @property
    def n_bits(self) -> int:
        """Bits of a code."""

    @property
    def bitorder(self) -> BitOrder:
        """The order of bits in a byte."""

    def codes_of(self, ids: ArrayLike) -> Codes:
        """Packed codes by id; KeyError for an id that is not there."""


class Contents(ABC):
    """What a kind of collection needs; subclasses are the kinds."""

    rerank_option: ClassVar[str] = "rerank_from"
    """What its index calls the number of codes that are ranked again by vectors."""

    def __init__(self, definition: Definition) -> None:
        """Keep the definition."""
        self.definition = definition

    @abstractmethod
    def new(self) -> AnyIndex:
        """An empty index; raises ValueError or TypeError for options that make none."""

    @abstractmethod
    def load(self, folder: Path) -> AnyIndex:
        """The index of a checkpoint, mapped; raises CorruptFileError if a byte is wrong."""

    @abstractmethod
    def value_of(self, vector: object, code: str | None, where: str) -> bytes:
        """What the record keeps of an item; raises Problem 422 that names what is wrong."""

    @abstractmethod
    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:
        """As `value_of`, of many rows at once: (n, n_bytes); None if some row is wrong."""

    def value_of_row(self, value: NDArray[Any], *, is_code: bool) -> bytes:
        """As `value_of`, of a vector or a packed code as an array."""
        if is_code and not self.takes_codes:
            is_code = False
        if is_code:
            return self.value_of(None, base64.b64encode(value.tobytes()).decode(), "item")
        if value.dtype.kind not in "fiu":
            raise _wrong(f"item.vector must be numbers, got {value.dtype}")
        return self.value_of(value, None, "item")

    @property
    def takes_codes(self) -> bool:
        """Whether items may be given as packed codes."""
        return True

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Bytes of a value."""

    @abstractmethod
    def array_of(self, values: Sequence[bytes]) -> NDArray[Any]:
        """Values of the record as an index takes them."""

    @abstractmethod
    def codes_index(self, index: AnyIndex) -> bitweigh.Index:
        """The index of the codes alone, which takes costs."""

    @property
    @abstractmethod
    def reranks(self) -> bool:
        """Whether the best codes are ranked again by kept vectors."""

    def by_vectors(
        self,
        index: AnyIndex,
        codes: bitweigh.Index,
        vectors: NDArray[Any],
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """The nearest items of float queries."""
        if self.reranks:
            return self._reranked(index, vectors, k, options)
        return self.by_costs(codes, self.costs_of(index, vectors), k, options)

    def _reranked(
        self,
        index: Any,  # noqa: ANN401
        vectors: NDArray[Any],
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """The nearest items by kept vectors."""
        return Answer(*index.search(vectors, k, **options))

    @abstractmethod
    def costs_of(self, index: AnyIndex, vectors: NDArray[Any]) -> NDArray[Any]:
        """What each bit of a code pays for float queries, (n_bits, 2) or (nq, n_bits, 2)."""

    def by_costs(
        self, codes: bitweigh.Index, costs: NDArray[Any], k: int, options: dict[str, Any]
    ) -> Answer:
        """The nearest items by their codes alone."""
        found = codes.search(costs, k, stats=True, **options)
        stats = found.stats
        assert stats is not None
        rows = int(stats.rows_scanned.sum() + stats.rows_scored_directly.sum())
        return Answer(found.distances, found.ids, rows, bool(stats.probes.any()))

    def by_id(
        self,
        index: AnyIndex,
        codes: bitweigh.Index,
        id_: int,
        weights: NDArray[np.float64] | None,
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """The items most like one of them, without itself; with weights, by code alone."""
        if self.reranks and weights is None:
            return self._reranked_by_id(index, id_, k, options)
        costs = self.costs_of_item(index, codes, id_, weights)
        found = self.by_costs(codes, costs[np.newaxis], k + 1, options)
        others = found.ids[0] != id_
        # The item itself may be farther than k + 1 others, or left out by a filter.
        others[k:] &= not others.all()
        return found._replace(distances=found.distances[:, others], ids=found.ids[:, others])

    def _reranked_by_id(
        self,
        index: Any,  # noqa: ANN401
        id_: int,
        k: int,
        options: dict[str, Any],
    ) -> Answer:
        """The items most like one of them by kept vectors."""
        return Answer(*index.search_by_id([id_], k, **options))

    def costs_of_item(
        self,
        index: Any,  # noqa: ANN401
        codes: CodesOf,
        id_: int,
        weights: NDArray[np.float64] | None,
    ) -> NDArray[Any]:
        """The costs that codes are ranked by for one of the items, (n_bits, 2).

        `index` and `codes` are those of a collection, or the rows of a cluster seen as one. Raises
        KeyError for an id that is not there.
        """
        code = codes.codes_of([id_])[0]
        if weights is None:
            return self._unweighted_costs(index, codes, id_, code)
        return costs_of_code(code, weights, codes.n_bits, codes.bitorder)

    def _unweighted_costs(
        self,
        index: Any,  # noqa: ANN401, ARG002
        codes: CodesOf,
        id_: int,  # noqa: ARG002
        code: Codes,
    ) -> NDArray[Any]:
        """The costs of an item whose weights nobody gives: 1 for each bit that differs."""
        return costs_of_code(code, None, codes.n_bits, codes.bitorder)

    def add(self, index: AnyIndex, values: Sequence[bytes], ids: Sequence[int]) -> None:
        """Add items to an index, or replace those with the same ids."""
        for first in range(0, len(ids), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            index.add(
                self.array_of(values[part]),
                np.asarray(ids[part], np.int64),
                on_duplicate="replace",
            )

    def vector_of_query(self, given: object, where: str) -> NDArray[np.float64]:
        """A float query of the right length; whether it is finite is checked by the search."""
        numbers = np.array(given, np.float64)
        if numbers.shape != (self._dim(),):
            raise _wrong(f"{where} must have {self._dim()} numbers, got {_lengths(numbers.shape)}")
        return numbers

    def checked_code(self, given: str, where: str) -> Codes:
        """A packed code, checked."""
        packed = decoded_code(given, self._code_bits(), where)
        if packed[-1] & _unused_mask(self._code_bits(), self.definition.bitorder):
            raise _wrong(f"{where} must have zeros in the unused bits of its last byte")
        return packed

    @abstractmethod
    def _dim(self) -> int: ...

    @abstractmethod
    def _code_bits(self) -> int: ...


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
            raise _wrong(f"{where} must have a code, and no vector")
        return self.checked_code(code, f"{where}.code").tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:
        """Packed codes, as they are."""
        if not is_code or rows.shape[1] != self.n_bytes:
            return None
        mask = _unused_mask(self._code_bits(), self.definition.bitorder)
        return None if (rows[:, -1] & mask).any() else rows

    @property
    def n_bytes(self) -> int:
        """Bytes of a packed code."""
        return (self._code_bits() + 7) // 8

    def array_of(self, values: Sequence[bytes]) -> Codes:
        """Codes (n, n_bytes)."""
        return _packed(values, self.n_bytes)

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
        return self._code_bits()

    def _code_bits(self) -> int:
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
            raise _wrong(f"{where} must have either a vector or a code")
        if code is not None:
            if self.keeps_vectors:
                raise _wrong(f"{where} must have a vector: the collection keeps vectors")
            return self.checked_code(code, f"{where}.code").tobytes()
        numbers = _vector(vector, self._dim(), f"{where}.vector")
        return (numbers if self.keeps_vectors else np.packbits(numbers > 0)).tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:
        """Vectors, or their bits, or packed codes as they are."""
        if is_code and self.takes_codes:
            wrong = rows.shape[1] != self.n_bytes
            return None if wrong or (rows[:, -1] & _unused_mask(self._dim(), "big")).any() else rows
        numbers = _vectors(rows, self._dim())
        if numbers is None:
            return None
        return numbers.view(np.uint8) if self.keeps_vectors else np.packbits(numbers > 0, axis=1)

    @property
    def n_bytes(self) -> int:
        """Bytes of a vector, or of its bits."""
        return 4 * self._dim() if self.keeps_vectors else (self._dim() + 7) // 8

    def array_of(self, values: Sequence[bytes]) -> NDArray[Any]:
        """Vectors (n, dim), or codes (n, n_bytes)."""
        packed = _packed(values, self.n_bytes)
        return packed.view("<f4") if self.keeps_vectors else packed

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

    def _code_bits(self) -> int:
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
            raise _wrong(f"{where} must have a vector, and no code")
        numbers = _vector(vector, self._dim(), f"{where}.vector")
        if self.definition.metric == "cosine" and not numbers.any():
            raise _wrong(f"{where}.vector must not be zero: the metric is cosine")
        return numbers.tobytes()

    def values_of_array(self, rows: NDArray[Any], *, is_code: bool) -> Codes | None:  # noqa: ARG002
        """Vectors; bytes are numbers like others."""
        numbers = _vectors(rows, self._dim())
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
        return _packed(values, self.n_bytes).view("<f4")

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

    def _code_bits(self) -> int:
        raise _wrong("code is not for collections of kind 'vectors': give a vector or costs")


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


def costs_of_code(
    code: Codes, weights: NDArray[np.float64] | None, n_bits: int, bitorder: BitOrder
) -> NDArray[Any]:
    """What each bit that differs from a packed code costs: 1, or its weight."""
    if weights is None:
        return make_costs.hamming(code, n_bits, bitorder=bitorder)
    return make_costs.from_weights(code, weights, bitorder=bitorder)


def decoded_code(text: str, n_bits: int, where: str) -> Codes:
    """A packed code from base64, uint8 (n_bytes,)."""
    try:
        packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    except (binascii.Error, ValueError) as error:
        raise _wrong(f"{where} must be base64: {error}") from None
    n_bytes = (n_bits + 7) // 8
    if len(packed) != n_bytes:
        raise _wrong(f"{where} must be {n_bytes} bytes ({n_bits} bits), got {len(packed)}")
    return packed


def _vector(given: object, dim: int, where: str) -> NDArray[np.float32]:
    numbers = np.asarray(given, np.float64)
    if numbers.shape != (dim,):
        raise _wrong(f"{where} must have {dim} numbers, got {_lengths(numbers.shape)}")
    # False for NaN, too.
    if not np.abs(numbers).max() <= _LARGEST_FLOAT32:
        raise _wrong(f"{where} must be finite and fit in float32")
    return numbers.astype("<f4")


def _vectors(rows: NDArray[Any], dim: int) -> NDArray[np.float32] | None:
    """As `_vector`, of many rows at once; None if some row is wrong."""
    if rows.shape[1] != dim:
        return None
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(rows, dtype="<f4")
    return numbers if np.isfinite(numbers).all() else None


def _unused_mask(n_bits: int, bitorder: str) -> int:
    """The bits of a code's last byte that no bit of the code uses."""
    unused = -n_bits % 8
    return (1 << unused) - 1 if bitorder == "big" else 256 - (256 >> unused)


def _lengths(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "one"


def _packed(values: Sequence[bytes], n_bytes: int) -> Codes:
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), n_bytes)


def _wrong(detail: str) -> Problem:
    return Problem(422, "invalid-value", detail)
