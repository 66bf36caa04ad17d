"""What coordinators and holders send each other, as bytes.

Bytes are what Ray sends fastest: an array costs 0.4 ms more a call. Numbers that float32 can hold
are sent as float32, which changes no bit of an answer.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh._index.filters import Filter
from bitweigh._results import Neighbours
from bitweigh.typing import Ids, Method, Metric

__all__ = ["Answer", "Question", "pack_answer", "pack_question", "unpack_answer", "unpack_question"]

_LENGTH = struct.Struct("<I")
_ANSWER = struct.Struct("<III")
_ARRAYS = ("costs", "radii", "rows", "candidates")


class Question(NamedTuple):
    """Queries for shards of a version.

    Which shards is sent beside it: that is all that differs between the holders that are asked.
    """

    version: int
    k: int
    share: int
    """How many neighbours to ask each shard for; at most k."""
    timeout: float | None
    """Seconds that are left; the holder's clock starts when the question arrives."""
    method: Method
    threads: int | None
    costs: NDArray[np.float64]
    """(nq, n_bits, 2); (nq, 0, 2) where vectors are compared."""
    radii: NDArray[np.float64] | None = None
    """(nq,) for a range search, which has no k."""
    limit: int | None = None
    filter: Filter | None = None
    rows: NDArray[np.float64] | None = None
    """(nq, n_features): the queries, where vectors are compared."""
    metric: Metric | None = None
    candidates: Ids | None = None
    """(nq, m): the ids to rank by their vectors, -1 for none."""


class Answer(NamedTuple):
    """The neighbours in the shards asked for, and how far each shard was searched."""

    found: Neighbours
    """The first k of all these shards, (nq, k') each."""
    last_distances: NDArray[np.float64]
    last_ids: Ids
    """The last row that each shard returned, (shards, nq); the id is -1 if it has no more rows."""


def pack_question(question: Question) -> bytes:
    """The question as bytes."""
    head: dict[str, Any] = question._asdict()
    parts = []
    for name in _ARRAYS:
        array = head.pop(name)
        if array is not None:
            sent = _narrowed(array)
            head[name] = [sent.dtype.str, *sent.shape]
            parts.append(sent)
    head.pop("filter")
    if question.filter is not None:
        allowed = question.filter._allowed
        head["filter"] = [allowed.named.dtype.str, len(allowed.named), allowed.deny]
        parts.append(np.ascontiguousarray(allowed.named))
    packed = json.dumps(head).encode()
    return b"".join([_LENGTH.pack(len(packed)), packed, *(part.tobytes() for part in parts)])


def unpack_question(raw: bytes, filters: FilterCache) -> Question:
    """The question in these bytes."""
    (length,) = _LENGTH.unpack_from(raw)
    at = _LENGTH.size + length
    head = json.loads(raw[_LENGTH.size : at])
    for name in _ARRAYS:
        if name in head:
            dtype, *shape = head[name]
            sent = np.frombuffer(raw, dtype, int(np.prod(shape)), at).reshape(shape)
            at += sent.nbytes
            head[name] = sent.astype(np.int64 if sent.dtype.kind == "i" else np.float64)
    if "filter" in head:
        dtype, count, deny = head["filter"]
        head["filter"] = filters.filter_of(raw[at:], dtype, count, deny)
    return Question(**head)


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, as float32 if that can hold its numbers."""
    if array.dtype == np.float64:
        with np.errstate(all="ignore"):  # what is too large for float32 stays as it is
            small = array.astype(np.float32)
        if np.array_equal(small, array):
            return np.ascontiguousarray(small)
    return np.ascontiguousarray(array)


def pack_answer(answer: Answer) -> bytes:
    """The answer as bytes."""
    nq, found = answer.found.ids.shape
    head = _ANSWER.pack(nq, found, len(answer.last_ids))
    arrays = (*answer.found, answer.last_distances, answer.last_ids)
    return b"".join([head, *(array.tobytes() for array in arrays)])


def unpack_answer(raw: bytes) -> Answer:
    """The answer in these bytes."""
    nq, found, shards = _ANSWER.unpack_from(raw)
    at = _ANSWER.size

    def next_array(dtype: type, rows: int, columns: int) -> NDArray[Any]:
        nonlocal at
        array: NDArray[Any] = np.frombuffer(raw, dtype, rows * columns, at)
        at += array.nbytes
        return array.reshape(rows, columns)

    distances = next_array(np.float64, nq, found)
    ids = next_array(np.int64, nq, found)
    last_distances = next_array(np.float64, shards, nq)
    last_ids = next_array(np.int64, shards, nq)
    return Answer(Neighbours(distances, ids), last_distances, last_ids)


class FilterCache:
    """The filters of the last questions: a filter that is kept is applied to the rows once."""

    def __init__(self, size: int = 16) -> None:
        """Keep at most so many."""
        self._size = size
        self._filters: dict[tuple[bytes, str, bool], Filter] = {}

    def filter_of(self, named: bytes, dtype: str, count: int, deny: bool) -> Filter:
        """The filter with these named ids or flags."""
        key = (named, dtype, deny)
        found = self._filters.pop(key, None)
        if found is None:
            array = np.frombuffer(named, dtype, count)
            found = Filter(deny=array) if deny else Filter(allow=array)
        self._filters[key] = found  # the newest is last
        while len(self._filters) > self._size:
            self._filters.pop(next(iter(self._filters)), None)
        return found
