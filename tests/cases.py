"""Hypothesis strategies for searches: awkward codes, adversarial costs, and settings.

Arrays are generated from a drawn seed and a drawn kind, which keeps large cases cheap to draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import _core
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._index.state import State
from bitweigh.typing import BitOrder, Codes, Ids, Method

Costs = NDArray[np.float64] | NDArray[np.float32]
Rng = np.random.Generator
KERNELS = _core.kernel_names()


@dataclass(frozen=True)
class Case:
    """The input of a search: rows, ids, queries."""

    n_bits: int
    bitorder: BitOrder
    codes: Codes
    ids: Ids | None
    costs: Costs
    k: int

    def reference(self) -> bitweigh.SearchResult:
        """Return the answer of `bitweigh.reference`."""
        return bitweigh.reference.search(
            self.codes, self.costs, self.k, ids=self.ids, bitorder=self.bitorder
        )


@dataclass(frozen=True)
class Setting:
    """How a search runs: nothing here may change the answer."""

    kernel: str
    threads: int | None
    segment_rows: int | None
    adds: int
    warm_up_rows: int
    narrow_max_bits: int
    method: Method = "scan"
    bands: int | None = None
    band_bits: int | None = None
    first_round_ns: float = 1500.0
    min_scan_factor: float = 0.0
    lean: bool = False
    """Whether segments with bands have lean rows, if codes are short enough."""

    def index(self, case: Case) -> bitweigh.Index:
        """Return an index of the case's rows, added in pieces."""
        index = bitweigh.Index(
            case.n_bits,
            bitorder=case.bitorder,
            bands=None if self.bands is None else min(self.bands, case.n_bits),
            band_bits=self.band_bits,
            build="manual" if self.method == "scan" else "auto",
        )
        index._engine.kernel = self.kernel
        index._engine.tuning.warm_up_rows = self.warm_up_rows
        index._engine.tuning.warm_up_per_k = 1 if self.warm_up_rows == 32 else 8
        index._engine.tuning.narrow_max_bits = self.narrow_max_bits
        # 256 stands for the defaults.
        index._engine.tuning.narrow_max_scan_bits = (
            160 if self.narrow_max_bits == 256 else self.narrow_max_bits
        )
        index._engine.tuning.first_round_ns = self.first_round_ns
        index._engine.tuning.min_scan_factor = self.min_scan_factor
        index._engine.tuning.min_scan_ns_per_k = self.min_scan_factor
        index._policy.banded_rows = 1
        index._policy.min_gain = 0  # for so few rows bands never pay
        if self.segment_rows is not None:
            # At most 40 segments: more take long to build and reach no other code path.
            segment_rows = max(self.segment_rows, len(case.codes) // 40)
            index._policy.segment_rows = segment_rows
            index._policy.tail_rows = max(1, segment_rows // 2)
        for piece in np.array_split(np.arange(len(case.codes)), self.adds):
            index.add(case.codes[piece], None if case.ids is None else case.ids[piece])
        if self.method != "scan":
            index.build()
        if self.lean and case.n_bits <= _core.max_lean_bits:
            index._state = with_lean_rows(index._state, case.bitorder)
        return index


def with_lean_rows(state: State, bitorder: BitOrder) -> State:
    """The same state with lean rows in every part that has bands."""

    def lean(part: LiveSegment) -> LiveSegment:
        segment = part.segment
        if not segment.bands:
            return part
        rows = np.arange(len(segment), dtype=np.uint32)
        layout = tuple(band.bits for band in segment.bands)
        codes, ids = segment.codes(rows), segment.ids_of(rows)
        rebuilt = Segment.build_lean(codes, ids, segment.n_bits, layout, bitorder)
        return LiveSegment(rebuilt, part.removed)

    tail = None if state.tail is None else lean(state.tail)
    return State(tuple(map(lean, state.segments)), tail, state.next_id)


def _random_bits(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return rng.random((n, n_bits)) < 0.5


def _skewed_bits(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return rng.random((n, n_bits)) < rng.random(n_bits) ** 3


def _few_distinct(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return _random_bits(rng, 5, n_bits)[rng.integers(0, 5, n)]


def _all_equal(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return np.repeat(_random_bits(rng, 1, n_bits), n, axis=0)


def _near_one_code(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return _all_equal(rng, n, n_bits) ^ (rng.random((n, n_bits)) < 2 / n_bits)


BITS: list[Callable[[Rng, int, int], NDArray[np.bool_]]] = [
    _random_bits,
    _skewed_bits,
    _few_distinct,
    _all_equal,
    _near_one_code,
]


def _normal(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return rng.standard_normal(shape)


def _normal32(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return rng.standard_normal(shape).astype(np.float32)


def _squares(rng: Rng, shape: tuple[int, ...]) -> Costs:
    """Costs like Asym's: squared distances to a near and a far mean."""
    query = rng.standard_normal((*shape[:-1], 1))
    return (query - np.array([-0.8, 0.8])) ** 2


def _small_integers(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return rng.integers(-2, 3, shape).astype(np.float64)


def _zeros_of_both_signs(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return np.where(rng.random(shape) < 0.5, 0.0, -0.0)


def _mostly_zero(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return np.where(rng.random(shape) < 0.1, rng.standard_normal(shape), -0.0)


def _all_costs_equal(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return np.full(shape, rng.standard_normal())


def _cancelling(rng: Rng, shape: tuple[int, ...]) -> Costs:
    """Pairs of huge costs that cancel whatever the bits' values, so that the small ones decide."""
    costs = rng.standard_normal(shape)
    huge = 10.0 ** rng.integers(8, 20)
    half = shape[-2] // 2
    chosen = rng.random((*shape[:-2], half)) < 0.3
    costs[..., :half, :] += huge * chosen[..., np.newaxis]
    costs[..., half : 2 * half, :] -= huge * chosen[..., np.newaxis]
    return costs


def _one_huge_bit(rng: Rng, shape: tuple[int, ...]) -> Costs:
    costs = rng.standard_normal(shape)
    costs[..., rng.integers(shape[-2]), :] *= 1e15
    return costs


def _subnormal(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return rng.integers(-9, 10, shape) * 5e-324


def _extreme_range(rng: Rng, shape: tuple[int, ...]) -> Costs:
    return rng.standard_normal(shape) * 10.0 ** rng.choice([-300.0, 0.0, 300.0], shape)


def _hamming(rng: Rng, shape: tuple[int, ...]) -> Costs:
    ones = rng.random(shape[:-1]) < 0.5
    return np.stack([ones, ~ones], axis=-1).astype(np.float64)


COSTS: list[Callable[[Rng, tuple[int, ...]], Costs]] = [
    _normal,
    _normal32,
    _squares,
    _small_integers,
    _zeros_of_both_signs,
    _mostly_zero,
    _all_costs_equal,
    _cancelling,
    _one_huge_bit,
    _subnormal,
    _extreme_range,
    _hamming,
]

AWKWARD_BITS = [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257, 264, 512, 520]
AWKWARD_ROWS = [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 160, 500, 1000, 2000]
BIT_COUNTS = st.sampled_from(AWKWARD_BITS) | st.integers(1, 520)
ROW_COUNTS = st.sampled_from(AWKWARD_ROWS) | st.integers(0, 2000)


def _ids(rng: Rng, kind: str, n: int) -> Ids | None:
    if kind == "default":
        return None
    if kind == "descending":
        return np.arange(n)[::-1] + 5
    return rng.choice(2**62, n, replace=False) if n else np.empty(0, dtype=np.int64)


@st.composite
def cases(
    draw: st.DrawFn,
    bits: st.SearchStrategy[int] = BIT_COUNTS,
    rows: st.SearchStrategy[int] = ROW_COUNTS,
    most_queries: int = 4,
) -> Case:
    """Draw a search over awkward data."""
    n_bits = draw(bits)
    n = draw(rows)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order: BitOrder = draw(st.sampled_from(["big", "little"]))
    unpacked = draw(st.sampled_from(BITS))(rng, n, n_bits)
    codes = np.packbits(unpacked, axis=1, bitorder=order)
    queries = draw(st.none() | st.integers(0, most_queries))
    shape = (n_bits, 2) if queries is None else (queries, n_bits, 2)
    costs = draw(st.sampled_from(COSTS))(rng, shape)
    if draw(st.booleans()):
        costs = np.asfortranarray(costs)
    k = draw(st.integers(1, n + 3) | st.sampled_from([1, 2, 10, 100]))
    ids = _ids(rng, draw(st.sampled_from(["default", "descending", "scattered"])), n)
    return Case(n_bits, order, codes, ids, costs, k)


def settings_to_run(kernel: str | None = None) -> st.SearchStrategy[Setting]:
    """Draw a way to run a search, with the given `kernel` if any."""
    return st.builds(
        Setting,
        kernel=st.sampled_from(KERNELS) if kernel is None else st.just(kernel),
        threads=st.sampled_from([1, 2, 7, None]),
        segment_rows=st.none() | st.sampled_from([1, 31, 100, 333, 1000]),
        adds=st.integers(1, 4),
        # 32 rows of warm-up let small cases reach the kernel.
        warm_up_rows=st.sampled_from([32, 32, 32, 256]),
        # 0: 16-bit sums for every length; 8192: 8-bit sums for every length.
        narrow_max_bits=st.sampled_from([256, 256, 0, 8192]),
        method=st.sampled_from(["auto", "auto", "scan", "probe", "probe"]),
        bands=st.none() | st.sampled_from([1, 2, 3, 7]),
        band_bits=st.none() | st.sampled_from([1, 2, 3, 5, 8]),
        # 0: one step at a time, so that bands are walked many times.
        first_round_ns=st.sampled_from([1500.0, 0.0, 1e5]),
        lean=st.booleans(),
    )


def assert_same(found: bitweigh.SearchResult, expected: bitweigh.SearchResult) -> None:
    """Assert equality in shape, dtype and every bit: -0.0 differs from 0.0 here."""
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours.view(np.int64), theirs.view(np.int64))
