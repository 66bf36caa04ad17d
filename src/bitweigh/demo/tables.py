"""What the demo prints. rich is imported where it is needed: it comes with the demo extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bitweigh
from bitweigh.demo.measure import (
    BITS,
    CHECKED_QUERIES,
    COPIES,
    N_QUERIES,
    TIMED_QUERIES,
    K,
    Line,
    Race,
)

if TYPE_CHECKING:
    from rich.console import Console

NEXT = (
    "Next: your own weights or float queries: README.md, docs/costs.md",
    "      what a search does and why it is exact: docs/how-it-works.md",
    "      all sizes and other libraries on your machine: make bench",
)


def show(console: Console, title: str, headings: list[str], rows: list[list[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_quality(console: Console, found: dict[int, list[Line]]) -> None:
    """Print what `compare` found."""
    console.print(
        f"scikit-learn's digits: {N_QUERIES} images held out as queries, the others hashed with "
        "random projections and searched. Weights (Asym): the squared gap between the query's "
        "projection and the mean of the rows that have the bit."
    )
    headings = ["", f"overlap@{K}", f"same digit@{K}", "bytes/item", "\u00b5s/query"]
    for n_bits, lines in found.items():
        rows = [
            [
                x.name,
                f"{x.overlap:.1%}",
                f"{x.same_digit:.1%}",
                f"{x.item_bytes}",
                f"{x.micros:.0f}",
            ]
            for x in lines
        ]
        show(console, f"{n_bits} bits", headings, rows)
    console.print(
        f"overlap@{K}: how many of the {K} found are among the {K} nearest by the images "
        "themselves. Times: the search alone, one query at a time, one thread, medians; "
        "for so few rows mostly the fixed cost of a call.\n"
    )


def show_races(console: Console, races: list[Race]) -> None:
    """Print what `race` found."""
    headings = ["bits", "codes", "bitweigh ms", "NumPy ms", "NumPy / bitweigh"]
    rows = [
        [
            f"{x.n_bits}",
            f"{x.rows:,}",
            f"{x.ours:.3f}",
            f"{x.theirs:.2f}",
            f"{x.theirs / x.ours:.1f}",
        ]
        for x in races
    ]
    show(console, "One weighted query, one thread", headings, rows)
    console.print(
        f"Codes: {COPIES} copies of the images, with Gaussian noise of one grey level of 16. "
        "NumPy: a 256-entry table per byte, np.take, argpartition. Medians over "
        f"{TIMED_QUERIES} queries, the two taking turns. Kernel: {bitweigh.info().kernel}.\n"
    )


def show_check(console: Console, exact: bool) -> None:
    """Say whether all answers were the definition's."""
    if exact:
        console.print(
            f"Checked against the definition, bitweigh.reference: ids and distances of "
            f"{2 * len(BITS) * N_QUERIES} searches of the digits and {len(BITS) * CHECKED_QUERIES} "
            "of the larger set are equal to the last bit.\n"
        )
    else:
        console.print("WRONG: an answer differs from the definition, bitweigh.reference.\n")


def show_next(console: Console) -> None:
    """Say what to try next."""
    for hint in NEXT:
        console.print(hint, markup=False)
