"""The demo's vectors and codes: cached between runs, embedded in the background, compared."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from demo_cases import N_DIMS, sentences, words_as_vectors

from bitweigh_experiments.demo import cache, collection, compare
from bitweigh_experiments.demo.collection import Collection, as_unit
from bitweigh_experiments.demo.model import Floats


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embed few rows at first, and few at a time."""
    monkeypatch.setattr(collection, "FIRST", 100)
    monkeypatch.setattr(collection, "BLOCK", 60)


class Gate:
    """An embedding that returns the first rows at once and the others once it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.calls = 0

    def __call__(self, texts: Sequence[str]) -> Floats:
        self.calls += 1
        if self.calls > 1:
            assert self.open.wait(30)
        return words_as_vectors(texts)


def query_of(text: str) -> Floats:
    return as_unit(words_as_vectors([text]))[0]


def test_kept_embeddings_are_found_again(tmp_path: Path) -> None:
    vectors = np.arange(6, dtype=np.float16).reshape(3, 2)
    check = cache.checksum("model 1", ["a", "b", "c"])
    assert cache.save(tmp_path / "new", "kind", check, vectors)
    found = cache.load(tmp_path / "new", "kind", check, 3)
    np.testing.assert_array_equal(found, vectors)


@pytest.mark.parametrize(
    ("model", "texts"),
    [("model 2", ["ab", "c"]), ("model 1", ["a", "bc"]), ("model 1", ["c", "ab"])],
)
def test_other_texts_or_models_have_another_checksum(model: str, texts: list[str]) -> None:
    assert cache.checksum(model, texts) != cache.checksum("model 1", ["ab", "c"])


def test_stale_embeddings_are_not_used_and_go_when_new_ones_come(tmp_path: Path) -> None:
    vectors = np.ones((2, 2), np.float16)
    old, new = cache.checksum("m", ["a", "b"]), cache.checksum("m", ["a", "c"])
    cache.save(tmp_path, "kind", old, vectors)
    cache.save(tmp_path, "other", old, vectors)
    assert cache.load(tmp_path, "kind", new, 2) is None
    cache.save(tmp_path, "kind", new, vectors)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {f"kind-{new}.npy", f"other-{old}.npy"}


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    cache.save(tmp_path, "kind", "x", np.ones((2, 2), np.float16))
    file = tmp_path / "kind-x.npy"
    assert cache.load(tmp_path, "kind", "x", 3) is None
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], b"no" + whole[2:], whole[:-2] + b"\x00\x7c"):  # infinity
        file.write_bytes(damaged)
        assert cache.load(tmp_path, "kind", "x", 2) is None


def test_a_folder_that_cannot_be_made_only_means_that_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not cache.save(tmp_path / "file", "kind", "x", np.ones((1, 1), np.float16))


def test_the_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "bitweigh" / "demo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, by the specification
    assert cache.folder() == Path.home() / ".cache" / "bitweigh" / "demo"


@pytest.mark.usefixtures("small")
def test_the_first_rows_can_be_searched_while_the_others_are_embedded() -> None:
    gate = Gate()
    texts = sentences()
    growing = Collection(texts, gate, 32)
    growing.start()
    assert not growing.wait(0)
    early = compare.compare(growing, "", query_of(texts[5]), 32, 3)
    assert early.n_rows == 100
    assert [found.ids[0] for found in early.found] == [5, 5, 5]
    gate.open.set()
    assert growing.wait(30)
    late = compare.compare(growing, "", query_of(texts[400]), 32, 3)
    assert late.n_rows == len(texts)
    assert [found.ids[0] for found in late.found] == [400, 400, 400]


@pytest.mark.usefixtures("small")
def test_all_is_kept_once_and_answers_are_the_same_with_what_was_kept() -> None:
    texts = sentences()
    stored: list[np.ndarray] = []
    fresh = Collection(texts, words_as_vectors, 32, store=stored.append)
    fresh.start()
    assert fresh.wait(30)
    (halves,) = stored
    assert halves.dtype == np.float16
    assert halves.shape == (len(texts), N_DIMS)

    def never(_: Sequence[str]) -> Floats:
        raise AssertionError

    again = Collection(texts, never, 32, cached=halves, store=stored.append)
    again.start()
    assert again.wait(30)
    assert len(stored) == 1
    np.testing.assert_array_equal(again.vectors, fresh.vectors)
    query = query_of("finds stars at night")
    for first, second in zip(
        compare.compare(fresh, "", query, 32, 10).found,
        compare.compare(again, "", query, 32, 10).found,
        strict=True,
    ):
        np.testing.assert_array_equal(first.ids, second.ids)


@pytest.mark.usefixtures("small")
def test_stopping_ends_the_embedding_and_keeps_nothing() -> None:
    gate = Gate()
    stored: list[np.ndarray] = []
    growing = Collection(sentences(), gate, 32, store=stored.append)
    growing.start()
    threading.Timer(0.05, gate.open.set).start()
    growing.stop()
    assert growing.n_ready < len(growing)
    assert not stored


@pytest.mark.usefixtures("small")
def test_what_stops_the_embedding_reaches_whoever_waits() -> None:
    def embed(texts: Sequence[str]) -> Floats:
        if len(texts) < 100:
            raise ValueError("the model is broken")
        return words_as_vectors(texts)

    growing = Collection(sentences(), embed, 32)
    growing.start()
    with pytest.raises(ValueError, match="the model is broken"):
        growing.wait(30)


def test_cosine_takes_the_largest_first_and_ties_by_row() -> None:
    vectors = np.array([[0, 1], [1, 0], [0.6, 0.8], [1, 0]], np.float32)
    found = compare.cosine_top(vectors, np.array([1, 0], np.float32), 3)
    assert found.tolist() == [1, 3, 2]


def test_overlap_is_the_share_that_cosine_found_too() -> None:
    shelf = Collection(sentences(), words_as_vectors, 24)
    answer = compare.compare(shelf, "", query_of("counts maps twice"), 24, 10)
    truth = set(answer.found[0].ids.tolist())
    for found in answer.found:
        assert found.overlap == len(truth & set(found.ids.tolist())) / 10
    assert answer.found[0].overlap == 1.0
    assert answer.found[2].overlap < 1.0  # else this says little


def test_the_summary_has_a_line_per_way_and_length_and_means_over_queries() -> None:
    shelf = Collection(sentences(), words_as_vectors, 40)
    queries = ["counts maps twice", "draws stars", "sends letters by hand"]
    vectors = as_unit(words_as_vectors(queries))
    summary = compare.summarise(shelf, queries, vectors, 40, 10)
    # The usual lengths are more than these vectors have dimensions.
    assert [(line.way, line.n_bits) for line in summary.lines] == [
        ("float cosine", None),
        ("weighted bits", 40),
        ("plain Hamming", 40),
    ]
    answers = [compare.compare(shelf, "", vector, 40, 10) for vector in vectors]
    means = np.mean([[found.overlap for found in answer.found] for answer in answers], axis=0)
    assert [line.overlap for line in summary.lines] == pytest.approx(means)
    assert [line.item_bytes for line in summary.lines] == [4 * N_DIMS, 5, 5]
    assert summary.lines[1].overlap > summary.lines[2].overlap
    assert summary.exact


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Collection(sentences(), words_as_vectors, 40)
    wrong = np.zeros((512, 5), np.uint8)
    monkeypatch.setattr("bitweigh.Index.codes_of", lambda *_: wrong)
    vectors = as_unit(words_as_vectors(["draws stars"]))
    assert not compare.summarise(shelf, ["draws stars"], vectors, 40, 10).exact
