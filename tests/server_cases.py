"""What tests of the server share: an application in this process, a server in another, requests."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from starlette.testclient import TestClient

from bitweigh import server
from bitweigh.server import Settings

BASE = "http://127.0.0.1:8420"
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
PARQUET = {"content-type": "application/vnd.apache.parquet"}
TAR = {"content-type": "application/x-tar"}


class Api:
    """An application in this process; requests go through all of ASGI, but no socket."""

    def __init__(self, folder: Path, settings: Settings | None = None, **options: Any) -> None:
        self.app = server.app(folder, settings, **options)
        self.service = self.app.service
        self.client = TestClient(self.app, base_url=BASE, raise_server_exceptions=False)
        self.headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__(None, None, None)
        self.service.close()

    def ask(self, method: str, path: str, json: object = None, **options: Any) -> Any:
        """The answer to a request; a path without a leading slash is below /v1/collections/."""
        if json is not None:
            options["json"] = json
        full = path if path.startswith("/") else f"/v1/collections/{path}"
        options.setdefault("headers", {})
        options["headers"] = {**self.headers, **options["headers"]}
        return self.client.request(method, full, **options)

    def done(self, method: str, path: str, json: object = None, **options: Any) -> Any:
        """As `ask`, of a request that must succeed: its JSON."""
        answer = self.ask(method, path, json, **options)
        assert answer.status_code < 300, (answer.status_code, answer.text)
        return answer.json()

    def create(self, name: str, **definition: Any) -> Any:
        return self.done("PUT", name, definition)

    def upsert(self, name: str, items: list[dict[str, Any]], **options: Any) -> Any:
        return self.done("PUT", f"{name}/items", {"items": items}, **options)

    def search(self, name: str, **request: Any) -> Any:
        return self.done("POST", f"{name}/search", request)

    def import_rows(self, name: str, parquet: bytes, query: str = "") -> Any:
        """The job of an import, once it has ended."""
        path = f"{name}/import{query}"
        job = self.done("POST", path, content=parquet, headers=PARQUET)
        return self.ended(job["id"])

    def ended(self, job: str, seconds: float = 30) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.done("GET", f"/v1/jobs/{job}")
            if found["state"] != "running":
                return found
            time.sleep(0.01)
        raise AssertionError(f"job {job} did not end: {found}")


def code64(code: Any) -> str:
    """A packed code as requests have it."""
    return base64.b64encode(np.asarray(code, np.uint8).tobytes()).decode()


def arrow_stream(table: Any, **options: Any) -> bytes:
    """A table or batch as a body."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        stream.write(table)
    return out.getvalue()


def exactly(hits: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Ids, and distances to the last bit."""
    return [(int(hit["id"]), float(hit["distance"]).hex()) for hit in hits]


def exactly_of(distances: Any, ids: Any) -> list[tuple[int, str]]:
    """The same of what an index found, without its padding."""
    return [
        (id_, float(distance).hex())
        for distance, id_ in zip(distances.tolist(), ids.tolist(), strict=True)
        if id_ >= 0
    ]


class Server:
    """A server in a process of its own, on a free port."""

    def __init__(
        self, folder: Path, *options: str, limits: dict[str, object] | None = None
    ) -> None:
        command = [sys.executable, "-c", _SERVE, str(folder), repr(limits or {}), *options]
        self._log: list[str] = []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        end = time.monotonic() + 30
        self.port = 0
        while not self.port:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            found = re.search(r"on http://127\.0\.0\.1:(\d+)", self.log)
            self.port = int(found[1]) if found else 0
            time.sleep(0.01)

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self._log.extend(lines)

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return "".join(self._log)

    @property
    def rss(self) -> int:
        """Bytes of memory that it has."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def connect(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def raw(self, request: bytes, timeout: float = 20) -> bytes:
        """What comes back on a new connection until the server closes it."""
        with self.connect(timeout) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)
            return read_all(connection)

    def stop(self) -> int:
        """End it as an operator does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(30)
        self._reader.join()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()


_SERVE = """
import sys
from pathlib import Path
from bitweigh.server import Limits, Settings
from bitweigh.server.process import serve
limits = Limits(**eval(sys.argv[2]))
serve(Path(sys.argv[1]), Settings(limits=limits), port=0, access_log=False)
"""


def read_all(connection: socket.socket) -> bytes:
    """All that a server sends until it closes the connection."""
    pieces = []
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def read_replies(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """The status and body of so many replies."""
    file = connection.makefile("rb")
    replies = []
    for _ in range(count):
        line = file.readline()
        if not line:
            break
        length = 0
        while (header := file.readline()).strip():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        replies.append((int(line.split()[1]), file.read(length)))
    return replies


def http(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """A request as it is sent."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.contextmanager
def small_api(folder: Path, **options: Any) -> Iterator[Api]:
    """An application with a collection of each kind, of a few items each."""
    generator = np.random.default_rng(0)
    with Api(folder, **options) as api:
        api.create("codes", kind="codes", n_bits=12)
        api.create("emb", kind="embeddings", dim=8)
        api.create("vec", kind="vectors", dim=4, n_bits=4, fit_after=8, rerank="float32")
        codes = np.packbits(generator.integers(0, 2, (20, 12), np.uint8), axis=1)
        vectors = generator.normal(size=(20, 8)).round(3)
        rows = [{"id": row, "payload": {"n": row}} for row in range(20)]
        api.upsert("codes", [{**row, "code": code64(codes[row["id"]])} for row in rows])
        api.upsert("emb", [{**row, "vector": vectors[row["id"]].tolist()} for row in rows])
        api.upsert("vec", [{**row, "vector": vectors[row["id"], :4].tolist()} for row in rows])
        yield api


def unharmed(api: Api) -> None:
    """Check that what `small_api` made is there, and that no upload was left behind."""
    assert api.done("GET", "codes")["items"] == 20
    assert len(api.search("codes", id=1, k=30)["hits"]) == 19
    assert not list(api.service.store.folder.glob("*-*.*"))
    assert {path.name for path in (api.service.store.folder / "collections").iterdir()} == {
        "codes",
        "emb",
        "vec",
    }


def check_problem(answer: Any, status: int, reason: str) -> None:
    """Check that a request was refused with a status, and a reason that says so."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert reason in problem["detail"]
    assert len(answer.content) < 2_000
