"""The paper's 16 tables with a run's figures beside the paper's.

The title of a table says so if its rows are not the paper's own. Tables without any measured figure
are left out.
"""

from __future__ import annotations

from collections.abc import Collection

from bitweigh_experiments.reproduce.extra_tables import extra_tables
from bitweigh_experiments.reproduce.formats import MISSING
from bitweigh_experiments.reproduce.published import MACHINE, TABLES, Key, PaperTable
from bitweigh_experiments.reproduce.results import KS, Results
from bitweigh_experiments.reproduce.table import Row, Table, about_data, here, measured, shown

__all__ = ["Row", "Table", "extra_tables", "tables"]

# Methods that are not in the paper; tables of time list them after the paper's.
OUR_METHODS = ("MIWQ descending", "bitweigh")
_ABOUT = {
    "MIWQ descending": "MIWQ descending, with the order of Eq. 10 reversed, is not in the paper.",
    "bitweigh": "bitweigh, this library's own index, is not in the paper.",
}
_ENDS = {"precision": "", "ms": " ms", "speed_up": " speed-up"}


def tables(results: Results, numbers: Collection[int] | None = None) -> list[Table]:
    """Return the paper's tables that have measurements; `numbers`, from 1 to 16, selects some."""
    unknown = set(numbers or ()) - {table.number for table in TABLES}
    if unknown:
        raise ValueError(f"the paper has tables 1 to {len(TABLES)}, got {min(unknown)}")
    selected = [table for table in TABLES if numbers is None or table.number in numbers]
    return measured(_table(results, table) for table in selected)


def _table(results: Results, table: PaperTable) -> Table:
    layout = _by_k if table.measures == ("ms",) else _by_method
    head_names, columns, rows = layout(results, table)
    return Table(
        number=table.number,
        label=table.label,
        title=table.caption.replace(table.role, results.name_of(table.role))
        + here(results, table.role),
        head_names=head_names,
        columns=columns,
        rows=rows,
        note=_note(results, table, {*columns, *(head for row in rows for head in row.heads)}),
    )


_Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[Row, ...]]


def _by_method(results: Results, table: PaperTable) -> _Layout:
    """Lay out a row for each method, a column for each weigher, K and measure."""
    columns = [(w, k, measure) for w in table.weighers for k in KS for measure in table.measures]
    timed = "ms" in table.measures
    rows = []
    for hasher, bits in dict.fromkeys((row.hasher, row.bits) for row in table.rows):
        theirs = {r.method: r.figures for r in table.rows if (r.hasher, r.bits) == (hasher, bits)}
        for method in (*theirs, *(OUR_METHODS if timed else ())):
            ours = tuple(
                shown(results.cell(table.role, hasher, weigher, bits, k, method), measure)
                for weigher, k, measure in columns
            )
            if method in theirs or set(ours) != {MISSING}:
                heads = (hasher, str(bits), method)
                nothing = (MISSING,) * len(columns)
                rows.append(Row(heads, ours, theirs.get(method, nothing)))
    names = tuple(
        (f"{weigher} " if len(table.weighers) > 1 else "") + f"{k}-NN{_ENDS[measure]}"
        for weigher, k, measure in columns
    )
    if len(table.hashers) > 1:
        return ("hasher", "bits", "method"), names, tuple(rows)
    return ("bits", "method"), names, tuple(Row(r.heads[1:], r.ours, r.paper) for r in rows)


def _by_k(results: Results, table: PaperTable) -> _Layout:
    """Lay out a row for each code length and K, a column for each method: Table 8."""
    (hasher,), (weigher,) = table.hashers, table.weighers
    printed: dict[Key, str] = {key: figure for key, _, figure in table.figures()}
    lengths = tuple(dict.fromkeys(row.bits for row in table.rows))

    def ours(bits: int, k: int, method: str) -> str:
        return shown(results.cell(table.role, hasher, weigher, bits, k, method), "ms")

    def theirs(bits: int, k: int, method: str) -> str:
        return printed.get((table.role, hasher, weigher, bits, k, method), MISSING)

    methods = [
        *dict.fromkeys(row.method for row in table.rows),
        *(m for m in OUR_METHODS if {ours(b, k, m) for b in lengths for k in KS} != {MISSING}),
    ]
    rows = tuple(
        Row(
            heads=(str(bits), str(k)),
            ours=tuple(ours(bits, k, method) for method in methods),
            paper=tuple(theirs(bits, k, method) for method in methods),
        )
        for bits in lengths
        for k in KS
    )
    return ("bits", "K"), tuple(f"{method} ms" for method in methods), rows


def _note(results: Results, table: PaperTable, names: set[str]) -> str:
    parts = []
    if len(table.hashers) == len(table.weighers) == 1:
        parts.append(f"Codes by {table.hashers[0]}, weights by {table.weighers[0]}.")
    if "precision" in table.measures:
        parts.append("Precision in %.")
    parts.append(about_data(results, table.role))
    if "ms" in table.measures:
        queries, rounds = map(results.settings.get, ("timed_queries", "timing_rounds"))
        if queries is not None and rounds is not None:
            parts.append(f"Mean time of at most {queries} queries, median of {rounds} rounds.")
        parts += [
            f"The paper's machine: {MACHINE}; only speed-ups are comparable, and only at equal n.",
            "The number of tables is the best of those tried here, bits / log2 n in the paper.",
            *(_ABOUT[m] for m in OUR_METHODS if {m, f"{m} ms"} & names),
        ]
    return " ".join(part for part in parts if part)
