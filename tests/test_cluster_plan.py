"""`cluster.plan`: sizes, machines and times of codes that may not have been built yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import cluster
from bitweigh.cluster.object_store import ObjectStore
from bitweigh.cluster.stores import FolderStore

CODES = np.random.default_rng(0).integers(0, 256, (3000, 8), dtype=np.uint8)
GB = 10**9


@pytest.mark.parametrize(
    "options",
    [
        {"bands": 4},
        {"bands": 0},
        {"layout": "lean"},
        {"layout": "lean", "bands": 1, "band_bits": 10},
        {"bands": 3, "band_bits": 12},
    ],
    ids=str,
)
def test_estimated_sizes_are_those_of_a_build(options: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (300_000, 8), dtype=np.uint8)
    expected = cluster.plan(codes, shards=2, **options)
    version = cluster.build(codes, tmp_path, shards=2, **options)
    # Headers, manifests, and rows that a hash does not spread quite evenly.
    assert version.n_bytes == pytest.approx(expected.n_bytes, rel=0.01, abs=20_000)


def test_bands_that_may_be_built_are_counted() -> None:
    # Whether they pay is not known without the codes.
    assert cluster.plan(rows=200_000, n_bits=64).n_bytes > 3 * 12 * 200_000
    # Few rows never have any.
    assert cluster.plan(CODES).n_bytes == 12 * 3008 - 4 * 8
    limited = cluster.plan(rows=200_000, n_bits=64, memory_limit=200_000 * 12, layout="plain")
    assert limited.n_bytes == 200_000 * 12


def test_a_version_knows_its_sizes(tmp_path: Path) -> None:
    version = cluster.build(CODES, tmp_path, shards=3)
    found = cluster.plan(tmp_path, nodes=2)
    assert found.exact
    assert (found.rows, found.n_bits, found.shards) == (3000, 64, 3)
    assert found.n_bytes == version.n_bytes
    two_largest = sorted(shard.n_bytes for shard in version.shards)[1:]
    assert found.bytes_per_node == sum(two_largest)
    assert "about" not in str(found)


def test_the_newest_version_counts(tmp_path: Path) -> None:
    cluster.build(CODES, tmp_path)
    cluster.update(tmp_path, remove=[5])
    assert cluster.plan(str(tmp_path)).rows == 2999


def test_rows_come_from_any_source(tmp_path: Path) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    plans = [
        cluster.plan(CODES),
        cluster.plan(tmp_path / "codes.npy"),
        cluster.plan([tmp_path / "codes.npy"]),
        cluster.plan(tmp_path),
        cluster.plan(rows=3000, n_bits=64),
    ]
    assert len(set(plans)) == 1


def test_a_url_without_shards_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectStore, "__init__", lambda store, url: setattr(store, "url", url))
    monkeypatch.setattr(ObjectStore, "version_numbers", lambda _: [])
    with pytest.raises(FileNotFoundError, match="s3://bucket/name has no versions"):
        cluster.plan("s3://bucket/name")


def test_as_many_machines_are_needed_as_hold_all_shards() -> None:
    # 20 shards of about 408 MB each.
    whole = cluster.plan(rows=400_000_000, n_bits=64, memory=100 * GB)
    assert (whole.shards, whole.machines, whole.nodes) == (20, 1, 2)
    assert 7 * GB < whole.n_bytes < 9 * GB
    assert whole.bytes_per_node == whole.n_bytes // 2
    half = cluster.plan(rows=400_000_000, n_bits=64, memory=5 * GB)
    assert (half.machines, half.nodes) == (2, 2)
    # Nodes have whole shards, and other things in memory: 1 GB is room for one shard.
    assert cluster.plan(rows=400_000_000, n_bits=64, memory=GB).machines == 20
    assert cluster.plan(rows=400_000_000, n_bits=64, memory=GB // 2).machines is None


def test_one_machine_is_faster_until_scans_take_longer_than_calls() -> None:
    def faster_alone(rows: int) -> bool:
        found = cluster.plan(rows=rows, n_bits=64, shards=2, memory=100 * GB)
        return found.alone_ms < found.cluster_ms

    assert faster_alone(10_000_000)
    assert not faster_alone(20_000_000)


def test_one_node_is_never_faster_than_none() -> None:
    for rows in (1000, 10**6, 10**9):
        found = cluster.plan(rows=rows, n_bits=256, nodes=1)
        assert found.cluster_ms == pytest.approx(found.alone_ms + 1.4)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"rows": 1000}, "one machine is faster: the calls of a cluster take 1.4 ms"),
        ({"rows": 10**6, "shards": 2}, "a scan of all codes 0.3 ms"),
        ({"rows": 10**8}, "where bands help; where they do not, 2 nodes would be"),
        ({"rows": 10**10}, "a cluster of 3 machines has memory for all codes"),
        ({"rows": 10**10, "shards": 2}, "more shards are needed: one takes 9"),
    ],
    ids=str,
)
def test_the_advice_is_one_line(options: dict[str, Any], advice: str) -> None:
    found = cluster.plan(n_bits=64, memory=80 * GB, **options)
    assert advice in found.advice
    assert "\n" not in found.advice
    assert str(found).endswith(found.advice)


def test_it_reads_as_text() -> None:
    lines = str(cluster.plan(rows=10**10, n_bits=64, shards=2, memory=80 * GB)).splitlines()
    assert lines[0] == "10,000,000,000 codes of 64 bits in 2 shards"
    assert "no machine of 80.0 GB has room for a shard; on 2 nodes" in lines[2]
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "give a source of codes, or rows= and n_bits="),
        ({"rows": 5}, "give a source of codes, or rows= and n_bits="),
        ({"rows": 5, "n_bits": 8, "codes": "code"}, "give a source of codes"),
        ({"rows": -1, "n_bits": 8}, "rows must be from 0"),
        ({"source": CODES, "rows": 5}, "leave out rows="),
        ({"source": CODES, "nodes": 2}, "nodes must be from 1 to 1, got 2"),
        ({"source": CODES, "memory": 0}, "memory must be from 1"),
        ({"source": CODES, "bands": -1}, "bands must be from 0"),
        ({"source": CODES, "rows_per_shard": 0}, "rows_per_shard must be from 1"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        cluster.plan(**options)


@pytest.mark.parametrize("option", [{"bands": 2}, {"n_bits": 64}, {"shards": 2}], ids=str)
def test_a_version_has_its_options_already(option: dict[str, Any], tmp_path: Path) -> None:
    cluster.build(CODES, tmp_path)
    with pytest.raises(ValueError, match="give nodes= and memory= only"):
        cluster.plan(tmp_path, **option)


def test_planning_writes_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    cluster.plan(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["codes.npy"]
    assert FolderStore(tmp_path).version_numbers() == []
