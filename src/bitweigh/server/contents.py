"""What the server asks of a kind of collection, and what all kinds have in common.

The record keeps a value as bytes: the packed code, or the vector as float32. Everything that
depends on the kind of a collection is in kinds.py; the rest of the server sees bytes, ids and
answers.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bitweigh
from bitweigh import costs as make_costs
from bitweigh.server.definition import Definition
from bitweigh.server.item_values import decoded_code, lengths, unused_mask, wrong_value
from bitweigh.typing import BitOrder, Codes, Ids

__all__ = ["Answer", "AnyIndex", "CodesOf", "Contents", "costs_of_code"]

AnyIndex = bitweigh.Index | bitweigh.BinaryEmbeddings | bitweigh.VectorIndex
# Rows that one call hands to an index when many are added.
_AT_ONCE = 65_536


class Answer(NamedTuple):
    """Distances and ids of several queries, (nq, k) each, padded as an index pads."""

    distances: NDArray[np.float64]
    ids: Ids
    rows: int = 0
    """Rows whose codes were looked at; 0 after ranking by vectors, which does not count them."""
    probed: bool | None = None
    """Whether bands were used; None if that is not counted."""


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
            raise wrong_value(f"item.vector must be numbers, got {value.dtype}")
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
        """The costs for an item without given weights: 1 for each bit that differs."""
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
            raise wrong_value(
                f"{where} must have {self._dim()} numbers, got {lengths(numbers.shape)}"
            )
        return numbers

    def checked_code(self, given: str, where: str) -> Codes:
        """A packed code, checked."""
        packed = decoded_code(given, self.code_bits(), where)
        if packed[-1] & unused_mask(self.code_bits(), self.definition.bitorder):
            raise wrong_value(f"{where} must have zeros in the unused bits of its last byte")
        return packed

    @abstractmethod
    def _dim(self) -> int: ...

    @abstractmethod
    def code_bits(self) -> int:
        """Bits of a code that a query may be; raises Problem 422 if none may."""


def costs_of_code(
    code: Codes, weights: NDArray[np.float64] | None, n_bits: int, bitorder: BitOrder
) -> NDArray[Any]:
    """What each bit that differs from a packed code costs: 1, or its weight."""
    if weights is None:
        return make_costs.hamming(code, n_bits, bitorder=bitorder)
    if weights.shape not in ((n_bits,), (n_bits, 2)):
        raise ValueError(
            f"weights must have {n_bits} numbers, or pairs of numbers, got {lengths(weights.shape)}"
        )
    return make_costs.from_weights(code, weights, bitorder=bitorder)
