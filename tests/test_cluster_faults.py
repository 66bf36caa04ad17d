"""Faults of a Ray cluster under queries without pause, each test with a cluster of its own."""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("ray"),
    # Ray leaves sockets and files to the garbage collector, and asks for its own future.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_faults_are_not_seen_with_two_replicas() -> None:
    from benchmarks.cluster.faults import FAULTS, run_faults

    for name, load in run_faults(50_000).items():
        assert load.queries > 50, name
        assert load.errors == [], name
        assert load.wrong == 0, name
        assert max(load.times) < 0.5, name
    assert len(FAULTS) == 6


def test_a_link_that_is_cut_is_not_seen_with_two_replicas() -> None:
    from benchmarks.cluster.networks import can_make_networks, run_cut

    if not can_make_networks():
        pytest.skip("needs root, and `ip netns`")
    seen = run_cut(15)
    assert seen.queries > 100
    assert (seen.errors, seen.wrong) == (0, 0)
    assert seen.worst < 0.5
