"""hasher="auto": the hasher that finds most of the true neighbours of a sample is taken."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitweigh import VectorIndex, cluster
from bitweigh._vectors import choosing
from bitweigh._vectors.choosing import Wish
from bitweigh.evaluation import euclidean_top, precision_at_k
from bitweigh.hashers import ITQ, LSH, Levels, Scalar, Sign
from bitweigh.sklearn import WeightedHashNeighbors
from bitweigh.typing import Metric
from bitweigh.weighers import Asym, InnerProduct

RNG = np.random.default_rng(4)


def vectors(n: int = 2000, width: int = 16) -> NDArray[np.float32]:
    mixing = np.random.default_rng(3).standard_normal((width, width))
    rows = RNG.standard_normal((n, width)) * np.geomspace(4.0, 0.1, width) @ mixing
    return (rows + 1.0).astype(np.float32)


ROWS = vectors()


def names(index: VectorIndex) -> list[str]:
    return [str(trial.hasher) for trial in index.trials]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
@pytest.mark.parametrize("n_bits", [7, 16, 40, 100])
def test_the_best_hasher_within_the_bits_is_taken(metric: Metric, n_bits: int) -> None:
    index = VectorIndex(n_bits=n_bits, hasher="auto", metric=metric).fit(ROWS)
    precisions = [trial.precision for trial in index.trials]
    assert precisions == sorted(precisions, reverse=True)
    best = index.trials[0]
    assert type(index.hasher) is type(best.hasher)
    assert index.n_bits == best.n_bits <= n_bits
    assert all(trial.n_bits <= n_bits for trial in index.trials)
    assert all(trial.n_bytes == -(-trial.n_bits // 8) for trial in index.trials)
    assert all(trial.seconds > 0 for trial in index.trials)
    index.add(ROWS)
    assert index.search(ROWS[:3], 5).ids.shape == (3, 5)


def test_candidates_are_those_that_go_with_features_bits_and_metric() -> None:
    def kinds(n_bits: int, metric: Metric, weigher: object = None) -> set[type]:
        return {type(found[0]) for found in Wish(n_bits, weigher, metric, 0).candidates(16)}

    assert kinds(15, "euclidean") == {LSH, Levels, ITQ}
    assert kinds(16, "cosine") == {LSH, Levels, ITQ, Scalar, Sign}
    assert kinds(16, "inner_product") == {Levels, Scalar, Sign}
    assert kinds(16, "euclidean", "wh") == {LSH, Levels, ITQ, Sign}
    assert kinds(16, "euclidean", "decoded") == {Levels, Scalar}
    assert kinds(16, "inner_product", "inner_product") == {Sign}


def test_scalar_has_the_most_bits_that_leave_room_for_the_norm() -> None:
    index = VectorIndex(n_bits=64, hasher="auto").fit(ROWS)
    larger = [trial for trial in index.trials if trial.n_bits > 16]
    scalars = [trial.hasher for trial in larger if isinstance(trial.hasher, Scalar)]
    assert {scalar.rotation for scalar in scalars} == {"random", None}
    for scalar in scalars:
        assert scalar.bits == 3  # four a feature would leave no bit for the norm
        assert scalar.norm_bits
        assert 3 * 16 + scalar.norm_bits <= 64
    index = VectorIndex(n_bits=64, hasher="auto", metric="cosine").fit(ROWS)
    assert "Scalar(norm_bits=0)" in names(index)
    many = VectorIndex(n_bits=1000, hasher="auto").fit(ROWS)
    assert any(name.startswith("Scalar(bits=8") for name in names(many))
    # A larger sample may need more bits for norms, but the number is settled.
    assert many.n_bits == many.trials[0].n_bits <= 1000


def test_a_trial_is_what_an_index_with_that_hasher_finds() -> None:
    sample = choosing._Sample.of(ROWS, "euclidean", np.random.default_rng(0))
    assert len(sample.rows) == 1800
    assert len(sample.queries) == 200
    rows, queries = ({row.tobytes() for row in part} for part in (sample.rows, sample.queries))
    assert not rows & queries
    assert np.array_equal(sample.truth, euclidean_top(sample.rows, sample.queries, 10))
    trial = sample.trial(LSH(24, seed=3), Asym(), 0)
    index = VectorIndex(hasher=LSH(24, seed=3)).fit(sample.rows)
    index.add(sample.rows)
    expected = precision_at_k(index.search(sample.queries, 10).ids, sample.truth)
    assert trial.precision == expected
    assert 0.1 < expected < 0.9


def test_the_truth_is_that_of_the_metric() -> None:
    rows = ROWS * np.exp(RNG.standard_normal((2000, 1)))
    generator = np.random.default_rng
    products = choosing._Sample.of(rows, "inner_product", generator(0))
    found = products.queries @ products.rows.T
    expected = np.sort(found, axis=1)[:, :-11:-1]
    assert np.array_equal(np.take_along_axis(found, products.truth, axis=1), expected)
    cosines = choosing._Sample.of(rows, "cosine", generator(0))
    np.testing.assert_allclose(np.linalg.norm(cosines.rows, axis=1), 1.0)
    found = cosines.queries @ cosines.rows.T
    expected = np.sort(found, axis=1)[:, :-11:-1]
    np.testing.assert_allclose(np.take_along_axis(found, cosines.truth, axis=1), expected)


def test_of_equal_hashers_that_with_fewer_bits_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(_: object, hasher: Any, *_others: object) -> choosing.Trial:
        n_bits = hasher._bits_for(16)
        return choosing.Trial(hasher, n_bits, -(-n_bits // 8), 0.5, 0.1)

    monkeypatch.setattr(choosing._Sample, "trial", alike)
    index = VectorIndex(n_bits=48, hasher="auto").fit(ROWS)
    assert index.n_bits == 16
    assert isinstance(index.hasher, Sign)  # the first of those with 16 bits


def test_the_same_seed_chooses_and_learns_the_same() -> None:
    one, two = (VectorIndex(n_bits=32, hasher="auto", seed=5).fit(ROWS) for _ in range(2))
    assert names(one) == names(two)
    assert [trial.precision for trial in one.trials] == [trial.precision for trial in two.trials]
    assert np.array_equal(one.hasher.transform(ROWS), two.hasher.transform(ROWS))
    assert all(trial.hasher.seed == 5 for trial in one.trials)


def test_the_default_number_of_bits_is_at_most_128() -> None:
    index = VectorIndex(hasher="auto").fit(ROWS)
    assert max(trial.n_bits for trial in index.trials) == 128


def test_trials_print_as_a_table() -> None:
    index = VectorIndex(n_bits=16, hasher="auto").fit(ROWS)
    head, *lines = str(index.trials).splitlines()
    assert head.split() == ["hasher", "bits", "bytes", "precision", "at", "10", "seconds"]
    assert len(lines) == len(index.trials) == 6
    best = index.trials[0]
    assert lines[0].startswith(str(best.hasher))
    assert f" {best.precision:.3f} " in lines[0]
    assert {len(line) for line in (head, *lines)} == {len(head)}
    assert str(VectorIndex().trials) == ""
    assert VectorIndex().trials == ()


def test_with_few_vectors_nothing_is_measured_and_a_warning_says_so() -> None:
    with pytest.warns(UserWarning, match="needs 500 vectors to compare hashers, got 499: took ITQ"):
        index = VectorIndex(n_bits=40, hasher="auto").fit(ROWS[:499])
    assert index.trials == ()
    assert (type(index.hasher), index.n_bits) == (ITQ, 16)
    with pytest.warns(UserWarning, match="took Levels"):
        index = VectorIndex(n_bits=8, hasher="auto", metric="inner_product").fit(ROWS[:20])
    assert isinstance(index.hasher, Levels)
    with pytest.warns(UserWarning, match="took Sign"):
        VectorIndex(hasher="auto", weigher="inner_product", metric="inner_product", n_bits=16).fit(
            ROWS[:20]
        )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"weigher": "asym", "metric": "inner_product"}, "knows no hasher for metric='inner_pro"),
        ({"weigher": "sum"}, "weigher must be 'asym'"),
        ({"metric": "dot"}, "metric must be"),
        ({"n_bits": 0}, "n_bits must be from 1"),
    ],
)
def test_what_no_hasher_can_do_is_refused_at_once(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        VectorIndex(hasher="auto", **options)


def test_vectors_that_no_hasher_takes_are_refused_as_by_others() -> None:
    signs: dict[str, Any] = {"weigher": "inner_product", "metric": "inner_product"}
    with pytest.raises(ValueError, match="no hasher with at most n_bits=8 bits of vectors with 16"):
        VectorIndex(hasher="auto", n_bits=8, **signs).fit(ROWS)
    broken = ROWS.copy()
    broken[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"got NaN at X\[7, 3\] of the rows used"):
        VectorIndex(hasher="auto").fit(broken)
    broken[7] = 0
    with pytest.raises(ValueError, match="no zero vectors"):
        VectorIndex(hasher="auto", metric="cosine").fit(broken)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        VectorIndex(hasher="auto").fit(ROWS[:0])


def test_a_weigher_object_is_used_for_each_hasher() -> None:
    weigher = InnerProduct()
    index = VectorIndex(n_bits=16, hasher="auto", weigher=weigher).fit(ROWS)
    assert isinstance(index.weigher, InnerProduct)
    assert not any(isinstance(trial.hasher, Scalar) for trial in index.trials)
    assert not hasattr(weigher, "n_bits_")


def test_itq_learns_from_less_in_a_trial() -> None:
    hurried = choosing._hurried(ITQ(512))
    assert isinstance(hurried, ITQ)
    assert hurried.max_fit_rows < 50_000
    assert 5 <= hurried.n_rounds < 50
    small = choosing._hurried(ITQ(32))
    assert isinstance(small, ITQ)
    assert small.n_rounds == 50


def test_itq_learns_from_all_rows_when_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wish, "candidates", lambda *_: [(ITQ(16), Asym())])
    index = VectorIndex(n_bits=16, hasher="auto").fit(ROWS)
    assert [str(trial.hasher) for trial in index.trials] == ["ITQ(n_bits=16)"]
    assert str(index.hasher) == "ITQ(n_bits=16)"


@pytest.mark.parametrize("rerank", [None, "float32"])
def test_the_chosen_hasher_is_saved_copied_and_pickled(tmp_path: Path, rerank: Any) -> None:
    index = VectorIndex(n_bits=40, hasher="auto", rerank=rerank, metric="cosine").fit(ROWS)
    index.add(ROWS)
    expected = index.search(ROWS[:20], 5)
    index.save(tmp_path / "index")
    loaded = VectorIndex.load(tmp_path / "index")
    mapped = VectorIndex.load(tmp_path / "index", mmap=True)
    others = [
        loaded,
        mapped,
        index.copy(),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(mapped)),
    ]
    if rerank is None:
        others.append(pickle.loads(pickle.dumps(index)))
        assert repr(others[-1].trials) == repr(index.trials)
    assert repr(index.copy().trials) == repr(index.trials)
    assert loaded.trials == ()
    for other in others:
        assert str(other.hasher) == str(index.hasher)
        found = other.search(ROWS[:20], 5)
        assert found.distances.tobytes() == expected.distances.tobytes()


def test_fitting_again_measures_again() -> None:
    index = VectorIndex(n_bits=16, hasher="auto").fit(ROWS)
    before = index.trials
    index.fit(vectors(700, 8))
    assert index.n_features == 8
    assert names(index) != [str(trial.hasher) for trial in before]


def test_wide_vectors_are_compared_on_fewer_rows() -> None:
    wide = np.zeros((6000, 4096), np.float32)
    sample = choosing._Sample.of(wide, "inner_product", np.random.default_rng(0))
    assert len(sample.rows) == 2048


def test_scikit_learns_estimator_and_clusters_take_it(tmp_path: Path) -> None:
    estimator = WeightedHashNeighbors(n_bits=24, hasher="auto").fit(ROWS)
    assert estimator.hasher_.n_bits_ <= 24
    assert estimator.kneighbors(ROWS[:3], 2, return_distance=False).shape == (3, 2)
    like = VectorIndex(n_bits=24, hasher="auto").fit(ROWS)
    cluster.build(ROWS, str(tmp_path / "cluster"), shards=2, like=like)
    like.add(ROWS)
    found = cluster.open(str(tmp_path / "cluster")).vectors.search(ROWS[:9], 5)
    expected = like.search(ROWS[:9], 5)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert np.array_equal(found.ids, expected.ids)
