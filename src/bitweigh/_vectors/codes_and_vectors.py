"""Codes and the vectors that belong to them: what `VectorIndex` and `BinaryEmbeddings` share.

The state of both is a dataclass that is never changed, with an index of codes and the vectors that
belong to them.
"""

from __future__ import annotations

from dataclasses import Field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bitweigh._checks import as_choice, as_integer, check_distinct, id_in_use_error
from bitweigh._storage import Source
from bitweigh._vectors.store import Vectors
from bitweigh.index import Index
from bitweigh.typing import By, Ids

__all__ = [
    "AnyState",
    "MappedFrom",
    "StateWithVectors",
    "added_attributes",
    "check_ids",
    "copied",
    "kept_vectors",
    "n_candidates",
    "ranks_by_vectors",
    "refuse_k_alone",
    "with_bands",
    "with_note",
]


class StateWithVectors(Protocol):
    """A dataclass that is never changed, whose vectors belong to the codes of its index."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def index(self) -> Index:
        """The codes."""

    @property
    def vectors(self) -> Vectors | None:
        """The kept vectors."""


AnyState = TypeVar("AnyState", bound=StateWithVectors)


class MappedFrom(NamedTuple):
    """The folder that a state was mapped from."""

    files: Source
    state: StateWithVectors

    def copied(self, state: StateWithVectors, copied_state: StateWithVectors) -> MappedFrom:
        """The same for a copy of an index, which has `copied_state` in place of `state`."""
        if state is self.state:
            return self._replace(state=copied_state)
        if state.vectors is not self.state.vectors:
            return self
        # The vectors of the copy are still those of the folder.
        return self._replace(state=replace(self.state, vectors=copied_state.vectors))


def copied(state: AnyState) -> AnyState:
    """A state for another index, which may be changed without changing this one."""
    vectors = None if state.vectors is None else state.vectors.shared()
    return replace(state, index=state.index.copy(), vectors=vectors)


def added_attributes(index: object, base_attributes: frozenset[str]) -> dict[str, Any]:
    """Attributes of an object that a derived class has added."""
    return {name: value for name, value in vars(index).items() if name not in base_attributes}


def check_ids(
    index: Index, ids: Ids, n_rows: int, expected: Literal["unused", "used", "any"], what: str
) -> None:
    """Raise unless these can be the ids of `n_rows` rows to add or to replace.

    ValueError for an id that must be unused and is not, KeyError for one that must be used. `what`
    is the name of a row, such as "vector".
    """
    if len(ids) != n_rows:
        raise ValueError(f"ids must have shape ({n_rows},), one for each {what}, got {ids.shape}")
    check_distinct(ids)
    used = index.contains(ids)
    if expected == "unused" and used.any():
        raise id_in_use_error(ids, used, what)
    if expected == "used" and not used.all():
        raise KeyError(int(ids[np.argmin(used)]))


def kept_vectors(state: StateWithVectors, ids: Ids, option: str) -> NDArray[Any]:
    """The vectors of these ids as they are kept, (n, width); KeyError for the first unknown id.

    `option` is the argument that makes an index keep vectors.
    """
    if state.vectors is None:
        raise ValueError(f"only an index created with {option}= keeps vectors")
    found = state.index.contains(ids)
    if not found.all():
        raise KeyError(int(ids[np.argmin(found)]))
    return state.vectors.of(ids)


def ranks_by_vectors(state: StateWithVectors, by: object, option: str) -> bool:
    """Whether the argument `by` asks for distances of vectors, which are the default."""
    if by is not None:
        as_choice(by, "by", get_args(By))
    if by == "vectors" and state.vectors is None:
        raise ValueError(f"by='vectors' needs an index that keeps vectors, created with {option}=")
    return state.vectors is not None and by != "codes"


def n_candidates(
    state: StateWithVectors,
    k: int,
    wanted: object,
    option: str,
    extra: int = 0,
    rows: int | None = None,
) -> int:
    """The number of best codes to rank by their vectors, for the k best; 0 without vectors.

    `wanted` is the argument ``{option}_from``, at least k. `extra` more are found: rows that are
    searched for themselves, and left out of the answer. `rows` is the number of all rows, if the
    state is only like theirs.
    """
    name = f"{option}_from"
    if state.vectors is None:
        if wanted is not None:
            raise ValueError(f"{name} needs an index that keeps vectors, created with {option}=")
        return 0
    if wanted is None:
        number = max(10 * (k + extra), 100)
    else:
        number = as_integer(wanted, name, k, 2**32 - extra) + extra
    return max(1, min(number, len(state.index) if rows is None else rows))


def refuse_k_alone(sample_queries: object | None, k: object | None) -> None:
    """Raise ValueError for a `k` of `build` without the queries that it belongs to."""
    if sample_queries is None and k is not None:
        raise ValueError("k goes with sample_queries")


def with_bands(state: AnyState, before: Index, built: Index) -> AnyState:
    """The state with the bands of `built`, a copy of the index `before`; itself if it has them."""
    codes = state.index._state.with_rebuilt(before._state, built._state)
    if codes is state.index._state:
        return state
    index = state.index.copy()
    index._state = codes
    return replace(state, index=index)


def with_note(state: AnyState, note: str) -> AnyState:
    """The state with another note."""
    index = state.index.copy()
    index._note = note
    return replace(state, index=index)
