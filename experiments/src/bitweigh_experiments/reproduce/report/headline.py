"""The key numbers at the top of the report, counted from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bitweigh_experiments.reproduce.claims import SAME, Claim
from bitweigh_experiments.reproduce.formats import spelled, three_digits
from bitweigh_experiments.reproduce.results import Cell, Results

__all__ = ["Headline", "headlines"]

Pair: TypeAlias = tuple[Cell, Cell]


@dataclass(frozen=True, slots=True)
class Headline:
    """A number and its meaning."""

    value: str
    text: str


def headlines(results: Results, judged: Sequence[Claim]) -> list[Headline]:
    """Return the key numbers, without those that were not measured."""
    found: list[Headline | None] = [
        _largest_speed_up(results),
        _count(
            _pairs(results, "MIWQ", "Linear Scan"),
            lambda cell: cell.precision,
            lambda miwq, scan: abs(miwq - scan) < SAME,
            "settings have the same precision with MIWQ as with Linear Scan",
        ),
        _count(
            _pairs(results, "MIWQ", "Linear Scan"),
            lambda cell: cell.ms,
            lambda miwq, scan: miwq < scan,
            "settings have MIWQ faster than Linear Scan",
        ),
        _count(
            _pairs(results, "bitweigh", "MIWQ"),
            lambda cell: cell.ms,
            lambda bitweigh, miwq: bitweigh < miwq,
            "settings have this library's index faster than MIWQ",
        ),
        _claims(judged),
    ]
    return [headline for headline in found if headline is not None]


def _largest_speed_up(results: Results) -> Headline | None:
    factors = [
        (cell.speed_up, cell)
        for cell in results.cells
        if cell.method == "MIWQ" and cell.speed_up is not None
    ]
    if not factors:
        return None
    factor, cell = max(factors, key=lambda pair: pair[0])
    where = spelled(results.name_of(cell.role), cell.hasher, cell.weigher, cell.bits, cell.k)
    return Headline(
        f"{three_digits(factor)}\u00d7",
        f"is the largest speed-up of MIWQ over Linear Scan: {where}",
    )


def _pairs(results: Results, method: str, other: str) -> Iterator[Pair]:
    """Yield the cells of both methods at every setting that has them."""
    cells = {_key(cell): cell for cell in results.cells}
    for key, cell in cells.items():
        if cell.method == method and (*key[:-1], other) in cells:
            yield cell, cells[(*key[:-1], other)]


def _key(cell: Cell) -> tuple[str, str, str, int, int, str]:
    return cell.role, cell.hasher, cell.weigher, cell.bits, cell.k, cell.method


def _count(
    pairs: Iterator[Pair],
    read: Callable[[Cell], float | None],
    holds: Callable[[float, float], bool],
    text: str,
) -> Headline | None:
    figures = [(read(cell), read(other)) for cell, other in pairs]
    judged = [holds(a, b) for a, b in figures if a is not None and b is not None]
    return Headline(f"{sum(judged)} of {len(judged)}", text) if judged else None


def _claims(judged: Sequence[Claim]) -> Headline | None:
    measured = [claim.holds for claim in judged if claim.holds is not None]
    if not measured:
        return None
    mostly = sum(claim.mostly for claim in judged)
    unmeasured = len(judged) - len(measured)
    more = f", {mostly} more in at least nine of ten" if mostly else ""
    rest = f"; {unmeasured} not measured" if unmeasured else ""
    text = f"claims hold in every setting{more}{rest}"
    return Headline(f"{sum(measured)} of {len(measured)}", text)
