"""The report as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from bitweigh_experiments.reproduce.claims import Claim, claims, clearest_first
from bitweigh_experiments.reproduce.data import GENERATED
from bitweigh_experiments.reproduce.report.differences import differences
from bitweigh_experiments.reproduce.report.figures import figures, main_setting, other_figures
from bitweigh_experiments.reproduce.report.headline import headlines
from bitweigh_experiments.reproduce.report.table_html import comparison, plain
from bitweigh_experiments.reproduce.results import Results
from bitweigh_experiments.reproduce.run import Plan
from bitweigh_experiments.reproduce.tables import Table, extra_tables, tables

__all__ = ["render", "write_report"]

TITLE = "Efficient Querying from Weighted Binary Codes, repeated"
ABOUT = (
    "Z. Weng and Y. Zhu, \u201cEfficient Querying from Weighted Binary Codes\u201d (AAAI 2020), "
    "propose MIWQ, which finds the K binary codes nearest to a query when every bit has its own "
    "weight, without looking at all codes. This page repeats their experiments with MIWQ and the "
    "methods they compare it with, and shows each of their figures beside the one measured here. "
    "bitweigh, where it appears, is this library's own index."
)
# CSS class, sign and words of each verdict.
HOLDS = ("holds", "\u2713", "holds")
MOSTLY = ("mostly", "\u223c", "mostly holds")
FAILS = ("fails", "\u2717", "does not hold")
OPEN = ("open", "\u2013", "not measured")
SETTINGS = {
    "quick": "quick run",
    "seed": "seed",
    "tables": "tables of the paper",
    "max_rows": "max rows",
    "queries": "queries of each set",
    "timed_queries": "timed queries",
    "timing_rounds": "rounds of timing",
    "seconds": "whole run",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page; `parts` are the names and titles of its subsections."""

    name: str
    title: str
    content: str
    parts: tuple[tuple[str, str], ...] = ()


def write_report(results: Results, path: Path, *, files: Sequence[str] | None = None) -> None:
    """Write the report of a run as one HTML file.

    Parameters
    ----------
    results : Results
        The measurements. Missing ones are left out or marked as not measured.
    path : Path
        The file to write.
    files : sequence of str, optional
        Names of the files beside it that hold the records; by default the name of the report,
        ending in .json and .csv.

    """
    if files is None:
        files = [path.with_suffix(end).name for end in (".json", ".csv")]
    path.write_text(render(results, files), encoding="utf-8")


def render(results: Results, files: Sequence[str]) -> str:
    """Return the page as HTML."""
    judged = clearest_first(claims(results))
    paper_tables, extra = tables(results), extra_tables(results)
    sections = [
        Section("claims", "The claims", _claims(judged)),
        Section("differences", "What differs from the paper", differences(results)),
        Section("machine", "The machine", _facts(results.machine)),
        _charts(results),
        _tables(paper_tables),
        Section("more", "More tables", "".join(_folded(table) for table in extra)),
        Section("repeat", "How to repeat it", _repeat(results, files)),
    ]
    sections = [section for section in sections if section.content]
    package = resources.files(__package__)
    return Template(package.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(TITLE),
        style=package.joinpath("style.css").read_text("utf-8"),
        about=escape(ABOUT),
        when=escape(_when(results)),
        headline=_headline(results, judged),
        contents="".join(_entry(section) for section in sections),
        sections="".join(
            f'<section id="{section.name}"><h2>{escape(section.title)}</h2>'
            f"{section.content}</section>"
            for section in sections
        ),
    )


def _when(results: Results) -> str:
    sentences = []
    if "date" in results.machine:
        sentences.append(f"Measured on {results.machine['date']}.")
    if "seconds" in results.settings:
        sentences.append(f"The run took {_duration(float(results.settings['seconds']))}.")
    if results.settings.get("quick"):
        sentences.append(
            "It was a quick run, with fewer rows, queries and lengths of codes than a full one: "
            "speed-ups grow with the number of rows."
        )
    return " ".join(sentences)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _headline(results: Results, judged: Sequence[Claim]) -> str:
    items = "".join(
        f"<li><b>{escape(headline.value)}</b> {escape(headline.text)}</li>"
        for headline in headlines(results, judged)
    )
    return f'<ul class="headline">{items}</ul>' if items else "<p>Nothing was measured.</p>"


