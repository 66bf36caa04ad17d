"""A server keeps what it acknowledged: through kills, stops and full disks, under load."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.server.durable import (
    OPTIONS,
    Round,
    ask,
    create_collection,
    kill_rounds,
    settle_all,
    write_for,
)
from benchmarks.server.processes import Connection, ServerProcess
from benchmarks.server.stored import Stored, read_stored
from benchmarks.server.writing import COLLECTION, WritingClient
from server_folders import disk_of

pytestmark = pytest.mark.xdist_group("server processes")
PATH = f"/v1/collections/{COLLECTION}"
CODE = "AAAAAAAAAAA="


def check(rounds: list[Round]) -> None:
    assert [one.wrong for one in rounds] == [[]] * len(rounds)
    assert sum(one.acknowledged.total() for one in rounds) > 20 * len(rounds)
    assert sum(one.under_way for one in rounds) > 0


def test_a_killed_server_has_lost_no_acknowledged_change_and_invented_none(tmp_path: Path) -> None:
    check(list(kill_rounds(tmp_path, 3, longest=0.8, least=30)))


def test_a_killed_server_without_a_checkpoint_applies_its_whole_record_again(
    tmp_path: Path,
) -> None:
    rounds = list(kill_rounds(tmp_path, 1, options=("--checkpoint-seconds", "1000"), least=30))
    check(rounds)
    assert rounds[0].replayed >= rounds[0].items > 0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_change_is_lost_or_invented_by_20_kills(tmp_path: Path) -> None:
    rounds = list(kill_rounds(tmp_path, 20, seed=20, least=30))
    check(rounds)
    assert sum(one.replayed for one in rounds) > 0


def test_the_comparison_with_clients_notices_lost_invented_and_halved_changes() -> None:
    client = WritingClient(0, 0)
    old, new = (b"old", 1), (b"new", 2)
    acknowledged = {1: old, 2: old}

    def settled(found: dict[int | str, tuple[bytes, int]]) -> str:
        client.items, client.under_way = dict(acknowledged), {1: new, 2: None}
        return client.settle(found)

    assert not settled({1: old, 2: old})
    assert not settled({1: new})
    assert settled({1: new, 2: old})
    assert settled({1: old})
    assert settled({})
    assert settled({1: old, 2: old, 3: new})
    assert settle_all([client], Stored({10**9: old}, {}, 0, 0, []))


def test_an_import_that_ends_before_its_first_answer_counts_as_acknowledged() -> None:
    class Quick(Connection):
        def ask(self, *_: object) -> tuple[int, Any]:
            return 202, {"state": "done", "written": len(client.under_way)}

    client = WritingClient(0, 0)
    client._import(Quick(0))
    assert client.acknowledged["import"] == 1
    assert client.items
    assert not client.under_way


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[ServerProcess]:
    server = ServerProcess(folder / "data", folder / "log", *options)
    try:
        yield server
    finally:
        server.kill()


def test_a_server_that_is_told_to_stop_answers_what_was_sent_and_loses_nothing(
    tmp_path: Path,
) -> None:
    writers = [WritingClient(number, number) for number in range(8)]
    with serving(tmp_path, *OPTIONS) as server:
        create_collection(server)
        ended: list[float] = []

        def stop() -> None:
            begin = time.monotonic()
            assert server.stop() == 0
            ended.append(time.monotonic() - begin)

        connections = write_for(server, writers, 0.5, then=stop)
        assert server.process.returncode == 0
        assert ended[0] < 10
        assert "Traceback" not in server.said()
    lost = [connection for connection in connections if connection.unanswered]
    assert not lost, server.said()
    assert all(set(writer.refused) <= {503} for writer in writers)
    assert sum(writer.acknowledged.total() for writer in writers) > 50
    found = read_stored(tmp_path / "data", tmp_path / "copy")
    assert found.replayed == 0, "the last checkpoint has everything"
    assert settle_all(writers, found) == []
    with serving(tmp_path) as server:
        assert ask(server, found) == []


def test_a_stopping_server_says_so_on_connections_that_were_idle(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        create_collection(server)
        connection = server.connect()
        assert connection.ask("GET", "/readyz")[0] == 200
        server.process.terminate()
        deadline = time.monotonic() + 5
        while server.process.poll() is None and time.monotonic() < deadline:
            status, answer = connection.ask("GET", "/readyz")
            if status == 503:
                assert answer["detail"] == "stopping"
                break
        else:
            pytest.fail("the server never said that it stops")
        connection.close()
        assert server.process.wait(10) == 0


@pytest.mark.long
def test_a_client_that_never_ends_its_request_does_not_keep_a_server_from_stopping(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as server:
        create_collection(server)
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            begin = f"PUT {PATH}/items HTTP/1.1\r\nhost: localhost\r\n"
            slow.sendall(f"{begin}content-type: application/json\r\n".encode())
            slow.sendall(b"content-length: 1000\r\n\r\n{")
            time.sleep(0.2)
            start = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - start < 10


def check_full_disk(server: ServerProcess, fill: contextlib.AbstractContextManager[None]) -> int:
    """Write while there is no room, and after; return the number of items acknowledged."""

    def written(first: int, count: int) -> int:
        text = {"text": "x" * 2000}
        items = [{"id": first + i, "code": CODE, "payload": text} for i in range(count)]
        return server.ask("PUT", f"{PATH}/items", {"items": items})[0]

    assert written(0, 10) == 200
    acknowledged, statuses = 10, []
    with fill:
        for _ in range(6):
            statuses.append(written(acknowledged, 10))
            acknowledged += 10 * (statuses[-1] == 200)
            query = {"id": 0, "k": 5, "payload": True}
            status, answer = server.ask("POST", f"{PATH}/search", query)
            assert status == 200
            assert len(answer["hits"]) == 5
        by_key = {"items": [{"key": "new", "code": CODE}]}
        assert server.ask("PUT", f"{PATH}/items", by_key)[0] == 507
        definition = {"kind": "codes", "n_bits": 8}
        assert server.ask("PUT", "/v1/collections/other", definition)[0] == 507
        assert server.ask("POST", f"{PATH}/snapshots")[0] == 507
        assert server.ask("GET", PATH)[1]["disk_full"]
    assert statuses[-1] == 507
    assert set(statuses) <= {200, 507}
    assert written(acknowledged, 10) == 200
    assert not server.ask("GET", PATH)[1]["disk_full"]
    assert server.ask("PUT", f"{PATH}/items", by_key)[0] == 200
    assert server.ask("PUT", "/v1/collections/other", definition)[0] == 201
    return acknowledged + 10


@contextlib.contextmanager
def files_limited(server: ServerProcess, size: int) -> Iterator[None]:
    number = server.process.pid
    before = resource.prlimit(number, resource.RLIMIT_FSIZE)
    resource.prlimit(number, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(number, resource.RLIMIT_FSIZE, before)


def check_items(folder: Path, scratch: Path, count: int) -> None:
    found = read_stored(folder, scratch)
    assert found.wrong == []
    assert set(range(count)) == {id_ for id_ in found.codes if id_ < 1000}


def test_files_that_cannot_grow_refuse_writes_but_not_searches(tmp_path: Path) -> None:
    with serving(tmp_path, "--checkpoint-seconds", "0.1") as server:
        create_collection(server)
        count = check_full_disk(server, files_limited(server, 4096))
        server.kill()
    check_items(tmp_path / "data", tmp_path / "copy", count)


@contextlib.contextmanager
def filled(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_bsize)
    try:
        yield
    finally:
        ballast.unlink()


def test_a_full_disk_refuses_writes_but_not_searches(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with disk_of(disk, 4 << 20):
        server = ServerProcess(disk / "data", tmp_path / "log", "--checkpoint-seconds", "0.1")
        try:
            create_collection(server)
            count = check_full_disk(server, filled(disk))
            server.kill()
            check_items(disk / "data", tmp_path / "copy", count)
            # A start needs no room but what it finds.
            with filled(disk):
                server = ServerProcess(disk / "data", tmp_path / "log")
                status, answer = server.ask("POST", f"{PATH}/search", {"id": 0, "k": 5})
                assert status == 200
                assert len(answer["hits"]) == 5
                assert server.stop() == 0
        finally:
            server.kill()


class Groups:
    """Writes all items of a group in one step, again and again; change n is `first + n`."""

    SIZE = 20

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.stopping = threading.Event()
        self.wrong: list[str] = []
        self.answers: dict[str, int] = {}
        self.first = self.write(0)

    def write(self, number: int) -> int:
        # The first byte of a code is the version: eight ones, or none.
        version = number % 2
        code = ("//" if version else "AA") + CODE[2:]
        payload = {"v": version, "n": number}
        items = [{"id": id_, "code": code, "payload": payload} for id_ in range(self.SIZE)]
        status, answer = self.server.ask("PUT", f"{PATH}/items", {"items": items})
        assert status == 200
        return int(answer["seq"])

    def write_all(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            if self.write(number) != self.first + number:
                self.wrong.append("a change of somebody else")

    def ask_all(self, kind: str) -> None:
        connection = self.server.connect()
        costs = [[0.0, 1.0]] * 8 + [[0.0, 0.0]] * 56
        body: dict[str, object] = {"costs": costs, "payload": True}
        if kind in ("range", "filtered range"):
            body["radius"] = 0.5
        else:
            body["k"] = self.SIZE
        if kind.startswith("filtered"):
            body["filter"] = {"v": 0}
        route = kind.removeprefix("filtered ")
        while not self.stopping.is_set():
            status, answer = connection.ask("POST", f"{PATH}/{route}", body)
            self.check(kind, status, answer)
            self.answers[kind] = self.answers.get(kind, 0) + 1
        connection.close()

    def check(self, kind: str, status: int, answer: dict[str, object]) -> None:
        assert status == 200, answer
        number = int(str(answer["seq"])) - self.first
        hits = answer["hits"]
        assert isinstance(hits, list)
        cut = kind.startswith("filtered") or kind == "range"
        expected = 0 if cut and number % 2 else self.SIZE
        distance = 8.0 * (number % 2)
        right = len(hits) == expected and all(
            hit["payload"] == {"v": number % 2, "n": number} and hit["distance"] == distance
            for hit in hits
        )
        if kind == "explain":
            bits = answer["bits"]
            assert isinstance(bits, dict)
            right &= all(one["bits"][:8] == str(number % 2) * 8 for one in bits.values())
        if not right:
            self.wrong.append(f"{kind}, change {number}: {hits[:3]}")


def test_every_answer_is_of_one_change(tmp_path: Path) -> None:
    kinds = ("search", "filtered search", "range", "filtered range", "explain")
    with serving(tmp_path, *OPTIONS) as server:
        definition = {"kind": "codes", "n_bits": 64, "indexes": ["v"]}
        assert server.ask("PUT", PATH, definition)[0] == 201
        groups = Groups(server)
        threads = [threading.Thread(target=groups.write_all)]
        threads += [threading.Thread(target=groups.ask_all, args=(kind,)) for kind in kinds]
        for thread in threads:
            thread.start()
        time.sleep(2)
        groups.stopping.set()
        for thread in threads:
            thread.join()
    assert groups.wrong == []
    assert all(groups.answers.get(kind, 0) > 20 for kind in kinds), groups.answers
