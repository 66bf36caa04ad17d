"""Searches in a disturbed thread: nested in other searches, or in another floating-point mode."""

from __future__ import annotations

import ctypes
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np
import pytest

import bitweigh
from bitweigh import SearchResult

RNG = np.random.default_rng(7)


def assert_same(found: SearchResult, expected: SearchResult) -> None:
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.distances.view(np.int64), expected.distances.view(np.int64))


def random_index(n: int, n_bits: int, bands: int, band_bits: int) -> bitweigh.Index:
    index = bitweigh.Index(n_bits, bands=bands, band_bits=band_bits)
    index.add(RNG.integers(0, 256, (n, n_bits // 8), dtype=np.uint8))
    index.build()
    return index


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_a_signal_handler_may_search_while_a_search_is_under_way() -> None:
    outer = random_index(50_000, 64, bands=2, band_bits=10)
    inner = random_index(5_000, 64, bands=8, band_bits=8)
    costs = RNG.standard_normal((60, 64, 2))
    expected = outer.search(costs, 10, threads=1, method="scan")
    inner_expected = inner.search(costs[0], 5, method="scan")
    inside: list[SearchResult] = []

    def search_inside(_number: int, _frame: FrameType | None) -> None:
        inside.append(inner.search(costs[0], 5, method="probe"))

    before = signal.signal(signal.SIGALRM, search_inside)
    try:
        found = []
        while not inside:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            found.append(outer.search(costs, 10, threads=1, method="probe"))
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for one in found:
        assert_same(one, expected)
    for one in inside:
        assert_same(one, inner_expected)


@contextmanager
def tiny_numbers_taken_for_zero() -> Iterator[None]:
    """Flush subnormals to zero in this thread, as loading a -ffast-math library does."""
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # glibc's fenv_t on x86-64; the last word is MXCSR
    assert libm.fegetenv(environment) == 0
    before = environment[7]
    environment[7] = before | 0x8040
    assert libm.fesetenv(environment) == 0
    try:
        yield
    finally:
        environment[7] = before
        libm.fesetenv(environment)


NEEDS_GLIBC = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or not platform.libc_ver()[0],
    reason="the floating-point mode is set by glibc's functions for x86-64",
)


@NEEDS_GLIBC
@pytest.mark.timeout(60)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("method", ["scan", "probe"])
def test_costs_next_to_nothing_count_whatever_the_floating_point_mode_of_the_caller(
    method: bitweigh.index.Method, threads: int, dtype: type[np.floating]
) -> None:
    index = random_index(2_000, 8, bands=2, band_bits=4)
    least = np.finfo(dtype).smallest_normal
    costs = (RNG.standard_normal((20, 8, 2)) * float(least)).astype(dtype)
    expected = index.search(costs, 20, method="scan")
    radii = expected.distances[:, -1].copy()
    within = index.range_search(costs, radii, method="scan")
    with tiny_numbers_taken_for_zero():
        assert least * dtype(0.5) == 0, "the mode was not changed"
        found = index.search(costs, 20, method=method, threads=threads)
        found_within = index.range_search(costs, radii, method=method, threads=threads)
        assert least * dtype(0.5) == 0, "the mode of the caller was not restored"
    assert_same(found, expected)
    np.testing.assert_array_equal(found_within.lims, within.lims)
    np.testing.assert_array_equal(found_within.ids, within.ids)
