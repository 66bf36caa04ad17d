"""The paper's 16 tables, read from `published.txt`.

Each figure is kept both as the printed text and as a number in the same records as a
reproduction's, so that both can be judged by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from typing import NamedTuple, TypeAlias

from bitweigh_experiments.reproduce.results import KS, Cell, DataFacts, Results

__all__ = ["MACHINE", "PAPER", "TABLES", "Key", "PaperRow", "PaperTable", "Printed", "printed"]

MACHINE = "single core of an Intel Core i7, 32 GB (2020)"

Key: TypeAlias = tuple[str, str, str, int, int, str]
"""A tuple of role, hasher, weigher, bits, K and method."""


class Printed(NamedTuple):
    """The printed figures of one method at one setting; None where the paper has none."""

    precision: str | None = None
    """Precision in percent."""
    ms: str | None = None
    """Milliseconds per query."""
    speed_up: str | None = None


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One method of one table."""

    hasher: str
    bits: int
    method: str
    figures: tuple[str, ...]
    """The figures in order of weigher, K and measure."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of the paper."""

    number: int
    label: str
    """Its label in the paper's source."""
    caption: str
    role: str
    weighers: tuple[str, ...]
    measures: tuple[str, ...]
    """Fields of `Printed`, in the order of the columns."""
    rows: tuple[PaperRow, ...]

    @property
    def hashers(self) -> tuple[str, ...]:
        """The hashers, in the order of the rows."""
        return tuple(dict.fromkeys(row.hasher for row in self.rows))

    def figures(self) -> list[tuple[Key, str, str]]:
        """Return (setting, measure, figure) for every figure."""
        columns = [(w, k, measure) for w in self.weighers for k in KS for measure in self.measures]
        return [
            ((self.role, row.hasher, weigher, row.bits, k, row.method), measure, figure)
            for row in self.rows
            for (weigher, k, measure), figure in zip(columns, row.figures, strict=True)
        ]


def printed(key: Key) -> Printed:
    """Return the paper's figures at a setting, collected from all its tables."""
    return _PRINTED.get(key, Printed())


def _read(text: str) -> tuple[PaperTable, ...]:
    tables = []
    for block in text.split("\ntable ")[1:]:
        head, caption, *lines = block.strip().splitlines()
        number, label, role, weighers, measures = (part.split() for part in head.split("|"))
        width = len(weighers) * len(KS) * len(measures)
        rows = []
        for line in lines:
            hasher, bits, *method = line.split()[:-width]
            figures = tuple(line.split()[-width:])
            rows.append(PaperRow(hasher, int(bits), " ".join(method), figures))
        tables.append(
            PaperTable(
                number=int(number[0]),
                label=label[0],
                caption=caption,
                role=role[0],
                weighers=tuple(weighers),
                measures=tuple(measures),
                rows=tuple(rows),
            )
        )
    return tuple(tables)


def _by_setting(tables: tuple[PaperTable, ...]) -> dict[Key, Printed]:
    by_setting: dict[Key, Printed] = {}
    for table in tables:
        for key, measure, figure in table.figures():
            by_setting[key] = by_setting.get(key, Printed())._replace(**{measure: figure})
    return by_setting


def _cell(key: Key, figures: Printed) -> Cell:
    role, hasher, weigher, bits, k, method = key
    return Cell(
        role=role,
        hasher=hasher,
        weigher=weigher,
        bits=bits,
        k=k,
        method=method,
        precision=None if figures.precision is None else float(Decimal(figures.precision) / 100),
        ms=None if figures.ms is None else float(figures.ms),
        speed_up=None if figures.speed_up is None else float(figures.speed_up),
    )


TABLES = _read(resources.files(__package__).joinpath("published.txt").read_text("utf-8"))
"""The paper's tables, in the order of their numbers."""

_PRINTED = _by_setting(TABLES)

_BY_LABEL, _BY_DISTANCE = "same label", "Euclidean top 1000"

PAPER = Results(
    machine={"machine": MACHINE},
    settings={},
    data=[
        DataFacts("Places205", "Places205", True, 1_025_000, 1_025_000, 128, 10_250, _BY_LABEL),
        DataFacts("GIST1M", "GIST1M", True, 1_000_000, 1_000_000, 960, 1_000, _BY_DISTANCE),
        DataFacts("SIFT1B", "SIFT1B", True, 10**9, 10**9, 128, 10_000, _BY_DISTANCE),
    ],
    cells=[_cell(key, figures) for key, figures in _PRINTED.items()],
)
"""The paper's figures as if a run had measured them."""
