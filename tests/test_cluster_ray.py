"""Shards on a Ray cluster of three nodes: exact answers through faults and new versions.

One cluster serves all tests of a group. What a test breaks it mends, or it comes last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_server import started_server, stop

from bitweigh import cluster
from bitweigh.client import Client
from bitweigh.cluster import IncompleteError, Patience
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.index import Index
from bitweigh.vector_index import VectorIndex

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("ray"),
    # Ray leaves sockets and files to the garbage collector, and asks for its own future.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    from benchmarks.cluster.codes import some_codes
    from benchmarks.cluster.ray_cluster import served

    with served(some_codes(20_000)) as started:
        yield started


def published(run: Any, codes: Any, ids: Any, shards: int) -> Index:
    """Serve these rows, and return the index that answers as they do."""
    cluster.build(codes, run.url, ids=ids, n_bits=64, shards=shards, overwrite=True)
    run.cluster.publish()
    one = Index(64)
    if len(ids):
        one.add(codes, ids)
    return one


def assert_equal(expected: Any, found: Any) -> None:
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


def test_a_hundred_data_sets_are_answered_as_by_one_index(run: Any) -> None:
    rng = np.random.default_rng(3)
    second_rounds = run.cluster.status().second_rounds
    for number in range(100):
        rows = int(rng.choice([0, 1, 33, 500, 2000]))
        ids = rng.permutation(3 * rows + 1)[:rows]
        shards = int(rng.integers(1, 8))
        codes = rng.integers(0, rng.choice([2, 256]), (rows, 8), dtype=np.uint8)
        if number % 4 == 0:  # the nearest rows are all in one shard
            codes[cluster.HashPartition(shards).shard_of(ids) == 0] //= 128
        one = published(run, codes, ids, shards)
        costs = np.abs(rng.standard_normal((20, 64, 2)))
        costs[..., 0] = 0 if number % 2 else costs[..., 0]
        k = int(rng.choice([1, 10, 100, 300]))
        options = {} if number % 5 else {"allow": ids[::2]}
        assert_equal(one.search(costs, k, **options), run.cluster.search(costs, k, **options))
        for query in costs[:5]:
            assert_equal(one.search(query, k), run.cluster.search(query, k))
        assert_equal(one.range_search(costs[:2], 1.0), run.cluster.range_search(costs[:2], 1.0))
    assert run.cluster.status().second_rounds > second_rounds


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("kept", ["float32", None])
def test_vectors_are_answered_as_by_one_vector_index(tmp_path: Path, kept: Any) -> None:
    rng = np.random.default_rng(7)
    vectors, ids = rng.standard_normal((3000, 32)).astype(np.float32), rng.permutation(9000)[:3000]
    like = VectorIndex(n_bits=32, rerank=kept).fit(vectors)
    one = like.copy()
    one.add(vectors, ids)
    cluster.build(vectors, tmp_path, like=like, ids=ids, shards=5, workers="ray")
    served = cluster.start(tmp_path, "vectors", replicas=2, groups=2)
    try:
        for k in (1, 30, 4000):
            assert_equal(one.search(vectors[:40], k), served.vectors.search(vectors[:40], k))
        found = served.vectors.search_by_id(ids[:9], 20)
        assert_equal(one.search_by_id(ids[:9], 20), found)
        near = float(one.search(vectors[0], 50).distances[-1])
        assert_equal(
            one.range_search(vectors[0], near), served.vectors.range_search(vectors[0], near)
        )
    finally:
        served.stop()


@pytest.mark.usefixtures("run")
def test_embeddings_are_answered_as_by_one_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # holders do not work in this folder
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((2000, 64)).astype(np.float32)
    like = BinaryEmbeddings(64, rescore="int8", calibration=rows)
    one = like.copy()
    one.add(rows)
    cluster.build(rows, "shards", like=like, shards=3)
    served = cluster.start("shards", "embeddings", replicas=2)
    try:
        for k in (1, 30, 4000):
            assert_equal(one.search(rows[:40], k), served.embeddings.search(rows[:40], k))
        assert_equal([one.vectors_of([5, 3])], [served.embeddings.vectors_of([5, 3])])
    finally:
        served.stop()


def test_holders_of_the_same_shards_are_on_different_nodes(run: Any) -> None:
    for group in (0, 1):
        nodes = {run.status_of(group, replica)["node"] for replica in (0, 1)}
        assert len(nodes) == 2


def test_another_process_connects_by_name(run: Any) -> None:
    code = (
        "import sys, numpy as np\n"
        "from bitweigh import cluster\n"
        "found = cluster.connect('test', address=sys.argv[1])\n"
        "print(found.search(np.ones((64, 2)), 3).ids.tolist())\n"
        "found.close()\n"
    )
    expected = run.cluster.search(np.ones((64, 2)), 3).ids.tolist()
    done = subprocess.run(
        [sys.executable, "-c", code, run.nodes.address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip().splitlines()[-1] == str(expected), done.stderr


def test_the_command_line_speaks_to_a_cluster(run: Any) -> None:
    def said(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "bitweigh", "cluster", *arguments]
        done = subprocess.run(
            [*command, "--address", run.nodes.address, "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found

    status = said("status", "test")
    assert status["rows"] == len(run.cluster)
    assert [len(group) for group in status["holders"]] == [2, 2]
    assert status["missing"] == []
    assert said("publish", "test")["version"] == run.cluster.version.number
    started = said("start", str(run.url), "--name", "second", "--groups", "1")
    assert started["holders"] == [[["bitweigh-second-0-0", "open"]]]
    assert said("stop", "second") == {"name": "second", "stopped": True}


def test_the_command_line_searches_by_a_cluster(run: Any, tmp_path: Path) -> None:
    queries = np.random.default_rng(4).integers(0, 256, (5, 8), dtype=np.uint8)
    np.save(tmp_path / "queries.npy", queries)
    command = [sys.executable, "-m", "bitweigh", "cluster", "search", "test", "queries.npy"]
    options = ["-k", "3", "--hamming", "-o", "found.npz", "--address", run.nodes.address]
    subprocess.run([*command, *options], cwd=tmp_path, timeout=60, check=True)
    expected = run.cluster.search_codes(queries, 3)
    with np.load(tmp_path / "found.npz") as found:
        assert_equal(expected, (found["distances"], found["ids"]))


def test_a_server_answers_by_a_cluster_over_http(run: Any, tmp_path: Path) -> None:
    costs = np.random.default_rng(6).standard_normal((5, 64, 2))
    environment = {**os.environ, "RAY_ADDRESS": run.nodes.address}
    options = [str(tmp_path / "data"), "--quiet", "--cluster", "wiki=ray:test"]
    process, url = started_server(*options, env=environment)
    try:
        with Client(url) as client:
            found = client["wiki"].search_costs(costs, 7)
            assert_equal(run.cluster.search(costs, 7), (found.distances, found.ids))
            assert (found.complete, found.seq) == (True, run.cluster.version.number)
            holders = client["wiki"].info()["cluster"]["groups"]
            assert [group["replicas"] for group in holders] == [2, 2]
    finally:
        stop(process)


def test_a_name_is_used_once(run: Any) -> None:
    with pytest.raises(ValueError, match="there is a cluster 'test' already"):
        cluster.start(run.url, "test")
    with pytest.raises(KeyError, match="no cluster 'other'"):
        cluster.connect("other")
    with pytest.raises(ValueError, match="name must be letters"):
        cluster.start(run.url, "a-b")


def test_publishing_under_load_never_mixes_versions(run: Any) -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 256, (3000, 8), dtype=np.uint8)
    costs = rng.standard_normal((3, 64, 2))
    published(run, codes, np.arange(3000), 4)
    answers = {run.cluster.version.number: run.cluster.search(costs, 20).ids.tobytes()}
    for _ in range(3):
        near = cluster.open(run.url).search(costs, 20).ids
        version = cluster.update(run.url, remove=np.unique(near[:, ::2]))
        answers[version.number] = cluster.open(run.url).search(costs, 20).ids.tobytes()
    seen: list[bytes] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            seen.append(run.cluster.search(costs, 20).ids.tobytes())

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    numbers = list(answers)
    for number in (*numbers[1:], *numbers[::-1]):
        time.sleep(0.3)
        run.cluster.publish(number)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(seen) > 100
    assert set(seen) <= set(answers.values())
    assert len(set(seen)) > 2


@pytest.mark.usefixtures("run")
def test_the_same_shards_are_built_by_ray_tasks(tmp_path: Path) -> None:
    codes = np.random.default_rng(8).integers(0, 256, (5000, 8), dtype=np.uint8)
    np.save(tmp_path / "codes.npy", codes)
    expected = cluster.build(codes, tmp_path / "a", shards=3)
    found = cluster.build(tmp_path / "codes.npy", tmp_path / "b", shards=3, workers="ray")
    assert found.shards == expected.shards


def test_the_command_line_builds_on_ray_from_relative_paths(run: Any, tmp_path: Path) -> None:
    codes = np.random.default_rng(9).integers(0, 256, (5000, 8), dtype=np.uint8)
    np.save(tmp_path / "codes.npy", codes)
    on_ray = ["--workers", "ray", "--address", run.nodes.address]
    for command in (
        ["build", "codes.npy", "-o", "shards", "--shards", "3"],
        ["update", "shards", "--remove", "4999"],
        ["reshard", "shards", "--shards", "2"],
    ):
        bitweigh = [sys.executable, "-m", "bitweigh", "cluster", *command, *on_ray]
        done = subprocess.run(bitweigh, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert cluster.verify(tmp_path / "shards").shards == (
        cluster.build(codes[:-1], tmp_path / "local", shards=2).shards
    )


def test_scaling_starts_and_stops_holders(run: Any) -> None:
    before = run.cluster.search(np.ones((64, 2)), 5).ids
    run.cluster.scale(1)
    assert [len(group) for group in run.cluster.status().holders] == [1, 1]
    assert np.array_equal(run.cluster.search(np.ones((64, 2)), 5).ids, before)
    run.cluster.scale(2)
    assert [len(group) for group in run.cluster.status().holders] == [2, 2]
    assert np.array_equal(run.cluster.search(np.ones((64, 2)), 5).ids, before)


def test_the_only_holder_of_a_shard_is_named_when_lost_and_comes_back(run: Any) -> None:
    run.cluster.scale(1)
    # The holder may be back before this process would usually give up.
    hasty = cluster.connect("test", patience=Patience(lost=0.2))
    before = hasty.search(np.ones((64, 2)), 5).ids
    run.kill(1, 0)
    began = time.monotonic()
    with pytest.raises(IncompleteError, match=r"shard 1 \([\d,]+ of [\d,]+ rows\)"):
        hasty.search(np.ones((64, 2)), 5)
    assert time.monotonic() - began < 2
    while True:
        found = hasty.search(np.ones((64, 2)), 5, partial=True)
        if found.complete:
            break
        assert time.monotonic() - began < 10
    assert np.array_equal(found.ids, before)
    hasty.close()
    run.cluster.scale(2)
