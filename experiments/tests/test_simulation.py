"""The simulated cluster: repeatable, and right where the answer is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bitweigh_experiments.simulation.model import Costs, Setting, simulate

STEADY = Costs(travel_spread=0.0, pause_share=0.0)


def test_the_same_seed_gives_the_same_times() -> None:
    setting = Setting(5, 2, 16, 500, seed=3)
    first, second = simulate(setting, Costs()), simulate(setting, Costs())
    assert np.array_equal(first.latencies, second.latencies)
    other = simulate(dataclasses.replace(setting, seed=4), Costs())
    assert not np.array_equal(first.latencies, other.latencies)


def test_a_single_query_takes_the_sum_of_its_costs() -> None:
    seen = simulate(Setting(1, 1, 1, 50), STEADY)
    expected = STEADY.batch + STEADY.call + STEADY.query + STEADY.travel + STEADY.search
    assert seen.latencies == pytest.approx(np.full(50, expected))
    assert seen.mean_batch == 1


def test_more_callers_go_in_larger_batches() -> None:
    few, many = (simulate(Setting(4, 1, callers, 3000), STEADY) for callers in (2, 100))
    assert many.mean_batch > 5 * few.mean_batch
    assert many.seconds < few.seconds


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_dead_holder_delays_the_first_queries_only(replicas: int) -> None:
    setting = Setting(5, replicas, 4, 2000, dead_nodes=1)
    seen = simulate(setting, STEADY)
    assert len(seen.latencies) == 2000
    assert 1 <= seen.hedges <= 4
    assert seen.latencies.max() < 2 * setting.hedge_after
    assert np.median(seen.latencies) < setting.hedge_after / 5


def test_hedges_stay_within_their_budget_where_everything_is_slow() -> None:
    slow = dataclasses.replace(STEADY, search=80.0)
    seen = simulate(Setting(1, 2, 1, 400), slow)
    assert 0 < seen.hedges <= 10 + 0.05 * seen.questions


def test_a_published_version_is_served_once_every_holder_has_it_and_is_cold_at_first() -> None:
    costs = Costs(download=500.0)
    setting = Setting(4, 2, 16, 20_000, publish_at=200.0)
    seen = simulate(setting, costs)
    assert 700.0 < seen.switched < 2_000.0
    before = np.median(seen.between(0.0, 200.0))
    first = np.median(seen.between(seen.switched + 20, seen.switched + 200))
    late = np.median(seen.between(seen.switched + 4_000, np.inf))
    assert first > 2 * before
    assert late < first
    assert np.isinf(simulate(Setting(4, 2, 16, 500), costs).switched)
