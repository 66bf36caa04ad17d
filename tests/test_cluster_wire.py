"""Questions and answers as bytes: what arrives is what was sent, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bitweigh import Index
from bitweigh._index.filters import Filter
from bitweigh._results import Neighbours
from bitweigh.cluster.serving.wire import (
    Answer,
    FilterCache,
    Question,
    pack_answer,
    pack_question,
    unpack_answer,
    unpack_question,
)

RNG = np.random.default_rng(0)


def sent(question: Question, filters: FilterCache | None = None) -> Question:
    return unpack_question(pack_question(question), filters or FilterCache())


def question(costs: Any, **options: Any) -> Question:
    return Question(7, 20, 9, 0.25, "scan", 3, np.asarray(costs, np.float64), **options)


@pytest.mark.parametrize(
    "costs",
    [
        RNG.standard_normal((2, 5, 2)),
        RNG.standard_normal((2, 5, 2)).astype(np.float32),
        np.array([[[1e300, -1e300], [5e-324, -0.0]]]),
        np.array([[[1.0, 1.0 + 2**-52]]]),
        np.empty((0, 5, 2)),
        RNG.standard_normal((4, 5, 2))[::2],
    ],
    ids=["float64", "float32", "extreme", "the last bit", "none", "strided"],
)
def test_costs_arrive_in_every_bit(costs: Any) -> None:
    asked = question(costs)
    found = sent(asked)
    assert found.costs.tobytes() == asked.costs.tobytes()
    assert found.costs.shape == asked.costs.shape
    assert found._replace(costs=asked.costs) == asked


def test_costs_that_float32_holds_take_half_the_bytes() -> None:
    costs = RNG.standard_normal((10, 64, 2))
    rounded = costs.astype(np.float32)
    assert len(pack_question(question(costs))) - len(pack_question(question(rounded))) == 5120


def test_radii_limit_and_filter_arrive() -> None:
    radii = RNG.standard_normal(3)
    found = sent(question(np.zeros((3, 4, 2)), radii=radii, limit=5, filter=Filter(allow=[3, 1])))
    assert found.radii is not None
    assert found.radii.tobytes() == radii.tobytes()
    assert found.limit == 5
    assert found.filter is not None


@pytest.mark.parametrize("named", [[3, 1], np.array([False, True, False, True])], ids=str)
@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_filter_means_the_same_where_it_arrives(named: Any, kind: str) -> None:
    index = Index(8)
    index.add(np.arange(6, dtype=np.uint8)[:, np.newaxis])
    costs = np.zeros((1, 8, 2))
    given = Filter(**{kind: named})
    arrived = sent(question(costs, filter=given)).filter
    expected = index.search(costs, 6, filter=given).ids
    assert index.search(costs, 6, filter=arrived).ids.tolist() == expected.tolist()


def test_a_filter_is_made_once_and_only_the_last_ones_are_kept() -> None:
    filters = FilterCache(size=2)
    costs = np.zeros((1, 4, 2))

    def arrived(**given: Any) -> Filter | None:
        return sent(question(costs, filter=Filter(**given)), filters).filter

    first = arrived(allow=[1, 2])
    assert arrived(allow=[1, 2]) is first
    assert arrived(deny=[1, 2]) is not first
    assert arrived(allow=[1, 2]) is first
    arrived(allow=[3])
    arrived(allow=[4])
    assert arrived(allow=[1, 2]) is not first
    assert len(filters._filters) == 2


def test_an_answer_arrives_in_every_bit() -> None:
    found = Neighbours(RNG.standard_normal((3, 4)), RNG.integers(-1, 99, (3, 4)))
    answer = Answer(found, RNG.standard_normal((2, 3)), RNG.integers(-1, 99, (2, 3)))
    arrived = unpack_answer(pack_answer(answer))
    for a, b in zip((*found, *answer[1:]), (*arrived.found, *arrived[1:]), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
