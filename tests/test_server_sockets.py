"""A real server and clients that misbehave below HTTP: slow, cut off, endless, too many."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest
from benchmarks.server import hostile
from server_cases import Server, code64, http, read_all, read_replies

SLOW_SECONDS = 0.6
CONNECTIONS = 60
pytestmark = pytest.mark.xdist_group("server sockets")
SEARCH = "/v1/collections/codes/search"
JSON = "content-type: application/json"
QUERY = json.dumps({"code": code64([1])}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = {"slow_seconds": SLOW_SECONDS, "connections": CONNECTIONS, "body_bytes": 1 << 20}
    with Server(tmp_path_factory.mktemp("served"), limits=limits) as found:
        with found.connect() as connection:
            create = json.dumps({"kind": "codes", "n_bits": 8}).encode()
            items = json.dumps({"items": [{"id": 1, "code": code64([1])}]}).encode()
            connection.sendall(http("PUT", "/v1/collections/codes", create, JSON))
            connection.sendall(http("PUT", "/v1/collections/codes/items", items, JSON))
            assert [reply[0] for reply in read_replies(connection, 2)] == [201, 200]
        yield found
        assert found.stop() == 0
        assert "Traceback" not in found.log


@pytest.fixture(autouse=True)
def _still_answers(server: Server) -> Iterator[None]:
    yield
    with server.connect() as connection:
        connection.sendall(http("POST", SEARCH, QUERY, JSON))
        ((status, body),) = read_replies(connection, 1)
    assert status == 200, body
    assert json.loads(body)["hits"] == [{"id": 1, "distance": 0.0}]


def status_of(reply: bytes) -> int:
    return int(reply.split()[1]) if reply else 0


def trickle(connection: socket.socket, rest: bytes, pause: float = 0.1) -> float:
    """Send byte by byte until the server closes; return after how many seconds."""
    begin = time.monotonic()
    try:
        for byte in rest:
            connection.sendall(bytes([byte]))
            time.sleep(pause)
            if time.monotonic() - begin > 10 * SLOW_SECONDS:
                break
    except ConnectionError:
        pass
    return time.monotonic() - begin


@pytest.mark.parametrize(
    "first",
    [b"", b"GET /li", b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: "],
    ids=["nothing", "a line", "a header"],
)
def test_headers_that_come_too_slowly_get_a_408(server: Server, first: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(first)
        begin = time.monotonic()
        reply = read_all(connection)
        seconds = time.monotonic() - begin
    assert status_of(reply) == 408
    assert b"too slowly" in reply
    assert 0.5 * SLOW_SECONDS < seconds < 5 * SLOW_SECONDS


def test_headers_byte_by_byte_get_no_more_time(server: Server) -> None:
    with server.connect() as connection:
        seconds = trickle(connection, b"GET /livez HTTP/1.1\r\nx: " + b"a" * 1000)
    assert seconds < 5 * SLOW_SECONDS


def test_empty_lines_do_not_keep_a_connection(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(http("GET", "/livez"))
        read_replies(connection, 1)
        begin = time.monotonic()
        connection.sendall(b"\r\n")
        read_all(connection)
    assert time.monotonic() - begin < 5 * SLOW_SECONDS


def test_a_body_that_comes_too_slowly_gets_a_408(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(http("POST", SEARCH, b" " * 1000, JSON)[:-1000])
        reply = read_all(connection)
    assert status_of(reply) == 408
    assert b"connection: close" in reply
    with server.connect() as connection:
        connection.sendall(http("POST", SEARCH, b" " * 1000, JSON)[:-1000])
        assert trickle(connection, b" " * 1000) < 5 * SLOW_SECONDS


def test_an_upload_that_trickles_ends(server: Server) -> None:
    request = http(
        "POST",
        "/v1/collections/codes/import",
        b" " * 1000,
        "content-type: application/octet-stream",
    )
    with server.connect() as connection:
        connection.sendall(request[:-1000])
        assert trickle(connection, b" " * 1000) < 5 * SLOW_SECONDS


def test_a_body_that_nobody_reads_does_not_keep_a_connection(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(http("POST", "/nowhere", b" " * 1000, JSON)[:-1000])
        begin = time.monotonic()
        reply = read_all(connection)
    assert status_of(reply) == 404
    assert time.monotonic() - begin < 5 * SLOW_SECONDS


def test_a_refused_request_with_a_short_body_keeps_its_connection(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(http("POST", "/nowhere", b" " * 1000, JSON) + http("GET", "/livez"))
        assert [reply[0] for reply in read_replies(connection, 2)] == [404, 200]


def test_bodies_that_are_cut_off_are_forgotten(server: Server) -> None:
    for length in (0, 1, 500, 999):
        with server.connect() as connection:
            connection.sendall(http("POST", SEARCH, b" " * 1000, JSON)[: length - 1000])


def test_a_client_that_has_sent_everything_may_close_its_side(server: Server) -> None:
    for request in (http("GET", "/livez"), b"GET /li", b"", http("POST", SEARCH, QUERY, JSON)[:-3]):
        with server.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            assert status_of(read_all(connection)) in (0, 200, 400, 408)


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    paths = ["/livez", "/nowhere", "/v1/collections/codes", "/readyz"] * 50
    with server.connect() as connection:
        connection.sendall(b"".join(http("GET", path) for path in paths))
        replies = read_replies(connection, len(paths))
    assert [reply[0] for reply in replies] == [200, 404, 200, 200] * 50


@pytest.mark.parametrize("length", [70_000, 3_000_000])
@pytest.mark.parametrize(
    "start",
    [b"GET /livez HTTP/1.1\r\nx: ", b"GET /", b"GET /livez HTTP/1.1\r\n" + b"x: y\r\n" * 15_000],
    ids=["a header", "a path", "many headers"],
)
def test_headers_without_end_get_a_431_or_nothing(
    server: Server, start: bytes, length: int
) -> None:
    before = server.rss
    reply = server.raw(start + b"a" * length)
    # What is sent after the connection was closed may destroy the reply on its way.
    assert status_of(reply) in (0, 431)
    assert server.rss - before < 20e6


def test_headers_that_are_a_little_too_long_get_a_431(server: Server) -> None:
    reply = server.raw(http("GET", "/livez", b"", "x: " + "a" * 66_000))
    assert status_of(reply) == 431
    assert b"application/problem+json" in reply


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\0b\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_a_400(server: Server, request_: bytes) -> None:
    reply = server.raw(request_)
    assert status_of(reply) == 400, reply
    assert b"application/problem+json" in reply


def test_a_chunked_body_is_cut_off_at_the_limit(server: Server) -> None:
    head = http("POST", SEARCH, b"", JSON, "transfer-encoding: chunked")
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with server.connect() as connection:
        connection.sendall(head + chunk * 17 + b"0\r\n\r\n")
        assert read_replies(connection, 1)[0][0] == 413
    good = f"{len(QUERY):x}\r\n".encode() + QUERY + b"\r\n0\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head + good)
        assert read_replies(connection, 1)[0][0] == 200


def test_a_client_that_waits_for_a_continue_is_refused_before_it_sends(server: Server) -> None:
    request = http("POST", SEARCH, b"", JSON, f"content-length: {1 << 40}", "expect: 100-continue")
    reply = server.raw(request)
    assert status_of(reply) == 413


def test_connections_beyond_the_limit_get_a_503_and_leave_no_trace(server: Server) -> None:
    opened = [server.connect() for _ in range(3 * CONNECTIONS)]
    try:
        statuses = [status_of(read_all(connection)) for connection in opened]
    finally:
        for connection in opened:
            connection.close()
    assert statuses.count(503) >= CONNECTIONS
    assert statuses.count(408) >= CONNECTIONS // 2
    assert set(statuses) <= {0, 408, 503}


def test_hostile_clients_do_not_fill_the_memory() -> None:
    report = hostile.run(3, connections=512, slow_seconds=0.6)
    assert not report.failures, report


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_minute_of_hostile_clients_does_not_fill_the_memory() -> None:
    report = hostile.run(60)
    assert not report.failures, report
