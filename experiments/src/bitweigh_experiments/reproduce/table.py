"""A table to print, and what all tables say in the same way: figures, data, what differs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bitweigh_experiments.reproduce.formats import MISSING, percent, three_digits
from bitweigh_experiments.reproduce.published import PAPER
from bitweigh_experiments.reproduce.results import ROLES, Cell, DataFacts, Results

__all__ = ["Row", "Table", "about_data", "here", "measured", "shown"]


@dataclass(frozen=True)
class Row:
    """One line: what it is about, what was measured here, what the paper prints."""

    heads: tuple[str, ...]
    """One for each of the table's `head_names`."""
    ours: tuple[str, ...]
    """One for each of the table's `columns`; an en dash where nothing was measured."""
    paper: tuple[str, ...]
    """Likewise; as printed, an en dash where the paper has no figure."""


@dataclass(frozen=True)
class Table:
    """A table to print."""

    number: int
    """The paper's, 1 to 16; higher ones are not in the paper."""
    label: str
    """The paper's, or another word that stays the same from run to run."""
    title: str
    head_names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str


def measured(made: Iterable[Table]) -> list[Table]:
    """Those tables that have a figure of ours."""
    return [table for table in made if any(set(row.ours) - {MISSING} for row in table.rows)]


def shown(cell: Cell | None, measure: str) -> str:
    """A field of a cell, formatted; an en dash where it was not measured."""
    value = None if cell is None else getattr(cell, measure)
    if value is None:
        return MISSING
    if measure == "precision":
        return percent(value)
    return str(value) if measure == "m" else three_digits(value)


def here(results: Results, role: str) -> str:
    """What a title adds after the name of the set, where the rows are not the paper's; or nothing.

    Such as " (n = 100,000; the paper: SIFT1B, n = 1,000,000,000)".
    """
    facts = _facts(results, role)
    if facts is None:
        return " (on data of which nothing is known)"
    if role not in ROLES:
        return f" (not in the paper, n = {facts.n:,})"
    if facts.genuine and facts.n == facts.n_paper:
        return ""
    paper = [] if facts.genuine else [role]
    if facts.n != facts.n_paper:
        paper.append(f"n = {facts.n_paper:,}")
    return f" (n = {facts.n:,}; the paper: {', '.join(paper)})"


def about_data(results: Results, role: str) -> str:
    """Dimensions, queries and truth, with the paper's where they differ."""
    facts, paper = _facts(results, role), _facts(PAPER, role) or _facts(results, role)
    if facts is None or paper is None:
        return ""
    parts = [
        f"{ours:,} {what}" + ("" if ours == theirs else f" (the paper: {theirs:,})")
        for what, ours, theirs in (
            ("dimensions", facts.d, paper.d),
            ("queries", facts.n_queries, paper.n_queries),
        )
    ]
    other = "" if facts.truth == paper.truth else f" (the paper: {paper.truth})"
    return f"{', '.join(parts)}; true neighbours: {facts.truth}{other}."


def _facts(results: Results, role: str) -> DataFacts | None:
    return next((facts for facts in results.data if facts.role == role), None)
