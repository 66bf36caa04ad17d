"""The tables and files written from the measurements of a run."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from reproduce_cases import MAIN, STAND_IN, a_run

from bitweigh_experiments.reproduce.csv_file import write_csv
from bitweigh_experiments.reproduce.formats import MISSING, percent, three_digits
from bitweigh_experiments.reproduce.published import PAPER, TABLES
from bitweigh_experiments.reproduce.results import Ambiguity, Cell, DataFacts, Results, SweepPoint
from bitweigh_experiments.reproduce.tables import Table, extra_tables, tables


def only(tables_of_run: list[Table]) -> Table:
    (table,) = tables_of_run
    return table


def lines(table: Table) -> dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]]:
    return {row.heads: (row.ours, row.paper) for row in table.rows}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.012345, "0.0123"), (1.5, "1.50"), (45.678, "45.7"), (12345.6, "12,346")],
)
def test_times_have_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_precisions_have_two_decimals_and_no_negative_zero() -> None:
    assert [percent(0.2529), percent(-1e-9), percent(1)] == ["25.29", "0.00", "100.00"]


def test_a_table_of_precision_has_ours_beside_the_papers() -> None:
    run = a_run(Cell(*MAIN, 1, "MIH", precision=0.2), Cell(*MAIN, 100, "MIWQ", precision=0.31415))
    table = tables(run, [1])[0]
    assert (table.number, table.label) == (1, "teaser1")
    assert table.head_names == ("bits", "method")
    assert table.columns == ("1-NN", "10-NN", "100-NN")
    assert list(lines(table)) == [
        (bits, method)
        for bits in ("32", "64")
        for method in ("Baseline", "MIH", "Linear Scan", "MIWQ")
    ]
    assert lines(table)["32", "MIH"] == (("20.00", MISSING, MISSING), ("22.81", "23.20", "20.86"))
    assert lines(table)["32", "MIWQ"][0] == (MISSING, MISSING, "31.41")


def test_a_table_of_time_has_rows_for_what_the_paper_does_not_have() -> None:
    run = a_run(
        Cell(*MAIN, 1, "MIWQ", ms=0.5, speed_up=20.0),
        Cell(*MAIN, 1, "MIWQ descending", ms=0.4, speed_up=25.0),
        Cell(*MAIN, 1, "bitweigh", ms=0.1, speed_up=100.0),
    )
    table = only(tables(run, [3]))
    assert table.columns[:2] == ("1-NN ms", "1-NN speed-up")
    assert [heads for heads in lines(table) if heads[0] == "32"] == [
        ("32", method) for method in ("Linear Scan", "MIH", "MIWQ", "MIWQ descending", "bitweigh")
    ]
    ours, paper = lines(table)["32", "MIWQ"]
    assert (ours[:2], paper[:2]) == (("0.500", "20.0"), ("0.11", "209.6"))
    ours, paper = lines(table)["32", "bitweigh"]
    assert (ours[:2], set(paper)) == (("0.100", "100"), {MISSING})
    assert ("64", "bitweigh") not in lines(table)


def test_the_appendix_has_both_hashers_or_both_weighers() -> None:
    run = a_run(
        Cell("Places205", "ITQ", "Wh", 64, 100, "MIWQ", precision=0.4, ms=2.0, speed_up=3.0)
    )
    times, precisions = tables(run)
    assert (times.number, precisions.number) == (10, 14)
    assert times.head_names == ("hasher", "bits", "method")
    assert lines(times)["ITQ", "64", "MIWQ"][0][-2:] == ("2.00", "3.00")
    assert precisions.columns[3:] == ("Wh 1-NN", "Wh 10-NN", "Wh 100-NN")
    assert lines(precisions)["64", "MIWQ"] == (
        (*[MISSING] * 5, "40.00"),
        ("35.02", "33.50", "30.69", "38.81", "36.81", "33.55"),
    )


def test_table_8_has_the_methods_as_columns() -> None:
    run = a_run(
        Cell("SIFT1B", "LSH", "Asym", 64, 10, "PQTable", ms=61.0),
        Cell("SIFT1B", "LSH", "Asym", 64, 10, "bitweigh", ms=7.0),
    )
    table = only(tables(run, [8]))
    assert table.head_names == ("bits", "K")
    assert table.columns == ("MIWQ ms", "PQTable ms", "PQTable_max_heap ms", "bitweigh ms")
    assert lines(table)["64", "10"] == (
        (MISSING, "61.0", MISSING, "7.00"),
        ("12.65", "64.55", "61.21", MISSING),
    )


def test_tables_of_which_nothing_was_measured_are_left_out() -> None:
    assert tables(a_run()) == extra_tables(a_run()) == []
    measured = tables(a_run(Cell(*MAIN, 1, "MIH", precision=0.2)))
    assert [table.number for table in measured] == [1, 13]


def test_every_figure_of_the_paper_stands_in_its_table() -> None:
    for table, source in zip(tables(PAPER), TABLES, strict=True):
        shown = sorted(figure for row in table.rows for figure in row.paper)
        assert shown == sorted(figure for _, _, figure in source.figures())
        for row in table.rows:
            assert [len(row.ours), len(row.paper)] == [len(table.columns)] * 2
            assert len(row.heads) == len(table.head_names)


def test_a_table_number_that_the_paper_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="the paper has tables 1 to 16, got 17"):
        tables(a_run(), [1, 17])


@pytest.mark.parametrize(
    ("facts", "title"),
    [
        (
            STAND_IN,
            "Precision on CIFAR-10 features (n = 59,000; the paper: Places205, n = 1,025,000)",
        ),
        (
            replace(STAND_IN, name="Places205", genuine=True),
            "Precision on Places205 (n = 59,000; the paper: n = 1,025,000)",
        ),
        (
            replace(STAND_IN, n=1_025_000),
            "Precision on CIFAR-10 features (n = 1,025,000; the paper: Places205)",
        ),
        (replace(STAND_IN, n=1_025_000, genuine=True), "Precision on Places205"),
        (None, "Precision on Places205 (on unknown data)"),
    ],
)
def test_the_title_says_what_differs_from_the_papers_data(
    facts: DataFacts | None, title: str
) -> None:
    run = a_run(Cell(*MAIN, 1, "MIH", precision=0.2), data=[facts] if facts else [])
    assert only(tables(run, [1])).title == title


def test_the_note_says_how_many_queries_the_paper_had() -> None:
    note = only(tables(a_run(Cell(*MAIN, 1, "MIH", precision=0.2)), [1])).note
    assert "1,000 queries (the paper: 10,250)" in note
    assert "128 dimensions," in note


def test_the_grid_has_a_line_per_cell_in_the_order_of_bits_k_and_method() -> None:
    run = a_run(
        Cell("Places205", "LSH", "Asym", 64, 1, "MIWQ", ms=0.3),
        Cell(*MAIN, 10, "bitweigh", ms=0.1),
        Cell(*MAIN, 10, "MIWQ", 3, 0.25, 0.2, 0.19, 0.3, 40.0, 1234.5, candidates=99.0),
        Cell(*MAIN, 1, "Baseline", precision=0.1),
        Cell("Places205", "ITQ", "Asym", 32, 1, "MIH", m=2),
    )
    first, second = extra_tables(run)
    assert (first.number, second.number) == (17, 18)
    assert (first.label, second.label) == ("grid-places205-lsh-asym", "grid-places205-itq-asym")
    assert first.title == (
        "All of CIFAR-10 features with LSH and Asym "
        "(n = 59,000; the paper: Places205, n = 1,025,000)"
    )
    assert list(lines(first)) == [
        ("32", "1", "Baseline"),
        ("32", "10", "MIWQ"),
        ("32", "10", "bitweigh"),
        ("64", "1", "MIWQ"),
    ]
    ours, paper = lines(first)["32", "10", "MIWQ"]
    assert ours == ("25.00", "0.200", "0.190 to 0.300", "40.0", "3", "1,234", "99.0")
    assert paper == ("24.97", "0.21", MISSING, "109.8", MISSING, MISSING, MISSING)


def test_a_set_that_the_paper_does_not_have_says_so() -> None:
    glove = DataFacts("GloVe", "GloVe words", False, 341_000, 341_000, 100, 1_000, "same label")
    run = a_run(Cell("GloVe", "LSH", "Asym", 32, 1, "MIWQ", ms=1.0), data=[glove])
    title = "All of GloVe words with LSH and Asym (not in the paper, n = 341,000)"
    assert only(extra_tables(run)).title == title
    assert tables(run) == []


def test_the_sweep_marks_the_rule_and_the_choice() -> None:
    points = [
        SweepPoint(*MAIN, 10, "MIWQ", 2, 0.5, True, False),
        SweepPoint(*MAIN, 10, "MIWQ", 3, 0.25, False, True),
        SweepPoint(*MAIN, 10, "MIH", 3, 0.125, True, True),
    ]
    table = only(extra_tables(a_run(sweeps=points)))
    assert table.columns == ("m = 2", "m = 3")
    assert [row.ours for row in table.rows] == [
        ("0.500 (rule)", "0.250 (chosen)"),
        (MISSING, "0.125 (rule, chosen)"),
    ]


def test_the_ambiguity_has_a_line_per_record() -> None:
    table = only(extra_tables(a_run(ambiguity=[Ambiguity(*MAIN, 10, 321.0, 1.25)])))
    assert table.label == "ambiguity-places205"
    assert lines(table) == {("LSH", "Asym", "32", "10"): (("321", "1.25"), ("", ""))}


def test_the_csv_has_a_line_per_cell_with_nothing_where_nothing_was_measured(
    tmp_path: Path,
) -> None:
    run = a_run(Cell(*MAIN, 1, "MIWQ", m=2, ms=0.5), Cell(*MAIN, 10, "Baseline", precision=0.25))
    write_csv(run, tmp_path / "cells.csv")
    with (tmp_path / "cells.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == [*Cell.__slots__]
    assert (first["bits"], first["method"], first["m"], first["ms"]) == ("32", "MIWQ", "2", "0.5")
    assert (second["precision"], second["ms"]) == ("0.25", "")


def test_results_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    run = a_run(
        Cell(*MAIN, 1, "MIWQ", m=2, ms=0.1 + 0.2),
        sweeps=[SweepPoint(*MAIN, 10, "MIWQ", 2, 0.5, True, False)],
        ambiguity=[Ambiguity(*MAIN, 10, 321.0, 1.25)],
    )
    run.settings.update(quick=True, seed=3)
    run.machine.update(cpu="an abacus")
    run.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == run


def test_another_file_is_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="not results of `bitweigh paper reproduce`"):
        Results.load(tmp_path / "other.json")
