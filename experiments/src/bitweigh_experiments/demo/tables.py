"""The demo's output. rich is imported inside functions, so that its absence gives a clear error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bitweigh_experiments.demo.compare import Answer, Found, Summary
from bitweigh_experiments.demo.document import Document

if TYPE_CHECKING:
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["console_for", "counted", "show_answer", "show_summary"]

# Terminal width in columns below which three lists do not fit side by side.
NARROW = 76
SUMMARY_WIDTH = 57  # columns of the table at the end
MARK = "*"  # marks documents that float cosine found too


def console_for(plain: bool) -> Console:
    """Return a console, without colours if `plain`; ImportError says how to install rich."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        raise ImportError("the demo needs rich: pip install bitweigh-experiments") from None
    return Console(highlight=False, no_color=plain, emoji=False, markup=False)


def counted(n: int) -> str:
    """Return "1 document" or "n documents"."""
    return "1 document" if n == 1 else f"{n:,} documents"


def show_answer(
    console: Console, answer: Answer, documents: Sequence[Document], *, plain: bool = False
) -> None:
    """Print what each way to search found: side by side, or one below the other if narrow."""
    console.print()
    console.print(f'"{answer.query}", {counted(answer.n_rows)}', style="bold", soft_wrap=True)
    truth = set(answer.found[0].ids.tolist())
    columns = [_column(found, documents, truth, answer) for found in answer.found]
    if console.width < NARROW:
        for column in columns:
            table = _table(["", column[0]], plain)
            _fill(table, [column])
            console.print(table)
        return
    table = _table(["", *(column[0] for column in columns)], plain)
    _fill(table, columns)
    console.print(table)


def show_summary(console: Console, summary: Summary, *, plain: bool = False) -> None:
    """Print how each way to search did over all queries."""
    from rich.table import Table

    console.print()
    queries = "1 query" if summary.n_queries == 1 else f"{summary.n_queries} queries"
    console.print(f"{queries}, {counted(summary.n_rows)}", style="bold")
    wide = console.width >= SUMMARY_WIDTH
    headings = ["", "bits", f"overlap@{summary.k}", "bytes/item", "\u00b5s/query"]
    if not wide:
        headings = ["", "bits", f"@{summary.k}", "bytes", "\u00b5s"]
    table = Table(box=_box(plain), pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for line in summary.lines:
        table.add_row(
            line.way if wide else line.way.split()[0],
            "" if line.n_bits is None else str(line.n_bits),
            f"{line.overlap:.0%}",
            f"{line.item_bytes:,}",
            f"{line.micros:,.0f}",
        )
    console.print(table)
    if summary.exact:
        console.print("Weighted answers equal those of bitweigh.reference, to the last bit.")
    else:
        console.print("WRONG: a weighted answer differs from that of bitweigh.reference.")


def _column(
    found: Found, documents: Sequence[Document], truth: set[int], answer: Answer
) -> tuple[str, list[Text], list[str]]:
    """Return a heading, a cell for each document found, and the figures below them."""
    is_truth = found is answer.found[0]
    heading = found.way if is_truth else f"{found.way}, {answer.n_bits}"
    cells = [_cell(documents[row], not is_truth and row in truth) for row in found.ids.tolist()]
    shared = "" if is_truth else f"{round(found.overlap * len(cells))} of {len(cells)}"
    return heading, cells, [shared, f"{found.item_bytes:,}", f"{1e6 * found.seconds:,.0f}"]


def _cell(document: Document, marked: bool) -> Text:
    from rich.text import Text

    cell = Text(f"{MARK} " if marked else "", style="", end="")
    cell.append(document.name, style="bold" if marked else "")
    if document.name:
        cell.append(" ")
    cell.append(document.text, style="dim" if document.name else "")
    return cell


def _table(headings: Sequence[str], plain: bool) -> Table:
    from rich.table import Table

    table = Table(box=_box(plain), pad_edge=False, show_edge=False, expand=True)
    table.add_column(headings[0], justify="right", no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, ratio=1, no_wrap=True, overflow="ellipsis")
    return table


def _fill(table: Table, columns: Sequence[tuple[str, list[Text], list[str]]]) -> None:
    """Add a line for each rank, and the figures below."""
    k = len(columns[0][1])
    for rank in range(k):
        last = rank == k - 1
        table.add_row(str(rank + 1), *(cells[rank] for _, cells, _ in columns), end_section=last)
    for row, name in enumerate((f"overlap@{k}", "bytes/item", "\u00b5s/query")):
        table.add_row(name, *(figures[row] for _, _, figures in columns))


def _box(plain: bool) -> Box | None:
    from rich import box

    return None if plain else box.SIMPLE_HEAD
