"""Load by wrk, which Debian packages: many connections from a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Self

__all__ = ["Load", "Request", "WrkRun", "run_wrk"]

# Each connection takes the next body; the requests are made once, so that wrk needs little CPU.
_SCRIPT = """
local requests, place = {}, 0
function init(args)
  wrk.method = "%(method)s"
  wrk.headers["content-type"] = "application/json"
  %(key)s
  for line in io.lines("%(bodies)s") do
    requests[#requests + 1] = wrk.format(nil, nil, nil, line)
  end
end
function request()
  place = place %% #requests + 1
  return requests[place]
end
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("wrk-result %%d %%d %%d %%d %%d %%d\\n",
    summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""


class Request(NamedTuple):
    """What all connections send, with one body after the other."""

    url: str
    bodies: Sequence[bytes]
    method: str = "POST"
    key: str | None = None


class Load(NamedTuple):
    """What became of the requests of one run."""

    requests: int
    seconds: float
    refused: int
    """Answers whose status was not 2xx."""
    lost: int
    """Requests without an answer."""
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


class WrkRun(AbstractContextManager["WrkRun"]):
    """wrk as it runs; several can run at the same time."""

    def __init__(self, request: Request, connections: int, seconds: float) -> None:
        """Start it; RuntimeError if it is not installed."""
        if shutil.which("wrk") is None:
            raise RuntimeError("this needs wrk: apt-get install wrk")
        self._folder = tempfile.TemporaryDirectory(prefix="wrk-")
        bodies, script = (Path(self._folder.name, name) for name in ("bodies", "load.lua"))
        bodies.write_bytes(b"\n".join(request.bodies) + b"\n")
        key = f'wrk.headers["authorization"] = "Bearer {request.key}"' if request.key else ""
        script.write_text(_SCRIPT % {"method": request.method, "key": key, "bodies": bodies})
        options = ["-t", "1", "-c", str(connections), "-d", f"{seconds:g}s", "--timeout", "30s"]
        self._process = subprocess.Popen(
            ["wrk", *options, "-s", str(script), request.url], stdout=subprocess.PIPE, text=True
        )

    def result(self) -> Load:
        """Wait for its end."""
        said, _ = self._process.communicate()
        for line in said.splitlines():
            if line.startswith("wrk-result "):
                numbers = [int(word) for word in line.split()[1:]]
                count, duration, refused, lost, half, most = numbers
                return Load(count, duration / 1e6, refused, lost, half / 1e3, most / 1e3)
        raise RuntimeError(f"wrk has no result: {said}")

    def __enter__(self) -> Self:
        """Nothing; it runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def run_wrk(request: Request, connections: int, seconds: float) -> Load:
    """Send requests for some seconds."""
    with WrkRun(request, connections, seconds) as run:
        return run.result()
