"""The client: the answers of the library over HTTP, its errors, and what is tried again."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running_server import running_server

import bitweigh
from bitweigh.client import (
    AsyncClient,
    Client,
    ConflictError,
    DiskFullError,
    ServerError,
    UnavailableError,
)

pytestmark = pytest.mark.xdist_group("client")
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((300, 37)).astype(np.float32)
CODES = np.packbits(VECTORS > 0, axis=1)
BIG = 2**53 + 1


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("client") / "data") as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as made:
        yield made
        for one in made.collections():
            made.delete(one.name)


def library(n: int = len(VECTORS)) -> bitweigh.Index:
    index = bitweigh.Index(37)
    index.add(CODES[:n], np.arange(n) + BIG)
    return index


def test_answers_are_those_of_the_library_to_the_last_bit(client: Client) -> None:
    items = client.create("a", kind="embeddings", dim=37)
    items.add(VECTORS, ids=np.arange(300) + BIG)
    expected = library().search(bitweigh.costs.inner_product(VECTORS[:5]), 7)
    found = items.search(VECTORS[:5], 7)
    assert np.array_equal(found.distances, expected.distances)
    assert np.array_equal(found.ids, expected.ids)
    assert found.ids.dtype == np.int64
    assert (found.exact, found.complete, found.seq) == (True, True, 1)
    single = items.search(VECTORS[0], 7)
    assert single.ids.shape == (7,)
    assert np.array_equal(single.distances, expected.distances[0])


def test_rerank_from_reaches_the_server_from_both_clients(client: Client, url: str) -> None:
    items = client.create("a", kind="embeddings", dim=37, rescore="float32")
    items.add(VECTORS, ids=np.arange(300))
    index = bitweigh.BinaryEmbeddings(37, rescore="float32")
    index.add(VECTORS, np.arange(300))
    queries = -VECTORS[:5]
    few, many = (index.search(queries, 3, rescore_from=number).ids for number in (3, 300))
    assert not np.array_equal(few, many)
    assert np.array_equal(items.search(queries, 3, rerank_from=3).ids, few)
    assert np.array_equal(items.search(queries, 3, rerank_from=300).ids, many)
    by_id = index.search_by_id([1, 2], 3, rescore_from=3).ids
    assert np.array_equal(items.search_by_id([1, 2], 3, rerank_from=3).ids, by_id)
    with pytest.raises(ValueError, match="rerank_from must be from k, 3"):
        items.search(queries, 3, rerank_from=2)

    async def main() -> None:
        async with AsyncClient(url) as other:
            found = await other["a"].search(queries, 3, rerank_from=3)
            assert np.array_equal(found.ids, few)
            found = await other["a"].search_by_id([1, 2], 3, rerank_from=3)
            assert np.array_equal(found.ids, by_id)

    asyncio.run(main())


def test_answers_with_fewer_items_are_padded_as_the_library_pads(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    items.add(CODES[:2], keys=["x", "y"])
    found = items.search(VECTORS[:1], 4)
    assert found.ids[0, 2:].tolist() == [-1, -1]
    assert np.isposinf(found.distances[0, 2:]).all()
    assert sorted(found.keys[0]) == ["x", "y"]


def test_every_form_of_query_finds_what_the_library_finds(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    items.add(CODES, ids=np.arange(300) + BIG)
    index = library()
    weights = RNG.random(37)
    costs = bitweigh.costs.from_weights(CODES[:3], weights)
    pairs = [
        (items.search_codes(CODES[:3], 5), index.search_codes(CODES[:3], 5)),
        (items.search_codes(CODES[:3], 5, weights=weights), index.search(costs, 5)),
        (items.search_costs(costs, 5), index.search(costs, 5)),
        (items.search_by_id([BIG, BIG + 1], 5), index.search_by_id([BIG, BIG + 1], 5)),
    ]
    for found, expected in pairs:
        assert np.array_equal(found.distances, expected.distances)
        assert np.array_equal(found.ids, expected.ids)
    one = items.search_by_id(BIG, 5)
    assert np.array_equal(one.ids, pairs[3][1].ids[0])


def test_more_queries_than_a_request_may_have_are_split(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    items.add(CODES, ids=np.arange(300))
    many = np.tile(CODES, (5, 1))
    found = items.search_codes(many, 1)
    assert found.ids.shape == (1500, 1)
    assert (found.distances == 0).all()


def test_range_search_finds_all_within_a_radius_or_says_that_there_are_too_many(
    client: Client,
) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    items.add(CODES, ids=np.arange(300) + BIG)
    costs = bitweigh.costs.hamming(CODES[0], 37)
    expected = library().range_search(costs, 14)
    found = items.range_search(code=CODES[0], radius=14)
    assert np.array_equal(found.lims, expected.lims)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.distances, expected.distances)
    with pytest.raises(bitweigh.LimitError, match="query 0 has more than limit=2 codes") as caught:
        items.range_search(costs=costs, radius=14, limit=2)
    assert caught.value.limit == 2


def test_payloads_and_filters(client: Client) -> None:
    items = client.create("a", kind="embeddings", dim=37, indexes=["lang"])
    payloads = [{"lang": ["de", "fr"][i % 2], "year": i, "text": "ü"} for i in range(300)]
    items.add(VECTORS, ids=np.arange(300), payloads=payloads)
    found = items.search(VECTORS[4], 3, filter={"lang": "de"}, payload=["year"])
    assert found.ids[0] == 4
    assert found.payloads[0] == {"year": 4}
    assert all(payload["year"] % 2 == 0 for payload in found.payloads)
    assert [one.payload for one in items.get([7, 2])] == [payloads[7], payloads[2]]
    years = [item.payload["year"] for item in items.iterate(filter={"year": {"lt": 9}}, page=4)]
    assert years == list(range(9))
    assert items.remove(filter={"year": {"gte": 10}}).n_items == 290
    assert items.count() == 10


def test_items_are_written_read_and_removed_by_key(client: Client) -> None:
    items = client.create("a", kind="embeddings", dim=37, rescore="float32")
    written = items.add(VECTORS[:3], keys=["a", "b", "c"])
    assert (written.n_items, len(written.ids)) == (3, 3)
    items.upsert([{"key": "b", "vector": VECTORS[9], "payload": {"new": True}}])
    got = items.get(keys=["c", "b"])
    assert [item.key for item in got] == ["c", "b"]
    assert np.array_equal(got[1].vector, VECTORS[9])
    assert got[1].payload == {"new": True}
    found = items.search_by_id(keys="a", k=2)
    assert set(found.keys) == {"b", "c"}
    assert not found.exact
    assert items.remove(keys=["a", "unknown"]).n_items == 1


def test_adding_nothing_changes_nothing(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    assert items.add(CODES[:0], ids=[]).n_items == 0
    assert items.count() == 0


def test_large_items_are_sent_in_several_batches(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    payloads = [{"text": "ä" * 300_000} for _ in range(40)]
    assert items.add(CODES[:40], ids=np.arange(40), payloads=payloads, progress=True).seq > 1
    assert items.count() == 40
    assert items.get([39])[0].payload == payloads[39]


def test_an_import_reports_the_rows_that_failed(client: Client, tmp_path: Path) -> None:
    items = client.create("a", kind="vectors", dim=37, n_bits=16, fit_after=100)
    vectors = [row.tolist() for row in VECTORS]
    vectors[5] = [1.0]
    table = pa.table({"number": range(300), "vector": vectors, "lang": ["de"] * 300})
    pq.write_table(table, tmp_path / "rows.parquet")
    report = items.import_parquet(tmp_path / "rows.parquet", id="number", progress=False)
    assert (report.rows, report.written, report.failed, report.state) == (300, 299, 1, "done")
    assert report.errors[0].row == 5
    assert "37 numbers" in report.errors[0].detail
    assert items.get([6])[0].payload == {"lang": "de"}
    assert items.fit() == 299
    with pytest.raises(ValueError, match="there is no column 'nothing'"):
        items.import_parquet(tmp_path / "rows.parquet", id="nothing")
    with pytest.raises(FileNotFoundError):
        items.import_parquet(tmp_path / "missing.parquet")


def test_snapshots_are_taken_downloaded_and_restored(client: Client, tmp_path: Path) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    items.add(CODES, ids=np.arange(300))
    taken = items.take_snapshot()
    assert items.snapshots() == [taken]
    path = items.download_snapshot(taken.name, tmp_path / "a.tar")
    assert path.stat().st_size == taken.bytes
    assert [one.name for one in tmp_path.iterdir()] == ["a.tar"]
    items.remove(ids=np.arange(300))
    assert client.restore("a", snapshot=taken.name).count() == 300
    assert client.restore("b", path).count() == 300
    client["a"].delete_snapshot(taken.name)
    assert client["a"].snapshots() == []


def test_errors_are_those_of_the_library(client: Client) -> None:
    items = client.create("a", kind="codes", n_bits=37)
    with pytest.raises(KeyError, match="there is no collection 'nothing'"):
        client["nothing"].search(VECTORS[0])
    with pytest.raises(KeyError, match="5"):
        items.get([5])
    with pytest.raises(KeyError, match="there is no item 5"):
        items.search_by_id(5)
    with pytest.raises(ValueError, match="must have 37 numbers, got 36"):
        items.search(VECTORS[0, :36])
    with pytest.raises(ValueError, match="k must be from 1 to 1000"):
        items.search(VECTORS[0], 5000)
    with pytest.raises(ValueError, match=r"row 1: .*zeros in the unused bits"):
        items.add(CODES[:2] | np.array([[0], [7]], np.uint8), ids=[1, 2])
    with pytest.raises(ConflictError, match="another definition"):
        client.create("a", kind="codes", n_bits=38)
    with pytest.raises(ValueError, match="n_bits is required"):
        client.create("b", kind="codes")


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (TypeError, "values must be numbers", ([["x"]], [1])),
        (ValueError, "finite", ([[np.nan] * 37], [1])),
        (TypeError, "ids must be integers", (CODES[:1], [1.5])),
        (ValueError, "as many ids as values, 2, got 1", (CODES[:2], [1])),
        (ValueError, "shape", (CODES[0], [1])),
        (ValueError, "either ids or keys", (CODES[:1], None)),
    ],
)
def test_wrong_arrays_are_refused_before_anything_is_sent(
    error: type[Exception], match: str, arguments: tuple[Any, Any]
) -> None:
    with Client("http://127.0.0.1:1") as nobody, pytest.raises(error, match=match):
        nobody["a"].add(arguments[0], ids=arguments[1])


def test_a_client_must_be_given_an_address_and_limits_that_make_sense() -> None:
    for arguments in ({"url": "127.0.0.1"}, {"timeout": 0}, {"retries": -1}):
        with pytest.raises(ValueError, match=r"url|timeout|retries"):
            Client(**{"url": "http://127.0.0.1:1", **arguments})  # type: ignore[arg-type]


def test_keys_are_sent_and_their_scopes_respected(tmp_path: Path) -> None:
    from bitweigh.server.keys import KeyFile

    keys = KeyFile(tmp_path / "keys.json")
    reader, admin = keys.add("reader", "read"), keys.add("admin", "admin")
    with running_server(tmp_path) as address:
        with Client(address, key=admin) as owner:
            owner.create("a", kind="codes", n_bits=37).add(CODES, ids=np.arange(300))
        with Client(address, key=reader) as guest:
            assert guest["a"].search(VECTORS[0], 1).ids.shape == (1,)
            assert reader not in repr(guest)
            with pytest.raises(PermissionError, match="no write access"):
                guest["a"].remove(ids=[1])
        with Client(address) as stranger, pytest.raises(PermissionError, match="key is needed"):
            stranger.collections()


def test_an_async_client_does_the_same(url: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            items = await client.create("async", kind="embeddings", dim=37)
            await items.add(VECTORS, ids=np.arange(300) + BIG, payloads=[{"a": 1}] * 300)
            expected = library().search(bitweigh.costs.inner_product(VECTORS[:9]), 7)
            found = await asyncio.gather(*(items.search(query, 7) for query in VECTORS[:9]))
            assert np.array_equal([one.distances for one in found], expected.distances)
            assert np.array_equal([one.ids for one in found], expected.ids)
            assert len([item async for item in items.iterate(page=100)]) == 300
            assert (await items.get([BIG]))[0].payload == {"a": 1}
            taken = await items.take_snapshot()
            path = await items.download_snapshot(taken.name, tmp_path / "a.tar")
            restored = await client.restore("async2", path)
            assert await restored.count() == 300
            pq.write_table(pa.table({"id": [1], "code": [CODES[0].tobytes()]}), tmp_path / "b")
            report = await items.import_parquet(tmp_path / "b", progress=False)
            assert report.written == 1
            with pytest.raises(KeyError):
                await client["nothing"].info()
            for name in ("async", "async2"):
                await client.delete(name)

    asyncio.run(main())


def test_both_clients_have_the_same_methods() -> None:
    from bitweigh.client import AsyncCollection, Collection

    for sync, other in ((Client, AsyncClient), (Collection, AsyncCollection)):
        names = {name for name in vars(sync) if name[0] != "_"}
        assert names == {name for name in vars(other) if name[0] != "_"}


class Scripted(BaseHTTPRequestHandler):
    """Answers with what the test wants, one after the other; the last one for ever."""

    script: list[tuple[int, dict[str, str], bytes]]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        place = min(len(self.asked), len(self.script)) - 1
        status, headers, body = self.script[place]
        if not status:  # a connection that breaks
            self.connection.close()
            return
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def scripted() -> Iterator[tuple[str, type[Scripted]]]:
    handler = type("Handler", (Scripted,), {"script": [], "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler
    server.shutdown()
    thread.join()
    server.server_close()


def problem(status: int, detail: str = "why", **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = {"type": "urn:bitweigh:problem:x", "title": "x", "status": status, "detail": detail}
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        json.dumps(body).encode(),
    )


OK = (200, {}, b'{"collections": []}')


@pytest.mark.parametrize(
    "failure", [problem(429, retry_after="0"), problem(503), problem(502), (0, {}, b"")]
)
def test_overload_and_broken_connections_are_tried_again(
    failure: tuple[int, dict[str, str], bytes], scripted: tuple[str, type[Scripted]]
) -> None:
    url, handler = scripted
    handler.script = [failure, failure, OK]
    with Client(url) as client:
        assert client.collections() == []
    assert len(handler.asked) == 3
    handler.asked.clear()

    async def main() -> None:
        async with AsyncClient(url) as other:
            assert await other.collections() == []

    asyncio.run(main())
    assert len(handler.asked) == 3


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (problem(400), ValueError, "why"),
        (problem(401), PermissionError, "why"),
        (problem(403), PermissionError, "why"),
        (problem(404), KeyError, "why"),
        (problem(408), TimeoutError, "why"),
        (problem(409), ConflictError, "why"),
        (problem(413), ValueError, "why"),
        (problem(415), TypeError, "why"),
        (problem(422), ValueError, "why"),
        (problem(500), ServerError, "why .status 500."),
        (problem(504), bitweigh.DeadlineError, "timeout=10"),
        (problem(507), DiskFullError, "why"),
        ((418, {}, b"a teapot"), ServerError, "a teapot"),
    ],
)
def test_other_statuses_become_errors_at_once(
    answer: tuple[int, dict[str, str], bytes],
    error: type[Exception],
    match: str,
    scripted: tuple[str, type[Scripted]],
) -> None:
    url, handler = scripted
    handler.script = [answer]
    with Client(url) as client, pytest.raises(error, match=match) as caught:
        client.collections()
    assert len(handler.asked) == 1
    if isinstance(caught.value, DiskFullError):
        assert caught.value.errno == errno.ENOSPC


def test_tries_end_after_the_last_one(scripted: tuple[str, type[Scripted]]) -> None:
    url, handler = scripted
    handler.script = [problem(429, "full", retry_after="0")]
    with Client(url, retries=2) as client, pytest.raises(bitweigh.errors.OverloadedError) as caught:
        client.collections()
    assert len(handler.asked) == 3
    assert caught.value.retry_after == 0


def test_a_pause_beyond_the_deadline_is_not_begun(scripted: tuple[str, type[Scripted]]) -> None:
    url, handler = scripted
    handler.script = [problem(503, "rebuilding", retry_after="60")]
    with Client(url, timeout=1) as client, pytest.raises(UnavailableError) as caught:
        client.collections()
    assert len(handler.asked) == 1
    assert caught.value.retry_after == 60


def test_nobody_at_the_address_is_an_unavailable_server() -> None:
    nobody = Client("http://127.0.0.1:1", retries=1)
    with nobody, pytest.raises(UnavailableError, match="cannot be reached") as caught:
        nobody.collections()
    assert isinstance(caught.value, ConnectionError)
    assert isinstance(caught.value.__cause__, httpx.TransportError)


def test_a_deletion_that_is_repeated_may_find_nothing_left(
    scripted: tuple[str, type[Scripted]],
) -> None:
    url, handler = scripted
    handler.script = [(0, {}, b""), problem(404)]
    with Client(url) as client:
        client.delete("a")
    handler.asked.clear()
    handler.script = [problem(404)]
    with Client(url) as client, pytest.raises(KeyError):
        client.delete("a")


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_the_timeout() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout=0.2) as client:
            with pytest.raises(TimeoutError, match=r"has not answered within 0\.2 seconds"):
                client.collections()
            with pytest.raises(bitweigh.DeadlineError, match=r"timeout=0\.1"):
                client["a"].search([1.0], timeout=0.1)
