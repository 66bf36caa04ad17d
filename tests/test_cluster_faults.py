"""Faults of a Ray cluster under queries without pause, each test with a cluster of its own."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bitweigh import cluster
from bitweigh.cluster import ControlPlaneError

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


def test_without_the_control_plane_searches_go_on_and_changes_say_so() -> None:
    from benchmarks.cluster.codes import some_codes
    from benchmarks.cluster.ray_cluster import served

    with served(some_codes(5000)) as run:
        expected = run.cluster.search(np.ones((64, 2)), 3).ids
        cluster.update(run.url, add=np.zeros((1, 8), np.uint8))
        run.nodes.head_node.kill_gcs_server()
        began = time.monotonic()
        with pytest.raises(ControlPlaneError, match="the keeper does not answer"):
            run.cluster.publish()
        with pytest.raises(ControlPlaneError, match="the keeper does not answer"):
            run.cluster.scale(1)
        # Ray ends all programs a minute after it has lost its control plane.
        assert time.monotonic() - began < 30
        assert np.array_equal(run.cluster.search(np.ones((64, 2)), 3).ids, expected)
        assert run.cluster.version.number == 1


def test_a_link_that_is_cut_is_not_seen_with_two_replicas() -> None:
    from benchmarks.cluster.networks import can_make_networks, run_cut

    if not can_make_networks():
        pytest.skip("needs root, and `ip netns`")
    seen = run_cut(15)
    assert seen.queries > 100
    assert (seen.errors, seen.wrong) == (0, 0)
    assert seen.worst < 0.5


def test_publishing_under_load_never_mixes_versions_whatever_fails() -> None:
    from benchmarks.cluster.publishing import run_publishing

    assert run_publishing(1000)
