"""Payload filters against a model of their meaning in Python."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from server_cases import ARROW, Api, arrow_stream, check_problem, code64

from bitweigh.errors import DeadlineError
from bitweigh.server import Limits, Settings, item_routes, search_routes
from bitweigh.server.payload_filters import Condition, condition_of

NAMES = [
    "a",
    "b",
    "it's",
    "back\\slash",
    "line\nbreak",
    "tab\t",
    "ä",
    "שם",
    "$",
    "a b",
    "[0]",
    "😀",
]
_MISSING = object()

# Integers that SQLite keeps as such: beyond 64 bits it rounds them to floats.
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
texts |= st.sampled_from(["1", "true", "null", "it's", '"', "שלום", "a", "aa", "\\u0000"])
numbers |= st.sampled_from([0, 1, -1, 1.0, 0.5, -0.0, 2**53, 2**53 + 1, float(2**53)])
scalars = st.none() | st.booleans() | numbers | texts
fields = st.sampled_from(NAMES)
inner = st.dictionaries(fields, scalars | st.lists(scalars, max_size=2), max_size=3)
payloads = st.none() | st.dictionaries(fields, scalars | inner, max_size=4)
paths = fields | st.tuples(fields, fields).map(".".join)
operators = st.one_of(
    scalars.map(lambda value: {"eq": value}),
    st.lists(scalars, max_size=3).map(lambda values: {"in": values}),
    st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), numbers | texts).map(
        lambda pair: {pair[0]: pair[1]}
    ),
    st.tuples(numbers, numbers).map(lambda pair: {"gte": pair[0], "lt": pair[1]}),
)
filters = st.recursive(
    st.dictionaries(paths, scalars | operators, max_size=2),
    lambda part: st.one_of(
        part.map(lambda one: {"not": one}),
        st.lists(part, max_size=3).map(lambda many: {"or": many}),
        st.lists(part, max_size=3).map(lambda many: {"and": many}),
    ),
    max_leaves=6,
)


def meets(payload: dict[str, Any] | None, condition: dict[str, Any]) -> bool:
    """Whether a payload meets a filter, by the documentation's words."""
    return all(_meets_part(payload, name, value) for name, value in condition.items())


def _meets_part(payload: dict[str, Any] | None, name: str, value: Any) -> bool:
    if name == "and":
        return all(meets(payload, part) for part in value)
    if name == "or":
        return any(meets(payload, part) for part in value)
    if name == "not":
        return not meets(payload, value)
    found: Any = payload
    for part in name.split("."):
        found = found.get(part, _MISSING) if isinstance(found, dict) else _MISSING
    if not isinstance(value, dict):
        return _equal(found, value)
    return all(_meets_operator(found, *pair) for pair in value.items())


def _meets_operator(found: Any, operator: str, value: Any) -> bool:
    if operator == "eq":
        return _equal(found, value)
    if operator == "in":
        return any(_equal(found, one) for one in value)
    if _kind(found) != _kind(value):
        return False
    return bool(
        {
            "gt": lambda: found > value,
            "gte": lambda: found >= value,
            "lt": lambda: found < value,
            "lte": lambda: found <= value,
        }[operator]()
    )


