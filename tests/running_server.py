"""A server in a process of its own, for tests of its clients and of the pages about it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["running_server", "started_server"]


def started_server(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> tuple[subprocess.Popen[str], str]:
    """Start ``bitweigh serve``, by default on a free port; return the process and its address."""
    port = () if "--port" in arguments else ("--port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "bitweigh", "serve", *arguments, *port],
        cwd=cwd,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(r"serving .* on (http://\S+)", line)
        if found:
            return process, found[1]
    process.wait()
    raise AssertionError("".join(lines))


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a server and read what it still says."""
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[str]:
    """Serve a folder; gives the address."""
    process, url = started_server(str(folder), "--quiet", *options)
    try:
        yield url
    finally:
        stop(process)
