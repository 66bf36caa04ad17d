"""How near the neighbours of drawn codes come to those of real ones, at the same number of rows.

Real codes are hashed dense SIFT descriptors, with held-out ones as queries. Drawn codes are those
of `MixtureCodes`, fitted on the same descriptors, with fresh rows of the mixture as queries. Hashed
codes, those of the mixture's whole vectors, tell what drawing in the projected space adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh.hashers import LSH
from bitweigh.typing import Codes
from bitweigh.weighers import Asym
from bitweigh_experiments import datasets
from bitweigh_experiments.reproduce.formats import three_digits
from bitweigh_experiments.reproduce.large.setting import CLUSTERS, ROWS_PER_CLUSTER, TRAINING_ROWS

__all__ = ["Likeness", "likeness", "table"]

RANKS = (1, 10, 100)
PREFIXES = (16, 24)
QUANTILES = (0.1, 0.5, 0.9)
Projected: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Likeness:
    """A statistic of real codes, of the mixture's hashed vectors, and of its drawn codes."""

    name: str
    real: float
    hashed: float
    drawn: float


def likeness(folder: Path, bits: int, n_queries: int = 4000, seed: int = 0) -> list[Likeness]:
    """Compare the dense SIFT descriptors of a folder with as many drawn rows."""
    real = datasets.dsift(folder, n_queries=n_queries, seed=seed)
    rows = len(real.base)
    clusters = min(CLUSTERS, max(1, rows // ROWS_PER_CLUSTER))
    mixture = datasets.MixtureGenerator(clusters, seed).fit(real.base)
    hasher = LSH(bits, seed=seed).fit(real.base[:TRAINING_ROWS])
    source = datasets.MixtureCodes(mixture, hasher, rows, seed=seed)
    sides = (
        (
            hasher.transform(real.base),
            hasher.project(real.base[:TRAINING_ROWS]),
            hasher.project(real.queries),
        ),
        (
            np.concatenate([hasher.transform(chunk) for chunk in mixture.chunks(rows)]),
            hasher.project(mixture.sample(min(rows, TRAINING_ROWS))),
            hasher.project(mixture.queries(n_queries, perturbed=0)),
        ),
        (
            np.concatenate(list(source.pieces())),
            source.sample(min(rows, TRAINING_ROWS)),
            source.queries(n_queries),
        ),
    )
    columns = [
        dict(_statistics(hasher, codes, training, queries)) for codes, training, queries in sides
    ]
    return [Likeness(name, *(column[name] for column in columns)) for name in columns[0]]


def table(records: list[Likeness]) -> str:
    """Return a Markdown table, with the difference of drawn codes from real ones in percent."""
    lines = [
        "| statistic | real | mixture, hashed | mixture, drawn as codes | drawn / real |",
        "|---|---|---|---|---|",
    ]
    for record in records:
        figures = (record.real, record.hashed, record.drawn)
        gap = f"{100 * (record.drawn / record.real - 1):+.1f} %" if record.real else "\u2013"
        lines.append(f"| {record.name} | {' | '.join(map(three_digits, figures))} | {gap} |")
    return "\n".join(lines)


def _statistics(
    hasher: LSH, codes: Codes, training: Projected, queries: Projected
) -> Iterator[tuple[str, float]]:
    """Yield names and values."""
    bits = hasher.n_bits_
    costs = Asym().fit(training, hasher.thresholds_).costs(queries)
    index = bitweigh.Index(bits)
    index.add(codes)
    distances = index.search(costs, max(RANKS)).distances
    for rank in RANKS:
        at_rank = distances[:, rank - 1]
        yield f"distance of neighbour {rank}, mean", float(at_rank.mean())
        for share in QUANTILES:
            name = f"distance of neighbour {rank}, quantile {share:.0%}"
            yield name, float(np.quantile(at_rank, share))
    ones = np.packbits(queries > hasher.thresholds_, axis=1)
    for prefix in (*PREFIXES, bits):
        counts = _in_bucket(codes, ones, prefix)
        yield f"codes in the query's bucket of {prefix} bits, mean", float(counts.mean())
        yield f"queries whose bucket of {prefix} bits is empty", float((counts == 0).mean())


def _in_bucket(codes: Codes, queries: Codes, bits: int) -> NDArray[np.int64]:
    """Count for each query the codes that have its first bits, a multiple of 8."""
    stored, wanted = (
        np.ascontiguousarray(array[:, : bits // 8]).view(f"S{bits // 8}")[:, 0]
        for array in (codes, queries)
    )
    ordered = np.sort(stored)
    low, high = (np.searchsorted(ordered, wanted, side=side) for side in ("left", "right"))
    return np.asarray(high - low)
