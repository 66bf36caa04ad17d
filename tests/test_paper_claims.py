"""The paper's claims in prose and figures, on data like its own, and exceptions to them.

The claims that it proves are tested probe by probe in cpp/tests/paper_test.cpp.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitweigh import costs as ways
from bitweigh import paper, reference
from bitweigh.hashers import LSH
from bitweigh.weighers import Asym

KS = [1, 10, 100]


class Hashed:
    """20,000 rows of a Gaussian mixture as LSH's codes, and 100 more rows as Asym's costs."""

    def __init__(self, n_bits: int, spread: float) -> None:
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((100, 32))
        rows = centres[rng.integers(0, 100, 20_100)] + spread * rng.standard_normal((20_100, 32))
        hasher = LSH(n_bits).fit(rows[100:])
        projected = hasher.project(rows)
        self.n_bits = n_bits
        self.codes = hasher.transform(rows[100:])
        self.query_codes = hasher.transform(rows[:100])
        self.costs = Asym().fit(projected[100:], hasher.thresholds_).costs(projected[:100])

    def effort(self, index: paper.MIWQ | paper.MIH, k: int) -> NDArray[np.float64]:
        """Return the mean buckets and candidates over all queries, (2,)."""
        stats = [index.search(costs, k).stats for costs in self.costs]
        return np.mean([(one.buckets, one.candidates) for one in stats], axis=0)

    def effort_of_both(self, k: int, m: int | None = None) -> NDArray[np.float64]:
        """Return buckets and candidates of MIWQ and MIH with equally many tables, (2, 2)."""
        ours = paper.MIWQ(self.codes, self.n_bits, m=m)
        theirs = paper.MIH(self.codes, self.n_bits, m=ours.m)
        return np.stack([self.effort(ours, k), self.effort(theirs, k)])


@pytest.fixture(scope="module")
def hashed() -> Hashed:
    return Hashed(64, spread=0.7)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize(("n_bits", "tables"), [(16, 1), (32, 2), (64, 4)])
def test_miwq_probes_fewer_buckets_and_meets_fewer_candidates_than_mih(
    n_bits: int, tables: int, k: int
) -> None:
    # The paper's figure has 10^9 codes, so 1 table for 32 bits and 2 for 64. The rule gives as few
    # tables to 20,000 codes of 16 and 32 bits. With 4 tables and k = 1 MIWQ's lead is down to 4 %
    # of the candidates.
    hashed = Hashed(n_bits, spread=0.7)
    assert paper.MIWQ(hashed.codes, n_bits).m == tables
    ours, theirs = hashed.effort_of_both(k)
    assert (ours < theirs).all()


@pytest.mark.parametrize("k", KS)
def test_with_many_tables_mih_probes_fewer_buckets_and_meets_fewer_candidates(
    hashed: Hashed, k: int
) -> None:
    # Twice as many tables as the rule gives: an exception to the paper's figure.
    ours, theirs = hashed.effort_of_both(k, m=8)
    assert (ours > theirs).all()


def test_in_tight_clusters_miwq_meets_more_candidates_than_mih_for_the_nearest_code() -> None:
    # Another exception: here by 15 %, in fewer buckets. With k = 100 it has fewer of both again.
    hashed = Hashed(64, spread=0.3)
    ours, theirs = hashed.effort_of_both(1)
    assert ours[0] < theirs[0]
    assert ours[1] > theirs[1]


@pytest.mark.parametrize(("k", "many"), [(10, 5), (100, 25)])
def test_many_codes_share_the_kth_hamming_distance_and_none_the_weighted_one(
    hashed: Hashed, k: int, many: int
) -> None:
    # The ambiguity that the paper's introduction is about. Equal codes are equally far by any
    # distance, so distinct codes are counted.
    distinct = np.unique(hashed.codes, axis=0)

    def at_the_kth(costs: NDArray[np.float64]) -> int:
        distances = reference.distances(distinct, costs)
        return int((distances == np.partition(distances, k - 1)[k - 1]).sum())

    assert np.mean([at_the_kth(ways.hamming(code, 64)) for code in hashed.query_codes]) > many
    assert [at_the_kth(costs) for costs in hashed.costs] == [1] * len(hashed.costs)


@settings(max_examples=150)
@given(st.integers(1, 60), st.integers(1, 300), st.data(), st.integers(0, 2**32 - 1))
def test_the_descending_order_never_probes_more_buckets_than_the_printed_one(
    n_bits: int, n: int, data: st.DataObject, seed: int
) -> None:
    # cpp/tests/paper_test.cpp has the reason. Costs are few, for ties, or many; all sums are exact.
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.random((n, n_bits)) < rng.random(n_bits), axis=1)
    most = data.draw(st.sampled_from([2, 2**10, 2**28]))
    costs = rng.integers(-most, most, (n_bits, 2), endpoint=True) / 2**8
    m = data.draw(st.integers(-(-n_bits // 12), min(n_bits, 12)))
    k = data.draw(st.integers(1, n))
    printed = paper.MIWQ(codes, n_bits, m=m).search(costs, k).stats
    falling = paper.MIWQ(codes, n_bits, m=m, order="descending").search(costs, k).stats
    assert falling.buckets <= printed.buckets
    assert falling.rounds <= printed.rounds


def test_the_descending_order_saves_buckets(hashed: Hashed) -> None:
    printed = paper.MIWQ(hashed.codes, 64)
    falling = paper.MIWQ(hashed.codes, 64, order="descending")
    assert hashed.effort(falling, 10)[0] < hashed.effort(printed, 10)[0]
