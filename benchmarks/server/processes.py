"""A server in a process of its own, and connections to it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["Connection", "ServerProcess"]

JSON, PARQUET = "application/json", "application/vnd.apache.parquet"
_READY = re.compile(r"serving .* on http://127\.0\.0\.1:(\d+)")
_START_SECONDS = 60.0


class Connection:
    """One connection that is kept open. Errors of the network are the caller's to catch."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        """Connect with the first request."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self.unanswered = False
        """Whether a request was sent whole, and no answer to it has come."""

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = JSON
    ) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the answer."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": content_type}
        self._connection.request(method, path, data, headers)
        self.unanswered = True
        answer = self._connection.getresponse()
        content = answer.read()
        self.unanswered = False
        return answer.status, json.loads(content)

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class ServerProcess:
    """``bitweigh serve`` on a free port; ready once this is made."""

    def __init__(self, folder: Path, log: Path, *options: str, quiet: bool = True) -> None:
        """Start it and wait until it serves; RuntimeError with its log if it ends instead.

        Unless it is quiet, it logs requests, to a file beside `log`.
        """
        command = [sys.executable, "-m", "bitweigh", "serve", str(folder), "--port", "0"]
        begin = time.monotonic()
        self._log = log
        command += ["--quiet", *options] if quiet else options
        with log.open("wb") as file, log.with_suffix(".requests").open("wb") as requests:
            self.process = subprocess.Popen(command, stdout=requests, stderr=file)
        while (match := _READY.search(self.said())) is None:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.said()}")
            if time.monotonic() - begin > _START_SECONDS:
                self.kill()
                raise RuntimeError(f"the server does not start: {self.said()}")
            time.sleep(0.01)
        self.port = int(match[1])
        self.start_seconds = time.monotonic() - begin

    def said(self) -> str:
        """What it has logged."""
        return self._log.read_text()

    def connect(self, timeout: float = 30.0) -> Connection:
        """A new connection."""
        return Connection(self.port, timeout)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send one request by a connection of its own."""
        connection = self.connect()
        try:
            return connection.ask(method, path, body)
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a loss of power would end it, but for the disk."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout: float = 20.0) -> int:
        """Ask it to stop, and wait; return its exit code."""
        self.process.terminate()
        return self.process.wait(timeout)
