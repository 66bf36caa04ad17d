"""What bands are worth: what an index decides by itself or by queries, beside all bands.

Each set is indexed three times: with the bands decided by queries made from stored codes, which is
the default; with those decided by other queries of the set; and with as many bands as there can be.
All answer the same queries in turns, by the engine's clock, and each is compared with a scan of the
same index: scans of equal indexes differ by up to a fifth, by where their memory lies.
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
DECIDED_K = 10
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
    default: IndexFigures
    told: IndexFigures
    """Decided by other queries of the set, at k = 10."""
    all_bands: IndexFigures


class IndexFigures(TypedDict):
    """One index of a set."""

    bands: int
    copies: float
    """Memory in multiples of the codes."""
    scan_us: dict[int, float]
    """Time of a scan, by k."""
    ratios: dict[int, float]
    """Time of a search over that of a scan, by k."""
    decision: str


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
            figures.append(_measure(kind, hasher, codes, costs, settings.rounds))
            display.say(_line(figures[-1]))
    return Report(figures, markdown(figures))


def _measure(kind: Kind, hasher: HasherName, codes: Codes, costs: Costs, rounds: int) -> SetFigures:
    n_bits = costs.shape[1]
    most = BandOptions().ideal_shape(len(codes), n_bits)[0]
    default = bitweigh.Index(n_bits, bitorder="little")
    default.add(codes)
    default.build()
    told = default.copy()
    told.build(sample_costs=costs[QUERIES:], k=DECIDED_K)
    all_bands = bitweigh.Index(n_bits, bitorder="little", bands=most)
    all_bands.add(codes)
    all_bands.build()
    indexes = {"default": default, "told": told, "all": all_bands}
    if _bands(told) == _bands(default):
        del indexes["told"]
    asked = costs[:QUERIES]
    times: dict[int, dict[str, float]] = {}
    for k in KS:
        turns = {
            f"{name}, {method}": engine_turn(index, asked, k, method)
            for name, index in indexes.items()
            for method in ("auto", "scan")
        }
        taken = take_turns(turns, rounds)
        times[k] = {name: float(np.median(each, axis=0).mean()) for name, each in taken.items()}

    def figures(name: str, index: bitweigh.Index) -> IndexFigures:
        measured = name if name in indexes else "default"
        scan_us = {k: times[k][f"{measured}, scan"] for k in KS}
        (facts,) = index.explain(asked[0], DECIDED_K).segments
        return IndexFigures(
            bands=facts.bands,
            copies=index.memory().total / index.memory().codes,
            scan_us=scan_us,
            ratios={k: times[k][f"{measured}, auto"] / scan_us[k] for k in KS},
            decision=facts.decision,
        )

    return SetFigures(
        data=kind,
        hasher=hasher,
        n_bits=n_bits,
        rows=len(codes),
        default=figures("default", default),
        told=figures("told", told),
        all_bands=figures("all", all_bands),
    )


def _bands(index: bitweigh.Index) -> int:
    return max(facts.bands for facts in index.explain(np.zeros((index.n_bits, 2)), 1).segments)


def _line(figures: SetFigures) -> str:
    parts = [
        f"{name} {each['bands']} bands, {each['copies']:.1f}x, {_ratios(each['ratios'])}"
        for name, each in (
            ("default", figures["default"]),
            ("told", figures["told"]),
            ("all", figures["all_bands"]),
        )
    ]
    return (
        f"{figures['data']} {figures['hasher']} {figures['n_bits']}: {'; '.join(parts)}; "
        f"{figures['default']['decision']}; {figures['told']['decision']}"
    )


def _ratios(by_k: dict[int, float]) -> str:
    return " / ".join(f"{ratio:.2f}" for ratio in by_k.values())


def _gain(decision: str) -> str:
    """The predicted gain, which a decision begins with."""
    return decision.partition(" ")[0]


def markdown(figures: list[SetFigures]) -> str:
    """A row for each set."""
    head = ["codes", "rows"]
    for name in ("by itself", "by queries"):
        head += [f"{name}: bands", "memory", "predicted", "auto / scan"]
    head += ["all bands", "memory", "auto / scan"]
    rows = []
    for each in figures:
        row = [f"{each['data']}, {each['hasher']}, {each['n_bits']} bits", f"{each['rows']:,}"]
        for index in (each["default"], each["told"], each["all_bands"]):
            row += [str(index["bands"]), f"{index['copies']:.1f}x"]
            row += [_gain(index["decision"])] if index is not each["all_bands"] else []
            row.append(_ratios(index["ratios"]))
        rows.append(row)
    return report.table(head, rows)
