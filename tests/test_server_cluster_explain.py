"""What the bits of a cluster pay, as the server explains it: as of one index, by any holder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_cases import COSTS, IDS, one_index, serving
from server_cases import Api, check_problem

from bitweigh.server import clusters


@pytest.fixture(params=["in this process", "by holders"])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Api]:
    """A server with the cluster "wiki"."""
    with serving(tmp_path) as serve:
        served = serve(groups=2, replicas=1)
        source = served.directory.url if request.param == "in this process" else served.cluster
        with Api(tmp_path / "data", clusters={"wiki": source}) as api:
            yield api


@pytest.mark.parametrize("k", [1, 100])
def test_what_the_bits_of_a_cluster_pay_adds_up_to_distances(api: Api, k: int) -> None:
    other = int(IDS[1500])
    found = api.done("POST", "wiki/explain", {"costs": COSTS[0].tolist(), "k": k, "ids": [other]})
    expected = one_index().search(COSTS[0], k)
    assert [hit["id"] for hit in found["hits"]] == expected.ids.tolist()
    assert found["costs"] == COSTS[0].tolist()
    assert found["histogram"] is None
    assert set(found["bits"]) == {*map(str, expected.ids.tolist()), str(other)}
    for hit in found["hits"]:
        item = found["bits"][str(hit["id"])]
        assert item["pays"] == [
            costs[int(bit)] for costs, bit in zip(COSTS[0], item["bits"], strict=True)
        ]
        groups = [sum(item["pays"][first : first + 8]) for first in range(0, 64, 8)]
        assert sum(groups) == hit["distance"]
    check_problem(
        api.ask("POST", "wiki/explain", {"id": int(IDS[0]), "payload": True}), 409, "payloads"
    )


def test_explain_of_a_cluster_has_the_hits_of_a_search_by_id(api: Api) -> None:
    query = {"id": int(IDS[3]), "k": 5}
    hits = api.done("POST", "wiki/explain", query)["hits"]
    assert hits == api.done("POST", "wiki/search", query)["hits"]


def test_an_explanation_that_looks_up_codes_too_slowly_is_past_its_deadline(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes_of = clusters.bits_of

    def slow(*given: Any) -> Any:
        time.sleep(0.2)
        return codes_of(*given)

    monkeypatch.setattr(clusters, "bits_of", slow)
    query = {"costs": COSTS[0].tolist(), "k": 3}
    check_problem(api.ask("POST", "wiki/explain", {**query, "timeout_ms": 100}), 504, "timeout")
    assert api.ask("POST", "wiki/explain", {**query, "timeout_ms": 5000}).status_code == 200
