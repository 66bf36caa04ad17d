"""Searches and writes a second over HTTP, with keys, limits, metrics and the access log on."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.server.load import Load, Request, WrkRun, run_wrk
from benchmarks.server.processes import ServerProcess
from bitweigh.client import Client

__all__ = ["Rates", "Searched", "Written", "embeddings", "rates_of_searches", "rates_of_writes"]

DIM = 256
NAME = "embeddings"
SEARCHES_BESIDE_WRITES = 16
_QUERIES = 1_000
_WRITES = 20_000
_TICK = os.sysconf("SC_CLK_TCK")


class Rates(NamedTuple):
    """A run of searches, and what the server needed for one of them."""

    load: Load
    cpu_us: float
    engine_us: float

    @property
    def beside_us(self) -> float:
        """CPU of a request beside the engine's."""
        return self.cpu_us - self.engine_us


class Written(NamedTuple):
    """A run of writes, and searches before it and beside it."""

    writes: Load
    cpu_us: float
    alone: Load
    beside: Load


class Searched(NamedTuple):
    """A server with rows in it."""

    server: ServerProcess
    key: str

    def request(self, route: str, bodies: list[bytes], method: str = "POST") -> Request:
        """What wrk sends to a route of the collection."""
        url = f"http://127.0.0.1:{self.server.port}/v1/collections/{NAME}/{route}"
        return Request(url, bodies, method, self.key)

    def cpu_seconds(self) -> float:
        """CPU time of the server until now."""
        stat = Path(f"/proc/{self.server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICK

    def engine_seconds(self) -> float:
        """Time in the engine until now, by the server's own metrics."""
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.server.port}/metrics",
            headers={"authorization": f"Bearer {self.key}"},
        )
        with urllib.request.urlopen(asked) as answer:
            text = answer.read().decode()
        found = re.findall(r"^bitweigh_engine_seconds_sum\{.*?\} (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))


def embeddings(n: int, n_queries: int = _QUERIES) -> tuple[NDArray[np.float32], ...]:
    """Made-up embeddings of length 1, around a thousand centres, and queries like them."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((1_000, DIM))

    def some(count: int) -> NDArray[np.float32]:
        around = centres[generator.integers(0, len(centres), count)]
        rows = around + 0.7 * generator.standard_normal((count, DIM))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows, np.float32)

    return some(n), some(n_queries)


@contextmanager
def serving(
    folder: Path, rows: NDArray[np.float32], rescore: Literal["float32"] | None = None
) -> Iterator[Searched]:
    """A server that asks for keys and logs requests, with some embeddings."""
    data = folder / f"data-{rescore}"
    command = [sys.executable, "-m", "bitweigh", "serve", "keys", "add", str(data), "load"]
    made = subprocess.run(
        [*command, "--scope", "admin", "--json"], check=True, capture_output=True, text=True
    )
    key = orjson.loads(made.stdout)["key"]
    server = ServerProcess(data, folder / "log", quiet=False)
    try:
        with Client(f"http://127.0.0.1:{server.port}", key=key) as client:
            if rescore is None:
                client.create(NAME, kind="embeddings", dim=DIM)
            else:
                client.create(NAME, kind="embeddings", dim=DIM, rescore=rescore)
            client[NAME].add(rows, ids=np.arange(len(rows)))
        yield Searched(server, key)
    finally:
        server.stop()


def searches(queries: NDArray[np.float32], k: int = 10) -> list[bytes]:
    """Bodies of searches."""
    return [orjson.dumps({"vector": query.tolist(), "k": k}) for query in queries]


def single_writes(n: int) -> list[bytes]:
    """Bodies of writes of one item each: half over items that are there, half of new ones."""
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 256, (_WRITES, DIM // 8), np.uint8)
    ids = generator.permutation(2 * n)[:_WRITES].tolist()
    return [
        orjson.dumps({"items": [{"id": id_, "code": base64.b64encode(code).decode()}]})
        for id_, code in zip(ids, codes, strict=True)
    ]


def rates_of_searches(
    searched: Searched, queries: NDArray[np.float32], connections: int, seconds: float
) -> Rates:
    """Searches for some seconds, once the server is warm."""
    request = searched.request("search", searches(queries))
    run_wrk(request, connections, 1)
    cpu, engine = searched.cpu_seconds(), searched.engine_seconds()
    load = run_wrk(request, connections, seconds)
    cpu, engine = searched.cpu_seconds() - cpu, searched.engine_seconds() - engine
    return Rates(load, 1e6 * cpu / load.requests, 1e6 * engine / load.requests)


def rates_of_writes(
    searched: Searched, queries: NDArray[np.float32], n: int, connections: int, seconds: float
) -> Written:
    """Writes alone, searches alone, then both at the same time."""
    searching = searched.request("search", searches(queries))
    writing = searched.request("items", single_writes(n), "PUT")
    run_wrk(writing, connections, 1)
    cpu = searched.cpu_seconds()
    writes = run_wrk(writing, connections, seconds)
    cpu = searched.cpu_seconds() - cpu
    run_wrk(searching, SEARCHES_BESIDE_WRITES, 1)
    alone = run_wrk(searching, SEARCHES_BESIDE_WRITES, seconds)
    with WrkRun(writing, connections, seconds + 2):
        beside = run_wrk(searching, SEARCHES_BESIDE_WRITES, seconds)
    return Written(writes, 1e6 * cpu / writes.requests, alone, beside)