def _entry(section: Section) -> str:
    parts = "".join(
        f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in section.parts
    )
    inner = f"<ul>{parts}</ul>" if parts else ""
    return f'<li><a href="#{section.name}">{escape(section.title)}</a>{inner}</li>'


def _claims(judged: Sequence[Claim]) -> str:
    return f'<ol class="claims">{"".join(_claim(claim) for claim in judged)}</ol>' if judged else ""


def _verdict(claim: Claim) -> tuple[str, str, str]:
    if claim.holds is None:
        return OPEN
    if claim.holds:
        return HOLDS
    return MOSTLY if claim.mostly else FAILS


def _claim(claim: Claim) -> str:
    kind, sign, word = _verdict(claim)
    count = ""
    if claim.n_settings:
        count = f'<span class="count">{claim.n_held} of {claim.n_settings}</span>'
    folded = ""
    if claim.exceptions:
        items = "".join(f"<li>{escape(exception)}</li>" for exception in claim.exceptions)
        noun = "exception" if len(claim.exceptions) == 1 else "exceptions"
        folded = (
            f"<details><summary>{len(claim.exceptions)} {noun}</summary><ul>{items}</ul></details>"
        )
    return (
        f'<li class="{kind}"><p class="verdict"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<span class="word">{word}</span>{count}</p><div><p class="claim">{escape(claim.text)}</p>'
        f'<p class="evidence">{escape(claim.evidence)}</p>{folded}</div></li>'
    )


def _facts(facts: dict[str, str]) -> str:
    return plain(("fact", "value"), list(facts.items())) if facts else ""


def _charts(results: Results) -> Section:
    setting = main_setting(results)
    if setting is None:
        return Section("charts", "Charts", "")
    text = (
        f"Codes by {setting[0]}, weights by {setting[1]}. Each data set has a row of charts; "
        "panels side by side share a scale. A method has the same colour and marker everywhere; "
        "hover over a marker to read its value. Dotted lines without markers are the paper's own "
        "figures, on its data and machine."
    )
    drawn, parts = figures(results)
    return Section(
        "charts", "Charts", f"<p>{escape(text)}</p>{drawn}{other_figures(results)}", tuple(parts)
    )


def _tables(paper_tables: Sequence[Table]) -> Section:
    content = "".join(
        f'<section class="whole" id="table-{table.number}"><h3>Table {table.number}. '
        f"{escape(table.title)}</h3>{comparison(table)}{_note(table)}</section>"
        for table in paper_tables
    )
    parts = tuple((f"table-{table.number}", f"{table.number}") for table in paper_tables)
    return Section("tables", "The paper's tables", content, parts)


def _folded(table: Table) -> str:
    return (
        f"<details><summary>{escape(table.title)}</summary>{comparison(table)}{_note(table)}"
        "</details>"
    )


def _note(table: Table) -> str:
    return f'<p class="note">{escape(table.note)}</p>' if table.note else ""


def _repeat(results: Results, files: Sequence[str]) -> str:
    rows = [
        (SETTINGS.get(name, name), _setting(name, value))
        for name, value in results.settings.items()
    ]
    names = " and ".join(f"<code>{escape(name)}</code>" for name in files)
    beside = f"<p>All records of this run are beside this page, in {names}.</p>" if files else ""
    return f"<pre><code>{escape(_command(results))}</code></pre>{beside}" + (
        plain(("setting", "value"), rows) if rows else ""
    )


def _command(results: Results) -> str:
    """Return the command of such a run, with the options that are not at their defaults."""
    settings = results.settings
    quick = bool(settings.get("quick"))
    default = Plan.of(quick=quick).scale
    parts = ["bitweigh paper reproduce"]
    if quick:
        parts.append("--quick")
    if any(GENERATED not in facts.name for facts in results.data):
        parts.append("--data DIR")
    if settings.get("tables", "all") != "all":
        parts.append(f"--tables {str(settings['tables']).replace(' ', '')}")
    if settings.get("max_rows") not in (None, default.max_rows):
        parts.append(f"--rows {settings['max_rows']}")
    if settings.get("queries") not in (None, default.n_queries):
        parts.append(f"--queries {settings['queries']}")
    if "seed" in settings:
        parts.append(f"--seed {settings['seed']}")
    return " ".join(parts)


def _setting(name: str, value: object) -> str:
    if value is None:
        return "no limit"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _duration(float(str(value))) if name == "seconds" else str(value)
