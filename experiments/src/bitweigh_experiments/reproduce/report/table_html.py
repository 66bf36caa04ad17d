"""Tables as HTML: plain ones, and those with the paper's figures beside this run's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bitweigh_experiments.reproduce.formats import MISSING
from bitweigh_experiments.reproduce.published import MACHINE
from bitweigh_experiments.reproduce.table import Row, Table

__all__ = ["comparison", "plain"]


def plain(head_names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table of text with a header row."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head_names)
    lines = "".join(
        f'<tr><th scope="row">{escape(head)}</th>'
        + "".join(f"<td>{escape(value)}</td>" for value in values)
        + "</tr>"
        for head, *values in rows
    )
    return _scrolling(f"<thead><tr>{names}</tr></thead><tbody>{lines}</tbody>")


def comparison(table: Table, papers: str = f"paper: {MACHINE}") -> str:
    """Render the measured columns and, to their right, those that the paper has figures for.

    `papers` is the heading of the latter.
    """
    printed = [
        column
        for column in range(len(table.columns))
        if any(row.paper[column] not in ("", MISSING) for row in table.rows)
    ]
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head_names)
    names += _columns(table.columns, "")
    group = ""
    if printed:
        names += _columns([table.columns[column] for column in printed], "paper")
        group = (
            f'<tr class="who"><td colspan="{len(table.head_names)}"></td>'
            f'<th scope="colgroup" colspan="{len(table.columns)}">this run</th>'
            f'<th scope="colgroup" colspan="{len(printed)}" class="paper">'
            f"<div>{escape(papers)}</div></th></tr>"
        )
    lines = []
    before: tuple[str, ...] = ()
    for row in table.rows:
        lines.append(_line(row, before, printed))
        before = row.heads
    return _scrolling(f"<thead>{group}<tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody>")


def _line(row: Row, before: tuple[str, ...], printed: Sequence[int]) -> str:
    """Render a row; heads that repeat those of the row above are dimmed."""
    same = 0
    while same < min(len(row.heads) - 1, len(before)) and row.heads[same] == before[same]:
        same += 1
    heads = "".join(
        f'<th scope="row"{_classes("again" if level < same else "")}>{escape(head)}</th>'
        for level, head in enumerate(row.heads)
    )
    ours = "".join(f'<td class="n">{escape(figure)}</td>' for figure in row.ours)
    paper = "".join(
        f"<td{_classes('n paper', 'edge' if column == printed[0] else '')}>"
        f"{escape(row.paper[column])}</td>"
        for column in printed
    )
    group = "group" if before and same < len(row.heads) - 1 else ""
    main = "main" if "MIWQ" in row.heads else ""
    return f"<tr{_classes(group, main)}>{heads}{ours}{paper}</tr>"


def _columns(names: Sequence[str], kind: str) -> str:
    return "".join(
        f'<th scope="col"{_classes("n", kind, "edge" if kind and number == 0 else "")}>'
        f"{_whole_words(name)}</th>"
        for number, name in enumerate(names)
    )


def _whole_words(name: str) -> str:
    """Allow line breaks between words only: a browser would also break at the hyphen of 100-NN."""
    return " ".join(f"<span>{escape(word)}</span>" for word in name.split())


def _classes(*names: str) -> str:
    joined = " ".join(name for name in names if name)
    return f' class="{joined}"' if joined else ""


def _scrolling(content: str) -> str:
    """Wrap a table in a scrollable frame, which is also reachable by keyboard."""
    return f'<div class="scroll" tabindex="0"><table>{content}</table></div>'
