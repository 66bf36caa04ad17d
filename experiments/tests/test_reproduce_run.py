"""A run of the reproduction: what is measured, on which data, and that results are consistent."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_cases import some_rows, write_vecs

from bitweigh import SearchResult, paper
from bitweigh_experiments.reproduce import Plan, Results, reproduce
from bitweigh_experiments.reproduce import measure as measuring
from bitweigh_experiments.reproduce import methods as searching
from bitweigh_experiments.reproduce import run as running
from bitweigh_experiments.reproduce.data import GENERATED, Scale, Stage, roles_in, set_stage
from bitweigh_experiments.reproduce.measure import Effort, Setting
from bitweigh_experiments.reproduce.results import EXTRA_ROLES, KS, METHODS, ROLES, Cell, DataFacts

SMALL = Scale(max_rows=1000, n_queries=20)
LITTLE = Effort(timed_queries=20, rounds=2, turn_seconds=0.001)
# Tables 1 and 3 are about the same settings; Table 14 has ITQ and Wh.
TABLES = frozenset({1, 3, 8, 14})
SETTINGS = {
    *(("Places205", "LSH", "Asym", bits) for bits in (32, 64)),
    *(("SIFT1B", "LSH", "Asym", bits) for bits in (32, 64)),
    *(("Places205", "ITQ", weigher, bits) for weigher in ("Asym", "Wh") for bits in (32, 64)),
}
SWEPT = {"MIH", "MIWQ", "PQTable", "PQTable_max_heap"}
EXACT_METHODS = [method for method in METHODS if method not in ("Baseline", "MIH")]


def a_plan(*tables: int) -> Plan:
    return Plan(tables=frozenset(tables), scale=SMALL, effort=LITTLE)


def ignore(share: float, doing: str) -> None:
    """Show no progress."""


@pytest.fixture(scope="module")
def shares() -> list[float]:
    """The shares that `results` reports as its progress."""
    return []


@pytest.fixture(scope="module")
def results(shares: list[float]) -> Results:
    return reproduce(a_plan(*TABLES), lambda share, _: shares.append(share))


@pytest.fixture
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search take a microsecond, so that choices by time are the same in each run."""
    for module in (searching, measuring):
        monkeypatch.setattr(module, "seconds_per_query", lambda *_: 1e-6)


def key_of(cell: Cell) -> tuple[str, str, str, int]:
    return (cell.role, cell.hasher, cell.weigher, cell.bits)


def test_there_is_a_cell_for_all_that_the_tables_need_and_nothing_more(results: Results) -> None:
    cells = [(key_of(cell), cell.k, cell.method) for cell in results.cells]
    assert len(cells) == len(set(cells))
    assert set(cells) == {(key, k, method) for key in SETTINGS for k in KS for method in METHODS}


def test_the_data_of_each_set_is_told_once(results: Results) -> None:
    assert [(facts.role, facts.n, facts.n_queries) for facts in results.data] == [
        ("Places205", 1000, 20),
        ("SIFT1B", 1000, 20),
    ]


def test_a_cell_is_found_by_its_setting(results: Results) -> None:
    found = results.cell("Places205", "ITQ", "Wh", 64, 10, "MIWQ")
    assert found is not None
    assert (key_of(found), found.k, found.method) == (("Places205", "ITQ", "Wh", 64), 10, "MIWQ")
    assert results.cell("GIST1M", "ITQ", "Wh", 64, 10, "MIWQ") is None


def test_precisions_are_shares(results: Results) -> None:
    precisions = [cell.precision for cell in results.cells if cell.precision is not None]
    assert len(precisions) >= len(SETTINGS) * len(KS) * 6  # all but PQTable's
    assert all(0 <= precision <= 1 for precision in precisions)
    assert len(set(precisions)) > 10


@pytest.mark.parametrize("method", ["MIWQ", "bitweigh"])
def test_exact_methods_have_the_precision_of_linear_scan(results: Results, method: str) -> None:
    for key in SETTINGS:
        for k in KS:
            own, scan = (results.cell(*key, k, name) for name in (method, "Linear Scan"))
            assert own is not None
            assert scan is not None
            assert own.precision == scan.precision, (key, k)


def test_speed_ups_are_times_of_linear_scan_divided_by_their_own(results: Results) -> None:
    for cell in results.cells:
        scan = results.cell(*key_of(cell), cell.k, "Linear Scan")
        assert scan is not None
        assert scan.ms is not None
        assert cell.ms is not None
        assert cell.speed_up == pytest.approx(scan.ms / cell.ms)


def test_times_lie_between_their_quickest_and_slowest_round(results: Results) -> None:
    for cell in results.cells:
        assert cell.ms_low is not None
        assert cell.ms is not None
        assert cell.ms_high is not None
        assert 0 < cell.ms_low <= cell.ms <= cell.ms_high


