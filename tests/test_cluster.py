"""Shards in a folder or an object store: the answers of one index, versions, builds and changes."""

from __future__ import annotations

import os
import signal
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.cluster.exactness import check_cases
from hypothesis import given
from hypothesis import strategies as st

import bitweigh
from bitweigh import cluster
from bitweigh._index import segments
from bitweigh.cluster import (
    HashPartition,
    RangePartition,
    Shards,
    Version,
    building,
    row_files,
    shuffle,
)
from bitweigh.cluster.shares import Shares, share_of
from bitweigh.errors import DeadlineError, LimitError
from bitweigh.index import Index

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 8, (3000, 8), dtype=np.uint8)
IDS = RNG.permutation(10_000)[:3000]
COSTS = RNG.standard_normal((5, 64, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shards"


def one_index() -> Index:
    index = Index(64)
    index.add(CODES, IDS)
    return index


def folders_of(version: Version) -> list[str]:
    return [shard.folder for shard in version.shards]


@pytest.mark.parametrize("part", range(4))
def test_shards_answer_as_one_index_in_every_byte(part: int) -> None:
    seen = check_cases(range(part, 2000, 4))
    assert seen["cases"] == 500
    # The paths that the cases are for were taken.
    for what in ("second rounds", "empty shards", "filters", "k beyond the rows"):
        assert seen[what] > 0, what
    assert seen["ties at the end"] > 100


def test_stored_shards_answer_as_one_index(folder: Path) -> None:
    version = cluster.build(CODES, folder, ids=IDS, shards=5)
    shards = cluster.open(folder)
    assert shards.version == version
    assert len(shards) == version.rows == 3000
    for k in (1, 100, 4000):
        expected = one_index().search(COSTS, k)
        found = shards.search(COSTS, k)
        assert np.array_equal(expected.ids, found.ids)
        assert np.array_equal(expected.distances, found.distances)
    assert IDS[7] in shards
    assert 10_001 not in shards


def test_loaded_shards_are_those_that_are_mapped(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=2)
    loaded = cluster.open(folder, mmap=False)
    assert np.array_equal(loaded.search(COSTS, 9).ids, cluster.open(folder).search(COSTS, 9).ids)


@given(
    ids=st.lists(st.integers(0, 2**63 - 1), max_size=40),
    starts=st.lists(st.integers(1, 2**63 - 1), unique=True, max_size=5),
)
def test_every_id_belongs_to_one_shard_of_its_range(ids: list[int], starts: list[int]) -> None:
    partition = RangePartition((0, *sorted(starts)))
    ends = (*partition.starts[1:], 2**63)
    for id_, shard in zip(ids, partition.shard_of(np.array(ids, np.int64)), strict=True):
        assert partition.starts[shard] <= id_ < ends[shard]


@given(first=st.integers(0, 2**62), shards=st.integers(1, 50))
def test_a_hash_spreads_neighbouring_ids_evenly(first: int, shards: int) -> None:
    n = 400 * shards
    counts = np.bincount(
        HashPartition(shards).shard_of(np.arange(first, first + n)), minlength=shards
    )
    # 400 are expected, with a standard deviation of at most 20.
    assert counts.min() > 280
    assert counts.max() < 520


def test_the_shard_of_an_id_never_changes() -> None:
    # splitmix64 with seed 0 begins with 0xE220A8397B1DCDAF.
    assert HashPartition(10_000).shard_of(np.array([0])).tolist() == [0xE220A8397B1DCDAF % 10_000]
    ids = np.array([0, 1, 2, 3, 10**9, 2**63 - 1])
    assert HashPartition(7).shard_of(ids).tolist() == [2, 2, 4, 2, 1, 2]


def test_the_order_of_rows_and_the_number_of_processes_do_not_change_a_byte(
    folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    np.save(tmp_path / "ids.npy", IDS)
    version = cluster.build(CODES, folder, ids=IDS, shards=3)
    shuffled = RNG.permutation(len(IDS))
    again = cluster.build(CODES[shuffled], tmp_path / "b", ids=IDS[shuffled], shards=3)
    processes = cluster.build(
        tmp_path / "codes.npy", tmp_path / "c", ids=tmp_path / "ids.npy", shards=3, workers=2
    )
    assert version.shards == again.shards == processes.shards


@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_changes_give_the_shards_that_building_all_at_once_gives(
    folder: Path, tmp_path: Path, layout: Any
) -> None:
    options: Any = {"shards": 4, "layout": layout}
    cluster.build(CODES[:2000], folder, ids=IDS[:2000], **options)
    cluster.update(folder, add=CODES[2000:], ids=IDS[2000:], remove=IDS[:50])
    cluster.update(folder, add=CODES[:50], ids=IDS[:50])
    found = cluster.reshard(folder, 6)
    expected = cluster.build(CODES, tmp_path / "all", ids=IDS, shards=6, layout=layout)
    assert found.shards == expected.shards
    assert found.number == 4
    assert found.next_id == expected.next_id


def test_free_memory_and_queries_do_not_change_a_shard(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = RNG.integers(0, 256, (140_000, 8), dtype=np.uint8)
    codes[:, 2:] = codes[:, :1]
    version = cluster.build(codes, folder, shards=1)
    monkeypatch.setattr("bitweigh._index.policy.fits_in_free_memory", lambda *_: False)
    assert cluster.build(codes, tmp_path / "b", shards=1).shards == version.shards
    assert cluster.open(folder).memory().directories > 0  # it has bands, which need memory


def test_a_shard_that_does_not_change_is_not_written_again(folder: Path) -> None:
    version = cluster.build(CODES, folder, ids=IDS, shards=5)
    changed = cluster.update(folder, remove=IDS[:1])
    number = int(HashPartition(5).shard_of(IDS[:1])[0])
    same = [a == b for a, b in zip(version.shards, changed.shards, strict=True)]
    assert same == [shard != number for shard in range(5)]


def test_rows_without_ids_are_numbered_after_the_largest_so_far(folder: Path) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    cluster.update(folder, remove=[9])
    cluster.update(folder, add=CODES[10:12])
    assert cluster.open(folder).ids.tolist() == [*range(9), 10, 11]


def test_an_id_that_is_there_is_refused_or_replaced(folder: Path) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    with pytest.raises(ValueError, match="ids must be new, but ids\\[0\\] = 3 is in use"):
        cluster.update(folder, add=CODES[20:21], ids=[3])
    assert cluster.versions(folder) == [1]
    cluster.update(folder, add=CODES[20:21], ids=[3], on_duplicate="replace")
    assert np.array_equal(cluster.open(folder).codes_of([3]), CODES[20:21])


def test_an_id_that_is_not_there_cannot_be_removed(folder: Path) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    with pytest.raises(KeyError, match="id 77 is not in version 1"):
        cluster.update(folder, remove=[3, 77])
    assert cluster.versions(folder) == [1]
    assert cluster.update(folder, remove=[3, 77], on_missing="ignore").rows == 9


def test_an_id_that_occurs_twice_in_different_pieces_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_PIECE_BYTES", 160)
    with pytest.raises(ValueError, match="an id must occur once, but 5 occurs twice"):
        cluster.build(CODES[:40], folder, ids=[*range(39), 5], shards=2)
    assert cluster.versions(folder) == []
    assert cluster.build(CODES[:40], folder, shards=2).rows == 40


def test_shards_without_rows_are_shards(folder: Path) -> None:
    cluster.build(CODES[:3], folder, ranges=[0, 100, 200])
    shards = cluster.open(folder)
    assert [len(shard) for shard in shards.shards] == [3, 0, 0]
    assert shards.search(COSTS[0], 5).ids.tolist()[3:] == [-1, -1]
    assert cluster.verify(folder).rows == 3


def test_nothing_at_all_can_be_built_and_filled_later(folder: Path) -> None:
    cluster.build(CODES[:0], folder, n_bits=64, shards=2)
    assert len(cluster.open(folder)) == 0
    cluster.update(folder, add=CODES[:5])
    assert len(cluster.open(folder)) == 5


def test_building_where_there_is_a_version_needs_to_be_asked_for(folder: Path) -> None:
    cluster.build(CODES[:10], folder, shards=2)
    with pytest.raises(FileExistsError, match="has version 1"):
        cluster.build(CODES[:20], folder, shards=2)
    assert cluster.build(CODES[:20], folder, shards=2, overwrite=True).number == 2


def test_a_killed_worker_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "codes.npy", CODES)
    expected = cluster.build(CODES, tmp_path / "expected", shards=4)
    monkeypatch.setenv("BITWEIGH_TEST_KILL", str(tmp_path / "killed"))
    monkeypatch.setattr(building, "collect_shard", killed_once)
    found = cluster.build(tmp_path / "codes.npy", folder, shards=4, workers=2)
    assert (tmp_path / "killed").exists()
    assert found.shards == expected.shards
    assert cluster.verify(folder).rows == 3000


def killed_once(url: str, build: str, layout: Any, places: Any, threads: int | None) -> Any:
    """As `collect_shard`, but the first process to come here dies."""
    try:
        os.close(os.open(os.environ["BITWEIGH_TEST_KILL"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return shuffle.collect_shard(url, build, layout, places, threads)
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def test_a_range_search_counts_the_codes_of_all_shards_for_its_limit(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=3)
    with pytest.raises(LimitError, match="query 0 has more than limit=2000"):
        cluster.open(folder).range_search(COSTS[0], np.inf, limit=2000)


def test_a_deadline_is_that_of_all_shards_together() -> None:
    index = Index(64)
    index.add(RNG.integers(0, 256, (200_000, 8), dtype=np.uint8))
    shards = Shards([index, Index(64)], RangePartition((0, 10**9)))
    with pytest.raises(DeadlineError):
        shards.search(np.repeat(COSTS, 1000, axis=0), 10, timeout=0.001, method="scan")


def test_shares_are_given_up_where_they_are_not_enough_too_often() -> None:
    shares = Shares(sensible=True)
    assert shares.of(1000, 4) == share_of(1000, 4) == 314
    shares.note(1000, 40)
    assert shares.of(1000, 4) == 314
    shares.note(1000, 200)
    assert shares.of(1000, 4) == 1000
    for _ in range(10):
        shares.note(1000, 0)
    assert shares.of(1000, 4) == 314
    assert shares.second_rounds == 240


@given(k=st.integers(64, 10_000), shards=st.integers(1, 100))
def test_shares_cover_k_and_never_exceed_it(k: int, shards: int) -> None:
    share = share_of(k, shards)
    assert share <= k
    assert share * shards >= k


def test_ranges_are_asked_for_all_k() -> None:
    assert Shares(sensible=False).of(1000, 4) == 1000


def test_each_shard_explains_its_search(folder: Path) -> None:
    cluster.build(CODES, folder, ids=IDS, shards=3)
    explained = cluster.open(folder).explain(COSTS[0], 10)
    assert len(explained.shards) == 3
    assert "shard 2: scan" in str(explained)


def test_options_that_contradict_each_other_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="give shards= or ranges=, not both"):
        cluster.build(CODES, folder, shards=2, ranges=[0, 5])
    with pytest.raises(ValueError, match="ranges must be ascending"):
        cluster.build(CODES, folder, ranges=[3, 5])
    with pytest.raises(ValueError, match="rows_per_shard=1 makes 20000 shards: 10000 at most"):
        cluster.build(np.zeros((20_000, 1), np.uint8), folder, rows_per_shard=1)
    with pytest.raises(ValueError, match="workers must be"):
        cluster.build(CODES, folder, workers=0)
    assert not folder.exists()


def test_parquet_files_are_read_by_their_columns(folder: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for number, rows in enumerate(np.array_split(np.arange(3000), 3)):
        table = pa.table({"hash": [bytes(code) for code in CODES[rows]], "key": IDS[rows]})
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=400)
    files = sorted(tmp_path.glob("*.parquet"))
    version = cluster.build(files, folder, codes="hash", ids="key", rows_per_shard=1000, workers=2)
    assert version.shards == cluster.build(CODES, tmp_path / "b", ids=IDS, shards=3).shards


def test_the_library_does_not_import_the_cluster() -> None:
    import subprocess
    import sys

    code = "import sys, bitweigh; assert not any('cluster' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = (
        "import sys, bitweigh.cluster; assert not {'ray', 'obstore', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert bitweigh.Index is Index


def test_only_what_bands_need_is_in_memory_while_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 1 << 18
    rng = np.random.default_rng(0)
    np.save(tmp_path / "codes.npy", rng.integers(0, 4, (rows, 8), dtype=np.uint8))
    np.save(tmp_path / "ids.npy", rng.permutation(rows))
    held = []
    build_bands = segments.build_bands

    def measured(codes: Any, *arguments: Any) -> Any:
        if len(codes) == rows:
            held.append(tracemalloc.get_traced_memory()[0] / rows)
        return build_bands(codes, *arguments)

    monkeypatch.setattr(segments, "build_bands", measured)
    tracemalloc.start()
    try:
        cluster.build(tmp_path / "codes.npy", tmp_path / "s", ids=tmp_path / "ids.npy", shards=1)
    finally:
        tracemalloc.stop()
    # A row has a code of 8 bytes, an id and its place by id of 4 each. Neither the rows as they
    # were collected, nor the order that they were sorted in, are there.
    assert len(held) == 1
    assert 16 <= held[0] < 20


@pytest.mark.parametrize("small_enough_for_the_engine", [True, False])
def test_rows_are_collected_in_ascending_id(
    small_enough_for_the_engine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small_enough_for_the_engine:
        monkeypatch.setattr(row_files._core, "max_segment_rows", 100)
    codes, ids = row_files.sorted_in_files(CODES, IDS, tmp_path)
    order = np.argsort(IDS)
    assert np.array_equal(codes, CODES[order])
    assert np.array_equal(ids, IDS[order])