def _equal(found: Any, value: Any) -> bool:
    if value is None:
        return found is None or found is _MISSING
    return _kind(found) == _kind(value) and bool(found == value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with Api(tmp_path_factory.mktemp("served")) as found:
        found.create("codes", kind="codes", n_bits=8, indexes=["a", "it's", "a.b", "back\\slash"])
        yield found


@settings(max_examples=examples(400))
@given(st.lists(payloads, min_size=1, max_size=6), st.lists(filters, min_size=1, max_size=4))
def test_filters_mean_what_their_model_says(
    api: Api, stored: list[Any], conditions: list[dict[str, Any]]
) -> None:
    api.done("POST", "codes/items/remove", {"filter": {"not": {"or": []}}})
    api.upsert(
        "codes",
        [
            {"id": place, "code": code64([place]), "payload": payload}
            for place, payload in enumerate(stored)
        ],
    )
    for condition in conditions:
        wanted = [place for place, payload in enumerate(stored) if meets(payload, condition)]
        found = api.search("codes", code=code64([0]), k=10, filter=condition)["hits"]
        assert sorted(hit["id"] for hit in found) == wanted, condition


@pytest.mark.parametrize(
    ("payload", "condition", "is_met"),
    [
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": "10"}, {"a": {"gt": 9}}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, True),
        (None, {"a": None}, True),
        ({}, {"not": {"a": 1}}, True),
        ({}, {"a": {"lt": 1}}, False),
        ({}, {"not": {"a": {"lt": 1}}}, True),
        ({"a": {"b": 2}}, {"a.b": 2}, True),
        ({"a.b": 2}, {"a.b": 2}, False),
        ({"a": [2]}, {"a": 2}, False),
        ({"a": "שלום"}, {"a": {"in": ["x", "שלום"]}}, True),
        ({"a": "z"}, {"a": {"lt": "ä"}}, True),
        ({"a": 5}, {"and": [], "or": [{"a": 5}]}, True),
        ({"a": 5}, {"or": []}, False),
        ({"a": 5}, {}, True),
    ],
)
def test_a_filter_is_met(api: Api, payload: Any, condition: Any, is_met: bool) -> None:
    api.upsert("codes", [{"id": 999, "code": code64([0]), "payload": payload}])
    found = api.done("POST", "codes/range", {"code": code64([0]), "radius": 8, "filter": condition})
    assert (999 in [hit["id"] for hit in found["hits"]]) is is_met
    assert meets(payload, condition) is is_met


# Some hundred thousand steps of SQLite, which end.
LONG = (
    "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
    "SELECT count(*) FROM n)"
)
# As if the payloads of a record were too many to read.
ENDLESS = Condition(
    "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)", ()
)


@pytest.mark.parametrize("route", ["search", "range", "explain", "items"])
@pytest.mark.timeout(30)
def test_a_filter_that_reads_too_much_ends_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    limits = Limits(timeout_ms=200, max_timeout_ms=200)
    with Api(tmp_path, Settings(limits=limits)) as api:
        api.create("codes", kind="codes", n_bits=8)
        api.upsert("codes", [{"id": 1, "code": code64([0]), "payload": {"a": 1}}])
        collection = api.service.store["codes"]
        with collection.reading() as reader:
            pass
        with monkeypatch.context() as patched:
            patched.setattr(item_routes, "condition_of", lambda *_: ENDLESS)
            patched.setattr(search_routes, "condition_of", lambda *_: ENDLESS)
            asked = {"code": code64([0]), "filter": {"a": 1}, "timeout_ms": 1}
            if route == "items":
                answer = api.ask("GET", 'codes/items?filter={"a":1}')
            else:
                more = {"radius": 1} if route == "range" else {}
                answer = api.ask("POST", f"codes/{route}", {**asked, **more})
        check_problem(answer, 504, "took longer than its timeout")
        # The reader that was interrupted answers what comes next, however long that takes.
        assert collection._readers == [reader]
        assert [hit["id"] for hit in api.search("codes", code=code64([0]), filter={"a": 1})["hits"]]
        assert collection._readers == [reader]
        assert len(list(reader.matching(LONG, ()))) == 1


def test_a_large_record_is_not_read_to_its_end_after_the_deadline(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        api.create("codes", kind="codes", n_bits=8)
        fields = {f"field {number}": number for number in range(500)}
        payloads = [json.dumps({"row": row, **fields}) for row in range(3_000)]
        codes = pa.array([b"\0"] * 3_000, pa.binary(1))
        rows = pa.table({"id": range(3_000), "code": codes, "payload": payloads})
        api.done("PUT", "codes/items", content=arrow_stream(rows), headers=ARROW)
        slow = condition_of({"or": [{f"none {i}": 1} for i in range(31)]}, api.service.limits)
        with api.service.store["codes"].reading() as reader:
            looks = []
            reader._connection.create_function("looked", 0, lambda: looks.append(1) or 1)
            counted = (f"looked() AND {slow.sql}", slow.given)
            with pytest.raises(DeadlineError), reader.until(time.monotonic() + 0.001):
                list(reader.matching(*counted))
            assert len(looks) < 3_000
            looks.clear()
            assert list(reader.matching(*counted)) == []
            assert len(looks) == 3_000


def test_other_errors_of_sqlite_are_no_deadlines(api: Api) -> None:
    with (
        api.service.store["codes"].reading() as reader,
        pytest.raises(sqlite3.OperationalError),
        reader.until(time.monotonic() + 60),
    ):
        list(reader.matching("no_such_column", ()))
