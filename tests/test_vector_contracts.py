"""VectorIndex: codes, vectors and ids stay consistent whatever callers do to returned objects."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh import VectorIndex
from bitweigh._vectors.learning import MAX_DEFAULT_BITS
from bitweigh._vectors.store import Vectors
from bitweigh.errors import CorruptFileError

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((400, 12)).astype(np.float32)
QUERIES = RNG.standard_normal((5, 12)).astype(np.float32)


def fitted_index(**options: Any) -> VectorIndex:
    index = VectorIndex(**{"n_bits": 10, "hasher": "lsh", "rerank": "float32", **options}).fit(DATA)
    index.add(DATA)
    return index


CODE = np.zeros((1, 2), dtype=np.uint8)


@pytest.mark.parametrize(
    "change",
    [
        lambda codes: codes.add(CODE),
        lambda codes: codes.replace(CODE, [0]),
        lambda codes: codes.remove([0]),
        lambda codes: codes.merge(bitweigh.Index(10)),
        lambda codes: codes.reset(),
    ],
    ids=["add", "replace", "remove", "merge", "reset"],
)
@pytest.mark.parametrize("life", ["added", "removed", "compacted", "loaded", "mapped"])
def test_changing_the_codes_that_were_handed_out_leaves_the_vector_index_as_it_is(
    change: Callable[[bitweigh.Index], object], life: str, tmp_path: Path
) -> None:
    index = fitted_index()
    if life == "removed":
        index.remove([399])
    if life == "compacted":
        index.compact()
    if life in ("loaded", "mapped"):
        index.save(tmp_path / "index")
        index = VectorIndex.load(tmp_path / "index", mmap=life == "mapped")
    expected, ids = index.search(QUERIES, 400), index.ids
    change(index.index)
    np.testing.assert_array_equal(index.search(QUERIES, 400).ids, expected.ids)
    np.testing.assert_array_equal(index.ids, ids)
    index.verify()


def test_bands_that_were_built_are_those_of_the_codes_handed_out() -> None:
    index = fitted_index(bands=2)
    index.build()
    assert index.index.memory().directories > 0
    assert index.memory() == index.index.memory()
    index.compact()
    assert index.memory().directories > 0, "bands stay"


def test_fitting_what_was_handed_out_leaves_the_index_as_it_is() -> None:
    index = fitted_index()
    expected = index.search(QUERIES, 10)
    index.hasher.fit(DATA[:, :5])
    index.weigher.fit(np.ones((2, 3)))
    np.testing.assert_array_equal(index.search(QUERIES, 10).ids, expected.ids)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(
    "filtered", [{}, {"allow": range(0, 400, 3)}, {"deny": np.arange(400) < 99}]
)
def test_with_rerank_a_range_has_all_vectors_within_the_distance_that_search_returns(
    metric: Any, filtered: dict[str, Any]
) -> None:
    index = fitted_index(metric=metric)
    index.remove(range(50, 60))
    everything = index.search(QUERIES, 400, rerank_from=400, **filtered)
    radii = everything.distances[:, 30]
    lims, distances, ids = index.range_search(QUERIES, radii, **filtered)
    for query in range(len(QUERIES)):
        own = slice(lims[query], lims[query + 1])
        near = everything.distances[query] <= radii[query]
        assert near.sum() >= 31
        np.testing.assert_array_equal(ids[own], everything.ids[query][near])
        np.testing.assert_array_equal(distances[own], everything.distances[query][near])


@pytest.mark.parametrize("codes", ["the farthest", "all equal"])
def test_a_range_has_vectors_whose_codes_say_nothing_about_them(codes: str) -> None:
    """A shortlist of the nearest codes, however long, would miss some of them."""
    index = fitted_index()
    query = DATA[7]
    if codes == "all equal":
        index.reset()
        index.add(np.tile(query, (3000, 1)))
        assert len(index.range_search(query, 0.0).ids) == 3000
    else:
        farthest = int(index.index.search(index.costs(query), 400).ids[-1])
        distance = float(np.linalg.norm(DATA[farthest].astype(np.float64) - query))
        assert farthest in index.range_search(query, distance * (1 + 1e-9)).ids
    assert len(index.range_search(query, np.inf).ids) == len(index)


def test_vectors_are_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    index = fitted_index()
    expected = index.range_search(QUERIES, 4.0)
    monkeypatch.setattr("bitweigh._vectors.store._BLOCK_VALUES", 100)
    for one, two in zip(index.range_search(QUERIES, 4.0), expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_range_of_codes_is_that_of_the_index() -> None:
    index = fitted_index()
    costs = index.weigher.costs(index.hasher.project(QUERIES))
    expected = index.index.range_search(costs, 3.0)
    for found in (
        index.range_search(QUERIES, 3.0, by="codes"),
        fitted_index(rerank=None).range_search(QUERIES, 3.0),
    ):
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.distances, expected.distances)


def test_what_a_range_cannot_be_is_refused() -> None:
    with pytest.raises(bitweigh.LimitError, match="has more than limit=3 vectors"):
        fitted_index().range_search(QUERIES, np.inf, limit=3)
    with pytest.raises(ValueError, match="by='vectors' needs an index that keeps vectors"):
        fitted_index(rerank=None).range_search(QUERIES, 1.0, by="vectors")
    with pytest.raises(ValueError, match="by must be 'vectors' or 'codes', got 'rows'"):
        fitted_index().range_search(QUERIES, 1.0, by="rows")  # type: ignore[arg-type]


def log_bytes(index: VectorIndex) -> int:
    vectors = index._fitted().vectors
    assert vectors is not None
    return os.fstat(vectors._log._file.fileno()).st_size


@pytest.mark.parametrize("later", ["at once", "compact"])
def test_an_add_that_finds_the_disk_full_gives_the_space_back_and_names_the_folder(
    later: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    index = fitted_index()
    before, expected = log_bytes(index), index.search(QUERIES, 9)
    assert before == 400 * 12 * 4
    more = np.tile(DATA, (300, 1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if later == "compact":
        monkeypatch.setattr("bitweigh._vectors.store.Vectors.cut", lambda _: None)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, hard))
    try:
        with pytest.raises(OSError, match=r"folder of temporary files.* TMPDIR") as caught:
            index.add(more)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(tmp_path)
    if later == "compact":
        assert log_bytes(index) == 4_000_000
        monkeypatch.undo()
        index.compact()
    assert log_bytes(index) == before
    np.testing.assert_array_equal(index.search(QUERIES, 9).ids, expected.ids)
    index.add(DATA[:1], ids=[900])
    assert 900 in index.search(DATA[0], 2).ids


def test_compacting_on_a_full_disk_gives_the_space_back(monkeypatch: pytest.MonkeyPatch) -> None:
    index = fitted_index()
    index.remove([3])
    cut = []
    monkeypatch.setattr(
        "bitweigh._vectors.store._Log.cut", lambda _, rows: cut.append(rows), raising=False
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="TMPDIR"):
            index.compact()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert cut == [400, 0]
    assert len(index) == 399


def test_a_second_fit_counts_ids_on() -> None:
    index = fitted_index()
    index.remove(range(400))
    index.fit(DATA)
    index.add(DATA[:2])
    assert index.ids.tolist() == [400, 401]


@pytest.mark.parametrize(("hasher", "bits"), [("itq", 12), ("lsh", 128), ("sign", 12)])
def test_by_default_there_are_as_many_bits_as_the_hasher_can_make(hasher: Any, bits: int) -> None:
    assert VectorIndex(hasher=hasher).fit(DATA).index.n_bits == bits


def test_by_default_there_are_no_more_than_128_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_DEFAULT_BITS == 128
    monkeypatch.setattr("bitweigh.vector_index.MAX_DEFAULT_BITS", 8)  # learned sooner
    assert VectorIndex().fit(DATA).index.n_bits == 8


def test_more_bits_than_itq_can_make_are_refused_where_they_were_asked_for() -> None:
    with pytest.raises(ValueError, match="at most one bit per feature, got n_bits=128"):
        VectorIndex(n_bits=128).fit(DATA)


def test_more_bands_than_bits_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="bands must be from 0 to 32, got 33"):
        VectorIndex(n_bits=32, bands=33)


def test_an_id_in_use_is_that_of_a_vector_and_is_seen_before_anything_is_hashed() -> None:
    index = fitted_index()
    wrong = np.full((2, 12), np.nan)
    with pytest.raises(ValueError, match=r"ids\[1\] = 7 is in use; .* replaces its vector"):
        index.add(wrong, ids=[900, 7])
    with pytest.raises(ValueError, match=r"ids\[1\] = 900 is the same as ids\[0\]"):
        index.add(wrong, ids=[900, 900])


def test_the_costs_are_those_of_hasher_and_weigher() -> None:
    for metric in ("euclidean", "cosine"):
        index = fitted_index(metric=metric)
        rows = QUERIES.astype(np.float64)
        if metric == "cosine":
            rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
        expected = index.weigher.costs(index.hasher.project(rows))
        np.testing.assert_allclose(index.costs(QUERIES), expected, rtol=1e-12)
        np.testing.assert_array_equal(index.costs(QUERIES[1]), index.costs(QUERIES)[1])
    assert index.costs(np.empty((0, 12))).shape == (0, 10, 2)


def test_a_filter_is_made_once_for_all_blocks_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitweigh._vectors import searching

    index = fitted_index()
    expected = (
        index.search(QUERIES, 3, deny=[1, 2]),
        index.range_search(QUERIES, 3.0, by="codes", deny=[1, 2]),
    )
    filters: list[object] = []
    make = searching.segments_of
    monkeypatch.setattr(
        searching, "segments_of", lambda *given: filters.append(given) or make(*given)
    )
    monkeypatch.setattr("bitweigh.hashers._vectors.BLOCK_VALUES", 12)  # a query at a time
    found = index.search(QUERIES, 3, deny=[1, 2])
    assert len(filters) == 1
    np.testing.assert_array_equal(found.ids, expected[0].ids)
    found_within = index.range_search(QUERIES, 3.0, by="codes", deny=[1, 2])
    assert len(filters) == 2
    np.testing.assert_array_equal(found_within.ids, expected[1].ids)


def test_rows_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = fitted_index()
    looks: list[object] = []
    isfinite = np.isfinite
    monkeypatch.setattr("numpy.isfinite", lambda array: looks.append(array) or isfinite(array))
    index.search(QUERIES, 3)
    assert len(looks) == 1
    index.range_search(QUERIES, 3.0)
    assert len(looks) == 2


def test_explaining_tells_of_the_search_for_all_candidates() -> None:
    index = fitted_index(bands=2)
    assert index.explain(QUERIES[0], 3).k == 100
    assert index.explain(QUERIES[0], 3, rerank_from=40).k == 40
    assert fitted_index(rerank=None).explain(QUERIES[0], 3).k == 3
    index.build()
    assert index.explain(QUERIES[0], 3, rerank_from=3, method="probe").counters["probes"] > 0
    with pytest.raises(ValueError, match=r"q must be one query, \(n_features,\), got \(5, 12\)"):
        index.explain(QUERIES, 3)


def test_bands_are_built_again_where_that_is_asked_for() -> None:
    index = fitted_index(build="manual", bands=2)
    assert index.memory().directories == 0
    index.build(threads=1)
    built = index.memory()
    assert built.directories > 0
    index.build(rebuild=True)
    assert index.memory() == built


def test_verifying_finds_ids_without_vectors_and_vectors_that_are_not_finite() -> None:
    index = fitted_index()
    index.remove([7])
    index.verify()
    state = index._fitted()
    assert state.vectors is not None
    index._state = replace(state, vectors=state.vectors.only(np.arange(399)))
    with pytest.raises(CorruptFileError, match="the id 399 has no vector"):
        index.verify()
    wrong = DATA.copy()
    wrong[30, 2] = np.nan
    index._state = replace(state, vectors=Vectors.of_arrays(np.arange(400), wrong))
    with pytest.raises(CorruptFileError, match="must hold finite numbers"):
        index.verify()


@pytest.mark.parametrize("kind", ["vectors", "vector_ids", "hasher", "weigher"])
def test_verifying_a_mapped_index_finds_files_that_have_changed(kind: str, tmp_path: Path) -> None:
    fitted_index().save(tmp_path)
    index = VectorIndex.load(tmp_path, mmap=True, verify=True)
    index.verify()
    (path,) = tmp_path.glob(f"{kind}-*")
    with path.open("r+b") as file:
        file.seek(-5, 2)
        last = file.read(1)
        file.seek(-5, 2)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(CorruptFileError, match=f"{kind}-"):
        index.verify()


@pytest.mark.parametrize("kind", ["codes", "vectors"])
def test_loading_checks_every_file_or_none(kind: str, tmp_path: Path) -> None:
    fitted_index().save(tmp_path)
    (path,) = tmp_path.glob(f"{kind}-*")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    for mapped in (False, True):
        assert len(VectorIndex.load(tmp_path, mmap=mapped, verify=False)) == 400
        with pytest.raises(CorruptFileError, match=f"{kind}-"):
            VectorIndex.load(tmp_path, mmap=mapped, verify=True)
    assert len(VectorIndex.load(tmp_path, mmap=True)) == 400
    with pytest.raises(CorruptFileError, match=f"{kind}-"):
        VectorIndex.load(tmp_path)


def test_queries_are_accepted_and_refused_like_the_vectors_that_are_added() -> None:
    index = fitted_index()
    np.testing.assert_array_equal(
        index.search(QUERIES.astype(object), 3).ids, index.search(QUERIES, 3).ids
    )
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"Q must be dense, got sparse data: use Q.toarray"):
        index.search(sparse.csr_matrix(QUERIES), 3)
    with pytest.raises(TypeError, match=r"X must be dense, got sparse data: use X.toarray"):
        index.add(sparse.csr_matrix(QUERIES))
