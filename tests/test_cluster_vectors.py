"""Shards of vectors and embeddings: answers are those of one index of all rows, in every byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_cases import Served
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitweigh
from bitweigh import VectorIndex, cluster
from bitweigh._storage.sealed_json import seal
from bitweigh.cluster import HashPartition, RangePartition, Shards, Version
from bitweigh.cluster.partition import Partition
from bitweigh.cluster.serving.replicas import HolderLostError
from bitweigh.cluster.templates import template_like
from bitweigh.embeddings import BinaryEmbeddings, quantize
from bitweigh.errors import CorruptFileError, DeadlineError, LimitError

RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((2000, 24)).astype(np.float32)
IDS = RNG.permutation(9000)[:2000]
QUERIES = (VECTORS[:12] + 0.1).astype(np.float32)


def vector_index(**options: Any) -> VectorIndex:
    return VectorIndex(n_bits=24, **options).fit(VECTORS)


def embeddings(rescore: Any) -> BinaryEmbeddings:
    calibration = VECTORS if rescore == "int8" else None
    return BinaryEmbeddings(24, rescore=rescore, calibration=calibration)


def rows_for(like: VectorIndex | BinaryEmbeddings, vectors: NDArray[Any]) -> NDArray[Any]:
    """The rows that such an index takes."""
    packed = isinstance(like, BinaryEmbeddings) and like.rescore is None
    return quantize(vectors) if packed else vectors


def filled(like: Any, vectors: NDArray[Any], ids: NDArray[Any]) -> Any:
    one = like.copy()
    one.add(rows_for(like, vectors), ids)
    return one


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()


def view_of(shards: Any, like: object) -> Any:
    return shards.vectors if isinstance(like, VectorIndex) else shards.embeddings


TEMPLATES: dict[str, Any] = {
    "codes": vector_index(hasher="lsh"),
    "cosine": vector_index(metric="cosine", hasher="lsh", weigher="asym"),
    "float32": vector_index(rerank="float32"),
    "float16 cosine": vector_index(rerank="float16", metric="cosine", hasher="sign"),
    "bits": embeddings(None),
    "int8": embeddings("int8"),
    "float32 embeddings": embeddings("float32"),
}


def in_memory(like: Any, vectors: NDArray[Any], ids: NDArray[Any], partition: Partition) -> Any:
    """Shards that were never stored."""
    parts = []
    for shard in range(partition.shards):
        here = partition.shard_of(ids) == shard
        part = filled(like, vectors[here], ids[here])
        parts.append(part._fitted() if isinstance(part, VectorIndex) else part._state)
    template, _ = template_like(like)
    kept = [part.vectors for part in parts if part.vectors is not None]
    indexes = [part.index for part in parts]
    shards = Shards(indexes, partition, share_from=2, template=template, kept=kept)
    return view_of(shards, like)


@given(data=st.data())
def test_shards_of_vectors_answer_as_one_index_in_every_byte(data: st.DataObject) -> None:
    like = TEMPLATES[data.draw(st.sampled_from(sorted(TEMPLATES)))]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.sampled_from([0, 1, 2, 31, 33, 150]))
    # Few different vectors, so that there are many ties.
    vectors = rng.integers(-1, 2, (n, 24)).astype(np.float32)
    vectors[:, 3:] = vectors[:, :1] + 0.5
    ids = rng.permutation(400)[:n]
    n_shards = data.draw(st.integers(1, 5))
    partition: Partition = HashPartition(n_shards)
    if data.draw(st.booleans()):
        partition = RangePartition(tuple(range(0, 50 * n_shards, 50)))
    one, shards = filled(like, vectors, ids), in_memory(like, vectors, ids, partition)
    queries = (rng.integers(-1, 2, (data.draw(st.integers(0, 4)), 24)) + 0.5).astype(np.float32)
    k = data.draw(st.sampled_from([1, 3, 40, 200]))
    options: dict[str, Any] = {"threads": data.draw(st.sampled_from([None, 1, 2]))}
    chosen = data.draw(st.sampled_from(["all", "allow", "deny"]))
    if chosen != "all":
        options[chosen] = rng.integers(0, 400, 60)
    name = "rerank_from" if isinstance(like, VectorIndex) else "rescore_from"
    kept = shards._place.present().template.empty_vectors is not None
    first = {name: data.draw(st.sampled_from([k, k + 7, 500]))} if kept else {}
    assert_same(
        shards.search(queries, k, **first, **options), one.search(queries, k, **first, **options)
    )
    if len(queries):
        assert_same(shards.search(queries[0], k), one.search(queries[0], k))
        limit = float(rng.choice([-2.0, 0.0, 3.0, np.inf]))
        found = shards.range_search(queries, limit, **options)
        assert_same(found, one.range_search(queries, limit, **options))
        by_codes = shards.range_search(queries, limit, by="codes", **options)
        assert_same(by_codes, one.range_search(queries, limit, by="codes", **options))
        del options["threads"]
        assert list(shards.iterate(queries[0], **options)) == list(
            one.iterate(queries[0], **options)
        )
    if n:
        some = rng.choice(ids, 3)
        assert_same(shards.search_by_id(some, k), one.search_by_id(some, k))
        own = shards.search_by_id(int(some[0]), k, include_self=True)
        assert_same(own, one.search_by_id(int(some[0]), k, include_self=True))


@pytest.fixture(params=sorted(TEMPLATES))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    like = TEMPLATES[request.param]
    cluster.build(rows_for(like, VECTORS), tmp_path / "shards", like=like, ids=IDS, shards=4)
    return like, tmp_path / "shards"


@pytest.fixture
def served(stored: Any) -> Iterator[Any]:
    like, folder = stored
    with Served(folder, groups=2, replicas=2, share_from=20) as running:
        yield running, like


def check_as_one(shards: Any, one: Any) -> None:
    for k in (1, 10, 300, 2500):
        assert_same(shards.search(QUERIES, k), one.search(QUERIES, k))
        assert_same(shards.search(QUERIES[0], k), one.search(QUERIES[0], k))
        assert_same(shards.search_by_id(IDS[:5], k), one.search_by_id(IDS[:5], k))
    half = one.filter(allow=IDS[::2])
    assert_same(shards.search(QUERIES, 9, filter=half), one.search(QUERIES, 9, filter=half))
    near = one.search(QUERIES, 20)[0][:, -1]
    for by in ("codes", None):
        found = shards.range_search(QUERIES, near, by=by, deny=IDS[:40])
        assert_same(found, one.range_search(QUERIES, near, by=by, deny=IDS[:40]))
        assert list(shards.iterate(QUERIES[1], by=by)) == list(one.iterate(QUERIES[1], by=by))
    with pytest.raises(LimitError, match="limit=2"):
        shards.range_search(QUERIES, near, limit=2)
    assert_same(asyncio.run(shards.asearch(QUERIES, 7)), one.search(QUERIES, 7))
    assert len(shards) == len(one)
    assert IDS[3] in shards
    assert 9001 not in shards
    assert "x" not in shards
    assert np.array_equal(shards.codes_of(IDS[:9]), one.codes_of(IDS[:9]))
    with pytest.raises(KeyError, match="9001"):
        shards.codes_of([IDS[0], 9001])
    with pytest.raises(DeadlineError):
        shards.search(QUERIES, 5, timeout=1e-9)


def test_stored_shards_answer_as_one_index(stored: Any) -> None:
    like, folder = stored
    shards = view_of(cluster.open(folder), like)
    check_as_one(shards, filled(like, VECTORS, IDS))
    assert "2000" in repr(shards)


def test_a_cluster_answers_as_one_index(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running, like = served
    # Shares that are often not enough.
    monkeypatch.setattr("bitweigh.cluster.shares.share_of", lambda k, shards: -(-k // shards))
    shards = view_of(running.cluster, like)
    check_as_one(shards, filled(like, VECTORS, IDS))
    assert running.cluster.status().second_rounds > 0


def test_kept_vectors_come_back_as_one_index_keeps_them(served: Any) -> None:
    running, like = served
    one = filled(like, VECTORS, IDS)
    views = view_of(running.cluster, like), view_of(cluster.open(running.directory.url), like)
    kept = (like.rerank if isinstance(like, VectorIndex) else like.rescore) is not None
    for shards in views:
        if kept:
            assert_same([shards.vectors_of(IDS[:9])], [one.vectors_of(IDS[:9])])
            with pytest.raises(KeyError, match="9001"):
                shards.vectors_of([9001])
        else:
            with pytest.raises(ValueError, match="keep vectors"):
                shards.vectors_of(IDS[:1])


@pytest.mark.parametrize("name", ["float32", "int8", "bits"])
def test_changes_give_the_shards_that_building_all_at_once_gives(name: str, tmp_path: Path) -> None:
    like = TEMPLATES[name]
    rows = rows_for(like, VECTORS)
    folder = tmp_path / "changed"
    cluster.build(rows[:1500], folder, like=like, ids=IDS[:1500], shards=3)
    cluster.update(folder, add=rows[1400:], ids=IDS[1400:], remove=IDS[:9], on_duplicate="replace")
    cluster.update(folder, add=rows[:9], ids=IDS[:9])
    changed = cluster.reshard(folder, 4)
    expected = cluster.build(rows, tmp_path / "all", like=like, ids=IDS, shards=4)
    assert changed.shards == expected.shards
    assert (changed.kind, changed.template) == (expected.kind, expected.template)
    assert cluster.verify(folder) == changed


def test_processes_and_files_give_the_same_shards_as_arrays(tmp_path: Path) -> None:
    like = TEMPLATES["float32"]
    np.save(tmp_path / "vectors.npy", VECTORS)
    np.save(tmp_path / "ids.npy", IDS)
    expected = cluster.build(VECTORS, tmp_path / "a", like=like, ids=IDS, shards=3)
    npy, ids = tmp_path / "vectors.npy", tmp_path / "ids.npy"
    found = cluster.build(npy, tmp_path / "b", like=like, ids=ids, shards=3, workers=2)
    assert found.shards == expected.shards
    table = {"key": IDS, "embedding": list(VECTORS)}
    write_parquet(table, tmp_path / "rows.parquet")
    parquet = cluster.build(
        tmp_path / "rows.parquet",
        tmp_path / "c",
        like=like,
        vectors="embedding",
        ids="key",
        shards=3,
    )
    assert parquet.shards == expected.shards


def write_parquet(table: dict[str, Any], path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(table), path, row_group_size=300)


def test_many_small_pieces_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    like = TEMPLATES["float32"]
    expected = cluster.build(VECTORS, tmp_path / "a", like=like, ids=IDS, shards=3)
    monkeypatch.setattr("bitweigh.cluster.building._PIECE_BYTES", 10_000)
    monkeypatch.setattr("bitweigh.cluster.shuffle._BYTES_READ", 700)
    found = cluster.build(VECTORS, tmp_path / "b", like=like, ids=IDS, shards=3)
    assert found.shards == expected.shards
    assert cluster.reshard(tmp_path / "b", 3).shards == expected.shards


def test_a_publish_with_another_hasher_answers_by_one_of_both(tmp_path: Path) -> None:
    before, after = TEMPLATES["float32"], vector_index(rerank="float32", hasher="lsh", seed=9)
    folder = tmp_path / "shards"
    cluster.build(VECTORS, folder, like=before, ids=IDS, shards=3)
    with Served(folder, groups=2, replicas=1) as running:
        shards = running.cluster.vectors
        ordered = shards.iterate(QUERIES[0], by="codes")
        cluster.build(-VECTORS, folder, like=after, ids=IDS, shards=2, overwrite=True)
        running.directory.publish(2)  # which the coordinator does not know yet
        first = filled(before, VECTORS, IDS)
        assert_same(shards.search(QUERIES, 30), first.search(QUERIES, 30))
        running.directory.drop(1)
        second = filled(after, -VECTORS, IDS)
        assert_same(shards.search(QUERIES, 30), second.search(QUERIES, 30))
        assert_same(shards.search_by_id(IDS[:3], 30), second.search_by_id(IDS[:3], 30))
        with pytest.raises(cluster.VersionGoneError):
            next(ordered)


def test_shards_that_cannot_be_reached_are_named_or_left_out(tmp_path: Path) -> None:
    like, folder = TEMPLATES["float32"], tmp_path / "shards"
    version = cluster.build(VECTORS, folder, like=like, ids=IDS, shards=2)
    with Served(folder, groups=2, replicas=1) as running:
        shards = running.cluster.vectors
        running.directory.replicas[1][0].dead = True
        with pytest.raises(cluster.IncompleteError, match="shard 1"):
            shards.search(QUERIES, 5)
        found = shards.search(QUERIES, 5, partial=True)
        assert not found.complete
        assert [missing.shard for missing in found.missing] == [1]
        there = version.partition.shard_of(IDS) == 0
        one = filled(like, VECTORS[there], IDS[there])
        expected = one.search(QUERIES, 5, rerank_from=100)
        assert np.array_equal(found.ids, expected.ids)
        running.directory.replicas[1][0].dead = False
        whole = shards.search(QUERIES, 5, partial=True)
        assert whole.complete


def test_vacuum_keeps_the_template(tmp_path: Path) -> None:
    like, folder = TEMPLATES["int8"], tmp_path / "shards"
    cluster.build(VECTORS, folder, like=like, ids=IDS, shards=2)
    cluster.update(folder, remove=IDS[:1])
    cluster.vacuum(folder, keep=1)
    assert len(cluster.open(folder).embeddings) == 1999


@pytest.mark.parametrize(
    ("kind", "arguments", "error"),
    [
        ("float32", {"like": 3}, "VectorIndex or BinaryEmbeddings, got int"),
        ("float32", {"n_bits": 24}, "those of `like`"),
        ("float32", {"layout": "lean"}, "those of `like`"),
        ("float32", {"codes": "code"}, "give vectors="),
        ("float32", {"vectors": "vector"}, "columns of parquet files"),
        ("bits", {"vectors": "vector"}, "give codes="),
        ("float32", {"ids": IDS[:3]}, "2000"),
        ("float32", {"ids": np.zeros(2000, np.int64)}, "distinct"),
    ],
)
def test_what_cannot_be_built_is_refused(
    kind: str, arguments: dict[str, Any], error: str, tmp_path: Path
) -> None:
    like = TEMPLATES[kind]
    options = {"like": like, **arguments}
    with pytest.raises((TypeError, ValueError), match=error):
        cluster.build(rows_for(like, VECTORS), tmp_path, **options)
    assert cluster.versions(tmp_path) == []


def test_ranges_of_int8_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="calibration="):
        cluster.build(VECTORS, tmp_path, like=BinaryEmbeddings(24, rescore="int8"))


def test_views_of_another_kind_are_refused(tmp_path: Path) -> None:
    cluster.build(VECTORS, tmp_path / "a", like=TEMPLATES["float32"])
    shards = cluster.open(tmp_path / "a")
    with pytest.raises(ValueError, match="of vectors, not of embeddings"):
        _ = shards.embeddings
    cluster.build(quantize(VECTORS), tmp_path / "b")
    with pytest.raises(ValueError, match="codes alone"):
        _ = cluster.open(tmp_path / "b").vectors
    with (
        Served(tmp_path / "b", groups=1, replicas=1) as running,
        pytest.raises(ValueError, match="codes alone"),
    ):
        _ = running.cluster.embeddings


def test_codes_of_vectors_can_be_searched_with_costs(tmp_path: Path) -> None:
    like = TEMPLATES["float32"]
    cluster.build(VECTORS, tmp_path, like=like, ids=IDS, shards=3)
    one = filled(like, VECTORS, IDS)
    costs = one.costs(QUERIES)
    shards = cluster.open(tmp_path)
    assert_same(shards.search(costs, 9), one.index.search(costs, 9))
    assert np.array_equal(shards.vectors.costs(QUERIES), costs)


def test_a_version_of_codes_is_written_as_before(tmp_path: Path) -> None:
    codes = cluster.build(quantize(VECTORS), tmp_path / "codes")
    vectors = cluster.build(VECTORS, tmp_path / "vectors", like=TEMPLATES["float32"])
    assert json.loads(codes.to_json())["version"] == 1
    assert "kind" not in json.loads(codes.to_json())
    assert json.loads(vectors.to_json())["version"] == 2
    for version in (codes, vectors):
        assert Version.from_json(version.to_json(), "v") == version


@pytest.mark.parametrize(
    ("name", "value"), [("kind", "codes"), ("kind", None), ("template", "x"), ("template", 3)]
)
def test_a_damaged_template_of_a_version_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    version = cluster.build(VECTORS, tmp_path, like=TEMPLATES["float32"])
    body = json.loads(version.to_json())
    body[name] = value
    head = {key: body.pop(key) for key in ("format", "version")}
    del body["checksum"]
    with pytest.raises(CorruptFileError, match=name):
        Version.from_json(seal(head, body), "v")


def test_a_missing_or_wrong_template_is_named(tmp_path: Path) -> None:
    version = cluster.build(VECTORS, tmp_path, like=TEMPLATES["float32"])
    assert version.template is not None
    (tmp_path / "shards" / version.template).rename(tmp_path / "elsewhere")
    with pytest.raises(CorruptFileError, match="the template"):
        cluster.open(tmp_path)
    other = cluster.build(
        VECTORS[:, :8], tmp_path / "other", like=VectorIndex(n_bits=8).fit(VECTORS[:, :8])
    )
    assert other.template is not None
    (tmp_path / "other" / "shards" / other.template).rename(tmp_path / "shards" / version.template)
    with pytest.raises(CorruptFileError, match="not the template"):
        cluster.open(tmp_path)


def test_one_feature_and_many_work(tmp_path: Path) -> None:
    for width in (1, 300):
        vectors = RNG.standard_normal((200, width))
        like = bitweigh.VectorIndex(n_bits=32, hasher="lsh", rerank="float32").fit(vectors)
        folder = tmp_path / str(width)
        cluster.build(vectors, folder, like=like, shards=3)
        found = cluster.open(folder).vectors.search(vectors[:5], 7)
        assert_same(found, filled(like, vectors, np.arange(200)).search(vectors[:5], 7))


def test_callers_who_want_different_things_at_once_each_get_theirs(tmp_path: Path) -> None:
    like, folder = TEMPLATES["float32"], tmp_path / "shards"
    cluster.build(VECTORS, folder, like=like, ids=IDS, shards=3)
    one = filled(like, VECTORS, IDS)
    with Served(folder, groups=2, replicas=1) as running:
        for group in running.directory.replicas:
            group[0].delay = 0.01  # so that calls wait, and go together

        async def ask() -> list[Any]:
            view = running.cluster.vectors
            return await asyncio.gather(
                *(view.asearch(QUERIES[i % 12], 1 + i % 3, rerank_from=100) for i in range(60)),
                *(running.cluster.asearch(one.costs(QUERIES[i % 12]), 100) for i in range(12)),
            )

        found = asyncio.run(ask())
        assert running.cluster.status().batches < 60
    for i in range(60):
        assert_same(found[i], one.search(QUERIES[i % 12], 1 + i % 3, rerank_from=100))
    for i in range(12):
        assert_same(found[60 + i], one.index.search(one.costs(QUERIES[i]), 100))


def test_a_limit_names_the_query_also_in_a_later_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like = TEMPLATES["codes"]
    cluster.build(VECTORS, tmp_path, like=like, ids=IDS, shards=3)
    shards = cluster.open(tmp_path).vectors
    monkeypatch.setattr("bitweigh.hashers._vectors.BLOCK_VALUES", 50)
    radii = np.full(12, -1.0)
    radii[7] = np.inf
    with pytest.raises(LimitError, match="query 7 has more than limit=3"):
        shards.range_search(QUERIES, radii, limit=3)


def test_a_holder_that_is_lost_before_ranking_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like, folder = TEMPLATES["float32"], tmp_path / "shards"
    cluster.build(VECTORS, folder, like=like, ids=IDS, shards=2)
    with Served(folder, groups=2, replicas=1) as running:
        lost = running.directory.replicas[1][0]

        def rank(*_: Any) -> bytes:
            raise HolderLostError("its holder has died")

        monkeypatch.setattr(lost.holder, "rank", rank)
        with pytest.raises(cluster.IncompleteError, match="shard 1"):
            running.cluster.vectors.search(QUERIES, 5)
        found = running.cluster.vectors.search(QUERIES, 5, partial=True)
    assert [missing.shard for missing in found.missing] == [1]
    assert not found.complete
