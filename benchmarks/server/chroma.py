"""Chroma's server and ours at the same job, in turns: the ten nearest embeddings, over HTTP.

Chroma is no dependency: install ``chromadb`` into an environment of its own and name its command.
"""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.server import http_speed
from benchmarks.server.load import Load, Request, run_wrk

__all__ = ["Turn", "turns"]

K = 10
_COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
_AT_ONCE = 5_000
_START_SECONDS = 60.0
_CHECKED = 200


class Turn(NamedTuple):
    """One run of one server."""

    name: str
    load: Load
    recall: float


def turns(
    folder: Path, command: Path, n: int, connections: int, seconds: float, rounds: int
) -> Iterator[Turn]:
    """Both servers with the same rows, one run after the other."""
    rows, queries = http_speed.embeddings(n)
    nearest = np.argsort(-(queries[:_CHECKED] @ rows.T), axis=1)[:, :K]
    with (
        http_speed.serving(folder, rows, rescore="float32") as ours,
        _serving(command, folder / "chroma", rows) as theirs,
    ):
        our_request = ours.request("search", http_speed.searches(queries, K))
        their_request = Request(theirs, [_query(query) for query in queries])
        servers: list[tuple[str, Request, Callable[[Any], list[int]]]] = [
            ("bitweigh", our_request, _our_ids),
            ("Chroma", their_request, _their_ids),
        ]
        recalls = {name: _recall(request, nearest, ids_of) for name, request, ids_of in servers}
        for _ in range(rounds):
            for name, request, _ in servers:
                run_wrk(request, connections, 1)
                yield Turn(name, run_wrk(request, connections, seconds), recalls[name])


def _recall(
    request: Request, nearest: NDArray[np.int64], ids_of: Callable[[Any], list[int]]
) -> float:
    """The share of the nearest by inner product that a server finds."""
    found = 0
    for body, wanted in zip(request.bodies, nearest, strict=False):
        found += len(set(ids_of(_ask(request.url, body, request.key))) & set(wanted.tolist()))
    return found / nearest.size


def _our_ids(answer: Any) -> list[int]:  # noqa: ANN401
    return [hit["id"] for hit in answer["hits"]]


def _their_ids(answer: Any) -> list[int]:  # noqa: ANN401
    return [int(id_) for id_ in answer["ids"][0]]


def _query(query: NDArray[np.float32]) -> bytes:
    asked = {"query_embeddings": [query.tolist()], "n_results": K, "include": ["distances"]}
    return orjson.dumps(asked)


def _ask(url: str, body: bytes | None = None, key: str | None = None) -> Any:  # noqa: ANN401
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return orjson.loads(answer.read())


@contextmanager
def _serving(command: Path, folder: Path, rows: NDArray[np.float32]) -> Iterator[str]:
    """Chroma's server with some rows; gives the URL of queries."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [command, "run", "--path", folder, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        root = f"http://127.0.0.1:{port}"
        _await(f"{root}/api/v2/heartbeat", server)
        defined = {"name": "rows", "configuration": {"hnsw": {"space": "cosine"}}}
        made = _ask(f"{root}{_COLLECTIONS}", orjson.dumps(defined))
        collection = f"{root}{_COLLECTIONS}/{made['id']}"
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            ids = [str(id_) for id_ in range(first, first + len(part))]
            _ask(f"{collection}/add", orjson.dumps({"ids": ids, "embeddings": part.tolist()}))
        yield f"{collection}/query"
    finally:
        server.terminate()
        server.wait()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            _ask(url)
            return
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)
