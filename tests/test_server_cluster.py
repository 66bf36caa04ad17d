"""Clusters behind the server: the answers of one index, nothing missing in silence, no changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import run
from cluster_cases import CODES, COSTS, IDS, Serve, Served, assert_equal, one_index, serving
from server_cases import BASE, Api, check_problem, code64, exactly, exactly_of

import bitweigh
from bitweigh import cluster, server
from bitweigh.client import Client, UnavailableError
from bitweigh.cluster import HashPartition, OverloadedError, Shards, VersionGoneError
from bitweigh.server.keys import KeyFile

RNG = np.random.default_rng(5)
WEIGHTS = RNG.random(64)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with serving(tmp_path) as started:
        yield started


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(groups=2, replicas=1)


@pytest.fixture(params=["in this process", "by holders"])
def api(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> Iterator[Api]:
    """A server with the collection "own" and the cluster "wiki"."""
    source = served.directory.url if request.param == "in this process" else served.cluster
    with Api(tmp_path / "data", clusters={"wiki": source}) as api:
        api.create("own", kind="codes", n_bits=8)
        yield api


@pytest.fixture
def held(served: Served, tmp_path: Path) -> Iterator[Api]:
    """A server with the cluster "wiki", which holders have."""
    with Api(tmp_path / "data", clusters={"wiki": served.cluster}) as api:
        yield api


def check_facts(answer: dict[str, Any], version: int = 1) -> None:
    assert (answer["exact"], answer["complete"], answer["seq"]) == (True, True, version)
    assert answer["took_us"] >= answer["engine_us"] > 0
    assert "missing" not in answer


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_every_form_of_query_gets_the_answer_of_one_index(api: Api, k: int, partial: bool) -> None:
    index = one_index()
    code, id_ = CODES[3], int(IDS[8])
    vector = RNG.standard_normal(64)
    weighted = bitweigh.costs.from_weights(code, WEIGHTS)
    for query, expected in (
        ({"costs": COSTS[0].tolist()}, index.search(COSTS[0], k)),
        ({"code": code64(code)}, index.search_codes(code, k)),
        ({"code": code64(code), "weights": WEIGHTS.tolist()}, index.search(weighted, k)),
        (
            {"vector": vector.tolist()},
            index.search(bitweigh.costs.inner_product(vector), k),
        ),
        ({"id": id_}, index.search_by_id(id_, k)),
        (
            {"id": str(id_), "weights": WEIGHTS.tolist()},
            index.search_by_id(id_, k, weights=WEIGHTS),
        ),
    ):
        answer = api.search("wiki", **query, k=k, partial=partial)
        assert exactly(answer["hits"]) == exactly_of(*expected)
        check_facts(answer)


def test_queries_of_several_forms_are_answered_in_their_order(api: Api) -> None:
    index, id_ = one_index(), int(IDS[8])
    queries = [
        {"id": id_},
        {"costs": COSTS[0].tolist()},
        {"vector": [1.0] * 64},
        {"costs": COSTS[1].tolist()},
    ]
    expected = [
        index.search_by_id(id_, 5),
        index.search(COSTS[0], 5),
        index.search(bitweigh.costs.inner_product(np.ones(64)), 5),
        index.search(COSTS[1], 5),
    ]
    answer = api.search("wiki", queries=queries, k=5)
    assert [exactly(hits) for hits in answer["results"]] == [exactly_of(*one) for one in expected]
    strings = api.done("POST", "wiki/search?ids=string", queries[0])
    assert strings["hits"][0]["id"] == str(index.search_by_id(id_, 1).ids[0])


def test_range_searches_get_the_answer_of_one_index(api: Api) -> None:
    index, id_ = one_index(), int(IDS[8])
    by_id = bitweigh.costs.hamming(index.codes_of([id_])[0], 64)
    vector = RNG.standard_normal(64)
    by_vector = bitweigh.costs.inner_product(vector)
    for query, costs in (
        ({"costs": COSTS[0].tolist()}, COSTS[0]),
        ({"id": id_}, by_id),
        ({"vector": vector.tolist()}, by_vector),
    ):
        radius = float(index.search(costs, 20).distances[-1])
        expected = index.range_search(costs, radius)
        answer = api.done("POST", "wiki/range", {**query, "radius": radius})
        assert exactly(answer["hits"]) == exactly_of(expected.distances, expected.ids)
        check_facts(answer)
    too_many = api.ask("POST", "wiki/range", {"id": id_, "radius": 64, "limit": 5})
    check_problem(too_many, 422, "more than limit=5")


def test_a_cluster_is_listed_and_described_like_a_collection(api: Api) -> None:
    assert api.done("GET", "/v1/collections")["collections"] == [
        {"name": "own", "kind": "codes", "items": 0, "seq": 0, "cluster": False},
        {"name": "wiki", "kind": "codes", "items": 2000, "seq": 1, "cluster": True},
    ]
    facts = api.done("GET", "wiki")
    assert facts["definition"] == {"kind": "codes", "n_bits": 64, "bitorder": "big"}
    assert (facts["items"], facts["seq"], facts["n_bits"]) == (2000, 1, 64)
    assert (facts["ready"], facts["fitted"], facts["read_only"]) == (True, True, True)


def test_every_change_of_a_cluster_is_refused_as_read_only(api: Api) -> None:
    tar = {"content-type": "application/x-tar"}
    for method, path, options in (
        ("PUT", "wiki", {"json": {"kind": "codes", "n_bits": 8}}),
        ("DELETE", "wiki", {}),
        ("POST", "wiki/fit", {}),
        ("PUT", "wiki/items", {"json": {"items": [{"id": 1, "code": code64(CODES[0])}]}}),
        ("POST", "wiki/items/remove", {"json": {"ids": [int(IDS[0])]}}),
        ("POST", "wiki/import", {"content": b"PAR1"}),
        ("POST", "wiki/snapshots", {}),
        ("DELETE", "wiki/snapshots/one", {}),
        ("POST", "wiki/restore", {"content": b"tar", "headers": tar}),
    ):
        answer = api.ask(method, path, **options)
        check_problem(answer, 403, "'wiki' is a cluster")
        assert answer.json()["type"].endswith("read-only")
    assert not (api.service.store.folder / "collections" / "wiki").exists()
    check_facts(api.search("wiki", id=int(IDS[0])))


def test_what_a_cluster_does_not_have_is_refused(api: Api) -> None:
    for method, path in (
        ("GET", "wiki/items"),
        ("GET", "wiki/items/1"),
        ("POST", "wiki/items/get"),
        ("GET", "wiki/snapshots"),
        ("GET", "wiki/snapshots/one"),
    ):
        check_problem(api.ask(method, path), 409, "can only be searched")
    query = {"id": int(IDS[0])}
    for more in ({"filter": {"lang": "de"}}, {"payload": True}, {"payload": ["lang"]}):
        check_problem(api.ask("POST", "wiki/search", {**query, **more}), 409, "no payloads")
        more = {**more, "radius": 1.0}
        check_problem(api.ask("POST", "wiki/range", {**query, **more}), 409, "no payloads")
    check_problem(api.ask("POST", "wiki/search", {"key": "a"}), 409, "no keys")


def test_wrong_queries_are_refused_as_those_of_a_collection(api: Api) -> None:
    check_problem(api.ask("POST", "wiki/search", {"id": 5_001}), 404, "no item 5001")
    check_problem(api.ask("POST", "wiki/range", {"id": 5_001, "radius": 1.0}), 404, "5001")
    check_problem(api.ask("POST", "wiki/search", {"costs": [[0, 1]]}), 422, "costs")
    check_problem(api.ask("POST", "wiki/search", {"vector": [1.0]}), 422, "64 numbers")
    check_problem(api.ask("POST", "wiki/search", {"code": "AA=="}), 422, "8 bytes")
    check_problem(api.ask("POST", "wiki/search", {"text": "a"}), 422, "no embedder")


def test_a_missing_shard_is_503_and_partial_answers_say_what_is_missing(
    held: Api, served: Served
) -> None:
    served.replica(1, 0).dead = True
    query = {"costs": COSTS[0].tolist(), "k": 10}
    refused = held.ask("POST", "wiki/search", query)
    check_problem(refused, 503, "some shards do not answer")
    assert refused.headers["retry-after"] == "3"
    missing = refused.json()["missing"]
    shards = served.cluster.version.shards
    assert [one["rows"] for one in missing] == [shards[one["shard"]].rows for one in missing]
    assert {one["reason"] for one in missing} == {"1-0: its holder has died"}
    check_problem(held.ask("POST", "wiki/range", {**query_of(query), "radius": 1.0}), 503, "shards")

    answer = held.search("wiki", **query, partial=True)
    assert (answer["exact"], answer["complete"], answer["seq"]) == (False, False, 1)
    assert answer["missing"] == missing
    gone = [one["shard"] for one in missing]
    there = ~np.isin(served.cluster.version.partition.shard_of(IDS), gone)
    index = bitweigh.Index(64)
    index.add(CODES[there], IDS[there])
    assert exactly(answer["hits"]) == exactly_of(*index.search(COSTS[0], 10))

    served.replica(1, 0).dead = False
    check_facts(held.search("wiki", **query, partial=True))


def query_of(request: dict[str, Any]) -> dict[str, Any]:
    """A request without its k."""
    return {name: value for name, value in request.items() if name != "k"}


def test_the_python_client_gets_partial_answers_where_it_allows_them(
    held: Api, served: Served
) -> None:
    client = Client(BASE, retries=0, http=held.client)
    whole = client["wiki"].search_costs(COSTS[:3], k=5, partial=True)
    assert (whole.complete, whole.missing) == (True, [])
    assert_equal(one_index().search(COSTS[:3], 5), (whole.distances, whole.ids))
    served.replica(1, 0).dead = True
    with pytest.raises(UnavailableError, match="some shards do not answer"):
        client["wiki"].search_costs(COSTS[:3], k=5)
    part = client["wiki"].search_costs(COSTS[:3], k=5, partial=True)
    assert (part.exact, part.complete) == (False, False)
    expected = served.cluster.search(COSTS[:3], 5, partial=True)
    assert_equal(expected[:2], (part.distances, part.ids))
    assert [tuple(one) for one in part.missing] == [tuple(one) for one in expected.missing]


def test_partial_changes_nothing_for_a_collection(api: Api) -> None:
    api.upsert("own", [{"id": 1, "code": code64([7])}])
    answers = [api.search("own", id=1, k=1, partial=partial) for partial in (False, True)]
    for answer in answers:
        assert (answer["complete"], answer["hits"], "missing" in answer) == (True, [], False)


def test_a_search_that_holders_hold_up_is_504_and_others_go_on(held: Api, served: Served) -> None:
    held.create("own", kind="codes", n_bits=8)
    served.replica(1, 0).delay = 0.5
    query = {"costs": COSTS[0].tolist(), "timeout_ms": 50}
    check_problem(held.ask("POST", "wiki/search", query), 504, "longer than its timeout")
    assert held.search("own", vector=[1.0] * 8)["hits"] == []


def test_an_overloaded_cluster_is_429_with_the_time_to_wait(
    held: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OverloadedError(1.4)

    monkeypatch.setattr(served.coordinator, "submit", refuse)
    refused = held.ask("POST", "wiki/search", {"costs": COSTS[0].tolist()})
    check_problem(refused, 429, "too many queries are waiting")
    assert refused.headers["retry-after"] == "2"


def test_a_version_that_is_published_is_searched_from_then_on(held: Api, served: Served) -> None:
    url = served.directory.url
    cluster.update(url, remove=IDS[:100])
    served.cluster.publish()
    index = one_index()
    index.remove(IDS[:100])
    answer = held.search("wiki", costs=COSTS[0].tolist(), k=20)
    assert exactly(answer["hits"]) == exactly_of(*index.search(COSTS[0], 20))
    check_facts(answer, version=2)
    assert held.done("GET", "wiki")["items"] == 1900


def test_a_version_that_is_gone_for_good_is_503(
    held: Api, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise VersionGoneError(1)

    monkeypatch.setattr(served.coordinator, "submit", refuse)
    refused = held.ask("POST", "wiki/search", {"costs": COSTS[0].tolist()})
    check_problem(refused, 503, "version 1 is not open any more")


def test_the_state_of_clusters_has_shards_holders_and_suspects(held: Api, served: Served) -> None:
    (facts,) = held.done("GET", "/v1/cluster")["clusters"]
    assert (facts["name"], facts["url"], facts["version"]) == ("wiki", None, 1)
    assert [one["shard"] for one in facts["shards"]] == [0, 1, 2, 3, 4]
    assert sum(one["rows"] for one in facts["shards"]) == facts["rows"] == 2000
    assert facts["groups"] == [
        {"shards": [0, 2, 4], "replicas": 1, "holders": ["0-0"], "suspects": []},
        {"shards": [1, 3], "replicas": 1, "holders": ["1-0"], "suspects": []},
    ]
    served.replica(1, 0).dead = True
    held.search("wiki", costs=COSTS[0].tolist(), partial=True)
    (facts,) = held.done("GET", "/v1/cluster")["clusters"]
    assert [group["suspects"] for group in facts["groups"]] == [[], ["1-0"]]
    assert facts["answered"] == 1


def test_the_state_of_shards_in_this_process_names_their_url(
    served: Served, tmp_path: Path
) -> None:
    url = served.directory.url
    with Api(tmp_path / "data", clusters={"wiki": url}) as api:
        (facts,) = api.done("GET", "/v1/cluster")["clusters"]
        assert (facts["url"], facts["rows"], len(facts["shards"])) == (url, 2000, 5)
        assert "groups" not in facts


def test_a_server_without_clusters_says_so(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        check_problem(api.ask("GET", "/v1/cluster"), 404, "no cluster")


def test_keys_apply_to_clusters_as_to_collections(served: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    keys = KeyFile(data / "keys.json")
    secrets = {
        name: keys.add(name, scope, collections)
        for name, scope, collections in (
            ("wiki", "read", ["wiki"]),
            ("other", "read", ["other"]),
            ("all", "admin", []),
        )
    }
    url = served.directory.url
    with Api(data, clusters={"wiki": url, "news": served.cluster}) as api:

        def listed(key: str) -> tuple[list[str], list[str]]:
            api.headers = {"authorization": f"Bearer {secrets[key]}"}
            collections = api.done("GET", "/v1/collections")["collections"]
            clusters = api.ask("GET", "/v1/cluster").json().get("clusters", [])
            return [one["name"] for one in collections], [one["name"] for one in clusters]

        check_problem(api.ask("GET", "/v1/cluster"), 401, "key")
        assert listed("wiki") == (["wiki"], ["wiki"])
        assert listed("all") == (["news", "wiki"], ["news", "wiki"])
        check_problem(api.ask("DELETE", "wiki"), 403, "is a cluster")
        assert listed("other") == ([], [])
        check_problem(api.ask("GET", "/v1/cluster"), 404, "no cluster")
        query = {"costs": COSTS[0].tolist()}
        check_problem(api.ask("POST", "wiki/search", query), 403, "no read access")
        listed("wiki")
        check_facts(api.search("wiki", **query))
        check_problem(api.ask("POST", "news/search", query), 403, "no read access")


def test_clusters_that_cannot_be_served_are_refused_and_the_folder_is_given_up(
    served: Served, tmp_path: Path
) -> None:
    data, url = tmp_path / "data", served.directory.url
    with Api(data) as api:
        api.create("taken", kind="codes", n_bits=8)
    never_stored = Shards([bitweigh.Index(8)], HashPartition(1))
    for error, clusters, reason in (
        (ValueError, {"taken": url}, "a collection of that name"),
        (ValueError, {"Wrong Name": url}, "names of collections"),
        (ValueError, {"wiki": url, "new": never_stored}, "version that is stored"),
        (FileNotFoundError, {"wiki": tmp_path / "nowhere"}, "nowhere"),
    ):
        with pytest.raises(error, match=reason):
            server.app(data, clusters=clusters)
    Api(data, clusters={"wiki": url}).service.close()


def test_closing_the_server_leaves_a_cluster_that_it_was_given(
    served: Served, tmp_path: Path
) -> None:
    Api(tmp_path / "data", clusters={"wiki": served.cluster}).service.close()
    assert served.cluster.search(COSTS[0], 1).ids.shape == (1,)


def test_ray_clusters_are_connected_to_by_name_and_disconnected(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def connect(name: str, **options: object) -> Any:
        asked.append((name, options["address"]))
        return served.cluster

    monkeypatch.setattr(cluster, "connect", connect)
    closed: list[bool] = []
    monkeypatch.setattr(served.cluster, "close", lambda: closed.append(True))
    with Api(tmp_path / "data", clusters={"wiki": "ray:served"}) as api:
        assert api.done("GET", "/v1/cluster")["clusters"][0]["url"] == "ray:served"
        check_facts(api.search("wiki", costs=COSTS[0].tolist()))
    assert asked == [("served", "auto")]
    assert closed == [True]
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["wiki"], "--cluster must be NAME=URL, got 'wiki'"),
        (["=shards"], "--cluster must be NAME=URL"),
        (["wiki=a", "wiki=b"], "two of the name 'wiki'"),
        (["wiki=nowhere"], "nowhere"),
    ],
)
def test_wrong_clusters_are_refused_on_the_command_line(
    tmp_path: Path, given: list[str], reason: str
) -> None:
    options = [part for one in given for part in ("--cluster", one)]
    done = run("serve", str(tmp_path / "data"), "--port", "0", *options)
    assert done.exit_code != 0
    assert reason in done.stderr
