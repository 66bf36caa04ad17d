"""Whether an index gets bands: what it decides, by which queries, and beside which writers."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh._index import band_choice
from bitweigh._index.bands import BandChoice, BandOptions
from bitweigh._index.evidence import MAX_QUERIES, Evidence, RecentQueries, from_codes
from bitweigh._index.policy import SegmentPolicy
from bitweigh._index.segments import Segment

N_ROWS = 150_000


def clustered_codes(n: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Return codes of 64 bits around 500 centres: most bits of neighbours agree."""
    rng = np.random.default_rng(seed)
    centres = rng.random((500, 64)) < 0.5
    bits = centres[rng.integers(0, 500, n)] ^ (rng.random((n, 64)) < 0.06)
    return np.packbits(bits, axis=1)


def random_codes(n: int = N_ROWS) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, 8), dtype=np.uint8)


def near_queries(codes: np.ndarray, n: int = 40) -> np.ndarray:
    """Return costs of codes in the index, with weights from 0.5 to 1.5."""
    rng = np.random.default_rng(1)
    return bitweigh.costs.from_weights(codes[:n], rng.uniform(0.5, 1.5, (64,)))


def choice_of(index: bitweigh.Index) -> BandChoice:
    (part,) = index._state.segments
    assert part.segment.choice is not None
    return part.segment.choice


def test_codes_in_clusters_get_bands_and_random_codes_none() -> None:
    clustered, scattered = bitweigh.Index(64), bitweigh.Index(64)
    clustered.add(clustered_codes())
    scattered.add(random_codes())
    assert clustered.memory().directories > 0
    assert choice_of(clustered).gain >= band_choice.MIN_GAIN
    assert scattered.memory().total == scattered.memory().codes
    assert choice_of(scattered).gain < band_choice.MIN_GAIN


