"""The report: one page that is complete, well-formed, self-contained and true to the records."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

from bitweigh_experiments.reproduce.claims import Claim, claims
from bitweigh_experiments.reproduce.data import GENERATED
from bitweigh_experiments.reproduce.report import write_report
from bitweigh_experiments.reproduce.report.charts import Axis, Chart, Reading, css_class, draw
from bitweigh_experiments.reproduce.report.figures import FIGURES, charts_of, figures
from bitweigh_experiments.reproduce.report.headline import headlines
from bitweigh_experiments.reproduce.report.scales import scale_for
from bitweigh_experiments.reproduce.results import (
    METHODS,
    Ambiguity,
    Cell,
    DataFacts,
    Results,
    SweepPoint,
)
from bitweigh_experiments.reproduce.tables import extra_tables, tables

VOID = {"meta", "br", "hr", "img", "link", "input"}
TRICKY = 'rows of <b>"A" & B</b>'
FACTORS = {"Linear Scan": 1.0, "MIH": 50.0, "MIWQ": 40.0, "bitweigh": 20.0}


class Page(HTMLParser):
    """The text, elements and ids of a page; an unbalanced tag is an error."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.pieces).split())

    def values(self, attribute: str) -> list[str]:
        return [str(values[attribute]) for _, values in self.elements if attribute in values]


def cells_of(role: str, hasher: str, bits: int) -> list[Cell]:
    cells = []
    for k in (1, 10):
        for method, factor in FACTORS.items():
            ms = bits * k**0.1 / factor
            cells.append(
                Cell(
                    role=role,
                    hasher=hasher,
                    weigher="Asym",
                    bits=bits,
                    k=k,
                    method=method,
                    precision=0.2 if method != "MIH" else 0.15,
                    ms=ms,
                    ms_low=0.9 * ms,
                    ms_high=1.2 * ms,
                    speed_up=factor,
                    buckets=100.0 * k if method in ("MIH", "MIWQ") else None,
                    candidates=300.0 * k if method in ("MIH", "MIWQ") else None,
                )
            )
    return cells


def make_results() -> Results:
    """Return results for two sets, two hashers, 32 and 64 bits; ITQ has only 32."""
    settings = [(role, "LSH", bits) for role in ("Places205", "GIST1M") for bits in (32, 64)]
    settings += [("Places205", "ITQ", 32)]
    return Results(
        machine={"CPU": "an abacus", "date": "2025-01-31"},
        settings={"quick": True, "seed": 7, "timed_queries": 20, "timing_rounds": 3, "seconds": 65},
        data=[
            DataFacts("Places205", TRICKY, False, 4000, 1_025_000, 64, 50, "same label"),
            DataFacts("GIST1M", "GIST1M", True, 10**6, 10**6, 960, 1000, "Euclidean top 1000"),
        ],
        cells=[cell for setting in settings for cell in cells_of(*setting)],
        sweeps=[SweepPoint("GIST1M", "LSH", "Asym", 32, 1, "MIWQ", 2, 0.8, True, True)],
        ambiguity=[Ambiguity("GIST1M", "LSH", "Asym", 32, 1, 12.5, 1.0)],
    )


def without(results: Results, field: str, **setting: object) -> Results:
    """Return the results without one field of the cells at a setting."""
    cells = [
        dataclasses.replace(cell, **{field: None})
        if all(getattr(cell, name) == value for name, value in setting.items())
        else cell
        for cell in results.cells
    ]
    return dataclasses.replace(results, cells=cells)


def page_of(results: Results, folder: Path) -> tuple[str, Page]:
    path = folder / "report.html"
    write_report(results, path)
    content = path.read_text("utf-8")
    return content, Page(content)


def section(content: str, name: str) -> str:
    return content.split(f' id="{name}">')[1].split("</section>")[0]


@pytest.mark.parametrize("results", [make_results(), Results({}, {})], ids=["some", "none"])
def test_the_page_is_well_formed_and_its_links_lead_somewhere(
    results: Results, tmp_path: Path
) -> None:
    content, page = page_of(results, tmp_path)
    ids = page.values("id")
    assert content.startswith("<!DOCTYPE html>")
    assert len(ids) == len(set(ids))
    assert set(page.values("href")) <= {f"#{name}" for name in ids}
    for named in page.values("aria-labelledby"):
        assert set(named.split()) <= set(ids)


