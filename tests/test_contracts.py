"""The contracts: answers equal the reference to the last bit, whatever the path."""

from __future__ import annotations

import numpy as np
import pytest
from cases import COSTS, KERNELS, Case, Setting, assert_same, cases, settings_to_run
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bitweigh
from bitweigh import SearchResult, SearchStats


def run(case: Case, setting: Setting) -> SearchStats:
    found = setting.index(case).search(
        case.costs, case.k, threads=setting.threads, method=setting.method, stats=True
    )
    assert_same(found, case.reference())
    assert found.stats is not None
    return found.stats


class Reached:
    """Sum of the counters of all examples, to prove that they reached the intended paths."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys(SearchStats._fields, 0)

    def add(self, stats: SearchStats) -> None:
        for name, count in stats._asdict().items():
            self.totals[name] += int(np.sum(count))

    def assert_all(self, *names: str) -> None:
        missed = [name for name in names or self.totals if self.totals[name] == 0]
        assert not missed, f"no example reached {missed}: {self.totals}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_search_equals_the_definition(kernel: str) -> None:
    reached = Reached()

    @settings(max_examples=examples(1500))
    @given(cases(), settings_to_run(kernel))
    def check(case: Case, setting: Setting) -> None:
        reached.add(run(case, setting))

    check()
    reached.assert_all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_search_equals_the_definition_for_long_codes(kernel: str) -> None:
    reached = Reached()

    @settings(max_examples=40)
    @given(
        cases(
            bits=st.sampled_from([1024, 1025, 2048, 4096, 8191, 8192]),
            rows=st.integers(0, 300),
            most_queries=2,
        ),
        settings_to_run(kernel),
    )
    def check(case: Case, setting: Setting) -> None:
        reached.add(run(case, setting))

    check()
    reached.assert_all("rows_scored_directly", "rows_scanned", "rows_scanned_wide", "verified")


@pytest.mark.parametrize("kernel", KERNELS)
def test_search_equals_the_definition_for_many_rows(kernel: str) -> None:
    reached = Reached()

    @settings(max_examples=15)
    @given(
        cases(
            bits=st.sampled_from([7, 32, 64, 65, 128, 264]),
            rows=st.integers(20_000, 100_000),
            most_queries=2,
        ),
        settings_to_run(kernel).filter(
            lambda setting: setting.segment_rows is None or setting.segment_rows > 300
        ),
    )
    def check(case: Case, setting: Setting) -> None:
        reached.add(run(case, setting))

    check()
    reached.assert_all()


@settings(max_examples=60)
@given(cases(most_queries=1), st.lists(settings_to_run(), min_size=2, max_size=4))
def test_no_setting_changes_a_byte(case: Case, ways: list[Setting]) -> None:
    answers = [
        way.index(case).search(case.costs, case.k, threads=way.threads, method=way.method)
        for way in ways
    ]
    for answer in answers[1:]:
        assert_same(answer, answers[0])


@settings(max_examples=examples(300))
@given(cases(), settings_to_run())
def test_all_kernels_let_the_same_rows_through(case: Case, setting: Setting) -> None:
    # A kernel that adds too little still gives exact answers, only slower ones: the counts tell.
    index = setting.index(case)
    counts = []
    for kernel in KERNELS:
        index._engine.kernel = kernel
        counts.append(
            index.search(case.costs, case.k, threads=1, method=setting.method, stats=True).stats
        )
    for other in counts[1:]:
        for name, count in other._replace(nanoseconds=counts[0].nanoseconds)._asdict().items():
            np.testing.assert_array_equal(count, getattr(counts[0], name), err_msg=name)


@settings(max_examples=60)
@given(cases(), settings_to_run(), st.integers(1, 50))
def test_top_k_is_a_prefix_of_a_longer_top_k(case: Case, setting: Setting, more: int) -> None:
    index = setting.index(case)
    short = index.search(case.costs, case.k, threads=setting.threads, method=setting.method)
    long = index.search(case.costs, case.k + more, threads=setting.threads, method=setting.method)
    assert_same(short, SearchResult(*(part[..., : case.k].copy() for part in long)))


@settings(max_examples=40)
@given(cases(most_queries=4), settings_to_run())
def test_a_batch_equals_its_queries_one_by_one(case: Case, setting: Setting) -> None:
    index = setting.index(case)
    batch = index.search(case.costs, case.k, threads=setting.threads, method=setting.method)
    if case.costs.ndim == 2:
        return
    for query, costs in enumerate(case.costs):
        assert_same(
            index.search(costs, case.k, method=setting.method),
            SearchResult(batch.distances[query].copy(), batch.ids[query].copy()),
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_batch_equals_the_definition(kernel: str, threads: int) -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 256, (3000, 6), dtype=np.uint8)
    costs = rng.standard_normal((70, 48, 2))
    case = Case(48, "big", codes, None, costs, 9)
    stats = run(case, Setting(kernel, threads, None, 1, 32, 256))
    assert (stats.rows_scanned == 3000).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make_costs", COSTS)
@pytest.mark.parametrize("n_bits", [64, 300])
def test_every_kind_of_costs_reaches_the_kernel(
    kernel: str, make_costs: object, n_bits: int
) -> None:
    assert callable(make_costs)
    rng = np.random.default_rng(n_bits)
    codes = np.packbits(rng.random((700, n_bits)) < 0.5, axis=1)
    case = Case(n_bits, "big", codes, None, make_costs(rng, (n_bits, 2)), 5)
    stats = run(case, Setting(kernel, 1, None, 1, 32, 256))
    assert stats.rows_scanned == 700
    assert stats.rows_scanned_wide == (700 if n_bits > 160 else 0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_bits", [64, 65, 256, 300, 1024, 8192])
def test_tables_are_made_anew_when_the_worst_distance_falls(kernel: str, n_bits: int) -> None:
    # The sample of 32 rows sees random codes only; the nearest come a good way into the scan, so
    # the first tables become too coarse, and in the new ones most entries are capped.
    rng = np.random.default_rng(n_bits)
    bits = rng.random((1500, n_bits)) < 0.5
    costs = np.stack([np.zeros(n_bits), 1 + rng.random(n_bits)], axis=-1)
    bits[700:706] = False
    bits[702, rng.integers(n_bits)] = True
    case = Case(n_bits, "big", np.packbits(bits, axis=1), None, costs, 3)
    stats = run(case, Setting(kernel, 1, None, 1, 32, 256))
    assert stats.rescales >= 1
    assert stats.capped_entries > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_costs_at_the_largest_sum_allowed_equal_the_definition(kernel: str) -> None:
    rng = np.random.default_rng(9)
    costs = rng.standard_normal((64, 2))
    costs *= 2.0**1020 / np.abs(costs).sum() * (1 - 1e-15)
    codes = rng.integers(0, 256, (900, 8), dtype=np.uint8)
    case = Case(64, "big", codes, None, costs, 5)
    assert run(case, Setting(kernel, 1, None, 1, 32, 256)).rows_scanned == 900


def test_equal_distances_go_to_the_lowest_id_wherever_its_row_is() -> None:
    codes = np.zeros((5000, 8), dtype=np.uint8)
    ids = np.random.default_rng(0).permutation(5000)
    index = bitweigh.Index(64)
    index._engine.tuning.warm_up_rows = 32
    index._policy.segment_rows = 700
    index.add(codes, ids)
    assert index.search(np.ones((64, 2)), 40).ids.tolist() == list(range(40))


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 2**32 - 1))
@example(33, 7)
def test_rounding_of_cancelling_costs_never_loses_the_winner(k: int, seed: int) -> None:
    # Sixteen huge bits cancel in pairs but leave rounding noise larger than the other bits' sums,
    # so without slack the kernel's bound would rule true neighbours out.
    rng = np.random.default_rng(seed)
    costs = rng.random((64, 2))
    costs[:16] += np.where(rng.permutation(16) < 8, 1e16, -1e16)[:, np.newaxis]
    codes = rng.integers(0, 256, (900, 8), dtype=np.uint8)
    run(Case(64, "little", codes, None, costs, k), Setting(KERNELS[0], 1, None, 1, 32, 256))