def test_each_sweep_chooses_the_fastest_number_of_tables(results: Results) -> None:
    sweeps = defaultdict(list)
    for point in results.sweeps:
        setting = (point.role, point.hasher, point.weigher, point.bits)
        sweeps[setting, point.k, point.method].append(point)
    assert set(sweeps) == {(key, k, method) for key in SETTINGS for k in KS for method in SWEPT}
    for (key, k, method), points in sweeps.items():
        (chosen,) = [point for point in points if point.chosen]
        assert chosen.ms == min(point.ms for point in points)
        assert sum(point.by_rule for point in points) == 1
        cell = results.cell(*key, k, method)
        assert cell is not None
        assert cell.m == chosen.m


def test_ties_are_counted_at_every_setting_and_k(results: Results) -> None:
    counted = [((one.role, one.hasher, one.weigher, one.bits), one.k) for one in results.ambiguity]
    assert sorted(counted) == sorted((key, k) for key in SETTINGS for k in KS)
    assert all(one.hamming_ties >= 1 and one.weighted_ties >= 1 for one in results.ambiguity)


def test_progress_rises_from_nothing_to_all(results: Results, shares: list[float]) -> None:
    assert results.cells
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    assert len(set(shares)) == len(SETTINGS) + 1  # each setting and the end


def test_the_settings_of_a_run_are_kept(results: Results) -> None:
    kept = {name: value for name, value in results.settings.items() if name != "seconds"}
    assert kept == {
        "quick": False,
        "seed": 0,
        "tables": "1, 3, 8, 14",
        "max_rows": 1000,
        "queries": 20,
        "timed_queries": 20,
        "timing_rounds": 2,
    }
    assert results.settings["seconds"] > 0


@pytest.mark.usefixtures("fixed_clock")
def test_the_same_seed_gives_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TRAINING_ROWS", 500)  # of 1000: which ones is random
    first, second = (reproduce(a_plan(13), ignore) for _ in range(2))
    assert first.data == second.data
    assert first.cells == second.cells
    assert first.ambiguity == second.ambiguity


@pytest.mark.usefixtures("fixed_clock")
def test_another_seed_hashes_the_same_rows_in_another_way(tmp_path: Path) -> None:
    write_bigann(tmp_path)
    first, second = (
        reproduce(Plan(tmp_path, frozenset({6}), scale, LITTLE), ignore)
        for scale in (SMALL, dataclasses.replace(SMALL, seed=1))
    )
    assert first.data == second.data
    assert first.cells != second.cells


def test_itq_leaves_out_codes_with_more_bits_than_dimensions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Setting] = []

    def remember(setting: Setting, _: Effort) -> tuple[list[Any], list[Any], list[Any]]:
        seen.append(setting)
        return [], [], []

    monkeypatch.setattr(running, "measure", remember)
    monkeypatch.setattr(running, "roles_in", lambda _: ("Places205",))
    reproduce(Plan(scale=SMALL), ignore)  # all tables; 128 dimensions
    bits = defaultdict(set)
    for setting in seen:
        bits[setting.hasher, setting.weigher].add(setting.bits)
    for weigher in ("Asym", "Wh"):
        assert bits["LSH", weigher] == {32, 64, 128, 256}
        assert bits["ITQ", weigher] == {32, 64, 128}


