"""Pages of mapped indexes: what explain() counts is what a search reads, and nothing else is."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import assert_same

import bitweigh

N, N_BITS, PAGE = 200_000, 64, 4096

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs mincore of Linux")


def rows() -> np.ndarray:
    """Codes in clusters, so that bands lead to the nearest."""
    rng = np.random.default_rng(3)
    centres = rng.integers(0, 256, (2000, N_BITS // 8), dtype=np.uint8)
    noise = rng.integers(0, 256, (3, N, N_BITS // 8), dtype=np.uint8)
    return centres[rng.integers(0, 2000, N)] ^ (noise[0] & noise[1] & noise[2])


# Queries like some of the codes.
COSTS = bitweigh.costs.from_weights(
    rows()[:3], np.random.default_rng(4).random((3, N_BITS, 2)) * [0, 1]
)


def drop_cached(folder: Path) -> None:
    """Write the files of a folder to disk and drop their pages from memory."""
    gc.collect()
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def cached_pages(folder: Path) -> int:
    """Count the pages of the files of a folder that are in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    pages = 0
    for path in folder.glob("*.npy"):
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
        array = np.frombuffer(mapping, np.uint8)
        resident = (ctypes.c_ubyte * -(-len(array) // PAGE))()
        address = ctypes.c_void_p(array.ctypes.data)
        assert libc.mincore(address, ctypes.c_size_t(len(array)), resident) == 0
        pages += sum(flags & 1 for flags in resident)
        del array
        mapping.close()
    return pages


def loaded_cold(folder: Path) -> bitweigh.Index:
    """Load an index none of whose pages is in memory, and of which only pages asked for get there.

    A page that is read without being asked for comes alone.
    """
    drop_cached(folder)
    if cached_pages(folder):
        pytest.skip("the file system does not drop pages from memory")
    index = bitweigh.Index.load(folder, mmap=True)
    for part in index._state.segments:
        segment = part.segment
        arrays = [segment.blocks, segment.ids, segment.bands[0].starts]
        arrays += [band.blocks for band in segment.bands]
        arrays += [band.rows for band in segment.bands if band.rows is not None]
        for array in arrays:
            owner: object = array
            while isinstance(owner, np.ndarray):
                owner = owner.base
            mapping = owner.obj if isinstance(owner, memoryview) else owner
            assert isinstance(mapping, mmap.mmap)
            mapping.madvise(mmap.MADV_RANDOM)
    return index


def is_all_but_ties(counted: int, read: int) -> bool:
    """Whether all pages read were counted, but for a few: ids of rows as far as the k-th."""
    return counted <= read <= 2 + 1.01 * counted


@pytest.fixture(scope="module", params=["lean", "plain"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    path = tmp_path_factory.mktemp("pages") / request.param
    if request.param == "lean":
        bitweigh.Index.from_batches(rows(), path, layout="lean", band_bits=15)
    else:
        index = bitweigh.Index(N_BITS, bands=3)
        index.add(rows(), np.random.default_rng(5).permutation(N))
        index.build()
        index.save(path)
    return path


@linux
@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("method", ["probe", "scan"])
def test_explain_counts_the_pages_that_a_search_reads(folder: Path, k: int, method: str) -> None:
    index = loaded_cold(folder)
    before = cached_pages(folder)
    first = index.explain(COSTS[0], k, method=method)
    assert first.pages_from_disk > 0
    read = cached_pages(folder) - before
    if method == "scan" and folder.name == "lean":
        # It passes over keys that cost too much, but counts their pages.
        assert first.pages_from_disk / 2 < read <= first.pages_from_disk
    else:
        assert is_all_but_ties(first.pages_from_disk, read)
    again = index.explain(COSTS[0], k, method=method)
    assert again.pages == first.pages
    assert again.pages_from_disk <= max(0, first.pages_from_disk - read) + 1
    # Little more than the pages with the headers of files were there.
    assert first.pages_from_disk <= first.pages <= 1.01 * first.pages_from_disk + before


@linux
@pytest.mark.parametrize("k", [1, 10, 300])
def test_a_search_reads_no_more_than_explain_counts(folder: Path, k: int) -> None:
    index = loaded_cold(folder)
    before = cached_pages(folder)
    index.search(COSTS[1], k, threads=1, method="probe")
    read = cached_pages(folder) - before
    del index
    expected = loaded_cold(folder).explain(COSTS[1], k, method="probe")
    assert is_all_but_ties(expected.pages_from_disk, read)


def test_a_probe_reads_few_pages_and_a_scan_all(folder: Path) -> None:
    index = bitweigh.Index.load(folder, mmap=True)
    codes = index._state.segments[0].segment.blocks.nbytes // PAGE
    probed = index.explain(COSTS[0], 1, method="probe")
    scanned = index.explain(COSTS[0], 1, method="scan")
    assert 0 < probed.pages < scanned.pages / 3
    assert codes < scanned.pages < 1.2 * codes


def test_answers_are_the_same_cold_and_warm(folder: Path) -> None:
    ids = np.arange(N) if folder.name == "lean" else np.random.default_rng(5).permutation(N)
    codes = rows()
    expected = [bitweigh.reference.search(codes, costs, 10, ids=ids) for costs in COSTS]
    if sys.platform == "linux":
        drop_cached(folder)
    index = bitweigh.Index.load(folder, mmap=True)
    for _ in range(3):
        for costs, answer in zip(COSTS, expected, strict=True):
            assert_same(index.search(costs, 10, method="probe"), answer)
    radius = float(expected[0].distances[5])
    near = bitweigh.reference.distances(codes, COSTS[0]) <= radius
    found = index.range_search(COSTS[0], radius, method="probe").ids
    assert np.array_equal(np.sort(found), np.sort(ids[near]))


def test_an_explanation_tells_of_its_pages_in_words() -> None:
    index = bitweigh.Index(8)
    index.add(np.arange(200, dtype=np.uint8).reshape(-1, 1))
    explained = index.explain(np.ones((8, 2)), 3)
    assert f"{explained.pages} pages of 4 KiB read, 0 from disk" in str(explained)
    # 200 codes of a byte, and ids that are not stored.
    assert explained.pages in (1, 2)
    assert explained.as_dict()["pages_from_disk"] == 0