def test_the_page_needs_nothing_from_outside(tmp_path: Path) -> None:
    content, page = page_of(make_results(), tmp_path)
    assert page.values("src") == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.elements}
    assert not re.search(r"url\(|@import|https?://", content)


def test_every_data_set_is_told_beside_the_papers(tmp_path: Path) -> None:
    content, _ = page_of(make_results(), tmp_path)
    text = Page(section(content, "differences")).text
    assert f"Places205 {TRICKY} same label 4,000 64 50 1,025,000 128 10,250" in text
    assert "GIST1M the paper's own Euclidean top 1000 1,000,000 960 1,000 1,000,000" in text
    assert "1 of 2 data sets are the paper's own" in text


def test_machine_settings_and_command_are_on_the_page(tmp_path: Path) -> None:
    text = page_of(make_results(), tmp_path)[1].text
    assert "CPU an abacus" in text
    assert "Measured on 2025-01-31. The run took 65 seconds. It was a quick run" in text
    assert "timed queries 20 rounds of timing 3" in text
    assert "bitweigh paper reproduce --quick --data DIR --seed 7" in text


NO_FILES = DataFacts("SIFT1B", f"{GENERATED} rows", False, 10, 10, 64, 5, "same label")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"quick": False, "tables": "all", "max_rows": None, "queries": 1000}, ""),
        ({"quick": True, "tables": "all", "max_rows": 100_000, "queries": 200}, " --quick"),
        ({"quick": False, "tables": "1, 3, 8"}, " --tables 1,3,8"),
        ({"quick": False, "max_rows": 10_000, "queries": 100}, " --rows 10000 --queries 100"),
        ({"quick": True, "max_rows": 5000, "seed": 0}, " --quick --rows 5000 --seed 0"),
        ({}, ""),
    ],
)
def test_the_command_has_the_options_that_were_used(
    settings: dict[str, object], options: str, tmp_path: Path
) -> None:
    content, _ = page_of(Results({}, settings, data=[NO_FILES]), tmp_path)
    assert f"<code>bitweigh paper reproduce{options}</code>" in content


def test_the_settings_are_told_in_words(tmp_path: Path) -> None:
    settings = {"tables": "1, 3", "max_rows": None, "queries": 50}
    text = page_of(Results({}, settings), tmp_path)[1].text
    assert "tables of the paper 1, 3 max rows no limit queries of each set 50" in text


def test_every_table_is_on_the_page_with_its_figures(tmp_path: Path) -> None:
    results = make_results()
    text = page_of(results, tmp_path)[1].text
    shown = [*tables(results), *extra_tables(results)]
    assert len(shown) > 5
    for table in shown:
        assert table.title in text
        for row in table.rows:
            assert " ".join((*row.heads, *row.ours)) in text


def test_the_papers_figures_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    content, _ = page_of(make_results(), tmp_path)
    table = section(content, "table-3")
    printed = re.findall(r'<td class="n paper[^"]*">([^<]*)</td>', table)
    assert {"209.6", "66.3"} <= set(printed)
    assert "paper: single core of an Intel Core i7" in table


def test_every_claim_is_on_the_page_with_its_verdict_in_words(tmp_path: Path) -> None:
    results = make_results()
    text = page_of(results, tmp_path)[1].text
    for claim in claims(results):
        count = f" {claim.n_held} of {claim.n_settings}" if claim.n_settings else ""
        word = {True: "\u2713 holds", None: "\u2013 not measured"}.get(claim.holds)
        if word is None:
            few = claim.n_held >= 0.9 * claim.n_settings
            word = "\u223c mostly holds" if few else "\u2717 does not hold"
        assert f"{word}{count} {claim.text} {claim.evidence}" in text
        for exception in claim.exceptions:
            assert exception in text


def test_names_are_escaped(tmp_path: Path) -> None:
    content, page = page_of(make_results(), tmp_path)
    assert TRICKY not in content
    assert TRICKY in page.text


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    _, page = page_of(Results({}, {}), tmp_path)
    assert "Nothing was measured." in page.text
    assert "svg" not in {tag for tag, _ in page.elements}


