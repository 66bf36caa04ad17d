"""Tables beyond the paper's: the whole grid, the sweep over m, and the ambiguity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bitweigh_experiments.reproduce.formats import MISSING, three_digits
from bitweigh_experiments.reproduce.published import TABLES, printed
from bitweigh_experiments.reproduce.results import (
    EXTRA_ROLES,
    HASHERS,
    METHODS,
    ROLES,
    WEIGHERS,
    Cell,
    Results,
    SweepPoint,
)
from bitweigh_experiments.reproduce.table import Row, Table, about_data, here, measured, shown

__all__ = ["extra_tables"]

_GRID = {
    "precision": "precision %",
    "ms": "ms",
    "range": "ms, best to worst round",
    "speed_up": "speed-up",
    "m": "m",
    "buckets": "buckets",
    "candidates": "candidates",
}


def extra_tables(results: Results) -> list[Table]:
    """Return the grid by data set, hasher and weigher, and sweeps and ambiguity by data set.

    Their numbers continue the paper's. Lines of the grid include the paper's figures, if any.
    """
    extra = measured([*_grids(results), *_sweeps(results), *_ambiguities(results)])
    first = len(TABLES) + 1
    return [replace(table, number=number) for number, table in enumerate(extra, first)]


def _grids(results: Results) -> Iterator[Table]:
    for role in (*ROLES, *EXTRA_ROLES):
        for hasher in HASHERS:
            for weigher in WEIGHERS:
                cells = [
                    cell
                    for cell in results.cells
                    if (cell.role, cell.hasher, cell.weigher) == (role, hasher, weigher)
                ]
                cells.sort(key=lambda cell: (cell.bits, cell.k, METHODS.index(cell.method)))
                yield Table(
                    number=0,
                    label=_label("grid", role, hasher, weigher),
                    title=f"All of {results.name_of(role)} with {hasher} and {weigher}"
                    f"{here(results, role)}",
                    head_names=("bits", "K", "method"),
                    columns=tuple(_GRID.values()),
                    rows=tuple(_grid_row(cell) for cell in cells),
                    note=f"{about_data(results, role)} m is the number of tables, the best of "
                    "those tried. Buckets probed and candidates compared are means per query.",
                )


def _grid_row(cell: Cell) -> Row:
    theirs = printed((cell.role, cell.hasher, cell.weigher, cell.bits, cell.k, cell.method))
    return Row(
        heads=(str(cell.bits), str(cell.k), cell.method),
        ours=tuple(_range(cell) if name == "range" else shown(cell, name) for name in _GRID),
        paper=tuple(getattr(theirs, name, None) or MISSING for name in _GRID),
    )


def _range(cell: Cell) -> str:
    if cell.ms_low is None or cell.ms_high is None:
        return MISSING
    return f"{three_digits(cell.ms_low)} to {three_digits(cell.ms_high)}"


def _sweeps(results: Results) -> Iterator[Table]:
    for role in (*ROLES, *EXTRA_ROLES):
        points = [point for point in results.sweeps if point.role == role]
        tried = sorted({point.m for point in points})
        by_line: dict[tuple[str, ...], dict[int, SweepPoint]] = {}
        for point in points:
            heads = (point.hasher, point.weigher, str(point.bits), str(point.k), point.method)
            by_line.setdefault(heads, {})[point.m] = point
        yield Table(
            number=0,
            label=_label("sweep", role),
            title=f"Time in ms by number of tables m on {results.name_of(role)}"
            f"{here(results, role)}",
            head_names=("hasher", "weigher", "bits", "K", "method"),
            columns=tuple(f"m = {m}" for m in tried),
            rows=tuple(
                Row(heads, tuple(_time(line.get(m)) for m in tried), ("",) * len(tried))
                for heads, line in by_line.items()
            ),
            note="rule: the m that the method's own rule gives, as in the paper. chosen: the "
            "fastest m, used in the other tables.",
        )


def _time(point: SweepPoint | None) -> str:
    if point is None:
        return MISSING
    marks = [name for name, holds in (("rule", point.by_rule), ("chosen", point.chosen)) if holds]
    return three_digits(point.ms) + (f" ({', '.join(marks)})" if marks else "")


def _ambiguities(results: Results) -> Iterator[Table]:
    for role in (*ROLES, *EXTRA_ROLES):
        yield Table(
            number=0,
            label=_label("ambiguity", role),
            title=f"Codes at the distance of the K-th nearest on {results.name_of(role)}"
            f"{here(results, role)}",
            head_names=("hasher", "weigher", "bits", "K"),
            columns=("Hamming distance", "weighted distance"),
            rows=tuple(
                Row(
                    heads=(
                        ambiguity.hasher,
                        ambiguity.weigher,
                        str(ambiguity.bits),
                        str(ambiguity.k),
                    ),
                    ours=(
                        three_digits(ambiguity.hamming_ties),
                        three_digits(ambiguity.weighted_ties),
                    ),
                    paper=("", ""),
                )
                for ambiguity in results.ambiguity
                if ambiguity.role == role
            ),
            note="Means over the queries.",
        )


def _label(*parts: str) -> str:
    return "-".join(part.lower().replace(" ", "-") for part in parts)
