"""A table to print, and what all tables share: figures, facts about the data, differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bitweigh_experiments.reproduce.formats import MISSING, percent, three_digits
from bitweigh_experiments.reproduce.published import PAPER
from bitweigh_experiments.reproduce.results import ROLES, Cell, DataFacts, Results

__all__ = ["Row", "Table", "about_data", "here", "measured", "shown"]


@dataclass(frozen=True)
class Row:
    """One line: its heads, this run's figures, and the paper's."""

    heads: tuple[str, ...]
    """A value for each of the table's `head_names`."""
    ours: tuple[str, ...]
    """A figure for each of the table's `columns`; an en dash where nothing was measured."""
    paper: tuple[str, ...]
    """The paper's printed figures, likewise; an en dash where it has none."""


@dataclass(frozen=True)
class Table:
    """A table to print."""

    number: int
    """The paper's number, 1 to 16; higher numbers are not in the paper."""
    label: str
    """The paper's label, or another identifier that is the same in every run."""
    title: str
    head_names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str


def measured(tables: Iterable[Table]) -> list[Table]:
    """Return the tables that contain at least one of our figures."""
    return [table for table in tables if any(set(row.ours) - {MISSING} for row in table.rows)]


def shown(cell: Cell | None, measure: str) -> str:
    """Format a field of a cell; an en dash if it was not measured."""
    value = None if cell is None else getattr(cell, measure)
    if value is None:
        return MISSING
    if measure == "precision":
        return percent(value)
    return str(value) if measure == "m" else three_digits(value)


def here(results: Results, role: str) -> str:
    """Return what a title adds after the name of a set that differs from the paper's, else "".

    For example " (n = 100,000; the paper: SIFT1B, n = 1,000,000,000)".
    """
    facts = _facts(results, role)
    if facts is None:
        return " (on unknown data)"
    if role not in ROLES:
        return f" (not in the paper, n = {facts.n:,})"
    if facts.genuine and facts.n == facts.n_paper:
        return ""
    paper = [] if facts.genuine else [role]
    if facts.n != facts.n_paper:
        paper.append(f"n = {facts.n_paper:,}")
    return f" (n = {facts.n:,}; the paper: {', '.join(paper)})"


def about_data(results: Results, role: str) -> str:
    """Describe dimensions, queries and truth, with the paper's where they differ."""
    facts, paper = _facts(results, role), _facts(PAPER, role) or _facts(results, role)
    if facts is None or paper is None:
        return ""
    parts = [
        f"{ours:,} {unit}" + ("" if ours == theirs else f" (the paper: {theirs:,})")
        for unit, ours, theirs in (
            ("dimensions", facts.d, paper.d),
            ("queries", facts.n_queries, paper.n_queries),
        )
    ]
    other = "" if facts.truth == paper.truth else f" (the paper: {paper.truth})"
    return f"{', '.join(parts)}; true neighbours: {facts.truth}{other}."


def _facts(results: Results, role: str) -> DataFacts | None:
    return next((facts for facts in results.data if facts.role == role), None)
