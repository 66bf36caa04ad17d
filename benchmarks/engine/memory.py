"""What bands are worth: what an index decides by itself, beside all bands and beside none.

Each set is indexed three times: by default, with as many bands as there can be, and without. All
three answer the same queries in turns, by the engine's clock.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

import bitweigh
from benchmarks import report
from benchmarks.engine.clock import engine_turn, take_turns
from benchmarks.engine.sections import Codes, Costs, Display, Report, Settings, load
from benchmarks.hashed import HasherName
from benchmarks.sources import Kind, NoDataError
from bitweigh._index.bands import BandOptions

__all__ = ["SetFigures", "markdown", "run"]

N_BITS = (32, 64, 128, 256, 512, 1024)
KS = (1, 10, 100)
QUERIES = 100
GENERATED_ROWS = 1_000_000
# Of "sign", which has a bit per feature, one length.
SETS: list[tuple[Kind, HasherName, tuple[int, ...]]] = [
    ("glove", "lsh", N_BITS),
    ("glove", "itq", (32, 64)),
    ("glove", "sign", (100,)),
    ("dsift", "lsh", N_BITS),
    ("dsift", "itq", (32, 64, 128)),
    ("dsift", "sign", (128,)),
    ("cifar", "lsh", N_BITS),
    ("cifar", "itq", (32, 64, 128)),
    ("cifar", "sign", (128,)),
    ("mixture", "lsh", N_BITS[:4]),
    ("random", "sign", N_BITS[:4]),
]


class SetFigures(TypedDict):
    """One set. Times are means over queries, each the median of its rounds."""

    data: str
    hasher: str
    n_bits: int
    rows: int
    bands: int
    """Chosen by default."""
    decision: str
    copies: float
    """Memory by default, in multiples of the codes."""
    all_copies: float
    """With all bands."""
    scan_us: dict[int, float]
    """By k, without bands."""
    default: dict[int, float]
    """Time by default over that of the scan, by k."""
    all_bands: dict[int, float]


def run(settings: Settings, display: Display) -> Report:
    """Measure all sets whose data there is."""
    figures = []
    for kind, hasher, lengths in SETS:
        for n_bits in lengths:
            rows = GENERATED_ROWS if kind in ("mixture", "random") else None
            try:
                codes, costs = load(kind, rows, n_bits, settings, display, hasher)
            except NoDataError as error:
                display.say(f"{kind}: skipped, {error}")
                break
            display.doing(f"{kind}, {hasher}, {costs.shape[1]} bits: measuring")
            figures.append(_measure(kind, hasher, codes, costs[:QUERIES], settings.rounds))
            display.say(_line(figures[-1]))
    return Report(figures, markdown(figures))


def _measure(kind: Kind, hasher: HasherName, codes: Codes, costs: Costs, rounds: int) -> SetFigures:
    n_bits = costs.shape[1]
    most = BandOptions().ideal_shape(len(codes), n_bits)[0]
    indexes = {
        "default": bitweigh.Index(n_bits, bitorder="little"),
        "all": bitweigh.Index(n_bits, bitorder="little", bands=most),
        "scan": bitweigh.Index(n_bits, bitorder="little", bands=0),
    }
    for index in indexes.values():
        index.add(codes)
        index.build()
    times: dict[int, dict[str, float]] = {}
    for k in KS:
        turns = {name: engine_turn(index, costs, k) for name, index in indexes.items()}
        taken = take_turns(turns, rounds)
        times[k] = {name: float(np.median(each, axis=0).mean()) for name, each in taken.items()}
    (facts,) = indexes["default"].explain(costs[0], 10).segments
    return SetFigures(
        data=kind,
        hasher=hasher,
        n_bits=n_bits,
        rows=len(codes),
        bands=facts.bands,
        decision=facts.decision,
        copies=_copies(indexes["default"]),
        all_copies=_copies(indexes["all"]),
        scan_us={k: times[k]["scan"] for k in KS},
        default={k: times[k]["default"] / times[k]["scan"] for k in KS},
        all_bands={k: times[k]["all"] / times[k]["scan"] for k in KS},
    )


def _copies(index: bitweigh.Index) -> float:
    memory = index.memory()
    return memory.total / memory.codes


def _line(figures: SetFigures) -> str:
    return (
        f"{figures['data']} {figures['hasher']} {figures['n_bits']}: {figures['bands']} bands, "
        f"{figures['copies']:.1f}x memory, auto / scan {_ratios(figures['default'])}; all bands "
        f"{figures['all_copies']:.1f}x, {_ratios(figures['all_bands'])}; {figures['decision']}"
    )


def _ratios(by_k: dict[int, float]) -> str:
    return " / ".join(f"{ratio:.2f}" for ratio in by_k.values())


def markdown(figures: list[SetFigures]) -> str:
    """A row for each set."""
    head = [
        "codes",
        "rows",
        "bands",
        "memory",
        "auto / scan, k = 1 / 10 / 100",
        "all bands: memory",
        "all / scan",
        "decided",
    ]
    rows = [
        [
            f"{each['data']}, {each['hasher']}, {each['n_bits']} bits",
            f"{each['rows']:,}",
            str(each["bands"]),
            f"{each['copies']:.1f}x",
            _ratios(each["default"]),
            f"{each['all_copies']:.1f}x",
            _ratios(each["all_bands"]),
            each["decision"],
        ]
        for each in figures
    ]
    return report.table(head, rows)
