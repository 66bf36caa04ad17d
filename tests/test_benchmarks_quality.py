"""The figures, tables and plot of code quality in benchmarks/quality.py."""

from __future__ import annotations

import pytest
from benchmarks import quality


@pytest.fixture(scope="module")
def lines() -> list[quality.Line]:
    return list(quality.measure(quality.digits(), 1000))


def test_weights_find_more_than_plain_hamming_and_a_second_look_more_still(
    lines: list[quality.Line],
) -> None:
    assert {(line.hasher, line.n_bits) for line in lines} >= {
        ("LSH", 32),
        ("ITQ", 64),
        ("LSH", 256),
    }
    for line in lines:
        plain, asym, wh, reranked = line.precision
        assert 0 < plain < asym < reranked <= 1
        assert wh > plain


def test_the_table_has_a_row_for_each_line(lines: list[quality.Line]) -> None:
    text = quality.section(quality.digits(), lines)
    assert text.count("\n| ") == len(lines) + 2
    assert f"{lines[0].precision[1]:.3f}" in text


def test_the_plot_is_the_same_whenever_it_is_drawn(lines: list[quality.Line]) -> None:
    pytest.importorskip("matplotlib")
    drawn = quality.plot({"digits": lines, "again": lines})
    assert drawn == quality.plot({"digits": lines, "again": lines})
    assert "Asym + rerank, ITQ" in drawn
