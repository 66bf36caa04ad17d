"""What requests and answers look like: msgspec structs, from which the OpenAPI file is made too."""

from __future__ import annotations

from typing import Any

import msgspec

from bitweigh.typing import Method

__all__ = [
    "ExplainRequest",
    "GetRequest",
    "Hit",
    "ItemIn",
    "Missing",
    "Query",
    "RangeRequest",
    "RemoveRequest",
    "RestoreRequest",
    "SearchAnswer",
    "SearchRequest",
    "UpsertRequest",
]


class Query(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A query: exactly one of vector, costs, code, id, key and text."""

    vector: list[float] | None = None
    """As many numbers as the collection has dimensions, or bits."""
    costs: list[tuple[float, float]] | None = None
    """What a code pays for each of its bits, if it is 0 and if it is 1."""
    code: str | None = None
    """A packed code as base64."""
    weights: list[float] | None = None
    """With `code` or `id`: what each bit that differs costs; 1 by default."""
    id: int | str | None = None
    """An item of the collection, for others like it."""
    key: str | None = None
    """The same by its key."""
    text: str | None = None
    """Needs an embedder, which the operator of the server names."""


class _Search(Query, kw_only=True):
    filter: dict[str, Any] | None = None
    """Conditions that payloads must meet."""
    payload: bool | list[str] = False
    """Whether hits have their payload, or which fields of it."""
    timeout_ms: int | None = None


class SearchRequest(_Search, kw_only=True):
    """A search, of one query or of `queries`."""

    k: int = 10
    queries: list[Query] | None = None
    method: Method = "auto"
    partial: bool = False
    """Of a cluster: whether shards that do not answer may be left out; `missing` names them."""
    rerank_from: int | None = None
    """How many of the nearest by code are ranked again by vectors; by default max(10 k, 100)."""


class RangeRequest(_Search, kw_only=True):
    """All items within a distance."""

    radius: float
    limit: int | None = None
    """The most that may be found; more is an error and not a cut."""


class ExplainRequest(_Search, kw_only=True):
    """What a search does, and what each bit of its hits pays."""

    k: int = 10
    ids: list[int | str] | None = None
    """Items to explain beside the hits."""
    bins: int = 64
    """Max number of bins in the histogram of all distances; 0 for no histogram."""


class ItemIn(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An item to write: by id or by key, with a vector or a code."""

    id: int | str | None = None
    key: str | None = None
    vector: list[float] | None = None
    code: str | None = None
    payload: dict[str, Any] | None = None


class UpsertRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Items to write, all or none."""

    items: list[ItemIn]


class RemoveRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Items to remove: by ids and keys, or by a filter."""

    ids: list[int | str] | None = None
    keys: list[str] | None = None
    filter: dict[str, Any] | None = None


class GetRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Items to return, by ids and keys."""

    ids: list[int | str] | None = None
    keys: list[str] | None = None
    values: bool = False
    """Whether items come with their code or vector."""


class RestoreRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A snapshot to restore, by name."""

    snapshot: str


class Written(msgspec.Struct):
    """A change that is on the disk."""

    seq: int
    count: int
    """Items that were written, or that were there and are removed."""


class Hit(msgspec.Struct, omit_defaults=True):
    """An item that was found."""

    id: int | str
    distance: float
    key: str | None = None
    payload: dict[str, Any] | None = None


class Missing(msgspec.Struct):
    """A shard of a cluster that has not answered."""

    shard: int
    rows: int
    reason: str


class SearchAnswer(msgspec.Struct, omit_defaults=True):
    """An answer to one query: `hits`; or to several: `results`, a list of hits for each."""

    exact: bool
    """Whether these are the nearest by code, certainly; a reranked answer says no."""
    complete: bool
    """Whether everything was searched; false only with `partial`."""
    seq: int
    """The last change that the answer has seen; of a cluster, its version."""
    took_us: int
    """Microseconds from the request to the answer."""
    engine_us: int
    """Microseconds of these in the index, to compute costs and to search; of requests that are
    searched together, the share of this one's queries."""
    hits: list[Hit] | None = None
    results: list[list[Hit]] | None = None
    plan: str | None = None
    missing: list[Missing] | None = None
    """The shards that were left out, if the answer is not complete."""


class ItemOut(msgspec.Struct, omit_defaults=True):
    """An item as it is stored."""

    id: int | str
    seq: int
    key: str | None = None
    payload: dict[str, Any] | None = None
    vector: list[float] | None = None
    code: str | None = None