def test_the_records_beside_the_page_are_named(tmp_path: Path) -> None:
    assert "report.json and report.csv" in page_of(make_results(), tmp_path)[1].text
    path = tmp_path / "other.html"
    write_report(make_results(), path, files=["all.json"])
    assert "beside this page, in all.json" in Page(path.read_text("utf-8")).text


def titles_of_points(content: str, name: str) -> list[str]:
    return re.findall(r'<path class="mark"[^>]*><title>([^<]*)</title>', section(content, name))


def test_a_chart_has_a_point_for_each_measured_cell(tmp_path: Path) -> None:
    results = make_results()
    content, _ = page_of(results, tmp_path)
    timed = [c for c in results.cells if c.ms is not None and c.hasher == "LSH"]
    # Each cell is drawn against bits and against K.
    assert len(titles_of_points(content, "time-lsh-asym")) == 2 * len(timed)
    assert len(titles_of_points(content, "work-lsh-asym")) == 2 * len(timed) // 2


def test_a_chart_has_no_point_for_a_missing_cell(tmp_path: Path) -> None:
    full, _ = page_of(make_results(), tmp_path)
    lacking = without(make_results(), "ms", role="GIST1M", method="MIWQ", bits=64, k=10)
    content, _ = page_of(lacking, tmp_path)
    before, after = (titles_of_points(page, "time-lsh-asym") for page in (full, content))
    assert len(before) - len(after) == 2
    assert "64 bits" not in " ".join(titles_of_points(content, "time-itq-asym"))


def small_chart(places: dict[int, float], *, log: bool = True) -> Chart:
    series = {"MIWQ": {(1, place): Reading(value) for place, value in places.items()}}
    axis = Axis("bits", (32, 64, 128))
    return Chart("a chart", Axis("K", (1,)), axis, "ms", " ms", series, log)


def path_of(svg: str) -> str:
    return str(re.findall(r'<path class="line" d="([^"]*)"', svg)[0])


def test_a_line_is_broken_where_a_reading_is_missing() -> None:
    assert path_of(draw(small_chart({32: 1, 64: 2, 128: 3}), "a")).count("M") == 1
    assert path_of(draw(small_chart({32: 1, 128: 3}), "a")).count("M") == 2


def test_equal_factors_are_equal_distances_on_a_log_axis() -> None:
    heights = re.findall(
        r"[ML][\d.]+ ([\d.]+)", path_of(draw(small_chart({32: 1, 64: 10, 128: 100}), "a"))
    )
    low, middle, high = map(float, heights)
    assert low > middle > high  # SVG counts from the top
    assert low - middle == pytest.approx(middle - high, abs=0.2)


def test_a_zero_is_left_out_of_a_log_axis_only() -> None:
    assert draw(small_chart({32: 0, 64: 5}), "a").count('class="mark"') == 1
    assert draw(small_chart({32: 0, 64: 5}, log=False), "a").count('class="mark"') == 2


def test_a_chart_says_in_words_what_it_shows() -> None:
    svg = draw(small_chart({32: 1.5, 128: 3}), "a")
    assert '<title id="a-t">a chart</title>' in svg
    assert "MIWQ: 1.50 ms at K = 1, 32 bits and 3.00 ms at K = 1, 128 bits." in svg


def test_charts_of_speed_up_have_the_papers_figures_at_the_same_places() -> None:
    figure = next(figure for figure in FIGURES if figure.name == "speed-up")
    for chart in charts_of(make_results(), ("LSH", "Asym"), figure, "Places205"):
        assert set(chart.paper) == {"MIH", "MIWQ"}
        for key in chart.paper["MIWQ"]:
            assert key[0] in chart.panels.values
            assert key[1] in chart.places.values


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[3.0], [0.002, 0.003], [0.01, 25_000.0], [7.0, 81.0]])
def test_an_axis_holds_its_values_and_few_ticks(values: list[float], log: bool) -> None:
    scale = scale_for(values, log=log)
    assert all(0 <= scale.share(value) <= 1 for value in values)
    assert 1 <= len(scale.ticks) <= 7
    assert all(-1e-9 <= scale.share(tick) <= 1 + 1e-9 for tick in scale.ticks)


