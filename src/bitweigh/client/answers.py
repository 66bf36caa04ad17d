"""What the methods of clients return: answers of the server as arrays and tuples."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bitweigh._results import RangeResult, SearchResult
from bitweigh.typing import Codes, Floats, Ids

__all__ = [
    "CollectionFacts",
    "Hits",
    "ImportReport",
    "Item",
    "MissingShard",
    "RangeHits",
    "RowError",
    "Snapshot",
    "Written",
    "item_of",
]


class Written(NamedTuple):
    """A change that is on the server's disk, and that every later search sees."""

    seq: int
    """Its number; of several batches, that of the last."""
    n_items: int
    """Items that were written, or that were there and are removed."""
    ids: Ids
    """Of items added by key, the ids that they have; else empty."""


class Item(NamedTuple):
    """An item as it is stored."""

    id: int
    seq: int
    """The change that wrote it."""
    key: str | None
    payload: dict[str, Any] | None
    vector: Floats | None
    """float32 (dim,), if values were asked for and the collection keeps vectors."""
    code: Codes | None
    """uint8 (n_bytes,), if values were asked for and the collection keeps codes."""


class CollectionFacts(NamedTuple):
    """A collection in the list of all of them."""

    name: str
    kind: str
    items: int
    seq: int
    cluster: bool = False
    """Whether its rows are in shards elsewhere, and only read."""


class Snapshot(NamedTuple):
    """A snapshot that the server keeps."""

    name: str
    bytes: int
    seq: int
    """The last change that it has."""


class MissingShard(NamedTuple):
    """A shard of a cluster that has not answered."""

    shard: int
    rows: int
    reason: str


class RowError(NamedTuple):
    """A row of a file that could not become an item."""

    row: int
    detail: str


class ImportReport(NamedTuple):
    """What came of an import."""

    rows: int
    """Rows of the file."""
    written: int
    failed: int
    errors: list[RowError]
    """The first hundred rows that failed, and why."""
    seconds: float
    state: str
    """ "done", or "cancelled" if somebody ended it, or the server stopped."""


class _Answered:
    """What both kinds of answers say about themselves."""

    exact: bool
    """Whether these are the nearest by code, certainly; False if vectors ranked the best again."""
    complete: bool
    """Whether all shards answered."""
    missing: list[MissingShard]
    """Those that did not, which only `partial=True` allows."""
    seq: int
    """The last change that the answer has seen; of several requests, the earliest."""
    took_us: int
    """Microseconds in the server."""
    engine_us: int
    """Microseconds of these in the search itself."""
    payloads: list[Any]
    """Payloads as asked for, None without; a list for each query, or one for a single query."""
    keys: list[Any]
    """Keys, None for items without; in lists like `payloads`."""

    def _describe(self, answers: Sequence[dict[str, Any]]) -> None:
        self.exact = all(answer["exact"] for answer in answers)
        self.complete = all(answer["complete"] for answer in answers)
        missing = {MissingShard(**one) for each in answers for one in each.get("missing", ())}
        self.missing = sorted(missing)
        self.seq = min((answer["seq"] for answer in answers), default=0)
        self.took_us = sum(answer["took_us"] for answer in answers)
        self.engine_us = sum(answer["engine_us"] for answer in answers)


class Hits(_Answered, SearchResult):
    """The k nearest items, nearest first; equal distances in ascending id.

    A pair, ``distances, ids = collection.search(...)``, like the library's `SearchResult`: float64
    (nq, k) and int64 (nq, k), or ``(k,)`` for a single query, padded with +inf and -1. `payloads`
    and `keys` are not padded.
    """

    @classmethod
    def of(cls, answers: Sequence[dict[str, Any]], k: int, *, single: bool) -> Self:
        """Join the answers of one or more requests."""
        found = [hits for answer in answers for hits in answer.get("results") or [answer["hits"]]]
        distances = np.full((len(found), k), np.inf)
        ids = np.full((len(found), k), -1, np.int64)
        for row, hits in enumerate(found):
            distances[row, : len(hits)] = [hit["distance"] for hit in hits]
            ids[row, : len(hits)] = [hit["id"] for hit in hits]
        payloads = [[hit.get("payload") for hit in hits] for hits in found]
        keys = [[hit.get("key") for hit in hits] for hits in found]
        if single:
            made = cls(distances[0], ids[0])
            made.payloads, made.keys = payloads[0], keys[0]
        else:
            made = cls(distances, ids)
            made.payloads, made.keys = payloads, keys
        made._describe(answers)
        return made


class RangeHits(_Answered, RangeResult):
    """All items within a radius, nearest first; equal distances in ascending id.

    A triple like the library's `RangeResult`: ``lims`` int64 (2,), ``distances`` float64 and
    ``ids`` int64, both (lims[1],).
    """

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        """Take the answer of one request."""
        hits = answer["hits"]
        made = cls(
            np.array([0, len(hits)], np.int64),
            np.array([hit["distance"] for hit in hits], np.float64),
            np.array([hit["id"] for hit in hits], np.int64),
        )
        made.payloads = [hit.get("payload") for hit in hits]
        made.keys = [hit.get("key") for hit in hits]
        made._describe([answer])
        return made


def item_of(given: dict[str, Any]) -> Item:
    """An item from JSON."""
    vector, code = given.get("vector"), given.get("code")
    return Item(
        given["id"],
        given["seq"],
        given.get("key"),
        given.get("payload"),
        None if vector is None else np.array(vector, np.float32),
        None if code is None else np.frombuffer(base64.b64decode(code), np.uint8),
    )
