"""From a request to an answer: prepared queries, groups that are searched together, hits.

A query is prepared on the event loop (shapes are checked there) and answered where there is time:
on the loop or in a thread. An answer is of one view of the index, and payloads are of that view's
change, too: those of an item that has changed since would show it, by its number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

import bitweigh
from bitweigh.cluster import IncompleteError, Missing, VersionGoneError
from bitweigh.errors import DeadlineError, LimitError, OverloadedError
from bitweigh.server.collection import Collection, View
from bitweigh.server.contents import Answer, Contents, costs_of_code
from bitweigh.server.payload_filters import Condition
from bitweigh.server.problems import Problem
from bitweigh.server.record import Reader
from bitweigh.server.schemas import Query

__all__ = [
    "Asked",
    "AskedRange",
    "Found",
    "Prepared",
    "answer",
    "answer_filtered",
    "answer_within",
    "as_id",
    "as_problem",
    "costs_of",
    "filter_of",
    "hits_of",
    "is_exact",
    "prepared",
    "stacked",
    "time_left",
]

_FORMS = ("vector", "costs", "code", "id", "key", "text")
_MAX_TRIES = 4
_LARGEST_ID = 2**63 - 1
# By whether bands were used.
_PLANS = {True: "probe", False: "scan", None: ""}


class Prepared(NamedTuple):
    """One query as an index takes it."""

    form: str
    """ "vector", "costs" or "id"."""
    value: Any
    weights: NDArray[np.float64] | None = None


class Asked(NamedTuple):
    """A search of one or more queries that are answered together."""

    queries: Sequence[Prepared]
    k: int
    payload: bool | tuple[str, ...]
    deadline: float
    """By time.monotonic()."""
    method: str
    condition: Condition | None
    partial: bool = False
    """Whether shards of a cluster that do not answer may be left out."""
    rerank_from: int | None = None
    """None for the index's default."""


class AskedRange(NamedTuple):
    """A search for all items within a radius."""

    query: Prepared
    radius: float
    limit: int
    payload: bool | tuple[str, ...]
    deadline: float
    condition: Condition | None


class Found(NamedTuple):
    """Hits of each query, as JSON objects, and how they came about."""

    hits: list[list[dict[str, Any]]]
    exact: bool
    seq: int
    engine_us: int
    rows: int = 0
    """Rows whose codes were looked at, of all queries that were answered together."""
    plan: str = ""
    """ "scan", "probe", "shards", or "" after ranking by vectors, which is not counted."""
    missing: tuple[Missing, ...] = ()
    """Shards of a cluster that were left out."""


def as_id(given: object, where: str) -> int:
    """An id from a number or a string of digits; raises Problem 422."""
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 20:
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _LARGEST_ID:
        raise Problem(
            422,
            "invalid-value",
            f"{where} must be an integer from 0 to 2^63 - 1, or one as a string, got {given!r:.60}",
        )
    return given


def prepared(query: Query, contents: Contents, where: str) -> Prepared:
    """Check a query and convert it; keys and texts must have been replaced before."""
    given = [form for form in _FORMS if getattr(query, form) is not None]
    if len(given) != 1:
        listed = ", ".join(given) if given else "none"
        raise _wrong(f"{where} must have exactly one of {', '.join(_FORMS)}, got {listed}")
    form = given[0]
    if query.weights is not None and form not in ("code", "id", "key"):
        raise _wrong(f"{where}.weights goes with code or id")
    if form == "vector":
        return Prepared("vector", contents.vector_of_query(query.vector, f"{where}.vector"))
    weights = None
    if query.weights is not None:
        weights = _numbers(query.weights, f"{where}.weights")
    if form == "id":
        return Prepared("id", as_id(query.id, f"{where}.id"), weights)
    try:
        if form == "costs":
            return Prepared("costs", _numbers(query.costs, f"{where}.costs"))
        assert query.code is not None
        code = contents.checked_code(query.code, f"{where}.code")
        n_bits, order = contents.code_bits(), contents.definition.bitorder
        return Prepared("costs", costs_of_code(code, weights, n_bits, order))
    except (ValueError, TypeError) as error:
        raise _wrong(str(error)) from error


