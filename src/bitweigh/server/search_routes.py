"""Routes that search: search, range, explain."""

from __future__ import annotations

import time
from typing import Any

from bitweigh.server.asking import (
    Asked,
    AskedRange,
    Prepared,
    as_id,
    prepared,
)
from bitweigh.server.calls import Call, Reply, json_reply
from bitweigh.server.clusters import ClusterCollection
from bitweigh.server.explaining import AskedWhy, explained
from bitweigh.server.payload_filters import condition_of
from bitweigh.server.problems import Problem
from bitweigh.server.schemas import ExplainRequest, Query, RangeRequest, SearchRequest
from bitweigh.server.service import Searched, Service
from bitweigh.server.settings import Limits

__all__ = ["explain", "range_search", "search"]

_MAX_BINS = 1_000
_MAX_EXPLAINED = 100


async def search(service: Service, call: Call, collection: Searched) -> Reply:
    """``POST /v1/collections/{c}/search``."""
    limits = service.limits
    request = await call.json(SearchRequest, limits.body_bytes, limits.slow_seconds)
    if not 1 <= request.k <= limits.k:
        raise _wrong(f"k must be from 1 to {limits.k}, got {request.k}", "limit")
    deadline = deadline_of(service, request.timeout_ms)
    several = request.queries is not None
    if request.queries is not None:
        if not 1 <= len(request.queries) <= limits.queries:
            raise _wrong(
                f"queries must be 1 to {limits.queries}, got {len(request.queries)}", "limit"
            )
        if _has_query(request):
            raise _wrong("a request must have a query of its own or queries, not both")
        queries: list[Query] = request.queries
    else:
        queries = [request]
    ready = await prepared_queries(service, collection, queries, several)
    if request.rerank_from is not None:
        _check_rerank_from(request.rerank_from, request.k, ready, collection, limits)
    asked = Asked(
        ready,
        request.k,
        chosen_payload(request.payload),
        deadline,
        request.method,
        None if request.filter is None else condition_of(request.filter, limits),
        request.partial,
        request.rerank_from,
    )
    found = await service.search(collection, asked)
    if call.ids_as_strings:
        for hits in found.hits:
            for hit in hits:
                hit["id"] = str(hit["id"])
    took_us = int(1e6 * (time.perf_counter() - call.started))
    call.log = {"k": request.k, "engine_us": found.engine_us, "rows": found.rows}
    answer: dict[str, Any] = {"results": found.hits} if several else {"hits": found.hits[0]}
    answer.update(
        exact=found.exact,
        complete=not found.missing,
        seq=found.seq,
        took_us=took_us,
        engine_us=found.engine_us,
        plan=found.plan,
    )
    if found.missing:
        answer["missing"] = [one._asdict() for one in found.missing]
    return json_reply(answer)


def _check_rerank_from(
    rerank_from: int, k: int, queries: list[Prepared], collection: Searched, limits: Limits
) -> None:
    if not collection.contents.reranks:
        raise _wrong(
            "rerank_from needs a collection that keeps vectors, created with rerank= or rescore="
        )
    if not k <= rerank_from <= limits.rerank_from:
        raise _wrong(
            f"rerank_from must be from k, {k}, to {limits.rerank_from}, got {rerank_from}", "limit"
        )
    if any(query.form == "costs" or query.weights is not None for query in queries):
        raise _wrong("rerank_from goes with vectors, texts and items without weights")


def _has_query(request: Query) -> bool:
    forms = (request.vector, request.costs, request.code, request.id, request.key, request.text)
    return any(form is not None for form in forms)


def chosen_payload(given: bool | list[str]) -> bool | tuple[str, ...]:
    """Which fields of payloads are wanted, as something that cannot change."""
    return given if isinstance(given, bool) else tuple(given)


def deadline_of(service: Service, timeout_ms: int | None) -> float:
    """When a request must be answered, by time.monotonic()."""
    limits = service.limits
    if timeout_ms is None:
        timeout_ms = limits.timeout_ms
    if not 1 <= timeout_ms <= limits.max_timeout_ms:
        raise _wrong(
            f"timeout_ms must be from 1 to {limits.max_timeout_ms}, got {timeout_ms}", "limit"
        )
    return time.monotonic() + timeout_ms / 1000


