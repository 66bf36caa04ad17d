"""Threads, fork, and other processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bitweigh

CODES = np.random.default_rng(0).integers(0, 256, (20_000, 8), dtype=np.uint8)
COSTS = np.random.default_rng(1).standard_normal((8, 64, 2))


def filled() -> bitweigh.Index:
    index = bitweigh.Index(64)
    index.add(CODES)
    return index


def test_many_python_threads_search_one_index() -> None:
    index = filled()
    expected = index.search(COSTS, 10)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: index.search(COSTS, 10, threads=1 + i % 3), range(40)))
    for answer in answers:
        np.testing.assert_array_equal(answer.ids, expected.ids)
        np.testing.assert_array_equal(answer.distances, expected.distances)


def test_each_search_sees_one_state_while_another_thread_adds() -> None:
    # Row i costs -i: a search that saw exactly the first n rows answers n - 1, n - 2, n - 3.
    n_rows = 1500
    codes = (np.arange(n_rows)[:, np.newaxis] >> np.array([8, 0])).astype(np.uint8)
    weights = -(2.0 ** np.arange(15, -1, -1))
    costs = np.stack([np.zeros(16), weights], axis=-1)
    index = bitweigh.Index(16)
    index._policy.tail_rows = 32
    failures: list[str] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            before = len(index)
            found = index.search(costs, 3)
            after = len(index)
            seen = int(found.ids[0]) + 1
            expected = [seen - 1, seen - 2, seen - 3]
            if seen >= 3 and (found.ids.tolist() != expected or not before <= seen <= after):
                failures.append(f"{found.ids.tolist()} between {before} and {after}")

    searchers = [threading.Thread(target=search) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    for row in range(n_rows):
        index.add(codes[row : row + 1])
    done.set()
    for searcher in searchers:
        searcher.join()
    assert not failures, failures[:3]


def test_concurrent_adds_lose_nothing() -> None:
    index = bitweigh.Index(64)
    index._policy.tail_rows = 50
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: index.add(CODES[10 * i : 10 * i + 10]), range(60)))
    assert len(index) == 600
    assert len(np.unique(index.search(COSTS[0], 600).ids)) == 600


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc on this system")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_search_runs_on_as_many_threads_as_asked_for(threads: int) -> None:
    index = filled()
    many = np.tile(COSTS, (400, 1, 1))
    most = 0

    def running() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    def watch() -> None:
        nonlocal most
        while not done.is_set():
            most = max(most, running())

    done = threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    before = running()
    # On a busy machine the watcher may sleep through a whole search: so there are several.
    deadline = time.monotonic() + 30
    searches = 0
    while searches < 3 or (most - before < threads - 1 and time.monotonic() < deadline):
        index.search(many, 10, threads=threads)
        searches += 1
    done.set()
    watcher.join()
    assert most - before == threads - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_searches_with_threads() -> None:
    index = filled()
    expected = index.search(COSTS, 5, threads=2)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe()
    child = context.Process(target=lambda: send.send(index.search(COSTS, 5, threads=2).ids))
    child.start()
    assert receive.poll(30)
    np.testing.assert_array_equal(receive.recv(), expected.ids)
    child.join(30)
    assert child.exitcode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_changes_the_index_can_change_it_too() -> None:
    index = filled()
    context = multiprocessing.get_context("fork")

    def change() -> None:
        index.add(CODES[:1])
        index.remove([0])
        os._exit(0 if len(index) == len(CODES) else 1)

    # No thread in the child could release a lock that was held at the fork.
    with index._writing:
        child = context.Process(target=change)
        child.start()
        child.join(30)
    assert child.exitcode == 0


def ids_of(index: bitweigh.Index) -> list[int]:
    return index.search(COSTS[0], 5).ids.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("mapped", [False, True])
def test_an_index_goes_to_other_processes(method: str, mapped: bool, tmp_path: Path) -> None:
    index = filled()
    if mapped:
        index.save(tmp_path / "index")
        index = bitweigh.load(tmp_path / "index", mmap=True)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(ids_of, (index,)) == ids_of(index)


def test_a_mapped_index_is_pickled_as_its_folder_and_refused_if_that_has_changed(
    tmp_path: Path,
) -> None:
    filled().save(tmp_path / "index")
    index = bitweigh.load(tmp_path / "index", mmap=True)
    raw = pickle.dumps(index)
    assert len(raw) < 1000
    assert ids_of(pickle.loads(raw)) == ids_of(index)
    index.remove([3])
    assert len(pickle.loads(pickle.dumps(index))) == len(CODES) - 1
    index.save(tmp_path / "index")
    with pytest.raises(ValueError, match="another index"):
        pickle.loads(raw)


def test_a_search_does_not_wait_for_a_writer() -> None:
    index = filled()
    index._policy.banded_rows, index._policy.min_gain = 1, 0
    with index._writing:
        assert index.search(COSTS[0], 5).ids.shape == (5,)


def test_other_threads_run_while_many_ids_are_removed() -> None:
    n = 2_000_000
    rng = np.random.default_rng(0)
    index = bitweigh.Index(8)
    index.add(np.zeros((n, 1), dtype=np.uint8), 3 * rng.permutation(n))
    ids = 3 * rng.permutation(n)
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.01):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    index.remove(ids)
    took = time.monotonic() - started
    done.set()
    thread.join()
    assert ticks > took / 0.01 / 5


def test_a_mapped_index_whose_folder_has_another_one_now_is_pickled_as_it_is(
    tmp_path: Path,
) -> None:
    filled().save(tmp_path / "index")
    mapped = bitweigh.load(tmp_path / "index", mmap=True)
    bitweigh.Index(64).save(tmp_path / "index")
    assert ids_of(pickle.loads(pickle.dumps(mapped))) == ids_of(mapped)