def test_every_method_has_a_colour() -> None:
    style = (
        resources.files("bitweigh_experiments.reproduce.report")
        .joinpath("style.css")
        .read_text("utf-8")
    )
    for method in METHODS:
        name = css_class(method)
        assert f".{name} {{ color: var(--{name.removeprefix('m-')}); }}" in style
        # Once for light, once for dark.
        assert style.count(f"--{name.removeprefix('m-')}: #") == 2


def head_numbers(results: Results, judged: list[Claim] | None = None) -> dict[str, str]:
    return {one.text.split(":")[0]: one.value for one in headlines(results, judged or [])}


def test_the_head_names_the_largest_speed_up_of_miwq_and_where_it_is(tmp_path: Path) -> None:
    results = make_results()
    place = next(
        number
        for number, cell in enumerate(results.cells)
        if (cell.role, cell.bits, cell.k, cell.method) == ("GIST1M", 64, 10, "MIWQ")
    )
    results.cells[place] = dataclasses.replace(results.cells[place], speed_up=123.4)
    text = page_of(results, tmp_path)[1].text
    assert "123\u00d7 is the largest speed-up of MIWQ over Linear Scan: GIST1M, LSH, Asym, " in text


def test_a_stand_in_is_never_called_by_the_name_of_the_papers_set() -> None:
    drawn = DataFacts("SIFT1B", "drawn rows", False, 9, 10**9, 128, 5, "Euclidean top 1000")
    cells = [
        Cell("SIFT1B", "LSH", "Asym", 32, 1, "MIWQ", ms=1.0, speed_up=2.0),
        Cell("SIFT1B", "LSH", "Asym", 32, 1, "Linear Scan", ms=0.5, speed_up=1.0),
    ]
    results = Results({}, {}, data=[drawn], cells=cells)
    (largest, *_) = headlines(results, [])
    assert largest.text.endswith(": drawn rows, LSH, Asym, 32 bits, 1-NN")
    (faster,) = [one for one in claims(results) if one.text.startswith("MIWQ is faster")]
    assert faster.exceptions[0].startswith("drawn rows, LSH")
    drawn_charts, _ = figures(results)
    assert "drawn rows" in drawn_charts
    assert "SIFT1B" not in drawn_charts.replace("for its SIFT1B", "")


def test_the_page_opens_with_the_claims_that_hold(tmp_path: Path) -> None:
    content, _ = page_of(make_results(), tmp_path)
    verdicts = re.findall(r'<li class="(holds|mostly|fails|open)">', content)
    assert set(verdicts) >= {"holds", "open"}
    order = ["holds", "mostly", "fails", "open"]
    assert verdicts == sorted(verdicts, key=order.index)


def test_the_head_counts_settings_of_equal_precision() -> None:
    results = make_results()
    cells = [
        dataclasses.replace(cell, precision=0.1999)
        if (cell.role, cell.bits, cell.method) == ("GIST1M", 32, "MIWQ")
        else cell
        for cell in results.cells
    ]
    differing = dataclasses.replace(results, cells=cells)
    same = "settings have the same precision with MIWQ as with Linear Scan"
    assert head_numbers(results)[same] == "10 of 10"
    assert head_numbers(differing)[same] == "8 of 10"


def test_the_head_counts_who_is_faster_among_what_was_measured() -> None:
    results = without(make_results(), "ms", method="MIWQ", bits=64)
    numbers = head_numbers(results)
    assert numbers["settings have MIWQ faster than Linear Scan"] == "6 of 6"
    assert numbers["settings have this library's index faster than MIWQ"] == "0 of 6"


def test_the_head_counts_claims_that_mostly_hold() -> None:
    judged = [Claim("a", held == 10, held, 10, (), "") for held in (10, 9, 9, 8)]
    text = "claims hold in every setting, 2 more in at least nine of ten"
    assert head_numbers(make_results(), judged)[text] == "1 of 4"


def test_the_head_counts_claims_that_hold() -> None:
    judged = [Claim("a", holds, 0, 0, (), "") for holds in (True, True, False, None)]
    text = "claims hold in every setting; 1 not measured"
    assert head_numbers(Results({}, {}), judged) == {text: "2 of 3"}
