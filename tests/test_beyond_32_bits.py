"""More rows and larger ids than 32 bits can count, in arrays that map one small file repeatedly."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import bitweigh
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._index.state import State

TILE_ROWS = 1 << 26
SEGMENT_ROWS = 1 << 31
N_SEGMENTS = 3
# Far above 2^32 themselves.
BASES = [5, 2**33, 2**50]
# The row of each tile that is unlike all others.
RARE_ROW, RARE_CODE = 12_345_679, 255


def tiled(path: Path, size: int) -> NDArray[np.uint8]:
    """Map a file repeatedly into adjacent addresses, `size` bytes in all."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    start = libc.mmap(None, size, 0, anonymous, -1, 0)
    fixed = mmap.MAP_SHARED | 0x10  # MAP_FIXED
    with path.open("rb") as file:
        for offset in range(0, size, TILE_ROWS):
            placed = libc.mmap(start + offset, TILE_ROWS, mmap.PROT_READ, fixed, file.fileno(), 0)
            assert placed == start + offset
    return np.ctypeslib.as_array(ctypes.cast(start, ctypes.POINTER(ctypes.c_uint8)), (size,))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> bitweigh.Index:
    path = tmp_path_factory.mktemp("tile") / "tile"
    codes = np.random.default_rng(0).integers(0, 200, TILE_ROWS, dtype=np.uint8)
    codes[RARE_ROW] = RARE_CODE
    codes.tofile(path)
    # Codes of one byte lie in their blocks as they come.
    blocks = tiled(path, SEGMENT_ROWS)
    parts = [
        LiveSegment(Segment(8, blocks, range(base, base + SEGMENT_ROWS), None)) for base in BASES
    ]
    index = bitweigh.Index(8, memory_limit=0)
    index._state = State(tuple(parts), None, BASES[-1] + SEGMENT_ROWS)
    return index


def costs_of(code: int) -> NDArray[np.float64]:
    return bitweigh.costs.hamming(np.array([code], dtype=np.uint8), 8)


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="maps a file in Linux's way")
RARE_IDS = np.array(
    [
        base + tile * TILE_ROWS + RARE_ROW
        for base in BASES
        for tile in range(SEGMENT_ROWS // TILE_ROWS)
    ]
)


@linux_only
def test_rows_are_counted_beyond_32_bits(index: bitweigh.Index) -> None:
    assert len(index) == N_SEGMENTS * SEGMENT_ROWS > 2**32
    assert index.memory().ids == 0


@linux_only
def test_search_finds_rows_beyond_32_bits(index: bitweigh.Index) -> None:
    found = index.search(costs_of(RARE_CODE), len(RARE_IDS))
    np.testing.assert_array_equal(found.ids, RARE_IDS)
    assert (found.distances == 0).all()


@linux_only
def test_range_search_finds_rows_beyond_32_bits(index: bitweigh.Index) -> None:
    found = index.range_search(costs_of(RARE_CODE), 0.5)
    np.testing.assert_array_equal(found.ids, RARE_IDS)


@linux_only
def test_codes_and_removal_by_ids_beyond_32_bits(index: bitweigh.Index) -> None:
    some = RARE_IDS[[0, 40, -1]]
    assert (index.codes_of(some) == RARE_CODE).all()
    assert not index.contains([BASES[0] - 1, BASES[0] + SEGMENT_ROWS, 2**62]).any()
    changed = index.copy()
    assert changed.remove(some) == 3
    assert len(changed) == len(index) - 3
    found = changed.search(costs_of(RARE_CODE), len(RARE_IDS) - 3)
    np.testing.assert_array_equal(found.ids, np.setdiff1d(RARE_IDS, some))
