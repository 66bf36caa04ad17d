"""Ctrl-C in a long search, build or save: the call ends soon and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bitweigh import paper

# A shell starts background jobs with SIGINT ignored, and children inherit that.
START = """
import os, signal, sys, time
import numpy as np, bitweigh, bitweigh.paper
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
"""
END = """
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
"""
SEARCH = """
index = bitweigh.Index(512)
index.add(rng.integers(0, 256, (200_000, 64), dtype=np.uint8))
costs = rng.standard_normal((20_000, 512, 2)).astype(np.float32)
print("ready", flush=True)
try:
    index.search(costs, int(sys.argv[2]), threads=int(sys.argv[1]))
"""
SEARCHED = """
    assert index.search(costs[0], 1).ids.shape == (1,)
    print("usable", flush=True)
"""
# Unordered ids, so that the lookup by id is built too.
BUILD = """
n = 8_000_000
index = bitweigh.Index(64, build="manual")
index._policy.min_gain = 0
index.add(rng.integers(0, 256, (n, 8), dtype=np.uint8), rng.permutation(n))
print("ready", flush=True)
try:
    while True:
        index.copy().build()
"""
BUILT = """
    assert len(index) == n
    assert index.search(np.ones((64, 2)), 1, method="scan").ids[0] == 0
    print("usable", flush=True)
"""
SAVE = """
n = 2_000_000
index = bitweigh.Index(256, build="manual")
index.add(rng.integers(0, 256, (n, 32), dtype=np.uint8), rng.permutation(n))
old = bitweigh.Index(256)
old.add(np.zeros((5, 32), dtype=np.uint8))
old.save(sys.argv[3])
files = sorted(os.listdir(sys.argv[3]))
print("ready", flush=True)
number = 0
try:
    while True:
        number += 1
        index.save(f"{sys.argv[3]}-{number}")
        bitweigh._storage.index_files._known_files.clear()
"""
SAVED = """
    try:
        bitweigh.load(f"{sys.argv[3]}-{number}")
    except FileNotFoundError:
        assert not os.path.exists(f"{sys.argv[3]}-{number}"), "something was left behind"
    assert sorted(os.listdir(sys.argv[3])) == files
    assert len(bitweigh.load(sys.argv[3])) == 5
    assert index.search(np.ones((256, 2)), 1).ids.shape == (1,)
    print("usable", flush=True)
"""
# A single query each that would take minutes, or a build that takes a second.
PAPER_SEARCH = """
costs = np.zeros((32, 2))
costs[:, 1] = 1.0 + np.arange(32) * 1e-3
codes = np.full((1, 4), 255, np.uint8)
paper = bitweigh.paper
if sys.argv[1] == "SingleIndex":
    index = paper.SingleIndex(codes, 32)
else:
    index = getattr(paper, sys.argv[1])(codes, 32, m=1)
print("ready", flush=True)
try:
    index.search(costs, 1)
"""
PAPER_SCAN = """
codes = rng.integers(0, 256, (20_000, 8), dtype=np.uint8)
costs = rng.standard_normal((64, 2))
many = rng.integers(0, 256, (8_000_000, 8), dtype=np.uint8)
print("ready", flush=True)
try:
    while True:
        if sys.argv[1] == "MIWQ":
            bitweigh.paper.MIWQ(many, 64)
        else:
            getattr(bitweigh.paper, sys.argv[1])(many, costs, 5)
"""
PAPER_SCANNED = """
    assert bitweigh.paper.linear_scan(codes, costs, 3).ids.shape == (3,)
    print("usable", flush=True)
"""
PAPER_SEARCHED = """
    # Nothing is kept of the interrupted query.
    assert index.search(-costs, 1).ids[0] == 0
    print("usable", flush=True)
"""
LOOKUP = """
index = bitweigh.Index(8)
index._policy.segment_rows = 100
index.add(np.zeros((20_000, 1), dtype=np.uint8), rng.permutation(20_000))
wanted = rng.integers(20_000, 2**40, 5_000_000)  # looked for in each of 200 segments
print("ready", flush=True)
try:
    while True:
        index.contains(wanted)
"""
LOOKED_UP = """
    assert index.contains([0])[0]
    print("usable", flush=True)
"""


def interrupt(script: str, wait: float, *arguments: str) -> float:
    """Return the seconds from Ctrl-C to the exception."""
    child = subprocess.Popen(
        [sys.executable, "-c", START + script, *arguments], stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(wait)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        word, when = child.stdout.readline().split()
        assert word == "interrupted"
        assert child.stdout.readline() == "usable\n"
    assert child.returncode == 0
    took = float(when) - sent
    print(f"{took * 1e3:.0f} ms")
    # 200 ms are promised; a loaded test machine gets more.
    assert took < 2.0
    return took


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("k", ["10", "20000"])  # the large one spends its time before the scan
def test_ctrl_c_ends_a_long_search_and_leaves_the_index_usable(threads: str, k: str) -> None:
    interrupt(SEARCH + END + SEARCHED, 0.5, threads, k)


@pytest.mark.parametrize("wait", [0.2, 0.9, 1.7])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_a_long_build_and_leaves_the_index_usable(
    wait: float, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITWEIGH_THREADS", threads)
    interrupt(BUILD + END + BUILT, wait)


@pytest.mark.parametrize("wait", [0.01, 0.1, 0.4, 0.8])
def test_ctrl_c_ends_a_long_save_and_leaves_nothing_behind(wait: float, tmp_path: Path) -> None:
    interrupt(SAVE + END + SAVED, wait, "", "", str(tmp_path / "index"))


@pytest.mark.parametrize("method", ["SingleIndex", "MIWQ", "MIH", "PQTable"])
def test_ctrl_c_ends_a_single_query_of_the_paper_s_methods(method: str) -> None:
    interrupt(PAPER_SEARCH + END + PAPER_SEARCHED, 0.3, method)


@pytest.mark.parametrize("method", ["linear_scan", "hamming_ranking", "MIWQ"])
def test_ctrl_c_ends_a_scan_or_a_build_of_the_paper_s_methods(method: str) -> None:
    interrupt(PAPER_SCAN + END + PAPER_SCANNED, 0.2, method)


def test_ctrl_c_ends_a_long_lookup_by_id() -> None:
    interrupt(LOOKUP + END + LOOKED_UP, 0.3)


@pytest.mark.parametrize("method", [paper.MIWQ, paper.PQTable])
def test_a_signal_handler_may_search_the_index_that_is_being_searched(
    method: type[paper.MIWQ | paper.PQTable],
) -> None:
    rng = np.random.default_rng(0)
    index = method(rng.integers(0, 256, (20_000, 8), dtype=np.uint8), 64)
    costs = rng.standard_normal((20, 64, 2))
    alone = index.search(costs[0], 10)
    answers = []

    def search(_number: int, _frame: object) -> None:
        answers.append(index.search(costs[0], 10))

    before = signal.signal(signal.SIGALRM, search)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while not answers:
            found = index.search(costs, 10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert answers[0].ids.tolist() == alone.ids.tolist()
    assert found.ids.tolist() == index.search(costs, 10).ids.tolist()
