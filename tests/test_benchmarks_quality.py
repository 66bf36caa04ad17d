"""The figures, tables and plots of code quality in benchmarks/quality."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.quality import page, peers, plots, results, sets, weighing
from benchmarks.quality.measuring import Figures, measure
from benchmarks.quality.ours import our_methods

DIGITS = sets.digits()


@pytest.fixture(scope="module")
def lines() -> list[weighing.Line]:
    return list(weighing.compare(DIGITS, 1000))


@pytest.fixture(scope="module")
def ours() -> list[Figures]:
    return measure(DIGITS, our_methods(64), lambda _: None)


@pytest.fixture(scope="module")
def measured(lines: list[weighing.Line], ours: list[Figures]) -> results.Results:
    peer = ours[0] | {"family": "FAISS PQ", "name": "IndexPQ, 9 parts", "precision": 0.75}
    figures = results.SetFigures(
        name="digits",
        n=len(DIGITS.rows),
        n_features=64,
        n_queries=200,
        methods=[*ours, Figures(**peer)],
        weighing=lines,
        without="",
    )
    return results.Results(machine={"CPU": "some"}, sets={"digits": figures})


def test_weights_find_more_than_plain_hamming_and_a_second_look_more_still(
    lines: list[weighing.Line],
) -> None:
    assert {(line["hasher"], line["n_bits"]) for line in lines} >= {
        ("LSH", 32),
        ("ITQ", 64),
        ("LSH", 256),
    }
    for line in lines:
        plain, asym, wh, reranked = line["precision"]
        assert 0 < plain < asym < reranked <= 1
        assert wh > plain


def test_more_bits_find_more_and_all_bytes_are_counted(ours: list[Figures]) -> None:
    found = {(method["name"], method["setting"]): method for method in ours}
    scalar = [found[f"Scalar, {bits} bits a feature", ""] for bits in (2, 3, 4, 8)]
    assert np.all(np.diff([method["precision"] for method in scalar]) > 0)
    assert [round(method["bytes_per_row"]) for method in scalar] == [18, 26, 34, 66]
    reranked = found["Scalar, 4 bits a feature + float32", "from 50"]
    assert round(reranked["bytes_per_row"] - scalar[2]["bytes_per_row"]) == 4 * 64
    assert reranked["precision"] > 0.99
    assert all(method["ms"] > 0 and method["seconds"] > 0 for method in ours)


def test_peers_count_what_grows_with_the_rows() -> None:
    pytest.importorskip("faiss")
    chosen = [
        method
        for method in peers.peer_methods(64)
        if method.name.startswith(("IndexPQ, 16", "IndexScalarQ", "IndexPQFastScan", "IndexHNSWF"))
    ]
    found = {
        (method["name"], method["setting"]): method
        for method in measure(DIGITS, chosen, lambda _: None)
    }
    assert found["IndexPQ, 16 parts", ""]["bytes_per_row"] == 16
    assert found["IndexScalarQuantizer, 8 bits a feature", ""]["bytes_per_row"] == 64
    refined = found["IndexPQFastScan, 32 parts + float32", "from 100"]
    assert 16 + 4 * 64 <= refined["bytes_per_row"] < 16 + 4 * 64 + 1
    graph = found["IndexHNSWFlat, M = 32", "efSearch 512"]
    assert graph["bytes_per_row"] > 4 * 64 + 4 * 64
    assert min(method["precision"] for method in found.values()) > 0.9


def test_without_faiss_its_methods_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(peers.UnavailableError, match="faiss is not installed"):
        peers.peer_methods(64)


def test_the_tables_have_the_best_within_a_limit_and_a_row_for_each_method(
    measured: results.Results,
) -> None:
    text = page.tables(measured)
    methods = measured["sets"]["digits"]["methods"]
    assert text.count("\n| bitweigh ") == len(methods) - 1
    within_25, *_ = [row for row in text.splitlines() if row.startswith("| 25 |")]
    assert "| Scalar, 2 bits a feature, not rotated | 18 |" in within_25
    assert "| IndexPQ, 9 parts | 8 |" in within_25
    nothing, *_ = [row for row in text.splitlines() if row.startswith("| 0.90 |")]
    assert "| none |" in nothing


def test_the_page_keeps_what_is_outside_its_markers(
    measured: results.Results, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    results.save(measured, tmp_path / "new" / "quality.json")
    file = tmp_path / "page.md"
    markers = "".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in _MARKERS)
    file.write_text(f"# Title\n\n{markers}\nThe end.\n")
    page.write(results.load(tmp_path / "new" / "quality.json"), file)
    text = file.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("The end.\n")
    assert text.count("### Digits") == len(_MARKERS) - 1
    assert "| digits | Scalar, 4 bits a feature, not rotated |" in text
    assert {found.name for found in tmp_path.glob("*.svg")} == set(plots.PLOTS)


def test_the_plots_are_the_same_whenever_they_are_drawn(measured: results.Results) -> None:
    pytest.importorskip("matplotlib")
    figures = [measured["sets"]["digits"]] * 3
    for plot in plots.PLOTS.values():
        assert plot(figures) == plot(figures)
    assert "bitweigh Levels" in plots.PLOTS["quality-bytes.svg"](figures)
    assert "Asym + rerank, ITQ" in plots.PLOTS["quality.svg"](figures)


_MARKERS = ("best", "scalar", "methods", "weighers")
