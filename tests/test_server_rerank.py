"""How many codes a search ranks again by vectors, as its request says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from server_cases import Api, check_problem, exactly, exactly_of, small_api

import bitweigh
from bitweigh.server.asking import Asked, Found, Prepared, answer


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with small_api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.mark.parametrize("kind", ["embeddings", "vectors"])
def test_rerank_from_says_how_many_codes_are_ranked_again(api: Api, kind: str) -> None:
    name = f"large-{kind}"
    generator = np.random.default_rng(4)
    vectors = generator.normal(size=(400, 16)).astype(np.float32)
    rows = [{"id": row, "vector": vectors[row].tolist()} for row in range(400)]
    index: Any
    if kind == "vectors":
        options = {"n_bits": 8, "hasher": "lsh", "rerank": "float32", "seed": 3}
        api.create(name, kind=kind, dim=16, fit_after=400, **options)
        index, sign, option = bitweigh.VectorIndex(**options).fit(vectors), 1, "rerank_from"
    else:
        api.create(name, kind=kind, dim=16, rescore="float32")
        index = bitweigh.BinaryEmbeddings(16, rescore="float32")
        sign, option = -1, "rescore_from"
    api.upsert(name, rows)
    index.add(vectors, np.arange(400))
    query = generator.normal(size=16).astype(np.float32)
    answers = []
    for number in (5, 20, 400):
        found = api.search(name, vector=query.tolist(), k=5, rerank_from=number)
        first, ids = index.search(query, 5, **{option: number})
        assert exactly(found["hits"]) == exactly_of(sign * first, ids)
        first, ids = index.search_by_id([7], 5, **{option: number})
        found_by_id = api.search(name, id=7, k=5, rerank_from=number)
        assert exactly(found_by_id["hits"]) == exactly_of(sign * first[0], ids[0])
        answers.append(exactly(found["hits"]))
    assert answers[0] != answers[2]
    # Searches that are answered in one batch keep their own.
    collection = api.service.store[name]
    asked = [
        Asked(
            [Prepared("vector", query)],
            5,
            False,
            time.monotonic() + 60,
            "auto",
            None,
            rerank_from=number,
        )
        for number in (5, 20, 400)
    ]
    together = [
        found for found in answer(collection, asked, None, None) if isinstance(found, Found)
    ]
    assert [exactly(found.hits[0]) for found in together] == answers


@pytest.mark.parametrize(
    ("name", "request_", "reason"),
    [
        ("codes", {"vector": [1.0] * 12}, "needs a collection that keeps vectors"),
        ("emb", {"vector": [1.0] * 8}, "needs a collection that keeps vectors"),
        ("vec", {"vector": [1.0] * 4, "rerank_from": 9}, "from k, 10, to 10000, got 9"),
        ("vec", {"vector": [1.0] * 4, "rerank_from": 10_001}, "from k, 10, to 10000, got 10001"),
        ("vec", {"costs": [[0, 1]] * 4}, "goes with vectors"),
        ("vec", {"id": 1, "weights": [1.0] * 4}, "goes with vectors"),
        ("vec", {"queries": [{"id": 1}, {"costs": [[0, 1]] * 4}]}, "goes with vectors"),
    ],
)
def test_rerank_from_is_refused_where_nothing_is_ranked_again(
    api: Api, name: str, request_: Any, reason: str
) -> None:
    refused = api.ask("POST", f"{name}/search", {"rerank_from": 20, **request_})
    check_problem(refused, 422, reason)
