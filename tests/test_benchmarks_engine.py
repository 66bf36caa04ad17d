"""The benchmark of the engine: the figures it derives from its times."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.engine import clock, filters, growth, hard, paper
from benchmarks.engine.__main__ import SECTIONS
from benchmarks.engine.filters import CallFigures, FilterFigures, ShareFigures
from benchmarks.engine.growth import GrowthFigures, Size
from benchmarks.engine.hard import Comparison, HardFigures
from benchmarks.engine.paper import PaperFigures

from bitweigh_experiments.reproduce.formats import MISSING

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def size(rows: int, alg2_us: float | None = 50.0) -> Size:
    tables = None if alg2_us is None else 4
    return Size(rows=rows, queries=9, engine_us=10.0, scan_us=40.0, alg2_us=alg2_us, tables=tables)


def comparison(auto_us: float, scan_us: float) -> Comparison:
    auto, scan = np.full((3, 4), auto_us), np.full((3, 4), scan_us)
    return hard.compare(auto, scan)


def test_the_exponent_is_that_of_a_power_law() -> None:
    points = [(n, 3.0 * n**0.25) for n in (100_000, 300_000, 1_000_000, 10_000_000)]
    assert growth.exponent(points) == pytest.approx(0.25)


def test_the_exponent_leaves_small_sizes_out() -> None:
    points = [(10_000, 1e9), (100_000, 1.0), (1_000_000, 10.0)]
    assert growth.exponent(points) == pytest.approx(1.0)


def test_one_size_has_no_exponent() -> None:
    assert growth.exponent([(10_000, 1.0), (100_000, 2.0)]) is None


def test_the_spread_is_the_median_the_99th_percentile_and_the_largest() -> None:
    shuffled = np.random.default_rng(0).permutation(np.arange(101.0))
    assert clock.spread_of(shuffled) == {"p50": 50.0, "p99": 99.0, "max": 100.0}


def test_a_disturbed_round_does_not_count() -> None:
    times = np.array([[1.0, 3.0], [900.0, 3.0], [1.0, 900.0]])
    assert clock.typical(times) == 2.0


def test_ratios_of_single_queries_are_of_their_best_rounds() -> None:
    auto = np.array([[10.0, 30.0], [99.0, 20.0]])
    scan = np.array([[10.0, 99.0], [50.0, 10.0]])
    compared = hard.compare(auto, scan)
    assert compared["ratios"]["max"] == 2.0
    assert compared["most_us"] == 10.0


def test_turns_go_round_by_round() -> None:
    order: list[str] = []

    def turn(name: str) -> clock.Times:
        order.append(name)
        return np.zeros(5)

    times = clock.take_turns({"a": lambda: turn("a"), "b": lambda: turn("b")}, 3, pinned=False)
    assert order == ["a", "b"] * 3
    assert times["a"].shape == (3, 5)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs a way to choose CPUs")
def test_turns_stay_on_one_cpu_and_the_process_gets_all_back() -> None:
    before = os.sched_getaffinity(0)
    seen: list[int] = []

    def turn() -> clock.Times:
        seen.append(len(os.sched_getaffinity(0)))
        return np.zeros(1)

    clock.take_turns({"own": turn}, 1)
    assert seen == [1]
    assert os.sched_getaffinity(0) == before


def test_a_wall_turn_asks_a_query_more_than_it_records() -> None:
    queries: list[int] = []
    assert clock.wall_turn(queries.append, 3)().shape == (3,)
    assert queries == [2, 0, 1, 2]


def test_the_table_of_the_paper_has_the_ratios() -> None:
    own = PaperFigures(
        data="mixture",
        rows=1000,
        n_bits=64,
        k=10,
        queries=9,
        engine_us=10.0,
        scan_us=35.0,
        alg2_us=124.0,
        tables=3,
    )
    last = paper.markdown([own]).splitlines()[-1]
    assert cells(last) == [
        "mixture",
        "1,000",
        "64",
        "10",
        "10.0",
        "124",
        "12.4",
        "3",
        "35.0",
        "3.5",
    ]


def test_the_table_of_growth_shows_what_was_not_measured() -> None:
    figures = GrowthFigures(
        sizes=[size(10_000), size(30_000_000, None)],
        exponents={"scan": 1.0, "Alg. 2": None, "engine": 0.125},
    )
    *_, last, fitted = growth.markdown(figures, with_plot=False).splitlines()
    assert cells(last) == ["30,000,000", "10.0", "40.0", MISSING, "4.0"]
    assert cells(fitted)[1:] == ["0.12", "1.00", MISSING, ""]


def test_a_line_has_no_point_where_nothing_was_measured() -> None:
    lines = growth.lines_of([size(10_000), size(30_000_000, None)])
    assert lines["Alg. 2"] == [(10_000, 50.0)]
    assert lines["engine"] == [(10_000, 10.0), (30_000_000, 10.0)]


def test_short_cells_are_judged_by_difference_and_long_ones_by_ratio() -> None:
    said = hard.worst_in_words([comparison(4.0, 2.0), comparison(110.0, 100.0)])
    assert "1.10 times as long in the mean and 1.10 times for a single query" in said
    assert "2.0 microseconds longer in the mean and 2.0 for a single query" in said


def test_the_tables_of_hard_data_have_a_row_for_each_set() -> None:
    figures = [
        HardFigures(
            data=data,
            rows=1000,
            n_bits=64,
            k=k,
            single=comparison(k, 100.0),
            batch=comparison(50.0, 100.0),
            within=comparison(40.0, 100.0),
            ties=comparison(30.0, 100.0),
        )
        for data in ("random bits", "skewed bits")
        for k in (1, 10)
    ]
    lines = [cells(line) for line in hard.markdown(figures).splitlines() if line.startswith("| ")]
    single = next(line for line in lines if line[0] == "random bits")
    assert single[1:3] == ["1,000", "64"]
    assert single[3:5] == ["0.01 / 0.01 / 0.01 / 0.01", "0.10 / 0.10 / 0.10 / 0.10"]
    assert single[5:] == [MISSING, MISSING]
    assert [line[0] for line in lines].count("skewed bits") == len(hard._CALLS)


@pytest.mark.parametrize("count", [0, 2, 10_000, 20_000])
def test_filters_allow_as_many_ids_as_they_say(count: int) -> None:
    allow = filters.drawn(20_000, count)
    assert len(np.unique(allow)) == count
    assert ((allow >= 0) & (allow < 20_000)).all()


def test_the_best_round_of_each_query_counts() -> None:
    assert clock.fastest(np.array([[1.0, 9.0], [5.0, 3.0]])) == 2.0


def test_the_table_of_filters_has_the_ratios() -> None:
    figures = FilterFigures(
        rows=1000,
        n_bits=64,
        calls=[
            CallFigures(
                data="mixture", what="100 ids, kept", us=10.0, beyond_us=2.5, unfiltered_us=40.0
            )
        ],
        shares=[
            ShareFigures(
                data="random",
                share=0.5,
                auto_us=20.0,
                scan_us=40.0,
                unfiltered_us=30.0,
                nbytes=126_000,
            )
        ],
    )
    calls, shares = (
        cells(line)
        for line in filters.markdown(figures).splitlines()
        if "mixture" in line or "random" in line
    )
    assert calls == ["mixture", "100 ids, kept", "10.0", "2.50", "40.0", "0.25"]
    assert shares == ["random", "50 %", "20.0", "40.0", "0.50", "30.0", "1.5", "126,000"]


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_has_a_place_for_every_section(name: str) -> None:
    page = PAGE.read_text()
    assert f"<!-- engine-{name} -->" in page
    assert f"<!-- /engine-{name} -->" in page
