"""What the engine predicts about probing, compared with the work that it counts afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import bitweigh
from bitweigh import costs

Rng = np.random.Generator
N_QUERIES = 40
# So many that a scan takes ten times as long as setting up the bands.
N_STORED_BITS = 2**25


class Searched(NamedTuple):
    """Modelled times of one search for each query, in microseconds."""

    gave_up: NDArray[np.bool_]
    predicted: NDArray[np.float64]
    spent: NDArray[np.float64]
    scan: NDArray[np.float64]


def _clustered(rng: Rng, n: int, n_bits: int, spread: float = 0.05) -> NDArray[np.bool_]:
    centres = np.random.default_rng(1).integers(2, size=(600, n_bits), dtype=np.uint8)
    flips = rng.random((n, n_bits), dtype=np.float32) < spread
    return (centres[rng.integers(len(centres), size=n)] ^ flips).astype(bool)


def _fingerprints(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    """Bits that are seldom set, some of them much less than others, as of molecules."""
    shares = np.random.default_rng(2).beta(0.5, 4.0, size=n_bits)
    return rng.random((n, n_bits), dtype=np.float32) < shares


def _random(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return rng.integers(2, size=(n, n_bits), dtype=np.uint8).astype(bool)


def _few_distinct(rng: Rng, n: int, n_bits: int) -> NDArray[np.bool_]:
    return _clustered(rng, n, n_bits, spread=0.0)


KINDS: dict[str, tuple[int, Callable[[Rng, int, int], NDArray[np.bool_]]]] = {
    "clustered, 32 bits": (32, _clustered),
    "clustered, 128 bits": (128, _clustered),
    "clustered, 1024 bits": (1024, _clustered),
    "random, 64 bits": (64, _random),
    "random, 1024 bits": (1024, _random),
    "fingerprints, 256 bits": (256, _fingerprints),
    "fingerprints, 1024 bits": (1024, _fingerprints),
    "few distinct codes, 64 bits": (64, _few_distinct),
}


@pytest.fixture(scope="module", params=KINDS)
def searched(request: pytest.FixtureRequest) -> Searched:
    n_bits, kind = KINDS[request.param]
    rng = np.random.default_rng(3)
    index = bitweigh.Index(n_bits, bands=max(2, min(16, n_bits // 16)))
    index.add(np.packbits(kind(rng, N_STORED_BITS // n_bits, n_bits), axis=1))
    queries = np.packbits(kind(rng, N_QUERIES, n_bits), axis=1)
    weights = rng.gamma(2.0, size=(N_QUERIES, n_bits))
    asked = costs.from_weights(queries, weights, per_query=True)
    found = [index.search(asked, k, stats=True, threads=1).stats for k in (1, 10, 100)]
    tried = np.concatenate([stats.probes > 0 for stats in found])
    assert tried.any(), "bands are tried"
    return Searched(
        np.concatenate([stats.fallbacks > 0 for stats in found])[tried],
        *(
            np.concatenate([stats[field] for stats in found])[tried] / 1e3
            for field in map(
                bitweigh.SearchStats._fields.index, ("predicted_ns", "probe_spent_ns", "scan_ns")
            )
        ),
    )


def test_a_search_that_gives_up_on_probing_has_predicted_more_time_than_a_scan(
    searched: Searched,
) -> None:
    share = searched.predicted[searched.gave_up] / searched.scan[searched.gave_up]
    # Probing that takes longer than predicted stops after 0.3 of a scan, whatever is predicted.
    assert (share > 0.3).all(), share.min()
    assert (share > 1.0).sum() >= 0.9 * len(share) - 2, np.sort(share)


def test_giving_up_wastes_a_small_part_of_a_scan(searched: Searched) -> None:
    # Setting up the bands is spent in any case, and a large part of so small a scan.
    setup = searched.spent.min()
    wasted = (searched.spent[searched.gave_up] - setup) / searched.scan[searched.gave_up]
    assert (wasted < 0.3).all(), wasted.max()
    assert wasted.size == 0 or np.median(wasted) < 0.15, np.median(wasted)


def test_the_first_prediction_is_at_most_about_ten_times_what_probing_takes(
    searched: Searched,
) -> None:
    predicted, spent = searched.predicted[~searched.gave_up], searched.spent[~searched.gave_up]
    # The bound falls while probing goes on, so that first predictions are too high.
    assert spent.size == 0 or 1.0 <= np.median(predicted / spent) < 10.0
