"""Daemon threads that are in a call do not disturb the exit of the interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import threading, time
import numpy as np, bitweigh
from bitweigh import paper
rng = np.random.default_rng(0)
codes = rng.integers(0, 256, (20_000, 8), dtype=np.uint8)
costs = rng.standard_normal((64, 2))
many = np.repeat(costs[np.newaxis], 500, axis=0)
index = bitweigh.Index(64)
index.add(codes)
linear = paper.MIWQ(codes, 64)
def add():
    own = bitweigh.Index(64)
    own.add(codes, np.arange(20_000)[::-1])
"""
END = """
def loop():
    while True:
        call()
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.1)
"""
CALLS = {
    "search": "index.search(costs, 10)",
    "search on two threads": "index.search(many, 10, threads=2)",
    "long search": "index.search(np.repeat(many, 40, axis=0), 10)",
    "range_search": "index.range_search(costs, -60.0)",
    "add": "add()",
    "lookup": "index.contains(np.arange(20_000))",
    "paper's search": "linear.search(costs, 3)",
    "paper's build": "paper.MIH(codes, 64)",
}


@pytest.mark.parametrize("call", CALLS)
def test_the_process_ends_in_peace_while_daemon_threads_call(call: str) -> None:
    script = START + f"call = lambda: {CALLS[call]}\n" + END
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
