"""The server's explanations: what the search that was asked for does, and what bits pay."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from server_cases import Api, check_problem, small_api

from bitweigh import costs as make_costs


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with small_api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def names() -> Iterator[str]:
    """Names of collections that no other test has."""
    return (f"own{time.perf_counter_ns()}" for _ in iter(int, 1))


def test_explain_says_what_each_bit_pays(api: Api) -> None:
    request = {"vector": [0.5, -1.25, 3.0, 0.1, 0, 2, -7, 1e-9], "k": 3, "ids": [0], "bins": 5}
    found = api.done("POST", "emb/explain", request)
    assert sum(found["histogram"]["counts"]) == 20
    assert len(found["histogram"]["edges"]) == 6
    vector = np.array(request["vector"], np.float64)
    assert found["costs"] == make_costs.inner_product(vector).tolist()
    assert set(found["bits"]) == {str(hit["id"]) for hit in found["hits"]} | {"0"}
    for hit in found["hits"]:
        pays = found["bits"][str(hit["id"])]
        assert sum(pays["pays"]) == pytest.approx(hit["distance"], rel=1e-12)
        bits = [int(bit) for bit in pays["bits"]]
        assert pays["pays"] == [cost[bit] for cost, bit in zip(found["costs"], bits, strict=True)]


@pytest.mark.parametrize("k", [1, 5, 19, 20, 100])
def test_explain_has_the_hits_of_a_search_by_id(api: Api, k: int) -> None:
    request = {"id": 7, "k": k, "payload": True}
    hits = api.done("POST", "codes/explain", request)["hits"]
    assert hits == api.done("POST", "codes/search", request)["hits"]
    assert len(hits) == min(k, 19)
    assert all(hit["id"] != 7 for hit in hits)


def test_explain_of_an_item_ranks_as_the_search_does(api: Api, names: Iterator[str]) -> None:
    vectors = np.random.default_rng(3).standard_normal((300, 16)).round(2)
    items = [{"id": place, "vector": row.tolist()} for place, row in enumerate(vectors)]
    for options in (
        {"kind": "embeddings", "dim": 16},
        {"kind": "embeddings", "dim": 16, "rescore": "float32"},
        {"kind": "vectors", "dim": 16, "n_bits": 16, "fit_after": 10},
        {"kind": "vectors", "dim": 16, "n_bits": 16, "fit_after": 10, "rerank": "float32"},
    ):
        name = next(names)
        api.create(name, **options)
        api.upsert(name, items)
        why = api.done("POST", f"{name}/explain", {"id": 7, "k": 20})
        found = api.done("POST", f"{name}/search", {"id": 7, "k": 20})
        assert why["exact"] == found["exact"]
        if found["exact"]:
            assert why["hits"] == found["hits"]
        else:
            # Ranked again by vectors, of the nearest by these costs.
            by_costs = api.done("POST", f"{name}/search", {"costs": why["costs"], "k": 21})
            assert [hit for hit in by_costs["hits"] if hit["id"] != 7][:20] == why["hits"]
            both = {hit["id"] for hit in why["hits"]} & {hit["id"] for hit in found["hits"]}
            assert len(both) > 5
            assert len(set(map(tuple, why["costs"]))) > 4


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "embeddings", "dim": 16},
        {"kind": "embeddings", "dim": 16, "rescore": "float32"},
        {"kind": "vectors", "dim": 16, "n_bits": 16, "fit_after": 10, "rerank": "float32"},
    ],
)
def test_items_within_a_radius_of_an_item_are_those_that_explain_ranks(
    api: Api, names: Iterator[str], options: dict[str, Any]
) -> None:
    name = next(names)
    vectors = np.random.default_rng(4).standard_normal((100, 16)).round(2)
    api.create(name, **options)
    api.upsert(name, [{"id": place, "vector": row.tolist()} for place, row in enumerate(vectors)])
    hits = api.done("POST", f"{name}/explain", {"id": 7, "k": 9})["hits"]
    within = api.done("POST", f"{name}/range", {"id": 7, "radius": hits[-1]["distance"]})
    nearest = [hit for hit in within["hits"] if hit["id"] != 7]
    assert nearest[:9] == hits
    assert nearest[-1]["distance"] == hits[-1]["distance"]


def test_a_search_by_id_tells_its_plan_unless_vectors_rank_again(api: Api) -> None:
    for name, query, plan in (
        ("codes", {"id": 7}, "scan"),
        ("emb", {"id": 7}, "scan"),
        ("vec", {"id": 7}, ""),
        ("vec", {"vector": [1.0, 0, 0, 0]}, ""),
        ("codes", {"queries": [{"id": 7}, {"id": 8}]}, "scan"),
    ):
        assert api.search(name, **query, k=3)["plan"] == plan


def test_an_item_with_weights_is_searched_by_its_code_alone(api: Api) -> None:
    weights = np.arange(1.0, 9.0).tolist()
    found = api.search("emb", id=7, weights=weights, k=5)
    why = api.done("POST", "emb/explain", {"id": 7, "weights": weights, "k": 5})
    assert why["hits"] == found["hits"]
    assert sorted({cost for pair in why["costs"] for cost in pair}) == [0.0, *weights]
    assert found["exact"]


def test_the_plan_of_a_filtered_explanation_is_that_of_the_filtered_search(api: Api) -> None:
    request = {"id": 7, "k": 2, "filter": {"n": {"lt": 5}}}
    counters = api.done("POST", "codes/explain", request)["plan"]["counters"]
    assert counters["rows_scanned"] + counters["rows_scored_directly"] <= 5


def test_explain_leaves_the_histogram_out_if_it_has_no_bins(api: Api) -> None:
    request = {"id": 7, "bins": 0}
    assert api.done("POST", "codes/explain", request)["histogram"] is None


def test_explain_leaves_the_histogram_out_if_there_are_too_many_items(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitweigh.server.explaining._MAX_HISTOGRAM_ROWS", 20)
    assert api.done("POST", "codes/explain", {"id": 7})["histogram"] is not None
    monkeypatch.setattr("bitweigh.server.explaining._MAX_HISTOGRAM_ROWS", 19)
    assert api.done("POST", "codes/explain", {"id": 7})["histogram"] is None


def test_the_histogram_of_equal_distances_has_one_bin_around_them(
    api: Api, names: Iterator[str]
) -> None:
    name = next(names)
    api.done("PUT", name, {"kind": "codes", "n_bits": 8})
    items = [{"id": place, "code": "AA=="} for place in range(5)]
    api.done("PUT", f"{name}/items", {"items": items})
    for cost in (0.0, 2.5, 1e300):
        found = api.done("POST", f"{name}/explain", {"costs": [[cost, 0.0]] * 8})["histogram"]
        assert found["counts"] == [5]
        low, high = found["edges"]
        assert low < found["min"] == found["max"] == 8 * cost < high


@pytest.mark.parametrize("k", [5, 20, 30])
def test_the_plan_of_an_item_is_for_the_k_that_was_asked(api: Api, k: int) -> None:
    plan = api.done("POST", "codes/explain", {"id": 7, "k": k})["plan"]
    assert plan["k"] == k
    assert ("k is larger than" in plan["reason"]) == (k > 20)


def test_looking_at_all_distances_does_not_count_as_a_search(api: Api) -> None:
    def searches(bins: int) -> int:
        plan = api.done("POST", "codes/explain", {"id": 7, "bins": bins})["plan"]
        return int(plan["searches"])

    before = searches(64)
    assert (searches(64), searches(0)) == (before + 1, before + 2)


@pytest.mark.parametrize("count", [0, 3, 9])
def test_weights_of_a_wrong_number_are_refused_by_their_name(api: Api, count: int) -> None:
    answer = api.ask("POST", "codes/search", {"id": 7, "weights": [1.0] * count})
    check_problem(answer, 422, "weights must have")


def test_the_histogram_of_whole_distances_has_as_many_of_them_in_each_bin(api: Api) -> None:
    for bins in (1, 2, 3, 64, 1000):
        found = api.done("POST", "codes/explain", {"id": 7, "bins": bins})["histogram"]
        edges = np.array(found["edges"])
        assert sum(found["counts"]) == 20
        assert len(found["counts"]) == len(edges) - 1 <= bins
        assert np.all(edges % 1.0 == 0.5)
        assert len(set(np.diff(edges))) == 1


@pytest.mark.parametrize(
    ("cost", "ones"),
    [
        ((-0.1, 0.1), 32),  # the sums differ by their rounding
        ((0.3, 1 / 3), 32),
        ((1e-300, -1e-300), 32),
        ((1e15, 1e15 + 1), None),  # whole distances without halves between them
        ((1e16, 1e16 + 2), None),
        ((-1e300, 1e300), None),
        ((0.0, 0.0), None),
        ((-0.7, 0.1), None),
    ],
)
def test_every_item_is_in_one_bin_of_the_histogram(
    api: Api, names: Iterator[str], cost: tuple[float, float], ones: int | None
) -> None:
    name = next(names)
    rng = np.random.default_rng(0)
    bits = rng.permuted(np.tile(np.arange(64) < 32, (30, 1)), axis=1)
    if ones is None:
        bits = rng.random((30, 64)) < 0.3
    codes = [base64.b64encode(row).decode() for row in np.packbits(bits, axis=1)]
    api.done("PUT", name, {"kind": "codes", "n_bits": 64})
    api.done(
        "PUT", f"{name}/items", {"items": [{"id": n, "code": one} for n, one in enumerate(codes)]}
    )
    for bins in (1, 60, 1000):
        found = api.done("POST", f"{name}/explain", {"costs": [cost] * 64, "bins": bins})[
            "histogram"
        ]
        edges = np.array(found["edges"])
        assert sum(found["counts"]) == 30
        assert len(found["counts"]) == len(edges) - 1 <= bins
        assert np.all(np.diff(edges) > 0)
        assert edges[0] <= found["min"] <= found["max"] <= edges[-1]


def test_the_histogram_of_a_filtered_search_has_the_items_of_the_filter(api: Api) -> None:
    request = {"id": 7, "k": 2, "bins": 3, "filter": {"n": {"lt": 5}}}
    found = api.done("POST", "codes/explain", request)
    assert sum(found["histogram"]["counts"]) == 5
    assert max(hit["id"] for hit in found["hits"]) < 5
    request["filter"] = {"n": {"lt": -5}}
    found = api.done("POST", "codes/explain", request)
    assert (found["histogram"], found["hits"], found["bits"]) == (None, [], {})