def _numbers(given: object, where: str) -> NDArray[np.float64]:
    numbers = np.asarray(given, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise _wrong(f"{where} must be finite")
    return numbers


def answer(
    collection: Collection, asked: Sequence[Asked], reader: Reader | None, threads: int | None
) -> list[Found | Exception]:
    """Answer searches without conditions, those that are alike together, from one view."""
    for _ in range(_MAX_TRIES):
        view = collection.searchable()
        found, stale = _answered(collection, view, asked, reader, threads)
        if not stale:
            return found
    # Items change all the time: hold them still.
    with collection.pinned() as (pinned, view):
        found, _ = _answered(collection, collection.searchable(view), asked, pinned, threads)
    return found


def answer_filtered(collection: Collection, asked: Asked, threads: int | None) -> Found:
    """Answer a search with a condition: condition, index and payloads are of one change."""
    with collection.pinned() as (reader, view):
        view = collection.searchable(view)
        allowed = filter_of(collection, reader, view, asked.condition, asked.deadline)
        found, _ = _answered(collection, view, [asked], reader, threads, allowed)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def answer_within(collection: Collection, asked: AskedRange) -> Found:
    """Answer a range search: condition, index and payloads are of one change."""
    with collection.pinned() as (reader, view):
        costs, codes = costs_of(collection, view, asked.query)
        allowed = filter_of(collection, reader, view, asked.condition, asked.deadline)
        start = time.perf_counter_ns()
        found = codes.range_search(
            costs,
            asked.radius,
            limit=asked.limit,
            filter=allowed,
            timeout=time_left(asked.deadline),
        )
        engine_us = (time.perf_counter_ns() - start) // 1000
        ids = found.ids.tolist()
        hits = hits_of(found.distances.tolist(), ids, asked.payload, reader.payloads(ids))
        return Found([hits], is_exact(collection.contents, asked.query), view.seq, engine_us)


def filter_of(
    collection: Collection, reader: Reader, view: View, condition: Condition | None, deadline: float
) -> bitweigh.Filter | None:
    """The items that meet a condition, in the state of a view; None without a condition."""
    if condition is None:
        return None
    return collection.filters.of(reader, view.seq, condition, deadline)


def costs_of(
    collection: Collection, view: View, query: Prepared
) -> tuple[NDArray[Any], bitweigh.Index]:
    """The costs that a query is searched by, and the index of codes that takes them."""
    view = collection.searchable(view)
    assert view.codes is not None
    contents = collection.contents
    if query.form == "costs":
        return query.value, view.codes
    if query.form == "vector":
        return contents.costs_of(view.index, query.value), view.codes
    try:
        own = contents.costs_of_item(view.index, view.codes, query.value, query.weights)
    except KeyError as error:
        raise as_problem(error) from error
    return own, view.codes


def time_left(deadline: float) -> float:
    """Seconds until a deadline; raises DeadlineError if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise DeadlineError(0.0, -seconds)
    return seconds


def _answered(
    collection: Collection,
    view: View,
    asked: Sequence[Asked],
    reader: Reader | None,
    threads: int | None,
    allowed: bitweigh.Filter | None = None,
) -> tuple[list[Found | Exception], bool]:
    """What is found for each, and whether payloads were newer than the view."""
    start = time.perf_counter_ns()
    answers = _search(collection.contents, view, asked, threads, allowed)
    engine_us = (time.perf_counter_ns() - start) // 1000
    wants_rows = collection.has_keys or any(one.payload is not False for one in asked)
    rows: dict[int, tuple[int, str | None, str | None]] | None = None
    if wants_rows:
        ids = {
            int(id_)
            for answers_of in answers
            if not isinstance(answers_of, Exception)
            for answer_ in answers_of
            for id_ in answer_.ids.ravel()
            if id_ >= 0
        }
        if reader is None:
            with collection.reading() as own:
                rows = own.payloads(list(ids))
        else:
            rows = reader.payloads(list(ids))
        if any(id_ not in rows or rows[id_][0] > view.seq for id_ in ids):
            return [], True
    per_query = engine_us // max(1, sum(len(one.queries) for one in asked))
    found: list[Found | Exception] = []
    for one, answers_of in zip(asked, answers, strict=True):
        if isinstance(answers_of, Exception):
            found.append(answers_of)
            continue
        hits = [
            hits_of(found_.distances.tolist(), found_.ids.tolist(), one.payload, rows)
            for found_ in answers_of
        ]
        exact = all(is_exact(collection.contents, query) for query in one.queries)
        plan = _PLANS[_either(answer_.probed for answer_ in answers_of)]
        rows_seen = sum(answer_.rows for answer_ in answers_of)
        us = per_query * len(one.queries)
        found.append(Found(hits, exact, view.seq, us, rows_seen, plan))
    return found, False


def is_exact(contents: Contents, query: Prepared) -> bool:
    """Whether an answer is the nearest by code, and was not ranked again by vectors."""
    return query.form == "costs" or query.weights is not None or not contents.reranks


def _search(
    contents: Contents,
    view: View,
    asked: Sequence[Asked],
    threads: int | None,
    allowed: bitweigh.Filter | None,
) -> list[list[Answer] | Exception]:
    """Search each, those with the same form and options in one call."""
    unanswered = Answer(np.empty(0), np.empty(0, np.int64))
    answers: list[list[Answer] | Exception] = [[unanswered] * len(one.queries) for one in asked]
    groups: dict[tuple[str, int, str, int | None], list[tuple[int, int]]] = {}
    for number, one in enumerate(asked):
        for place, query in enumerate(one.queries):
            alike = (query.form, one.k, one.method, one.rerank_from)
            groups.setdefault(alike, []).append((number, place))
    for (form, k, method, rerank_from), places in groups.items():
        deadline = max(asked[number].deadline for number, _ in places)
        queries = [asked[number].queries[place] for number, place in places]
        try:
            timeout = time_left(deadline)
            options: dict[str, Any] = {"timeout": timeout, "threads": threads, "filter": allowed}
            if rerank_from is not None:
                options[contents.rerank_option] = rerank_from
            found = _search_alike(contents, view, form, k, method, queries, options)
        except Exception as error:
            if len({number for number, _ in places}) > 1:
                # One of several callers may be to blame: each by itself.
                return [_search(contents, view, [one], threads, allowed)[0] for one in asked]
            for number, _ in places:
                answers[number] = as_problem(error)
            continue
        for row, (number, place) in enumerate(places):
            answers_of = answers[number]
            if not isinstance(answers_of, Exception):
                seen = found.rows // len(places)
                answers_of[place] = Answer(found.distances[row], found.ids[row], seen, found.probed)
    return answers


def _search_alike(
    contents: Contents,
    view: View,
    form: str,
    k: int,
    method: str,
    queries: Sequence[Prepared],
    options: dict[str, Any],
) -> Answer:
    assert view.codes is not None
    if form == "vector":
        return contents.by_vectors(view.index, view.codes, stacked(queries), k, options)
    if form == "costs":
        options = {**options, "method": method}
        return contents.by_costs(view.codes, stacked(queries), k, options)
    found = [
        contents.by_id(view.index, view.codes, query.value, query.weights, k, options)
        for query in queries
    ]
    return Answer(
        np.concatenate([one.distances for one in found]),
        np.concatenate([one.ids for one in found]),
        sum(one.rows for one in found),
        _either(one.probed for one in found),
    )


def _either(probed: Iterable[bool | None]) -> bool | None:
    """Whether any of them used bands; None if that is known of none."""
    known = [one for one in probed if one is not None]
    return any(known) if known else None


def stacked(queries: Sequence[Prepared]) -> NDArray[Any]:
    """The values of queries of one form, one after the other."""
    if len(queries) == 1:
        alone: NDArray[Any] = queries[0].value[np.newaxis]
        return alone
    return np.stack([query.value for query in queries])


def as_problem(error: Exception) -> Exception:
    """What the library refuses, as a problem with its status."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, DeadlineError):
        return Problem(504, "deadline", "the request took longer than its timeout")
    if isinstance(error, LimitError):
        return Problem(422, "too-many-hits", str(error), query=error.query, limit=error.limit)
    if isinstance(error, IncompleteError):
        return Problem(
            503,
            "incomplete",
            f"some shards do not answer: {error}",
            headers={"retry-after": "3"},
            missing=[one._asdict() for one in error.missing],
        )
    if isinstance(error, OverloadedError):
        seconds = max(1, math.ceil(error.retry_after))
        return Problem(429, "too-many-searches", str(error), headers={"retry-after": str(seconds)})
    if isinstance(error, VersionGoneError):
        return Problem(503, "replaced", str(error), headers={"retry-after": "1"})
    if isinstance(error, KeyError):
        missing = error.args[0] if error.args else ""
        named = missing if isinstance(missing, str) else f"there is no item {missing}"
        return Problem(404, "no-such-item", named)
    if isinstance(error, ValueError | TypeError):
        return _wrong(str(error))
    return error


def hits_of(
    distances: Sequence[float],
    ids: Sequence[int],
    payload: bool | tuple[str, ...],
    rows: dict[int, tuple[int, str | None, str | None]] | None,
) -> list[dict[str, Any]]:
    """Hits as answers show them; `rows` have their keys and payloads, None if nobody wants them."""
    hits = []
    for distance, id_ in zip(distances, ids, strict=True):
        if id_ < 0:  # padding
            break
        hit: dict[str, Any] = {"id": id_, "distance": distance}
        if rows is not None:
            _, key, stored = rows[id_]
            if key is not None:
                hit["key"] = key
            if payload is not False:
                hit["payload"] = _chosen_fields(stored, payload)
        hits.append(hit)
    return hits


def _chosen_fields(payload: str | None, fields: bool | tuple[str, ...]) -> Any:  # noqa: ANN401
    """The wanted fields of a payload, as orjson takes them."""
    if payload is None:
        return None
    if fields is True:
        return orjson.Fragment(payload)
    assert not isinstance(fields, bool)
    whole = orjson.loads(payload)
    return {field: whole[field] for field in fields if field in whole}


def _wrong(detail: str) -> Problem:
    return Problem(422, "invalid-value", detail)
