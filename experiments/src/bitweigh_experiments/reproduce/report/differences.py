"""The report's section on differences from the paper: data, machine, and reconstructed details."""

from __future__ import annotations

from html import escape

from bitweigh_experiments.reproduce.formats import MISSING
from bitweigh_experiments.reproduce.published import MACHINE, PAPER
from bitweigh_experiments.reproduce.report.table_html import comparison
from bitweigh_experiments.reproduce.results import DataFacts, Results
from bitweigh_experiments.reproduce.table import Row, Table

__all__ = ["differences"]

HEADS = ("data set", "searched here", "true neighbours")
COLUMNS = ("rows", "dimensions", "queries")

RECONSTRUCTED = (
    ("Wh", "The weights are reconstructed from the description of their method."),
    (
        "Asym",
        "It has two variants, and the paper does not say which it used. Here it is the "
        "expectation: the squared gap between the query's projection and the mean of the rows "
        "that have the bit.",
    ),
    (
        "MIH",
        "Once K codes are found, all codes within that Hamming radius, the full last shell, are "
        "ranked by weight. The paper does not say which codes it culls.",
    ),
    (
        "PQTable",
        "Its own merge is reconstructed: the tables take turns until K rows were found in all of "
        "them. PQTable_max_heap uses the merge of MIWQ, as in the paper.",
    ),
    (
        "Tables",
        "Hash tables are arrays of rows sorted by key, with a directory to find a bucket, not "
        "arrays over all keys. They hold the same buckets.",
    ),
    (
        "Number of tables",
        "Each method runs at its best number of tables from a sweep. The paper uses "
        "bits / log2 n, which the sweep includes.",
    ),
    (
        "Baseline",
        "It ranks by Hamming distance from the query's code, without any weight.",
    ),
)


def differences(results: Results) -> str:
    """Render the section's content."""
    parts = [f"<p>{escape(_sets_in_words(results.data))} {escape(_machine_in_words())}</p>"]
    if results.data:
        rows = tuple(_row(facts) for facts in results.data)
        sizes = Table(0, "data", "", HEADS, COLUMNS, rows, "")
        parts.append(f'<div class="data">{comparison(sizes, "paper")}</div>')
    items = "".join(
        f"<dt>{escape(topic)}</dt><dd>{escape(text)}</dd>" for topic, text in RECONSTRUCTED
    )
    parts.append(f'<h3>What the paper leaves open</h3><dl class="notes">{items}</dl>')
    return "".join(parts)


def _sets_in_words(data: list[DataFacts]) -> str:
    searched = [facts for facts in data if _in_paper(facts.role)]
    if not searched:
        return "None of the paper's data sets was searched."
    genuine = [facts for facts in searched if facts.genuine]
    if len(genuine) == len(searched):
        return "All data sets below are the paper's own."
    if not genuine:
        return "None of the data sets is the paper's own: all are stand-ins."
    count = f"{len(genuine)} of {len(searched)}"
    return f"{count} data sets are the paper's own; the others are stand-ins."


def _machine_in_words() -> str:
    return (
        f"The paper measured on a {MACHINE}. Times on two machines are not comparable; speed-ups, "
        "ratios of two times on one machine, are roughly so, but only at equal numbers of rows."
    )


def _row(facts: DataFacts) -> Row:
    paper = _in_paper(facts.role)
    truth = facts.truth
    if paper is not None and paper.truth != truth:
        truth += f" (paper: {paper.truth})"
    name = "the paper's own" if facts.genuine else facts.name
    role = facts.role if paper else f"{facts.role} (not in the paper)"
    return Row(
        heads=(role, name, truth),
        ours=tuple(f"{size:,}" for size in (facts.n, facts.d, facts.n_queries)),
        paper=tuple(f"{size:,}" for size in (paper.n, paper.d, paper.n_queries))
        if paper
        else (MISSING,) * len(COLUMNS),
    )


def _in_paper(role: str) -> DataFacts | None:
    return next((facts for facts in PAPER.data if facts.role == role), None)
