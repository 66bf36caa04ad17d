"""Ctrl-C at every moment of a change: no lock stays taken, and the index is as before or after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from interrupted_everywhere import interrupted_everywhere

import bitweigh
from bitweigh._progress import ProgressBar
from bitweigh_experiments.demo import cache

# Files open at Ctrl-C are closed by the garbage collector; functions that it calls may be
# interrupted too.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (200, 4), dtype=np.uint8)
COSTS = RNG.standard_normal((32, 2))
MORE = bitweigh.Index(32)
MORE.add(CODES[:10], ids=range(500, 510))
VECTORS = RNG.standard_normal((60, 8)).astype(np.float32)


def filled() -> bitweigh.Index:
    index = bitweigh.Index(32, bands=2)
    index._policy.tail_rows = 64
    index.add(CODES[:150])
    index.remove([3, 5])
    return index


def works(index: bitweigh.Index) -> None:
    """Check that the index can be changed and that it answers like the reference."""
    assert not index._writing.locked()
    index.add(CODES[:1], ids=[1000], on_duplicate="replace")
    ids = index.ids
    found = index.search(COSTS, 20, method="probe")
    expected = bitweigh.reference.search(index.codes_of(ids), COSTS, 20, ids=ids)
    np.testing.assert_array_equal(found.ids, expected.ids)
    index.build()
    assert index.memory().directories  # nothing keeps bands from being built
    found = index.search(COSTS, 20, method="probe")
    np.testing.assert_array_equal(found.ids, expected.ids)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param(lambda index: index.add(CODES[150:]), {148, 198}, id="add"),
        pytest.param(
            lambda index: index.add(CODES[:9], range(9), on_duplicate="replace"),
            {148, 150},
            id="add replacing",
        ),
        pytest.param(lambda index: index.replace(CODES[150:152], [0, 1]), {148}, id="replace"),
        pytest.param(lambda index: index.remove([0, 1]), {148, 146}, id="remove"),
        pytest.param(lambda index: index.merge(MORE), {148, 158}, id="merge"),
        pytest.param(lambda index: index.reset(), {148, 0}, id="reset"),
        pytest.param(lambda index: index.compact(), {148}, id="compact"),
        pytest.param(lambda index: index.build(), {148}, id="build"),
        pytest.param(lambda index: index.copy(), {148}, id="copy"),
        pytest.param(lambda index: index.search(COSTS, 5, method="probe"), {148}, id="search"),
        pytest.param(
            lambda index: index.range_search(COSTS, 0.0, method="probe"), {148}, id="range_search"
        ),
        pytest.param(lambda index: index.search_by_id(0, 5, method="probe"), {148}, id="by id"),
        pytest.param(lambda index: index.explain(COSTS, 5, method="probe"), {148}, id="explain"),
    ],
)
def test_an_index_can_be_changed_and_searched_after_ctrl_c_at_any_moment(
    change: Callable[[bitweigh.Index], object], counts: set[int]
) -> None:
    def check(index: bitweigh.Index) -> None:
        assert len(index) in counts
        works(index)

    assert interrupted_everywhere(filled, change, check) > 3


def learned() -> bitweigh.VectorIndex:
    index = bitweigh.VectorIndex(n_bits=16, hasher="lsh", rerank="float32", bands=2).fit(VECTORS)
    index.add(VECTORS[:50])
    index.remove([7])
    return index


PART = learned()
PART.reset()
PART.add(VECTORS[50:53], ids=[300, 301, 302])


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda index: index.add(VECTORS[50:]), {49, 59}),
        (lambda index: index.add(VECTORS[50:52], [1, 90], on_duplicate="replace"), {49, 50}),
        (lambda index: index.merge(PART), {49, 52}),
        (lambda index: index.remove([0, 1]), {49, 47}),
        (lambda index: index.compact(), {49}),
        (lambda index: index.build(), {49}),
        (lambda index: index.copy().add(VECTORS[:1]), {49}),
        (lambda index: index.search(VECTORS[:2], 3), {49}),
        (lambda index: index.range_search(VECTORS[:2], 1.0), {49}),
    ],
    ids=[
        "add",
        "add replacing",
        "merge",
        "remove",
        "compact",
        "build",
        "copy",
        "search",
        "range_search",
    ],
)
def test_a_vector_index_can_be_changed_and_searched_after_ctrl_c_at_any_moment(
    change: Callable[[bitweigh.VectorIndex], object], counts: set[int]
) -> None:
    def check(index: bitweigh.VectorIndex) -> None:
        assert not index._writing.locked()
        assert len(index) in counts
        index.add(VECTORS[:1] + 100, ids=[2000])
        distances, ids = index.search(VECTORS[4], 60)
        assert sorted(ids[ids >= 0]) == index.ids.tolist()
        assert (ids[0], distances[0]) == (4, 0.0)
        assert np.array_equal(index.vectors_of([2000]), VECTORS[:1] + 100)

    assert interrupted_everywhere(learned, change, check) > 5


def test_a_vector_index_can_be_fitted_after_ctrl_c_at_any_moment_of_fit() -> None:
    def check(index: bitweigh.VectorIndex) -> None:
        assert not index._writing.locked()
        assert len(index.fit(VECTORS)) == 0

    interrupted_everywhere(
        lambda: bitweigh.VectorIndex(n_bits=8, hasher="lsh"),
        lambda index: index.fit(VECTORS[:5]),
        check,
    )


def test_a_progress_bar_is_gone_after_ctrl_c_at_any_moment_of_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress = pytest.importorskip("rich.progress")
    shown = []

    class Display:
        tasks = (SimpleNamespace(speed=None),)

        def __init__(self, *_: object, **__: object) -> None:
            self.running = False
            shown.append(self)

        def add_task(self, *_: object, **__: object) -> int:
            return 0

        def start(self) -> None:
            self.running = bool(1)

        def stop(self) -> None:
            self.running = False

        def advance(self, *_: object) -> None:
            pass

    monkeypatch.setattr(progress, "Progress", Display)

    def check(index: bitweigh.VectorIndex) -> None:
        assert not index._writing.locked()
        assert not any(display.running for display in shown)
        shown.clear()

    assert interrupted_everywhere(learned, lambda index: index.add(VECTORS, progress=True), check)


def test_a_progress_bar_that_cannot_be_shown_is_taken_away_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress = pytest.importorskip("rich.progress")
    did: list[str] = []

    def start(_: object) -> None:
        did.append("start")
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "start", start)
    monkeypatch.setattr(progress.Progress, "stop", lambda _: did.append("stop"))
    shown = ProgressBar("adding", 3, shown=True)
    with pytest.raises(KeyboardInterrupt), shown:
        pass
    assert did == ["start", "stop"]
    del shown
    assert did == ["start", "stop"], "taken away twice, which prints an empty line"


def test_the_embeddings_of_the_demo_are_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    vectors = np.ones((3, 4), dtype=np.float16)

    def check(_: None) -> None:
        assert {one.name for one in tmp_path.iterdir()} <= {"kind-check.npy"}
        assert (
            len(list(tmp_path.iterdir())) == 0
            or cache.load(tmp_path, "kind", "check", 3) is not None
        )
        (tmp_path / "kind-check.npy").unlink(missing_ok=True)

    interrupted_everywhere(
        lambda: None, lambda _: cache.save(tmp_path, "kind", "check", vectors), check
    )
