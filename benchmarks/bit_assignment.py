"""The gain from bands of nearly independent bits over bands of adjacent bits.

``python -m benchmarks.bit_assignment [--data DIR] [--markdown docs/tuning.md]``

Both kinds of bands have the number and width that an index would choose. They take turns in one
process, one query after another, on one thread, and are always probed to the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_digits

import bitweigh
from benchmarks import machine, report
from bitweigh._index.bands import BandLayout, BandOptions, contiguous_layout, spread_layout
from bitweigh._index.segments import LiveSegment, Segment
from bitweigh._index.state import State
from bitweigh.hashers import ITQ, LSH
from bitweigh.hashers._base import Hasher
from bitweigh.weighers import Asym
from bitweigh_experiments import datasets
from bitweigh_experiments.datasets import Dataset

__all__ = ["CodeSet", "Figures", "Means", "code_sets", "index_with", "measure"]

MARKER = "bit-assignment"
KS = (1, 10, 100)
N_QUERIES = 200
ROUNDS = 5
DRAWN_ROWS = 1_000_000
# Rows that hashers and weighers are fitted on.
_FIT_ROWS = 20_000
_CLUSTERS = 512
_KINDS = ("adjacent", "chosen")
# Shares of rows that have a skewed bit set, from the first bit to the last.
_SKEWED = (0.02, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class CodeSet:
    """Codes and the queries to search them with."""

    name: str
    n_bits: int
    codes: NDArray[np.uint8]
    """Codes, uint8 (n, n_bytes), in big bit order."""
    costs: NDArray[np.float64]
    """Queries, float64 (nq, n_bits, 2)."""


class Means(NamedTuple):
    """The work of a search, as means over all queries."""

    keys: float
    """Keys looked up."""
    blocks: float
    """Blocks of 32 rows that the kernel looked at."""
    microseconds: float
    """Time in the engine, the median of all rounds."""


class Figures(NamedTuple):
    """Both kinds of bands on one set, for one k."""

    name: str
    rows: int
    n_bits: int
    bands: int
    band_bits: int
    k: int
    adjacent: Means
    chosen: Means


def code_sets(folder: Path | None) -> Iterator[CodeSet]:
    """Yield the sets, those of real vectors only if the folder has them."""
    if folder is None:
        rows, source = load_digits(return_X_y=True)[0], "digits"
    else:
        sift = datasets.dsift(folder, n_queries=N_QUERIES)
        yield _hashed("dense SIFT, ITQ", sift, ITQ(64, max_fit_rows=_FIT_ROWS))
        words = datasets.glove(folder, n_queries=N_QUERIES, unit=True)
        yield _hashed("GloVe, LSH", words, LSH(64, max_fit_rows=_FIT_ROWS))
        rows, source = sift.base, "dense SIFT"
    generator = datasets.MixtureGenerator(_CLUSTERS).fit(rows)
    queries = generator.queries(N_QUERIES, among=DRAWN_ROWS)
    mixture = Dataset(f"mixture like {source}", generator.sample(DRAWN_ROWS), queries)
    for n_bits in (64, 128):
        yield _hashed(f"{mixture.name}, LSH", mixture, LSH(n_bits, max_fit_rows=_FIT_ROWS))
    yield _each_bit_twice(_hashed(f"{mixture.name}, 32 bits of LSH, each twice", mixture, LSH(32)))
    yield _skewed(f"{mixture.name}, LSH, skewed bits", mixture, 64)


def index_with(codes: NDArray[np.uint8], n_bits: int, layout: BandLayout) -> bitweigh.Index:
    """Return an index whose only segment has these bands, which `Index` has no option for."""
    index = bitweigh.Index(n_bits)
    segment = Segment.build(codes, np.arange(len(codes)), n_bits, layout, index.bitorder)
    index._state = State((LiveSegment(segment),), None, len(codes))
    return index


def measure(code_set: CodeSet) -> list[Figures]:
    """Measure both kinds of bands in turns, for each k."""
    n = len(code_set.codes)
    count, width = BandOptions().ideal_shape(n, code_set.n_bits)
    indexes = [
        index_with(code_set.codes, code_set.n_bits, layout)
        for layout in (
            contiguous_layout(code_set.n_bits, count, width),
            spread_layout(code_set.codes, code_set.n_bits, count, width, "big"),
        )
    ]
    measured = []
    for k in KS:
        # By round and index; the first round is not counted.
        rounds = [
            [_searched(index, code_set.costs, k) for index in indexes] for _ in range(ROUNDS + 1)
        ]
        if not np.array_equal(rounds[0][0][0], rounds[0][1][0]):
            raise RuntimeError(f"{code_set.name}, k = {k}: the answer depends on the bands")
        adjacent, chosen = (
            Means(*np.median([means for _, means in turns[1:]], axis=0).tolist())
            for turns in zip(*rounds, strict=True)
        )
        measured.append(
            Figures(code_set.name, n, code_set.n_bits, count, width, k, adjacent, chosen)
        )
    return measured


def _searched(
    index: bitweigh.Index, costs: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], Means]:
    """Search; return the ids found (nq, k), and the work."""
    found, counters = [], []
    for query in costs:
        result = index.search(query, k, threads=1, method="probe", stats=True)
        stats = result.stats
        assert stats is not None
        found.append(result.ids)
        counters.append((stats.probes, stats.blocks_probed, stats.nanoseconds / 1e3))
    return np.array(found), Means(*np.mean(counters, axis=0).tolist())


def _hashed(name: str, data: Dataset, hasher: Hasher) -> CodeSet:
    return _coded(name, data, hasher.fit(data.base))


def _coded(name: str, data: Dataset, hasher: Hasher) -> CodeSet:
    """Compute codes by a fitted hasher and costs by `Asym`; the rows are already shuffled."""
    weigher = Asym().fit(hasher.project(data.base[:_FIT_ROWS]), hasher.thresholds_)
    costs = weigher.costs(hasher.project(data.queries))
    return CodeSet(name, hasher.n_bits_, hasher.transform(data.base), costs)


def _each_bit_twice(code_set: CodeSet) -> CodeSet:
    """Put every bit beside a copy of itself, so that adjacent bits waste half of each key."""
    bits = np.unpackbits(code_set.codes, axis=1, count=code_set.n_bits).repeat(2, axis=1)
    costs = code_set.costs.repeat(2, axis=1)
    return CodeSet(code_set.name, 2 * code_set.n_bits, np.packbits(bits, axis=1), costs)


def _skewed(name: str, data: Dataset, n_bits: int) -> CodeSet:
    """Use thresholds far from the middle, so that few rows have the first bits set."""
    hasher = LSH(n_bits, max_fit_rows=_FIT_ROWS).fit(data.base)
    projected = hasher.project(data.base[:_FIT_ROWS])
    shares = np.linspace(*_SKEWED, n_bits)
    pairs = zip(projected.T, shares, strict=True)
    hasher.thresholds_ = np.array([np.quantile(column, 1 - share) for column, share in pairs])
    return _coded(name, data, hasher)


def _markdown(facts: dict[str, str], measured: list[Figures]) -> str:
    pairs = [f"{what}, {kind}" for what in ("keys", "blocks", "us") for kind in _KINDS]
    rows = [
        [
            figures.name,
            f"{figures.rows:,}",
            str(figures.n_bits),
            f"{figures.bands} of {figures.band_bits}",
            str(figures.k),
            *(f"{number:,.0f}" for pair in _pairs(figures)[:2] for number in pair),
            *(f"{number:,.1f}" for number in _pairs(figures)[2]),
        ]
        for figures in measured
    ]
    columns = ["data", "codes", "bits", "bands", "k", *pairs]
    return "\n\n".join([report.machine_list(facts), report.table(columns, rows)])


def _pairs(figures: Figures) -> list[tuple[float, float]]:
    """Return keys, blocks and microseconds, each for adjacent and for chosen bits."""
    return list(zip(figures.adjacent, figures.chosen, strict=True))


def main() -> None:
    """Measure all sets and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bit_assignment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--markdown", type=Path, help=f"file with the {MARKER} markers")
    arguments = parser.parse_args()
    console = Console()

    if arguments.data is None:
        console.print("without --data: only rows drawn like scikit-learn's digits")
    measured = []
    try:
        with console.status("making codes") as status:
            for code_set in code_sets(arguments.data):
                status.update(f"searching {code_set.name}, {code_set.n_bits} bits")
                measured += measure(code_set)
                status.update("making codes")
    except FileNotFoundError as error:
        parser.error(str(error))
    text = _markdown(machine.facts(), measured)
    if arguments.markdown is not None:
        report.write_between_markers(arguments.markdown, MARKER, text)
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