async def prepared_queries(
    service: Service, collection: Searched, queries: list[Query], several: bool
) -> list[Prepared]:
    """Queries as an index takes them; texts are embedded, keys looked up."""
    texts = [query.text for query in queries if query.text is not None]
    if texts:
        vectors = iter((await service.embedded(texts)).tolist())
        for query in queries:
            if query.text is not None and query.vector is None:
                query.text, query.vector = None, next(vectors)
    keys = [query.key for query in queries if query.key is not None]
    if keys:
        known = await service.in_thread(collection.ids_of, keys)
        for query in queries:
            if query.key is not None and query.id is None:
                if query.key not in known:
                    raise Problem(404, "no-such-item", f"there is no item {query.key!r:.100}")
                query.id, query.key = known[query.key], None
    contents = collection.contents
    if not several:
        return [prepared(queries[0], contents, "query")]
    return [prepared(query, contents, f"queries[{place}]") for place, query in enumerate(queries)]


async def range_search(service: Service, call: Call, collection: Searched) -> Reply:
    """``POST /v1/collections/{c}/range``."""
    limits = service.limits
    request = await call.json(RangeRequest, limits.body_bytes, limits.slow_seconds)
    limit = limits.range_hits if request.limit is None else request.limit
    if not 1 <= limit <= limits.range_hits:
        raise _wrong(f"limit must be from 1 to {limits.range_hits}, got {limit}", "limit")
    deadline = deadline_of(service, request.timeout_ms)
    (query,) = await prepared_queries(service, collection, [request], several=False)
    condition = None if request.filter is None else condition_of(request.filter, limits)
    payload = chosen_payload(request.payload)

    found = await service.within(
        collection, AskedRange(query, request.radius, limit, payload, deadline, condition)
    )
    (hits,) = found.hits
    if call.ids_as_strings:
        for hit in hits:
            hit["id"] = str(hit["id"])
    took_us = int(1e6 * (time.perf_counter() - call.started))
    call.log = {"engine_us": found.engine_us, "hits": len(hits)}
    return json_reply(
        {
            "hits": hits,
            "exact": found.exact,
            "complete": True,
            "seq": found.seq,
            "took_us": took_us,
            "engine_us": found.engine_us,
        }
    )


async def explain(service: Service, call: Call, collection: Searched) -> Reply:
    """``POST /v1/collections/{c}/explain``."""
    limits = service.limits
    request = await call.json(ExplainRequest, limits.body_bytes, limits.slow_seconds)
    if not 1 <= request.k <= min(_MAX_EXPLAINED, limits.k):
        raise _wrong(
            f"k must be from 1 to {min(_MAX_EXPLAINED, limits.k)}, got {request.k}", "limit"
        )
    if not 0 <= request.bins <= _MAX_BINS:
        raise _wrong(f"bins must be from 0 to {_MAX_BINS}, got {request.bins}", "limit")
    if request.ids is not None and len(request.ids) > _MAX_EXPLAINED:
        raise _wrong(f"ids must be at most {_MAX_EXPLAINED}, got {len(request.ids)}", "limit")
    others = [as_id(id_, "ids") for id_ in request.ids or []]
    timeout_ms = limits.max_timeout_ms if request.timeout_ms is None else request.timeout_ms
    deadline = deadline_of(service, timeout_ms)
    (query,) = await prepared_queries(service, collection, [request], several=False)
    condition = None if request.filter is None else condition_of(request.filter, limits)
    payload = chosen_payload(request.payload)

    asked = AskedWhy(query, request.k, others, request.bins, payload, condition, deadline)
    if isinstance(collection, ClusterCollection):
        answer = await service.in_thread(collection.explained, asked, pool=collection.pool)
    else:
        answer = await service.in_thread(explained, collection, asked)
    if call.ids_as_strings:
        for hit in answer["hits"]:
            hit["id"] = str(hit["id"])
    answer["complete"] = True
    answer["took_us"] = int(1e6 * (time.perf_counter() - call.started))
    return json_reply(answer)


def _wrong(detail: str, name: str = "invalid-value") -> Problem:
    return Problem(422, name, detail)
