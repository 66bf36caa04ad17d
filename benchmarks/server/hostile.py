"""Hostile clients against a real server, which must stay small and go on answering.

    python -m benchmarks.server.hostile --seconds 60

Clients that send headers and bodies byte by byte, cut bodies off, hang up halfway, send headers
without end, pipeline, nest JSON 100,000 deep, send bodies that are too long or huge once decoded,
and open more connections than are allowed. One honest client searches beside them. The trial fails
if the server's memory grows by 50 MB, if it answers any request with a status of its own fault, or
if the honest client gets anything but its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["Report", "run"]

ALLOWED_GROWTH = 50e6
_DIM = 64
_ROWS = 5_000
_NAME = "/v1/collections/codes"
_SERVE = """
import sys
from pathlib import Path
from bitweigh.server import Limits, Settings
from bitweigh.server.process import serve
limits = Limits(slow_seconds=float(sys.argv[2]), connections=int(sys.argv[3]))
serve(Path(sys.argv[1]), Settings(limits=limits), port=0, access_log=False)
"""


class Report(NamedTuple):
    """What came of a trial."""

    seconds: float
    rss_before: int
    rss_peak: int
    rss_after: int
    statuses: dict[str, int]
    """How often which client got which status; 0 if the server hung up."""
    searches: int
    wrong_searches: int
    slowest_ms: float
    exit_status: int

    @property
    def failures(self) -> list[str]:
        """What went wrong, if anything."""
        found = []
        growth = self.rss_peak - self.rss_before
        if growth >= ALLOWED_GROWTH:
            found.append(f"memory grew by {growth / 1e6:.0f} MB")
        blamed = [name for name in self.statuses if name.endswith((" 500", " 501", " 502"))]
        if blamed:
            found.append(f"the server failed: {', '.join(blamed)}")
        if self.wrong_searches or not self.searches:
            found.append(f"{self.wrong_searches} of {self.searches} searches went wrong")
        if self.exit_status:
            found.append(f"the server ended with {self.exit_status}")
        return found


def run(seconds: float, *, connections: int = 4_096, slow_seconds: float = 2.0) -> Report:
    """Let hostile clients loose on a server of its own for so long."""
    _allow_files(2 * connections + 500)
    with tempfile.TemporaryDirectory() as folder, _server(folder, slow_seconds, connections) as one:
        return asyncio.run(_Trial(*one, connections).run(seconds))


def _allow_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def _server(
    folder: str, slow_seconds: float, connections: int
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    log = Path(folder) / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, f"{folder}/data", str(slow_seconds), str(connections)],
            stderr=errors,
        )
    try:
        port = None
        while port is None:
            if process.poll() is not None:
                raise RuntimeError(f"the server did not start: {log.read_text()}")
            time.sleep(0.02)
            port = re.search(r"on http://127\.0\.0\.1:(\d+)", log.read_text())
        yield process, int(port[1])
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _request(method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if body:
        head += f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def _reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next reply; (0, b"") if there is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
    except (OSError, asyncio.IncompleteReadError):
        return 0, b""
    return int(head.split()[1]), body


def _bomb() -> bytes:
    """A few kilobytes of Arrow that decompress to 200 MB."""
    out = io.BytesIO()
    zeros = pa.array([b"\0" * 100_000_000] * 2, pa.large_binary())
    batch = pa.record_batch({"id": pa.array([1, 2]), "code": zeros})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(out, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return out.getvalue()


class _Trial:
    """One trial: its clients, and what they got."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, connections: int) -> None:
        self._process = process
        self._port = port
        self._connections = connections
        self._end = 0.0
        self._statuses: Counter[str] = Counter()
        self._searches = self._wrong = 0
        self._slowest = 0.0
        self._peak = 0
        self._bomb = _request(
            "PUT", f"{_NAME}/items", _bomb(), "application/vnd.apache.arrow.stream"
        )

    async def run(self, seconds: float) -> Report:
        reader, writer = await self._connect()
        search = await self._prepare(reader, writer)
        for _ in range(50):
            await self._search(reader, writer, search)
        before = self._peak = self._rss()
        self._end = time.monotonic() + seconds
        clients: list[tuple[str, Callable[[], Awaitable[int]], int]] = [
            ("slow headers", self._slow_headers, 20),
            ("slow body", self._slow_body, 20),
            ("body cut off", self._cut_off, 4),
            ("half closed", self._half_closed, 4),
            ("endless header", self._endless_header, 2),
            ("pipelined", self._pipelined, 2),
            ("deep JSON", self._deep_json, 2),
            ("announced too long", self._announced, 2),
            ("endless body", self._endless_body, 1),
            ("Arrow bomb", self._arrow_bomb, 1),
            ("idle", self._idle, self._connections + 100),
        ]
        tasks = [
            asyncio.create_task(self._repeat(name, client))
            for name, client, count in clients
            for _ in range(count)
        ]
        watching = asyncio.create_task(self._watch())
        while time.monotonic() < self._end:
            await self._search(reader, writer, search)
            await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, watching, return_exceptions=True)
        await asyncio.sleep(0.5)
        after = self._rss()
        writer.close()
        self._process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self._process.wait, 60)
        counted = dict(sorted(self._statuses.items()))
        slowest = 1e3 * self._slowest
        return Report(
            seconds,
            before,
            self._peak,
            after,
            counted,
            self._searches,
            self._wrong,
            slowest,
            status,
        )

    async def _prepare(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Create a collection; return a search of it."""
        generator = np.random.default_rng(0)
        vectors = generator.normal(size=(_ROWS + 1, _DIM)).round(3).tolist()
        items = [{"id": row, "vector": vectors[row]} for row in range(_ROWS)]
        for path, body in (
            (_NAME, {"kind": "embeddings", "dim": _DIM}),
            (f"{_NAME}/items", {"items": items}),
        ):
            writer.write(_request("PUT", path, json.dumps(body).encode()))
            status, answer = await _reply(reader)
            if status not in (200, 201):
                raise RuntimeError(answer.decode())
        # As long as a search may take: the clients here and the server share the CPUs.
        body = {"vector": vectors[_ROWS], "timeout_ms": 30_000}
        return _request("POST", f"{_NAME}/search", json.dumps(body).encode())

    async def _search(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, search: bytes
    ) -> None:
        begin = time.monotonic()
        writer.write(search)
        status, answer = await _reply(reader)
        self._slowest = max(self._slowest, time.monotonic() - begin)
        self._searches += 1
        self._wrong += status != 200 or len(json.loads(answer)["hits"]) != 10

    async def _watch(self) -> None:
        while time.monotonic() < self._end:
            self._peak = max(self._peak, self._rss())
            await asyncio.sleep(0.05)

    def _rss(self) -> int:
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _repeat(self, name: str, client: Callable[[], Awaitable[int]]) -> None:
        while time.monotonic() < self._end:
            try:
                status = await client()
            except OSError:
                status = 0
            self._statuses[f"{name} {status}"] += 1
            await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def _connection(self) -> Any:  # noqa: ANN401
        reader, writer = await self._connect()
        try:
            yield reader, writer
        finally:
            writer.close()

    async def _trickled(self, first: bytes, rest: bytes) -> int:
        """The status for what is sent byte by byte after a first part."""
        async with self._connection() as (reader, writer):
            writer.write(first)
            answer = asyncio.ensure_future(_reply(reader))
            for byte in rest:
                await asyncio.wait([answer], timeout=0.3)
                if answer.done():
                    break
                writer.write(bytes([byte]))
            return (await answer)[0]

    async def _slow_headers(self) -> int:
        return await self._trickled(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ", b"a" * 1000)

    async def _slow_body(self) -> int:
        request = _request("POST", f"{_NAME}/search", b" " * 1000)
        return await self._trickled(request[:-1000], request[-1000:])

    async def _cut_off(self) -> int:
        async with self._connection() as (_, writer):
            writer.write(_request("POST", f"{_NAME}/search", b" " * 100_000)[:-1])
            await writer.drain()
        return 0

    async def _half_closed(self) -> int:
        async with self._connection() as (reader, writer):
            writer.write(_request("GET", f"{_NAME}/items?limit=1000"))
            writer.write_eof()
            return (await _reply(reader))[0]

    async def _endless_header(self) -> int:
        async with self._connection() as (reader, writer):
            writer.write(b"GET /livez HTTP/1.1\r\nx: ")
            answer = asyncio.ensure_future(_reply(reader))
            for _ in range(1000):
                if answer.done():
                    break
                writer.write(b"a" * 65_536)
                await writer.drain()
            return (await answer)[0]

    async def _pipelined(self) -> int:
        async with self._connection() as (reader, writer):
            writer.write(_request("GET", _NAME) * 50)
            return max([(await _reply(reader))[0] for _ in range(50)])

    async def _asked(self, request: bytes) -> int:
        async with self._connection() as (reader, writer):
            writer.write(request)
            return (await _reply(reader))[0]

    async def _deep_json(self) -> int:
        body = b'{"filter": {"a": ' + b"[" * 100_000
        return await self._asked(_request("POST", f"{_NAME}/search", body))

    async def _announced(self) -> int:
        head = f"POST {_NAME}/search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {1 << 40}\r\n"
        return await self._asked(head.encode() + b"content-type: application/json\r\n\r\n")

    async def _endless_body(self) -> int:
        async with self._connection() as (reader, writer):
            writer.write(
                f"POST {_NAME}/search HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode()
            )
            answer = asyncio.ensure_future(_reply(reader))
            piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
            while not answer.done():
                writer.write(piece)
                await writer.drain()
            return (await answer)[0]

    async def _arrow_bomb(self) -> int:
        return await self._asked(self._bomb)

    async def _idle(self) -> int:
        async with self._connection() as (reader, _):
            return (await _reply(reader))[0]


def main() -> int:
    """Run a trial, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=4_096)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report = run(given.seconds, connections=given.connections)
    if given.json:
        print(json.dumps({**report._asdict(), "failures": report.failures}))
    else:
        for name, count in report.statuses.items():
            print(f"{name:26} {count:8}")
        grown = (report.rss_peak - report.rss_before) / 1e6
        print(
            f"memory {report.rss_before / 1e6:.0f} MB, at most {grown:.0f} MB more, "
            f"{report.rss_after / 1e6:.0f} MB in the end; {report.searches} searches beside it, "
            f"{report.wrong_searches} wrong, the slowest {report.slowest_ms:.0f} ms"
        )
        print("\n".join(report.failures) or "nothing went wrong")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