def too_far(found: SearchResult) -> SearchResult:
    """Return the answer with one slightly wrong distance."""
    distances = found.distances.copy()
    distances[-1, 0] *= 1 + 1e-9
    return SearchResult(distances, found.ids)


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_a_method_that_is_not_exact_is_refused(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong:
        """The tables of a method, with wrong answers."""

        def __init__(self, index: Any) -> None:
            self.m = index.m
            self._index = index

        def search(self, costs: Any, k: int) -> Any:
            found = self._index.search(costs, k)
            wrong = paper.PaperResult(*too_far(found))
            wrong.stats = found.stats
            return wrong

    def spoiled(candidate: searching.Method) -> Any:
        if candidate.name != method:
            return candidate
        if candidate.index is not None:
            return dataclasses.replace(candidate, index=Wrong(candidate.index))
        return dataclasses.replace(
            candidate, search=lambda costs, k: too_far(candidate.search(costs, k))
        )

    best_for = searching.Methods.best_for

    def best_but_one(self: searching.Methods, *arguments: Any) -> Any:
        methods, trials = best_for(self, *arguments)
        return [spoiled(candidate) for candidate in methods], trials

    scan = paper.linear_scan
    monkeypatch.setattr(searching.Methods, "best_for", best_but_one)
    if method == "Linear Scan":  # its answers are those with float64 tables
        monkeypatch.setattr(paper, "linear_scan", lambda *a, **named: too_far(scan(*a, **named)))
    with pytest.raises(RuntimeError, match=f"^{method} is not exact at .*'Places205', 'LSH'"):
        reproduce(a_plan(1), ignore)


def facts_of(role: str, folder: Path) -> DataFacts:
    return set_stage(role, folder, SMALL).facts


def staged(role: str, folder: Path) -> tuple[str, bool, int]:
    facts = facts_of(role, folder)
    return facts.name, facts.genuine, facts.n


def write_gist(folder: Path) -> None:
    write_vecs(folder / "gist_base.fvecs", some_rows(300, 24))
    write_vecs(folder / "gist_query.fvecs", some_rows(30, 24, seed=1))


def write_bigann(folder: Path) -> None:
    write_vecs(folder / "bigann_base.bvecs", some_rows(1500, 16))
    write_vecs(folder / "bigann_query.bvecs", some_rows(30, 16, seed=1))


def write_places(folder: Path) -> None:
    """Write two classes of 70 rows each, of which 50 become queries."""
    features = some_rows(140, 128).astype(np.float32)
    np.savez(folder / "places205.npz", features=features, labels=np.arange(140) % 2)


def write_places_apart(folder: Path) -> None:
    np.save(folder / "places205_features.npy", some_rows(140, 128).astype(np.float32))
    np.save(folder / "places205_labels.npy", np.arange(140) % 2)


def write_dense_sift(folder: Path) -> None:
    """Write 300 images; a thousand queries are held out before the mixture is fitted."""
    np.save(folder / "dsift480k_u8.npy", some_rows(300 * 16, 128).astype(np.uint8))


def write_cifar(folder: Path) -> None:
    vectors = some_rows(200, 128).astype(np.float16)
    np.savez(folder / "cifar60k_cnn128_f16.npz", vectors=vectors, labels=np.arange(200) % 10)


def write_glove(folder: Path) -> None:
    ones = np.ones(100, dtype=np.float32)
    vectors = some_rows(120, 100).astype(np.int8)
    np.savez(folder / "glove341k_int8.npz", vectors=vectors, scale=ones)


@pytest.mark.parametrize(
    ("write", "role", "n"),
    [
        (write_gist, "GIST1M", 300),
        (write_bigann, "SIFT1B", 1000),  # cut
        (write_places, "Places205", 40),
        (write_places_apart, "Places205", 40),
    ],
)
def test_the_papers_own_sets_are_recognised(write: Any, role: str, n: int, tmp_path: Path) -> None:
    write(tmp_path)
    assert staged(role, tmp_path) == (role, True, n)


@pytest.mark.parametrize(
    ("write", "role", "expected"),
    [
        (write_cifar, "Places205", ("CIFAR-10 features", False, 180)),
        (write_dense_sift, "SIFT1B", ("mixture fitted on dense SIFT", False, 1000)),
        (
            write_dense_sift,
            "GIST1M",
            ("mixture fitted on dense SIFT, four side by side", False, 1000),
        ),
        (write_dense_sift, "dense SIFT", ("dense SIFT", False, 1000)),
        (write_glove, "GloVe", ("GloVe", False, 100)),
    ],
)
def test_stand_ins_are_recognised(
    write: Any, role: str, expected: tuple[str, bool, int], tmp_path: Path
) -> None:
    write(tmp_path)
    assert staged(role, tmp_path) == expected


@pytest.mark.parametrize("role", ROLES)
def test_generated_rows_stand_in_for_sets_that_the_folder_lacks(role: str, tmp_path: Path) -> None:
    name, genuine, n = staged(role, tmp_path)
    assert GENERATED in name
    assert not genuine
    assert n == 1000


def test_no_two_generated_sets_have_one_name(tmp_path: Path) -> None:
    assert len({staged(role, tmp_path)[0] for role in ROLES}) == len(ROLES)


def test_a_quick_run_has_a_hundred_thousand_rows_and_short_codes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, int]] = []
    steps: list[str] = []

    def staged_small(role: str, folder: Path | None, scale: Scale) -> Stage:
        assert scale.max_rows == 100_000
        return set_stage(role, folder, SMALL)

    def remember(setting: Setting, _: Effort) -> tuple[list[Any], list[Any], list[Any]]:
        seen.append((setting.role, setting.bits))
        return [], [], []

    monkeypatch.setattr(running, "set_stage", staged_small)
    monkeypatch.setattr(running, "measure", remember)
    reproduce(Plan.of(quick=True), lambda _, doing: steps.append(doing))
    assert set(seen) == {(role, bits) for role in ("Places205", "SIFT1B") for bits in (32, 64)}
    # Steps are named by the data that is measured, not by the set that it stands in for.
    settings = [step for step in steps if " bits" in step]
    assert len(settings) == len(seen)
    assert all(setting.startswith("generated descriptors") for setting in settings)


def test_the_papers_own_sets_go_before_stand_ins(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    write_places(tmp_path)
    assert staged("Places205", tmp_path) == ("Places205", True, 40)


def test_sets_beyond_the_papers_are_searched_where_they_are_there(tmp_path: Path) -> None:
    assert roles_in(None) == roles_in(tmp_path) == ROLES
    write_dense_sift(tmp_path)
    write_glove(tmp_path)
    assert roles_in(tmp_path) == (*ROLES, *EXTRA_ROLES)


def test_labels_are_the_truth_where_there_are_any(tmp_path: Path) -> None:
    write_places(tmp_path)
    write_gist(tmp_path)
    assert facts_of("Places205", tmp_path).truth == "same label"
    assert facts_of("GIST1M", tmp_path).truth == "Euclidean top 1000"
