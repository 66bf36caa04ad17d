"""The server's API by behaviours: every route, every kind of collection, to the last bit."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from server_cases import ARROW, Api, arrow_stream, code64, exactly, exactly_of, small_api

import bitweigh
from bitweigh import costs as make_costs
from bitweigh.server import Settings

BEYOND_FLOATS = 2**53 + 1


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with small_api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def names() -> Iterator[str]:
    """Names of collections that no other test has."""
    return (f"own{time.perf_counter_ns()}" for _ in iter(int, 1))


@settings(max_examples=examples(90))
@given(
    n_bits=st.sampled_from([1, 7, 8, 12, 63, 65]),
    order=st.sampled_from(["big", "little"]),
    n=st.integers(1, 40),
    k=st.integers(1, 50),
    seed=st.integers(0, 2**32),
)
def test_searches_of_codes_equal_the_reference_to_the_last_bit(
    api: Api, n_bits: int, order: Any, n: int, k: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    name = f"ref-{n_bits}-{order}"
    api.create(name, kind="codes", n_bits=n_bits, bitorder=order)
    api.done("POST", f"{name}/items/remove", {"filter": {"not": {"gone": True}}})
    bits = generator.integers(0, 2, (n, n_bits), np.uint8)
    codes = np.packbits(bits, axis=1, bitorder=order)
    ids = generator.choice(1000, n, replace=False)
    api.upsert(
        name,
        [
            {"id": int(id_), "code": code64(code), "payload": {"even": bool(id_ % 2 == 0)}}
            for id_, code in zip(ids, codes, strict=True)
        ],
    )
    costs = generator.normal(size=(2, n_bits, 2)) * 10.0 ** generator.integers(-300, 300)
    wanted = bitweigh.reference.search(codes, costs, k, ids=ids, bitorder=order)
    found = api.search(name, queries=[{"costs": one.tolist()} for one in costs], k=k)
    for place in range(2):
        assert exactly(found["results"][place]) == exactly_of(
            wanted.distances[place], wanted.ids[place]
        )
    assert found["exact"]
    assert found["complete"]
    even = ids % 2 == 0
    filtered = api.search(name, costs=costs[0].tolist(), k=k, filter={"even": True})
    if even.any():
        best = bitweigh.reference.search(codes[even], costs[0], k, ids=ids[even], bitorder=order)
        assert exactly(filtered["hits"]) == exactly_of(best.distances, best.ids)
    else:
        assert filtered["hits"] == []
    distances = bitweigh.reference.distances(codes, costs[0], bitorder=order)
    radius = float(np.median(distances))
    within = api.done("POST", f"{name}/range", {"costs": costs[0].tolist(), "radius": radius})
    order_of = np.lexsort((ids, distances))
    assert exactly(within["hits"]) == [
        (int(ids[row]), float(distances[row]).hex()) for row in order_of if distances[row] <= radius
    ]
    query = codes[0]
    by_code = api.search(name, code=code64(query), k=k)
    hamming = make_costs.hamming(query, n_bits, bitorder=order)
    best = bitweigh.reference.search(codes, hamming, k, ids=ids, bitorder=order)
    assert exactly(by_code["hits"]) == exactly_of(best.distances, best.ids)


@pytest.mark.parametrize("rescore", [None, "float32", "float16"])
def test_embeddings_answer_as_binary_embeddings_do(
    api: Api, names: Iterator[str], rescore: Any
) -> None:
    name = next(names)
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(200, 20)).astype(np.float32)
    api.create(name, kind="embeddings", dim=20, **({"rescore": rescore} if rescore else {}))
    api.upsert(name, [{"id": row, "vector": vectors[row].tolist()} for row in range(200)])
    index = bitweigh.BinaryEmbeddings(20, rescore=rescore)
    index.add(vectors if rescore else np.packbits(vectors > 0, axis=1), np.arange(200))
    queries = generator.normal(size=(5, 20)).astype(np.float32)
    found = api.search(name, queries=[{"vector": query.tolist()} for query in queries], k=7)
    for query, hits in zip(queries, found["results"], strict=True):
        if rescore:
            scores, ids = index.search(query, 7)
            assert exactly(hits) == exactly_of(-scores, ids)
        else:
            best = index.index.search(make_costs.inner_product(query), 7)
            assert exactly(hits) == exactly_of(best.distances, best.ids)
    assert found["exact"] is (rescore is None)
    scores, ids = index.search_by_id([3], 5)
    assert exactly(api.search(name, id=3, k=5)["hits"]) == exactly_of(-scores[0], ids[0])


@pytest.mark.parametrize("rerank", [None, "float32"])
def test_vectors_answer_as_a_vector_index_does(api: Api, names: Iterator[str], rerank: Any) -> None:
    name = next(names)
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(300, 16)).astype(np.float32)
    options = {"n_bits": 16, "hasher": "itq", "rerank": rerank, "seed": 3}
    api.create(name, kind="vectors", dim=16, fit_after=300, **options)
    api.upsert(name, [{"id": row, "vector": vectors[row].tolist()} for row in range(299)])
    assert api.ask("POST", f"{name}/search", {"vector": [0.0] * 16}).status_code == 409
    api.upsert(name, [{"id": 299, "vector": vectors[299].tolist()}])
    index = bitweigh.VectorIndex(**options)
    index.fit(vectors)
    index.add(vectors, np.arange(300))
    for query in generator.normal(size=(5, 16)).astype(np.float32):
        wanted = index.search(query, 9)
        found = api.search(name, vector=query.tolist(), k=9)
        assert exactly(found["hits"]) == exactly_of(wanted.distances, wanted.ids)
        assert found["exact"] is (rerank is None)
    assert api.done("POST", f"{name}/fit")["vectors"] == 300


def test_vectors_that_cannot_be_fitted_are_kept_and_the_server_starts_with_them(
    tmp_path: Path,
) -> None:
    """Fitting needs more vectors than that; the write before it is on the disk already."""
    with Api(tmp_path) as api:
        api.create("vec", kind="vectors", dim=4, n_bits=64, hasher="itq", fit_after=1)
        assert api.upsert("vec", [{"id": 1, "vector": [1, 2, 3, 4]}])["count"] == 1
        assert api.ask("POST", "vec/fit").status_code == 409
        assert api.ask("POST", "vec/search", {"vector": [1, 2, 3, 4]}).status_code == 409
    with Api(tmp_path) as api:
        assert api.done("GET", "vec")["items"] == 1


def test_each_query_has_its_own_weights(api: Api) -> None:
    weights = [float(bit) for bit in range(12)]
    queries = [{"id": 1, "weights": weights}, {"id": 2}, {"id": 3, "weights": weights[::-1]}]
    together = api.search("codes", queries=queries, k=20)["results"]
    alone = [api.search("codes", **query, k=20)["hits"] for query in queries]
    assert together == alone


def test_a_search_shows_the_payload_fields_that_it_asks_for(api: Api) -> None:
    (hit,) = api.search("codes", id=1, k=1, payload=["n", "no such field"])["hits"]
    assert hit["payload"] == {"n": hit["id"]}
    (hit,) = api.search("codes", id=1, k=1, payload=True)["hits"]
    assert hit["payload"] == {"n": hit["id"]}
    (hit,) = api.search("codes", id=1, k=1)["hits"]
    assert "payload" not in hit


def test_items_are_replaced_by_id_and_by_key(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    api.create(name, kind="codes", n_bits=8)
    first = api.upsert(name, [{"key": "a", "code": code64([1])}, {"key": "b", "code": code64([2])}])
    again = api.upsert(name, [{"key": "a", "code": code64([255]), "payload": {"x": 1}}])
    assert again["ids"] == first["ids"][:1]
    assert again["seq"] > first["seq"]
    assert api.done("GET", name)["items"] == 2
    (hit,) = api.search(name, code=code64([255]), k=1, payload=True)["hits"]
    assert hit == {"id": first["ids"][0], "key": "a", "distance": 0.0, "payload": {"x": 1}}
    found = api.done("POST", f"{name}/items/get", {"keys": ["b", "c"], "ids": [77], "values": True})
    assert [item["key"] for item in found["items"]] == ["b"]
    assert found["items"][0]["code"] == code64([2])
    assert found["missing"] == [77, "c"]
    assert api.search(name, key="b", k=1)["hits"][0]["key"] == "a"


def test_large_ids_survive_as_strings(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    largest = 2**63 - 1
    api.create(name, kind="codes", n_bits=8)
    api.upsert(name, [{"id": str(BEYOND_FLOATS), "code": code64([1])}])
    api.upsert(name, [{"id": largest, "code": code64([3])}])
    found = api.done("POST", f"{name}/search?ids=string", {"code": code64([1])})
    assert [hit["id"] for hit in found["hits"]] == [str(BEYOND_FLOATS), str(largest)]
    item = api.done("GET", f"{name}/items/{BEYOND_FLOATS}?ids=string")
    assert item["id"] == str(BEYOND_FLOATS)
    request = {"ids": [str(largest), str(BEYOND_FLOATS + 2)]}
    got = api.done("POST", f"{name}/items/get?ids=string", request)
    assert [item["id"] for item in got["items"]] == [str(largest)]
    assert got["missing"] == [str(BEYOND_FLOATS + 2)]
    explained = api.done("POST", f"{name}/explain?ids=string", {"id": str(BEYOND_FLOATS)})
    assert [hit["id"] for hit in explained["hits"]] == [str(largest)]
    no_room = api.ask("PUT", f"{name}/items", {"items": [{"key": "new", "code": code64([1])}]})
    assert no_room.status_code == 422
    assert "no id is left" in no_room.json()["detail"]
    assert api.upsert(name, [{"id": 5, "code": code64([1])}])["count"] == 1


def test_pages_have_every_item_once_in_order(api: Api) -> None:
    seen: list[int] = []
    path = "codes/items?limit=7"
    while True:
        page = api.done("GET", path)
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        path = f"codes/items?limit=7&after={page['next']}"
    assert seen == list(range(20))
    filtered = api.done("GET", "emb/items?values=true&filter=" + json.dumps({"n": {"gte": 18}}))
    assert [item["id"] for item in filtered["items"]] == [18, 19]
    assert all("code" in item for item in filtered["items"])


def test_items_are_removed_by_ids_keys_and_filters(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    api.create(name, kind="codes", n_bits=8, indexes=["n"])
    api.upsert(name, [{"id": n, "code": code64([n]), "payload": {"n": n % 3}} for n in range(30)])
    api.upsert(name, [{"key": "k", "code": code64([99])}])
    assert (
        api.done("POST", f"{name}/items/remove", {"ids": [0, 1, 500], "keys": ["k"]})["count"] == 3
    )
    assert api.done("POST", f"{name}/items/remove", {"filter": {"n": 2}})["count"] == 10
    left = [item["id"] for item in api.done("GET", f"{name}/items")["items"]]
    assert left == [n for n in range(2, 30) if n % 3 != 2]
    assert api.ask("GET", f"{name}/items/0").status_code == 404
    found = api.search(name, code=code64([0]), k=100)["hits"]
    assert sorted(hit["id"] for hit in found) == left


def test_an_arrow_stream_writes_what_json_writes(api: Api, names: Iterator[str]) -> None:
    by_json, by_arrow = next(names), next(names)
    generator = np.random.default_rng(5)
    vectors = generator.normal(size=(50, 8)).astype(np.float32)
    labels = ["x", "y", None, "ä", "שלום"]
    for name in (by_json, by_arrow):
        api.create(name, kind="embeddings", dim=8, rescore="float32")
    api.upsert(
        by_json,
        [
            {
                "id": row,
                "vector": vectors[row].tolist(),
                "payload": {"l": labels[row % 5], "n": row},
            }
            for row in range(50)
        ],
    )
    table = pa.table(
        {
            "id": pa.array(range(50), pa.uint32()),
            "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8),
            "l": pa.array([labels[row % 5] for row in range(50)]).dictionary_encode(),
            "n": pa.array(range(50)),
        }
    )
    for compression in (None, "zstd", "lz4"):
        body = arrow_stream(table, compression=compression)
        assert api.done("PUT", f"{by_arrow}/items", content=body, headers=ARROW)["count"] == 50
    pages = [api.done("GET", f"{name}/items?values=true") for name in (by_json, by_arrow)]
    for page in pages:
        for item in page["items"]:
            del item["seq"]
    assert pages[0]["items"] == pages[1]["items"]


def parquet(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def test_an_import_reports_rows_that_it_cannot_take(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    api.create(name, kind="embeddings", dim=2, rescore="float32")
    ids = [1, -2, 3, None, 5]
    vectors = [[1.0, 2.0], [1.0, 2.0], [1.0], [3.0, 4.0], None]
    job = api.import_rows(name, parquet({"id": ids, "vector": vectors, "t": list("abcde")}))
    assert (job["state"], job["rows"], job["done"]) == ("done", 5, 5)
    assert (job["written"], job["failed"]) == (1, 4)
    assert [error["row"] for error in job["errors"]] == [1, 2, 3, 4]
    assert "must have 2 numbers" in job["errors"][1]["detail"]
    assert api.done("GET", f"{name}/items/1")["payload"] == {"t": "a"}
    named = parquet({"k": ["a", "b"], "v": [[1.0, 2.0]] * 2, "t": [1, 2]})
    job = api.import_rows(name, named, "?key=k&value=v&payload=")
    assert (job["state"], job["written"]) == ("done", 2)
    (item,) = api.done("POST", f"{name}/items/get", {"keys": ["b"]})["items"]
    assert "payload" not in item
    assert job["id"] in [one["id"] for one in api.done("GET", "/v1/jobs")["jobs"]]
    assert api.done("DELETE", f"/v1/jobs/{job['id']}")["state"] == "done"


def test_creating_a_collection_again_changes_nothing(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    definition = {"kind": "codes", "n_bits": 8}
    assert api.ask("PUT", name, definition).status_code == 201
    api.upsert(name, [{"id": 1, "code": code64([1])}])
    again = api.ask("PUT", name, definition)
    assert (again.status_code, again.json()["items"]) == (200, 1)
    assert api.ask("PUT", name, {"kind": "codes", "n_bits": 9}).status_code == 409
    assert name in [one["name"] for one in api.done("GET", "/v1/collections")["collections"]]
    assert api.done("DELETE", name) == {"deleted": name}
    assert api.ask("GET", name).status_code == 404
    assert api.done("PUT", name, {"kind": "codes", "n_bits": 9})["items"] == 0


def test_metrics_count_requests_and_items(api: Api) -> None:
    api.search("codes", id=1)
    answer = api.ask("GET", "/metrics")
    families = {one.name: one for one in text_string_to_metric_families(answer.text)}
    items = {one.labels["collection"]: one.value for one in families["bitweigh_items"].samples}
    assert items["codes"] == 20
    counted = {
        (one.labels["route"], one.labels["status"]): one.value
        for one in families["bitweigh_requests"].samples
        if one.name.endswith("_total")
    }
    assert counted["POST /v1/collections/{c}/search", "200"] >= 1


def test_health_and_facts_are_told(api: Api) -> None:
    assert api.done("GET", "/livez") == {"status": "ok"}
    assert api.done("GET", "/readyz") == {"status": "ready"}
    facts = api.done("GET", "/v1")
    assert facts["version"] == bitweigh.__version__
    assert facts["limits"]["k"] == 1000
    head = api.ask("HEAD", "/livez")
    assert (head.status_code, head.content) == (200, b"")


def test_texts_are_searched_by_the_operators_embedder(tmp_path: Path) -> None:
    def embedder(texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), -1.0, 1.0, 0.5] for text in texts]

    with Api(tmp_path, embedder=embedder) as api:
        api.create("emb", kind="embeddings", dim=4)
        api.upsert("emb", [{"id": n, "code": code64([n << 4])} for n in range(16)])
        by_text = api.search("emb", queries=[{"text": "four"}, {"vector": [1, 1, 1, 1]}], k=3)
        assert by_text["results"][0] == api.search("emb", vector=[4, -1, 1, 0.5], k=3)["hits"]
        both = api.ask("POST", "emb/search", {"text": "four", "vector": [1, 1, 1, 1]})
        assert both.status_code == 422


def test_searches_that_come_together_are_answered_together_and_as_alone(
    tmp_path: Path,
) -> None:
    generator = np.random.default_rng(7)
    codes = generator.integers(0, 256, (20_000, 8), np.uint8)
    with Api(tmp_path, Settings(search_threads=1)) as api:
        api.create("codes", kind="codes", n_bits=64)
        body = arrow_stream(
            pa.table({"id": np.arange(20_000), "code": [code.tobytes() for code in codes]})
        )
        api.done("PUT", "codes/items", content=body, headers=ARROW)
        requests = [
            {"costs": generator.normal(size=(64, 2)).tolist(), "k": int(k)}
            for k in generator.integers(1, 20, 120)
        ]
        alone = [exactly(api.search("codes", **request)["hits"]) for request in requests]
        batcher = api.service._batchers["codes"]
        before = batcher.batches
        with ThreadPoolExecutor(16) as pool:
            together = list(
                pool.map(lambda one: exactly(api.search("codes", **one)["hits"]), requests)
            )
        assert together == alone
        assert batcher.batches - before < len(requests)


def test_a_read_only_server_refuses_every_change(tmp_path: Path) -> None:
    with small_api(tmp_path) as api:
        taken = api.done("POST", "codes/snapshots")["name"]
    changes = [
        ("PUT", "new", {"kind": "codes", "n_bits": 8}),
        ("DELETE", "codes", None),
        ("POST", "vec/fit", None),
        ("PUT", "codes/items", {"items": [{"key": "a", "code": code64([1, 0])}]}),
        ("POST", "codes/items/remove", {"ids": [1]}),
        ("POST", "codes/restore", {"snapshot": taken}),
    ]
    with Api(tmp_path, Settings(read_only=True)) as api:
        record = api.service.store["codes"]._record
        facts = record.facts()
        for method, path, body in changes:
            answer = api.ask(method, path, body)
            assert answer.status_code == 403, (path, answer.text)
            assert "read-only" in answer.json()["detail"]
        assert record.facts() == facts
        assert len(api.search("codes", id=1, k=30)["hits"]) == 19