def test_the_same_rows_and_queries_give_the_same_bands() -> None:
    codes = clustered_codes()
    layouts = []
    for _ in range(2):
        index = bitweigh.Index(64)
        index.add(codes)
        (part,) = index._state.segments
        layouts.append((choice_of(index), [band.bits.tolist() for band in part.segment.bands]))
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize("kernel", bitweigh.info().kernels)
def test_every_kernel_decides_the_same(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = bitweigh.Index(64)
    index.add(clustered_codes())
    monkeypatch.setattr("bitweigh._system.KERNEL", kernel)
    other = bitweigh.Index(64)
    other.add(clustered_codes())
    assert choice_of(other) == choice_of(index)


def test_given_queries_decide_again_about_all_bands() -> None:
    codes = clustered_codes()
    index = bitweigh.Index(64)
    index.add(codes)
    assert index.memory().directories > 0
    far = np.random.default_rng(2).standard_normal((30, 64, 2))
    index.build(sample_costs=far, k=100)
    assert index.memory().directories == 0
    assert choice_of(index)[-3:] == (30, 100, "given")
    index.build(sample_costs=near_queries(codes))
    assert index.memory().directories > 0
    assert choice_of(index)[-3:] == (40, 10, "given")


def test_recent_queries_decide_where_none_are_given() -> None:
    codes = clustered_codes()
    index = bitweigh.Index(64, build="manual")
    index.add(codes)
    for costs in np.random.default_rng(2).standard_normal((30, 64, 2)):
        index.search(costs, 100)
    index.build()
    assert choice_of(index)[-3:] == (30, 100, "recent")
    assert index.memory().directories == 0
    index.search(np.tile(near_queries(codes), (30, 1, 1)), 5)
    for costs in np.tile(near_queries(codes), (3, 1, 1)):
        index.search(costs, 5)
    index.build()
    assert choice_of(index)[-3:] == (MAX_QUERIES, 5, "recent")
    assert index.memory().directories > 0
    index.remove([3])
    for costs in np.random.default_rng(2).standard_normal((MAX_QUERIES, 64, 2)):
        index.search(costs, 100)
    index.compact()
    assert choice_of(index)[-3:] == (MAX_QUERIES, 100, "recent")
    assert index.memory().directories == 0


def test_few_queries_of_a_batch_are_remembered_and_none_that_were_filtered() -> None:
    index = bitweigh.Index(64)
    index.add(random_codes(100))
    costs = np.random.default_rng(0).random((1000, 64, 2))
    index.search(costs, 3, deny=[5])
    index.search(costs[:0], 3)
    assert index._recent.evidence() is None
    index.search(costs, 3)
    evidence = index._recent.evidence()
    assert evidence is not None
    np.testing.assert_array_equal(evidence.costs, costs[::125])
    copied = index.copy()
    copied.search(costs[0], 3)
    assert len(index._recent._queries) == 8
    assert len(copied._recent._queries) == 9


def test_remembered_queries_take_at_most_a_mebibyte() -> None:
    recent = RecentQueries(8192)
    for _ in range(50):
        recent.add(np.zeros((8192, 2)), 1)
    evidence = recent.evidence()
    assert evidence is not None
    assert evidence.costs.nbytes <= 2**20


@pytest.mark.parametrize("n_rows", [2, 3, 33, 200])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_queries_made_from_codes_are_nearest_to_these_codes(n_rows: int, bitorder: Any) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (n_rows, 9), dtype=np.uint8)
    codes[:, -1] &= 0x80 if bitorder == "big" else 1
    evidence = from_codes(codes, 65, bitorder)
    assert evidence.rows is not None
    assert len(evidence.costs) == len(evidence.rows) == min(MAX_QUERIES, n_rows // 2)
    distances = bitweigh.reference.distances(codes, evidence.costs, bitorder=bitorder)
    assert (distances[np.arange(len(evidence.rows)), evidence.rows] == 0).all()
    assert (distances >= 0).all()


def test_no_band_is_built_where_the_sample_shows_that_none_pay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    layout_of = band_choice.layout_of
    monkeypatch.setattr(
        "bitweigh._index.policy.layout_of",
        lambda codes, *shape: built.append(len(codes)) or layout_of(codes, *shape),
    )
    index = bitweigh.Index(64)
    index.add(random_codes())
    assert built == []
    index.add(clustered_codes(500_000), np.arange(10**6, 10**6 + 500_000))
    assert built == [650_000]


def test_a_sample_is_asked_for_fewer_neighbours_and_has_no_row_that_a_query_is_made_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 16_000
    codes = np.arange(n, dtype=">u2").view(np.uint8).reshape(n, 2)
    sampled = []

    def asked(segment: Segment, _: Any, evidence: Evidence, factor: float = 1.0) -> float:
        sampled.append((segment, evidence.k, factor))
        return 2.0

    monkeypatch.setattr(band_choice, "_MIN_SAMPLE_ROWS", n // 4)
    monkeypatch.setattr(band_choice, "gain_of", asked)
    evidence = from_codes(codes, 16, "big")._replace(k=100)
    band_choice.best_for_sample(codes, 16, "big", BandOptions(), 2, evidence)
    ((segment, k, factor),) = sampled
    assert k == 25
    assert factor == pytest.approx(n / len(segment))
    numbers = segment.codes(np.arange(len(segment), dtype=np.uint32)).view(">u2")[:, 0]
    assert evidence.rows is not None
    assert np.isin(evidence.rows, numbers).sum() == 0


def test_bands_that_gain_too_little_on_all_rows_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bitweigh._index.policy.gain_of", lambda *_: 1.29)
    index = bitweigh.Index(64)
    index.add(clustered_codes())
    assert index.memory().total == index.memory().codes
    assert choice_of(index).gain == 1.29


def test_fewer_bands_are_chosen_where_they_are_nearly_as_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gains = {2: 4.0, 4: 6.1, 5: 6.6}
    monkeypatch.setattr(band_choice, "gain_of", lambda segment, *_: gains[len(segment.bands)])
    index = bitweigh.Index(64)
    index.add(clustered_codes())
    assert choice_of(index).bands == 4


@pytest.mark.parametrize("options", [{"bands": 3}, {"bands": 3, "band_bits": 9}])
def test_a_fixed_number_of_bands_is_built_without_asking(options: dict[str, int]) -> None:
    index = bitweigh.Index(64, **options)
    index.add(random_codes())
    (facts,) = index.explain(np.ones((64, 2)), 1).segments
    assert facts.bands == 3
    assert facts.decision == "bands=3"


def test_no_bands_are_kept_as_a_memory_limit_of_zero(tmp_path: Path) -> None:
    index = bitweigh.Index(64, bands=0)
    index.add(clustered_codes())
    index.build()
    assert index.memory().directories == 0
    assert index.explain(np.ones((64, 2)), 1).reason == "there are no bands: bands=0"
    index.save(tmp_path)
    loaded = bitweigh.Index.load(tmp_path)
    loaded.build(rebuild=True)
    assert loaded.memory().directories == 0
    assert loaded._policy.band_options.memory_limit == 0


def test_the_decision_is_told_and_saved(tmp_path: Path) -> None:
    index = bitweigh.Index(64)
    index.add(random_codes())
    reason = index.explain(np.ones((64, 2)), 1).reason
    assert "x the speed for" in reason
    assert "from 96 queries made from stored codes at k = 10" in reason
    index.save(tmp_path)
    for mapped in (False, True):
        loaded = bitweigh.Index.load(tmp_path, mmap=mapped)
        assert loaded.explain(np.ones((64, 2)), 1).reason == reason
        loaded.verify()
    before = sorted(path.name for path in tmp_path.iterdir())
    bitweigh.Index.load(tmp_path).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"k": 5}, ValueError, "k goes with sample_costs"),
        ({"sample_costs": np.ones((0, 64, 2))}, ValueError, "at least one query"),
        ({"sample_costs": np.ones((3, 63, 2))}, ValueError, "costs must have shape"),
        ({"sample_costs": np.full((3, 64, 2), np.nan)}, ValueError, "finite"),
        ({"sample_costs": np.ones((64, 2)), "k": 0}, ValueError, "k must be"),
    ],
)
def test_wrong_sample_queries_are_refused(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    index = bitweigh.Index(64)
    index.add(clustered_codes(10_000))
    with pytest.raises(error, match=says):
        index.build(**options)


class Interfering:
    """Does something while the bands of an index are built by another thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        work = getattr(SegmentPolicy, name)

        def waiting(*arguments: Any, **options: Any) -> Any:
            result = work(*arguments, **options)
            self.begun.set()
            assert self.go_on.wait(30)
            return result

        monkeypatch.setattr(SegmentPolicy, name, waiting)

    def run(self, work: Any, meanwhile: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        assert self.begun.wait(30)
        meanwhile()
        self.go_on.set()
        thread.join(30)
        assert not thread.is_alive()


def small_index() -> bitweigh.Index:
    index = bitweigh.Index(64, bands=2, build="manual")
    index._policy.tail_rows = 100
    index.add(random_codes(1000))
    index.remove([7])
    index.add(random_codes(20))
    return index


@pytest.mark.parametrize("work", ["build", "compact"])
def test_changes_made_while_an_index_is_rebuilt_are_kept(
    work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = small_index()

    def change() -> None:
        index.remove([3, 1005])
        index.replace(random_codes(1), ids=[5])
        index.add(random_codes(2), ids=[3, 5000])

    name = "with_bands" if work == "build" else "compacted"
    Interfering(monkeypatch, name).run(getattr(index, work), change)
    monkeypatch.undo()
    expected = small_index()
    expected.remove([3, 1005])
    expected.replace(random_codes(1), ids=[5])
    expected.add(random_codes(2), ids=[3, 5000])
    np.testing.assert_array_equal(index.ids, expected.ids)
    np.testing.assert_array_equal(index.codes_of(index.ids), expected.codes_of(index.ids))
    index.verify()
    if work == "build":
        assert index.memory().directories > 0


def test_a_part_whose_rows_were_all_removed_meanwhile_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = small_index()
    Interfering(monkeypatch, "with_bands").run(index.build, lambda: index.remove(index.ids))
    assert len(index) == 0
    assert list(index._state.parts()) == []


def test_compacting_starts_again_where_adds_have_merged_its_segments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = small_index()
    rounds: list[int] = []
    compacted = SegmentPolicy.compacted

    def and_add(policy: SegmentPolicy, state: Any, evidence: Any = None) -> Any:
        result = compacted(policy, state, evidence)
        if len(rounds) < 2 and not index._writing.locked():
            rounds.append(len(index))
            index.add(random_codes(2000))
        return result

    monkeypatch.setattr(SegmentPolicy, "compacted", and_add)
    index.compact()
    assert len(rounds) == 2
    assert len(index) == 1019 + 4000
    assert len(list(index._state.parts())) == 1
    index.verify()


def test_explain_says_how_many_searches_used_the_bands() -> None:
    codes = clustered_codes()
    index = bitweigh.Index(64, bands=4)
    index.add(codes)
    index.search(near_queries(codes, 30), 10)
    index.search(near_queries(codes, 9), 10, method="scan")
    explained = index.explain(near_queries(codes)[0], 10)
    assert explained.searches == 40
    assert 20 <= explained.searches_by_bands <= 31
    share = round(100 * explained.searches_by_bands / 40)
    assert f"bands were used by {share} % of 40 searches" in str(explained)


def test_ranges_of_infinite_radius_are_not_counted_as_searches() -> None:
    codes = clustered_codes()
    index = bitweigh.Index(64, bands=4)
    index.add(codes)
    query = near_queries(codes)[0]
    index.range_search(np.stack([query, query]), [np.inf, -np.inf])
    index.range_search(query, 3.0)
    assert index.explain(query, 10).searches == 3


def test_work_that_changes_nothing_leaves_a_mapped_index_mapped(tmp_path: Path) -> None:
    index = bitweigh.Index(64)
    index.add(random_codes())
    index.save(tmp_path)
    mapped = bitweigh.Index.load(tmp_path, mmap=True)
    before = mapped._state
    mapped.compact()
    mapped.build()
    assert mapped._state is before, "the same decision again"
    assert len(pickle.dumps(mapped)) < 1000


def test_a_decision_against_bands_copies_no_rows(tmp_path: Path) -> None:
    index = bitweigh.Index(64, build="manual")
    index.add(random_codes())
    index.save(tmp_path)
    mapped = bitweigh.Index.load(tmp_path, mmap=True)
    (before,) = mapped._state.segments
    mapped.build()
    (after,) = mapped._state.segments
    assert after.segment.blocks is before.segment.blocks
    assert after.segment.choice is not None


def test_float_queries_of_embeddings_are_remembered() -> None:
    embeddings = bitweigh.BinaryEmbeddings(dim=64)
    embeddings.add(random_codes(100))
    embeddings.search(np.ones((3, 64), np.float32), 7)
    evidence = embeddings.index._recent.evidence()
    assert evidence is not None
    assert (len(evidence.costs), evidence.k) == (3, 7)
