"""Clusters of vectors and of embeddings behind the server: answers as those of one index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_cases import Served
from server_cases import Api, check_problem, exactly, exactly_of

import bitweigh
from bitweigh import cluster
from bitweigh import costs as make_costs

VECTORS = np.random.default_rng(5).standard_normal((400, 24)).astype(np.float32)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("rerank", [None, "float32"])
def test_clusters_of_vectors_answer_as_one_vector_index(
    tmp_path: Path, rerank: Any, held: bool
) -> None:
    like = bitweigh.VectorIndex(n_bits=16, rerank=rerank).fit(VECTORS)
    cluster.build(VECTORS, tmp_path / "shards", like=like, shards=3)
    like.add(VECTORS)
    with of_folder(tmp_path, held) as api:
        for partial in (False, True):
            answer = api.search("wiki", vector=VECTORS[0].tolist(), k=7, partial=partial)
            assert exactly(answer["hits"]) == exactly_of(*like.search(VECTORS[0], 7))
            assert answer["exact"] is (rerank is None)
        answer = api.search("wiki", id=5, k=7)
        assert exactly(answer["hits"]) == exactly_of(*like.search_by_id(5, 7))
        if rerank is not None:
            answer = api.search("wiki", vector=VECTORS[0].tolist(), k=7, rerank_from=8)
            expected = exactly_of(*like.search(VECTORS[0], 7, rerank_from=8))
            assert exactly(answer["hits"]) == expected != exactly_of(*like.search(VECTORS[0], 7))
        costs = like.costs(VECTORS[0])
        radius = float(like.index.search(costs, 9).distances[-1])
        answer = api.done("POST", "wiki/range", {"vector": VECTORS[0].tolist(), "radius": radius})
        within = like.index.range_search(costs, radius)
        assert exactly(answer["hits"]) == exactly_of(within.distances, within.ids)
        why = api.done("POST", "wiki/explain", {"id": 5, "k": 7})
        assert exactly(why["hits"]) == exactly_of(*by_code_of(like.index, why["costs"], 5, 7))
        own = make_costs.hamming(like.index.codes_of([5])[0], 16)
        wanted = own if rerank is None else like.costs(VECTORS[5])
        assert np.array_equal(why["costs"], wanted)
        definition = api.done("GET", "wiki")["definition"]
        assert (definition["kind"], definition["dim"], definition["n_bits"]) == ("vectors", 24, 16)
        check_problem(api.ask("POST", "wiki/search", {"vector": [1.0]}), 422, "24 numbers")


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("rescore", [None, "int8"])
def test_clusters_of_embeddings_answer_as_binary_embeddings(
    tmp_path: Path, rescore: Any, held: bool
) -> None:
    options = {} if rescore is None else {"rescore": rescore, "calibration": VECTORS}
    like = bitweigh.BinaryEmbeddings(dim=24, **options)
    rows = np.packbits(VECTORS > 0, axis=1) if rescore is None else VECTORS
    cluster.build(rows, tmp_path / "shards", like=like, shards=3)
    like.add(rows)
    with of_folder(tmp_path, held) as api:
        scores, ids = like.search(VECTORS[0], 7)
        answer = api.search("wiki", vector=VECTORS[0].tolist(), k=7)
        assert exactly(answer["hits"]) == exactly_of(-scores, ids)
        assert answer["exact"] is (rescore is None)
        scores, ids = like.search_by_id(5, 7)
        assert exactly(api.search("wiki", id=5, k=7)["hits"]) == exactly_of(-scores, ids)
        why = api.done("POST", "wiki/explain", {"id": 5, "k": 7})
        assert exactly(why["hits"]) == exactly_of(*by_code_of(like.index, why["costs"], 5, 7))
        own = like.vectors_of([5])[0] if rescore else np.where(VECTORS[5] > 0, 1.0, -1.0)
        assert np.array_equal(why["costs"], make_costs.inner_product(own.astype(np.float64)))
        if rescore is not None:
            scores, ids = like.search(VECTORS[0], 7, rescore_from=8)
            answer = api.search("wiki", vector=VECTORS[0].tolist(), k=7, rerank_from=8)
            assert exactly(answer["hits"]) == exactly_of(-scores, ids)
        assert api.done("GET", "wiki")["definition"]["dim"] == 24


def by_code_of(index: bitweigh.Index, costs: Any, id_: int, k: int) -> Any:
    """Distances and ids of the k nearest by costs, without one of the items."""
    return index.search(np.array(costs), k, deny=[id_])


def of_folder(folder: Path, held: bool) -> Any:
    """A server with the shards in a folder as the cluster "wiki"."""
    if not held:
        return Api(folder / "data", clusters={"wiki": folder / "shards"})
    served = Served(folder / "shards", groups=2, replicas=1)

    class Closing(Api):
        def __exit__(self, *given: object) -> None:
            super().__exit__(*given)
            served.close()

    return Closing(folder / "data", clusters={"wiki": served.cluster})
