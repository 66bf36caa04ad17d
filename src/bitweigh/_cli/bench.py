"""`bitweigh bench`: the speed of an index on this machine, against a scan of all its codes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import bitweigh
from bitweigh import Index
from bitweigh._checks import MAX_BITS
from bitweigh._cli.folders import codes_in, open_index
from bitweigh._cli.output import Json, report
from bitweigh._progress import ProgressBar
from bitweigh.typing import Codes, Method

__all__ = ["bench_command"]

_KS = (1, 10, 100)
_METHODS: tuple[Method, ...] = ("auto", "scan")
# Generated codes lie around centres: rows per centre, and the probability that a bit differs from
# that of its centre.
_ROWS_PER_CENTRE = 100
_FLIP_PROBABILITY = 0.1


def bench_command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="The folder of the index (default: codes are generated)."
        ),
    ] = None,
    queries: Annotated[int, typer.Option(metavar="N", min=1, help="Queries to time.")] = 100,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Codes to generate.")] = 100_000,
    bits: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=MAX_BITS, help="Length of generated codes in bits."),
    ] = 128,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")] = 0,
    as_json: Json = False,
) -> None:
    """Time searches, one query at a time on one thread, against scanning all codes.

    Queries are codes of the index with one bit in ten changed, under random bit weights.

    Example: bitweigh bench index --queries 20
    """
    rng = np.random.default_rng(seed)
    index = _generated(rows, bits, rng) if folder is None else codes_in(open_index(folder))
    if len(index) == 0:
        raise ValueError(f"{folder} is empty: there is nothing to time")
    index.build()
    costs = _costs(index, queries, rng)
    lines = _timed(index, costs)
    facts = {
        "rows": len(index),
        "n_bits": index.n_bits,
        "queries": queries,
        "kernel": bitweigh.info().kernel,
        "times": lines,
    }
    if as_json:
        report("", facts, True)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{len(index):,} codes of {index.n_bits} bits, kernel {facts['kernel']}")
    for heading in ("k", "search ms", "scan ms", "scan / search"):
        table.add_column(heading, justify="right")
    for line in lines:
        auto, scan = line["search_ms"], line["scan_ms"]
        table.add_row(f"{line['k']}", f"{auto:.3f}", f"{scan:.3f}", f"{scan / auto:.1f}")
    Console(highlight=False).print(table)


def _generated(rows: int, bits: int, rng: np.random.Generator) -> Index:
    index = Index(bits)
    centres = rng.random((-(-rows // _ROWS_PER_CENTRE), bits)) < 0.5
    step = 1 << 14
    for first in range(0, rows, step):
        centre_bits = centres[np.arange(first, min(first + step, rows)) % len(centres)]
        flips = rng.random(centre_bits.shape) < _FLIP_PROBABILITY
        index.add(np.packbits(centre_bits ^ flips, axis=1))
    index.compact()
    return index


def _costs(index: Index, queries: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Weighted queries near codes of the index, (queries, n_bits, 2)."""
    codes: Codes = index.codes_of(rng.choice(index.ids, queries))
    bits = np.unpackbits(codes, axis=1, count=index.n_bits, bitorder=index.bitorder)
    near = bits.astype(np.bool_) ^ (rng.random(bits.shape) < _FLIP_PROBABILITY)
    return bitweigh.costs.from_weights(
        np.packbits(near, axis=1, bitorder=index.bitorder),
        rng.random(index.n_bits),
        bitorder=index.bitorder,
    ).astype(np.float64)


def _timed(index: Index, costs: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Medians in milliseconds for each k; raises if search and scan do not agree."""
    from bitweigh.evaluation import time_queries

    ks = [k for k in _KS if k <= len(index)]
    lines = []
    with ProgressBar("timing", len(ks) * len(_METHODS), unit="runs") as bar:
        for k in ks:
            medians, found = [], []
            for method in _METHODS:
                search = partial(index.search, k=k, threads=1, method=method)
                timing = time_queries(search, costs, rounds=1)
                medians.append(1000 * timing.median)
                found.append(search(costs))
                bar.advance(1)
            if not np.array_equal(found[0].ids, found[1].ids):
                raise ValueError(
                    "the search and the scan do not agree: `bitweigh verify` the index"
                )
            lines.append({"k": k, "search_ms": medians[0], "scan_ms": medians[1]})
    return lines
