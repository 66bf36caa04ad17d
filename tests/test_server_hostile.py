"""Wrong requests: each gets a status and a reason, none a 500, and none hurts what there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from server_cases import ARROW, Api, check_problem, code64, small_api, unharmed

from bitweigh.server import calls

JSON = {"content-type": "application/json"}
SEARCH = "codes/search"
ITEMS = "codes/items"
CODE = code64([1, 0])
DEEP_FILTER: dict[str, Any] = {"a": 1}
for _ in range(20):
    DEEP_FILTER = {"not": DEEP_FILTER}


def item(**fields: Any) -> dict[str, Any]:
    return {"items": [{"code": CODE, **fields}]}


def query(**fields: Any) -> dict[str, Any]:
    return {"code": CODE, **fields}


# Method, path below /v1/collections/, body as JSON, status, and what the reason says.
WRONG: list[tuple[str, str, Any, int, str]] = [
    ("PUT", ITEMS, item(id=-1), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(id=1.5), 422, "Expected `int | str | null`"),
    ("PUT", ITEMS, item(id=True), 422, "Expected `int | str | null`"),
    ("PUT", ITEMS, item(id=2**63), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(id=10**400), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(id="abc"), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(id="\uff11\uff12"), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(id="9" * 30), 422, "from 0 to 2^63 - 1"),
    ("PUT", ITEMS, item(), 422, "either an id or a key"),
    ("PUT", ITEMS, item(id=1, key="a"), 422, "either an id or a key"),
    ("PUT", ITEMS, item(key=""), 422, "1 to 512 characters"),
    ("PUT", ITEMS, item(key="x" * 513), 422, "1 to 512 characters"),
    ("PUT", ITEMS, item(id=1, colour="red"), 422, "unknown field"),
    ("PUT", ITEMS, item(id=1, payload=[1]), 422, "Expected `object | null`"),
    ("PUT", ITEMS, item(id=1, payload={"t": "x" * (1 << 20)}), 422, "at most 1048576 bytes"),
    ("PUT", ITEMS, item(id=1, payload={"n": 10**30}), 422, "64-bit"),
    ("PUT", ITEMS, item(id=1, payload={"t": "a\0b"}), 422, "U+0000"),
    ("PUT", ITEMS, item(id=1, code="A"), 422, "base64"),
    ("PUT", ITEMS, item(id=1, code="AA=A"), 422, "base64"),
    ("PUT", ITEMS, item(id=1, code="äöü="), 422, "base64"),
    ("PUT", ITEMS, item(id=1, code=code64([1])), 422, "must be 2 bytes (12 bits), got 1"),
    ("PUT", ITEMS, item(id=1, code=code64([0, 1])), 422, "unused bits"),
    ("PUT", ITEMS, item(id=1, vector=[1.0] * 12), 422, "must have a code, and no vector"),
    ("PUT", ITEMS, {"items": [{"id": 1, "code": CODE}] * 2}, 422, "is there twice"),
    ("PUT", ITEMS, {"items": [{"id": 1}]}, 422, "must have a code"),
    ("PUT", ITEMS, {"items": {}}, 422, "Expected `array`"),
    ("PUT", ITEMS, {}, 422, "missing required field"),
    ("PUT", ITEMS, [], 422, "Expected `object`"),
    ("PUT", "emb/items", item(id=1, code=CODE, vector=[1.0] * 8), 422, "either a vector or a code"),
    ("PUT", "emb/items", {"items": [{"id": 1, "vector": [1.0] * 7}]}, 422, "must have 8 numbers"),
    ("PUT", "emb/items", {"items": [{"id": 1, "vector": [1e39] * 8}]}, 422, "fit in float32"),
    ("PUT", "emb/items", {"items": [{"id": 1, "vector": ["1"] * 8}]}, 422, "Expected `float`"),
    ("PUT", "vec/items", item(id=1), 422, "must have a vector, and no code"),
    ("POST", SEARCH, {}, 422, "exactly one of"),
    ("POST", SEARCH, query(id=1), 422, "exactly one of"),
    ("POST", SEARCH, query(k=0), 422, "k must be from 1 to 1000, got 0"),
    ("POST", SEARCH, query(k=-5), 422, "k must be from 1"),
    ("POST", SEARCH, query(k=10**9), 422, "k must be from 1 to 1000"),
    ("POST", SEARCH, query(k=10**30), 422, "k must be from 1 to 1000"),
    ("POST", SEARCH, query(k="ten"), 422, "Expected `int`"),
    ("POST", SEARCH, query(k=True), 422, "Expected `int`"),
    ("POST", SEARCH, query(k=1.5), 422, "Expected `int`"),
    ("POST", SEARCH, query(kk=1), 422, "unknown field"),
    ("POST", SEARCH, query(code=code64([0, 1])), 422, "unused bits"),
    ("POST", SEARCH, query(code="!"), 422, "base64"),
    ("POST", SEARCH, query(weights=[1.0]), 422, "weights"),
    ("POST", SEARCH, {"vector": [1.0] * 12, "weights": [1.0] * 12}, 422, "goes with code or id"),
    ("POST", SEARCH, {"vector": [1.0] * 11}, 422, "must have 12 numbers"),
    ("POST", SEARCH, {"vector": []}, 422, "must have 12 numbers"),
    ("POST", SEARCH, {"costs": []}, 422, "costs"),
    ("POST", SEARCH, {"costs": [[0, 1]] * 11}, 422, "costs"),
    ("POST", SEARCH, {"costs": [[0, 1, 2]] * 12}, 422, "Expected `array` of length 2"),
    ("POST", SEARCH, {"costs": [[0, 1e308]] * 12}, 422, "costs"),
    ("POST", SEARCH, {"id": 404}, 404, "404"),
    ("POST", SEARCH, {"id": -1}, 422, "from 0 to 2^63 - 1"),
    ("POST", SEARCH, {"key": "nobody"}, 404, "there is no item 'nobody'"),
    ("POST", SEARCH, {"text": "hello"}, 422, "no embedder"),
    ("POST", SEARCH, {"queries": []}, 422, "queries must be 1 to 1024, got 0"),
    ("POST", SEARCH, {"queries": [{"id": 1}] * 1025}, 422, "queries must be 1 to 1024"),
    ("POST", SEARCH, {"queries": [{"id": 1}], "id": 1}, 422, "not both"),
    ("POST", SEARCH, {"queries": [{"id": 1}, {}]}, 422, "queries[1] must have exactly one"),
    ("POST", SEARCH, {"queries": [{"id": 1, "k": 3}]}, 422, "unknown field"),
    ("POST", SEARCH, query(timeout_ms=0), 422, "timeout_ms must be from 1"),
    ("POST", SEARCH, query(timeout_ms=10**6), 422, "timeout_ms must be from 1 to 30000"),
    ("POST", SEARCH, query(method="guess"), 422, "Invalid enum value"),
    ("POST", SEARCH, query(payload="yes"), 422, "Expected `bool | array`"),
    ("POST", SEARCH, query(filter=[]), 422, "Expected `object | null`"),
    ("POST", SEARCH, query(filter=DEEP_FILTER), 422, "at most 8 deep"),
    ("POST", SEARCH, query(filter={"a": {"in": [1] * 33}}), 422, "at most 32 conditions"),
    ("POST", SEARCH, query(filter={"or": [{}] * 5000}), 422, "at most 32 conditions"),
    ("POST", SEARCH, query(filter={"and": [{"or": []}] * 5000}), 422, "at most 32 conditions"),
    (
        "POST",
        SEARCH,
        query(filter={f"f{n}": {"in": []} for n in range(2000)}),
        422,
        "at most 32 conditions",
    ),
    ("POST", SEARCH, query(filter={"a": {"like": "x"}}), 422, "got 'like'"),
    ("POST", SEARCH, query(filter={"a": {}}), 422, "must have one of eq, in"),
    ("POST", SEARCH, query(filter={"a": {"gt": None}}), 422, "a string or a number, got null"),
    ("POST", SEARCH, query(filter={"a": {"gt": True}}), 422, "got a boolean"),
    ("POST", SEARCH, query(filter={"a": [1]}), 422, "got a list"),
    ("POST", SEARCH, query(filter={"a": 2**64}), 422, "64 bits"),
    ("POST", SEARCH, query(filter={"a": "x\0"}), 422, "U+0000"),
    ("POST", SEARCH, query(filter={"a..b": 1}), 422, "joined by dots"),
    ("POST", SEARCH, query(filter={"": 1}), 422, "joined by dots"),
    ("POST", SEARCH, query(filter={'a"b': 1}), 422, "without quotes"),
    ("POST", SEARCH, query(filter={"a" * 300: 1}), 422, "joined by dots"),
    ("POST", SEARCH, query(filter={"or": {"a": 1}}), 422, "list of filters"),
    ("POST", SEARCH, query(filter={"not": [1]}), 422, "must be an object"),
    ("POST", "nowhere/search", query(), 404, "no collection 'nowhere'"),
    ("POST", "vec/search", query(), 422, "not for collections of kind 'vectors'"),
    ("POST", "codes/range", query(), 422, "missing required field `radius`"),
    ("POST", "codes/range", query(radius=12, limit=3), 422, "limit"),
    ("POST", "codes/range", query(radius=1, limit=10**9), 422, "limit must be from 1"),
    ("POST", "codes/range", query(radius="far"), 422, "Expected `float`"),
    ("POST", "codes/range", query(radius=1, timeout_ms=-1), 422, "timeout_ms"),
    ("POST", "codes/range", {"costs": [[0, 1]], "radius": 1}, 422, "costs"),
    ("POST", "codes/explain", query(k=101), 422, "k must be from 1 to 100"),
    ("POST", "codes/explain", query(bins=-1), 422, "bins must be"),
    ("POST", "codes/explain", query(bins=10**7), 422, "bins must be"),
    ("POST", "codes/explain", query(timeout_ms=0), 422, "timeout_ms"),
    ("POST", "codes/explain", query(ids=[1] * 101), 422, "ids must be at most 100"),
    ("POST", "codes/explain", query(ids=[404]), 404, "404"),
    ("POST", "codes/explain", query(ids=["x"]), 422, "ids must be an integer"),
    ("POST", "codes/items/remove", {}, 422, "ids and keys, or a filter"),
    ("POST", "codes/items/remove", {"ids": [1], "filter": {"a": 1}}, 422, "or a filter"),
    ("POST", "codes/items/remove", {"filter": {}}, 422, "would remove everything"),
    ("POST", "codes/items/remove", {"filter": {"a\0": {"lt": []}}}, 422, "got a list"),
    ("POST", "codes/items/remove", {"ids": ["x"]}, 422, "ids must be an integer"),
    ("POST", "codes/items/get", {"ids": list(range(1001))}, 422, "at most 1000 items"),
    ("POST", "codes/items/get", {"ids": [1.5]}, 422, "Expected `int | str`"),
    ("GET", "codes/items/abc", None, 422, "id must be an integer"),
    ("GET", "codes/items/404", None, 404, "there is no item 404"),
    ("GET", "codes/items?after=x", None, 422, "after must be an integer"),
    ("GET", "codes/items?after=", None, 422, "after must be an integer"),
    ("GET", "codes/items?limit=0", None, 422, "limit must be from 1 to 1000"),
    ("GET", "codes/items?limit=abc", None, 422, "limit must be from 1 to 1000"),
    ("GET", "codes/items?limit=%C2%B2", None, 422, "limit must be from 1 to 1000"),
    ("GET", f"codes/items?limit={10**30}", None, 422, "limit must be from 1 to 1000"),
    ("GET", "codes/items?values=maybe", None, 422, "values must be true or false"),
    ("GET", "codes/items?ids=float", None, 422, "ids must be 'string'"),
    ("GET", "codes/items?lmit=5", None, 422, "not 'lmit'"),
    ("GET", "codes/items?limit=1&limit=2", None, 422, "is there twice"),
    ("GET", "codes/items?" + "a=1&" * 99, None, 422, "fields"),
    ("GET", "codes/items?filter={", None, 400, "filter:"),
    ("GET", "codes/items?filter=[]", None, 422, "filter must be an object"),
    ("GET", "codes/items?filter=" + "[" * 5000, None, 400, "filter:"),
    ("GET", "codes/snapshots/nothing.tar", None, 404, "no snapshot"),
    ("GET", "codes/snapshots/%2e%2e", None, 404, ""),
    ("GET", "codes/snapshots/..%2f..%2fkeys.json", None, 404, ""),
    ("GET", "codes/snapshots/20200101T000000Z-1.tar%00", None, 404, "no snapshot"),
    ("POST", "codes/restore", {"snapshot": "../../keys.json"}, 404, "no snapshot"),
    ("POST", "codes/restore", {"snapshot": "/etc/passwd"}, 404, "no snapshot"),
    ("POST", "codes/restore", {"snapshot": 1}, 422, "Expected `str`"),
    ("POST", "codes/fit", None, 409, "only collections of kind 'vectors'"),
    ("GET", "/v1/jobs/none", None, 404, "no job"),
    ("GET", "/nothing", None, 404, "nothing at"),
    ("GET", "/v1/collections/codes/", None, 404, "nothing at"),
    ("POST", "/livez", None, 405, "but GET"),
    ("DELETE", ITEMS, None, 405, "but PUT, GET"),
    ("GET", SEARCH, None, 405, "but POST"),
    ("PATCH", "codes", None, 405, "is not for this path"),
    ("OPTIONS", "codes", None, 405, "is not for this path"),
    ("PUT", "codes", {"kind": "codes", "n_bits": 13}, 409, "another definition"),
    ("PUT", "new", {"kind": "trees"}, 422, "Invalid enum value"),
    ("PUT", "new", {"kind": "codes"}, 422, "n_bits is required"),
    ("PUT", "new", {"kind": "codes", "n_bits": 0}, 422, "n_bits"),
    ("PUT", "new", {"kind": "codes", "n_bits": 10**12}, 422, "n_bits"),
    ("PUT", "new", {"kind": "codes", "n_bits": 10**30}, 422, "n_bits"),
    ("PUT", "new", {"kind": "codes", "n_bits": 8, "dim": 8}, 422, "dim is not for"),
    ("PUT", "new", {"kind": "codes", "n_bits": 8, "memory_limit": -1}, 422, "memory_limit"),
    ("PUT", "new", {"kind": "codes", "n_bits": 8, "bands": -1}, 422, "bands"),
    ("PUT", "new", {"kind": "codes", "n_bits": 8, "indexes": ['"']}, 422, "without quotes"),
    ("PUT", "new", {"kind": "codes", "n_bits": 8, "indexes": ["a"] * 17}, 422, "at most 16"),
    ("PUT", "new", {"kind": "embeddings", "dim": 10**6}, 422, "dim must be from 1 to 65536"),
    ("PUT", "new", {"kind": "embeddings", "dim": 8, "rescore": "int8"}, 422, "calibration"),
    ("PUT", "new", {"kind": "vectors", "dim": 8, "seed": -1}, 422, "seed"),
    ("PUT", "new", {"kind": "vectors", "dim": 8, "fit_after": 0}, 422, "fit_after"),
    ("PUT", "UPPER", {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("PUT", "x" * 65, {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("PUT", "%2e%2e", {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("PUT", "a%00b", {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("PUT", "-rf", {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("PUT", "a%2f..%2fb", {"kind": "codes", "n_bits": 8}, 404, "nothing at"),
    ("PUT", "%ff", {"kind": "codes", "n_bits": 8}, 422, "names of collections"),
    ("POST", "../x/restore", {"snapshot": "x"}, 404, ""),
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with small_api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(autouse=True)
def _unharmed(api: Api) -> Iterator[None]:
    """After each test, what was there before is still there."""
    yield
    unharmed(api)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    WRONG,
    ids=[f"{place}-{one[0]}-{one[1][:30]}" for place, one in enumerate(WRONG)],
)
def test_a_wrong_request_gets_a_status_and_a_reason(
    api: Api, method: str, path: str, body: Any, status: int, reason: str
) -> None:
    content = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else JSON
    check_problem(api.ask(method, path, content=content, headers=headers), status, reason)


BODIES: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"", JSON, 400, "truncated"),
    (b"nonsense", JSON, 400, "malformed"),
    (b'{"code": "AA', JSON, 400, "truncated"),
    (b'{"k": 1} trailing', JSON, 400, "trailing"),
    (b'{"vector": [NaN]}', JSON, 400, "malformed"),
    (b'{"vector": [Infinity]}', JSON, 400, "malformed"),
    (b'{"vector": [1e400]}', JSON, 422, "out of range"),
    (b'{"k": 1' + b"0" * 5000 + b"}", JSON, 422, "out of range"),
    (b'{"filter": ' + b"[" * 100_000, JSON, 422, "Expected `object | null`"),
    (b'{"filter": {"a": ' * 100_000, JSON, 400, "too deep"),
    (b'{"filter": {"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", JSON, 400, "too deep"),
    (b"[" * 100_000, JSON, 422, "Expected `object`"),
    (b'{"key": "\xff"}', JSON, 400, "UTF-8"),
    (b'{"key": "\\ud800"}', JSON, 400, ""),
    (b"\xef\xbb\xbf{}", JSON, 400, "malformed"),
    ("{}".encode("utf-16"), JSON, 400, "malformed"),
    (b"{}", {}, 415, "application/json"),
    (b"{}", {"content-type": "text/plain"}, 415, "text/plain"),
    (b"{}", {"content-type": "application/jsonp"}, 415, "application/jsonp"),
    (b"{}", {"content-type": "application/x-www-form-urlencoded"}, 415, "application/json"),
    (b"{}", ARROW, 415, "application/json"),
    (b"x" * ((32 << 20) + 1), JSON, 413, "at most 33554432 bytes"),
    (b"{}", {**JSON, "content-length": "99999999999999999999999"}, 413, "at most"),
    (b"{}", {**JSON, "host": "rebind.example.com"}, 421, "no host"),
    (b"{}", {**JSON, "host": "127.0.0.1.example.com:8420"}, 421, "no host"),
    (b"{}", {**JSON, "host": ""}, 421, "no host"),
    (b"{}", {**JSON, "origin": "https://example.com"}, 403, "other origins"),
    (b"{}", {**JSON, "origin": "null"}, 403, "other origins"),
    (b"{}", {**JSON, "origin": "http://127.0.0.1:9999"}, 403, "other origins"),
]


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"), BODIES, ids=[repr(one[0][:20]) for one in BODIES]
)
def test_a_wrong_body_gets_a_status_and_a_reason(
    api: Api, body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    check_problem(api.ask("POST", SEARCH, content=body, headers=headers), status, reason)


def test_a_body_without_a_length_is_cut_off_at_the_limit(api: Api) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 20
            yield b" " * (1 << 20)

    check_problem(api.ask("POST", SEARCH, content=endless(), headers=JSON), 413, "at most")


def test_queries_of_other_lengths_do_not_spoil_those_beside_them(api: Api) -> None:
    mixed = {"queries": [{"costs": [[0, 1]] * 12}, {"costs": [[0, 1]] * 3}]}
    check_problem(api.ask("POST", SEARCH, mixed), 422, "")


def test_long_bodies_that_arrive_at_the_same_time_are_bounded(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_HELD_BYTES", 1000)
    answer = api.ask("POST", SEARCH, content=b" " * 2000, headers=JSON)
    check_problem(answer, 503, "too many long bodies")
    assert answer.headers["retry-after"] == "1"
    assert calls.Call.held_bytes == 0
