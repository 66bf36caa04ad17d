"""What is stored of shards: versions, publishing, damage, cleaning up, object stores."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitweigh import cluster
from bitweigh._storage.sealed_json import seal
from bitweigh.cluster import HashPartition, PublishConflictError, Version, building
from bitweigh.cluster.object_store import ObjectStore
from bitweigh.cluster.serving.desired import Desired
from bitweigh.cluster.stores import FolderStore, Store, open_store
from bitweigh.cluster.version import ShardOptions, StoredShard
from bitweigh.errors import CorruptFileError
from bitweigh.index import Index

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 8, (3000, 8), dtype=np.uint8)
IDS = RNG.permutation(10_000)[:3000]
COSTS = RNG.standard_normal((5, 64, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shards"


def folders_of(version: Version) -> list[str]:
    return [shard.folder for shard in version.shards]


def test_an_older_version_can_still_be_opened(folder: Path) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    cluster.update(folder, remove=[1])
    assert len(cluster.open(folder, version=1)) == 10
    assert len(cluster.open(folder)) == 9
    with pytest.raises(FileNotFoundError, match="has no version 3, the newest is 2"):
        cluster.open(folder, version=3)


def test_of_two_publishers_one_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    changed = building._changed

    def slow(*arguments: Any) -> Any:
        result = changed(*arguments)
        monkeypatch.setattr(building, "_changed", changed)
        cluster.update(folder, remove=[1])  # somebody else is faster
        return result

    monkeypatch.setattr(building, "_changed", slow)
    with pytest.raises(PublishConflictError, match="version 2 was published") as error:
        cluster.update(folder, remove=[2])
    assert error.value.number == 2
    assert 2 in cluster.open(folder)
    assert 1 not in cluster.open(folder)


def test_many_publishers_at_once_give_versions_in_a_row(folder: Path) -> None:
    cluster.build(CODES[:40], folder, shards=2)

    def remove(id_: int) -> int:
        while True:
            try:
                return cluster.update(folder, remove=[id_]).number
            except PublishConflictError:
                continue

    with ThreadPoolExecutor(4) as pool:
        numbers = sorted(pool.map(remove, range(8)))
    assert numbers == list(range(2, 10))
    assert cluster.open(folder).ids.tolist() == list(range(8, 40))


def test_builds_leave_nothing_behind(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=3)
    with pytest.raises(ValueError, match="in use"):
        cluster.update(folder, add=CODES[:1], ids=IDS[:1])
    assert list((folder / "staging").iterdir()) == []


def test_vacuum_keeps_what_the_newest_versions_need(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=3)
    for id_ in IDS[:4]:
        cluster.update(folder, remove=[id_])
    opened = cluster.open(folder, version=1)
    before = opened.search(COSTS, 5)
    gone = cluster.vacuum(folder, keep=2)
    assert gone.versions == [1, 2, 3]
    assert cluster.versions(folder) == [4, 5]
    assert len(gone.shards) == 7 - len(
        {*folders_of(cluster.verify(folder, version=4)), *folders_of(cluster.verify(folder))}
    )
    # What was opened stays.
    assert np.array_equal(opened.search(COSTS, 5).ids, before.ids)


def test_vacuum_keeps_what_a_cluster_serves(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=3)
    for id_ in IDS[:4]:
        cluster.update(folder, remove=[id_])
    Desired(3, 1, 1, 1, 1).write(FolderStore(folder), "wiki")
    assert cluster.vacuum(folder, keep=1).versions == [2, 4]
    assert cluster.verify(folder, version=3).rows == 2998
    FolderStore(folder).write_state("wiki", None)
    assert cluster.vacuum(folder, keep=1).versions == [1, 3]


def staged(store: Store, build: str, hours: Sequence[float]) -> None:
    """Stage files of a build, written so many hours ago."""
    folder = Path(store.url.removeprefix("file://")) / "staging" / build
    for number, age in enumerate(hours):
        with store.workspace() as work:
            (work / "piece").write_bytes(b"rows")
            store.put_staged(build, f"piece-{number}", work / "piece")
        written = time.time() - 3600 * age
        os.utime(folder / f"piece-{number}", (written, written))
    oldest = time.time() - 3600 * max(hours)
    os.utime(folder, (oldest, oldest))


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_vacuum_deletes_what_killed_builds_have_left(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    store = request.getfixturevalue("bucket") if kind == "bucket" else FolderStore(folder)
    cluster.build(CODES, store.url, ids=IDS, shards=2)
    staged(store, "build-old", [30, 25])
    staged(store, "build-running", [30, 23])
    assert cluster.vacuum(store.url) == ([], [], ["build-old"])
    assert list(store.staged_builds()) == ["build-running"]
    assert store.read_staged("build-running", "piece-0", 0, 4) == b"rows"
    gone = cluster.vacuum(store.url, staged_older_than=timedelta(hours=22))
    assert gone.builds == ["build-running"]
    assert cluster.verify(store.url).rows == 3000


def test_vacuum_needs_an_age_with_its_unit(folder: Path) -> None:
    with pytest.raises(
        TypeError, match=r"staged_older_than must be a datetime\.timedelta, got int"
    ):
        cluster.vacuum(folder, staged_older_than=3600)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not be negative, got -1 day"):
        cluster.vacuum(folder, staged_older_than=timedelta(days=-1))


def test_verify_finds_a_damaged_shard(folder: Path) -> None:
    version = cluster.build(CODES, folder, ids=IDS, shards=3)
    shard = folder / "shards" / version.shards[1].folder
    victim = next(path for path in shard.iterdir() if path.name.startswith("codes"))
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    with pytest.raises(CorruptFileError, match=victim.name):
        cluster.verify(folder)


def test_verify_finds_an_id_in_the_wrong_shard(folder: Path) -> None:
    version = cluster.build(CODES[:100], folder, ranges=[0, 50])
    swapped = Version.from_json(FolderStore(folder).read_version(1), "")
    shards = tuple(reversed(version.shards))
    store = FolderStore(folder)
    store.create_version(2, replaced(swapped, number=2, shards=shards).to_json())
    with pytest.raises(CorruptFileError, match="id 50 does not belong to shard 0"):
        cluster.verify(folder)


def replaced(version: Version, **changes: Any) -> Version:
    return dataclasses.replace(version, **changes)


def test_a_missing_shard_is_named(folder: Path) -> None:
    version = cluster.build(CODES, folder, ids=IDS, shards=3)
    FolderStore(folder).remove_shard(version.shards[2].folder)
    with pytest.raises(CorruptFileError, match="missing: it is shard 2"):
        cluster.open(folder)
    with pytest.raises(CorruptFileError, match="missing: it is shard 2"):
        cluster.verify(folder)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("number", 0, "number must be an integer from 1"),
        ("format", "bitweigh-index", "not a version of shards"),
        ("version", 3, "written in format 3; this version of bitweigh reads up to 2"),
        ("rows", 5, "rows must be those of all shards"),
        ("n_bits", 0, "n_bits must be an integer"),
        ("partition", {"by": "hash", "function": "md5", "shards": 2}, "partition.function must be"),
        ("partition", {"by": "range", "starts": [1, 2]}, "partition.starts must be ascending ids"),
        ("partition", {"by": "range", "starts": [0]}, "shards must have 1 shards"),
        ("shards", [{"folder": "../../etc", "rows": 10}], "folder must be the checksum"),
        ("shards", {}, "shards must be a list"),
    ],
)
def test_a_version_with_a_wrong_field_is_refused(
    folder: Path, field: str, value: Any, reason: str
) -> None:
    version = cluster.build(CODES[:10], folder, shards=2)
    body = json.loads(version.to_json())
    body[field] = value
    head = {name: body.pop(name) for name in ("format", "version")}
    body.pop("checksum")
    with pytest.raises(CorruptFileError, match=reason):
        Version.from_json(seal(head, body), "v.json")


@given(data=st.data())
@settings(max_examples=60)
def test_a_damaged_version_is_refused(data: st.DataObject) -> None:
    shard = StoredShard("0" * 32, 1, 0, 0, 10)
    version = Version(
        1, None, 8, "big", 1, HashPartition(1), ShardOptions(), (shard,), "2026-01-01T00:00:00Z"
    )
    raw = bytearray(version.to_json())
    assert Version.from_json(bytes(raw), "v.json") == version
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptFileError, match=r"v\.json"):
        Version.from_json(bytes(raw), "v.json")


def object_store(folder: Path) -> ObjectStore:
    """An object store that is a folder, by the code that speaks to all object stores."""
    pytest.importorskip("obstore")
    folder.mkdir(parents=True, exist_ok=True)
    return ObjectStore(f"file://{folder}")


@pytest.fixture
def bucket(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    monkeypatch.setenv("BITWEIGH_CACHE", str(tmp_path / "cache"))
    for module in (building, "opening", "keeping", "shuffle"):
        name = module if isinstance(module, str) else "building"
        monkeypatch.setattr(
            f"bitweigh.cluster.{name}.open_store",
            lambda url: object_store(Path(str(url).removeprefix("file://"))),
        )
    return object_store(folder)


def test_an_object_store_holds_the_same_shards(bucket: ObjectStore, tmp_path: Path) -> None:
    expected = cluster.build(CODES, tmp_path / "local", ids=IDS, shards=3)
    version = cluster.build(CODES, bucket.url, ids=IDS, shards=3)
    assert version.shards == expected.shards
    cluster.update(bucket.url, remove=IDS[:5])
    assert bucket.version_numbers() == [1, 2]
    assert cluster.verify(bucket.url).rows == 2995
    one = Index(64)
    one.add(CODES, IDS)
    expected_ids = one.search(COSTS, 100, deny=IDS[:5]).ids
    assert np.array_equal(cluster.open(bucket.url).search(COSTS, 100).ids, expected_ids)
    with pytest.raises(PublishConflictError):
        bucket.create_version(2, b"other")
    gone = cluster.vacuum(bucket.url, keep=1)
    assert gone.versions == [1]
    assert sorted(bucket.shard_names()) == sorted(folders_of(cluster.verify(bucket.url)))
    assert bucket._names("staging/") == []


def test_a_download_that_was_damaged_is_not_used(bucket: ObjectStore, folder: Path) -> None:
    version = cluster.build(CODES, bucket.url, ids=IDS, shards=2)
    shard = folder / "shards" / version.shards[0].folder
    victim = next(path for path in shard.iterdir() if path.name.startswith("codes"))
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    for _ in range(2):  # the second time it is not taken from the cache either
        with pytest.raises(CorruptFileError, match=victim.name):
            cluster.open(bucket.url)


def test_the_store_of_a_url_is_chosen_by_its_scheme(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path), FolderStore)
    assert isinstance(open_store(f"file://{tmp_path}"), FolderStore)
    pytest.importorskip("obstore")
    assert isinstance(open_store("s3://bucket/name"), ObjectStore)
