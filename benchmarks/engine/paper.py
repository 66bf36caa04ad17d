"""The engine against the paper's Alg. 2 as printed, at its best number of tables, and the scan."""

from __future__ import annotations

from benchmarks import report
from benchmarks.data import Kind
from benchmarks.engine.race import Race, alg2_tables, race
from benchmarks.engine.sections import Display, Report, Settings, indexed, load
from bitweigh_experiments.reproduce.formats import MISSING, three_digits

__all__ = ["PaperFigures", "markdown", "run"]

ROWS = 1_000_000
SETS: tuple[tuple[Kind, int], ...] = (
    ("mixture", 32),
    ("mixture", 64),
    ("mixture", 128),
    ("mixture", 256),
    ("random", 64),
)
KS = (1, 10, 100)


class PaperFigures(Race):
    """One set of codes and one k."""

    data: str
    rows: int
    n_bits: int
    k: int


def run(settings: Settings, display: Display) -> Report:
    """Measure every set with every k."""
    measured = []
    for kind, n_bits in SETS:
        codes, costs = load(kind, ROWS, n_bits, settings, display)
        display.doing(f"{kind}, {n_bits} bits: building")
        index, tables = indexed(codes, n_bits), alg2_tables(codes, n_bits)
        for k in KS:
            display.doing(f"{kind}, {n_bits} bits, k = {k}")
            figures = race(index, tables, costs, k, settings.rounds)
            measured.append(PaperFigures(data=kind, rows=len(codes), n_bits=n_bits, k=k, **figures))
    return Report(measured, markdown(measured))


def markdown(measured: list[PaperFigures]) -> str:
    """Return a table with a row for each set and k."""
    rows = [
        [
            figures["data"],
            f"{figures['rows']:,}",
            str(figures["n_bits"]),
            str(figures["k"]),
            three_digits(figures["engine_us"]),
            *_other(figures["alg2_us"], figures["engine_us"]),
            str(figures["tables"] or MISSING),
            *_other(figures["scan_us"], figures["engine_us"]),
        ]
        for figures in measured
    ]
    columns = ["data", "codes", "bits", "k", "engine, us", "Alg. 2, us", "Alg. 2 / engine"]
    return report.table([*columns, "tables", "scan, us", "scan / engine"], rows)


def _other(us: float | None, engine_us: float) -> tuple[str, str]:
    if us is None:
        return MISSING, MISSING
    return three_digits(us), f"{us / engine_us:.1f}"
