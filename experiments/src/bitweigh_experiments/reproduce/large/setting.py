"""The mixture, the hasher and the queries of a run at a large number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitweigh.hashers import LSH
from bitweigh.weighers import Asym
from bitweigh_experiments import datasets
from bitweigh_experiments.datasets import MixtureCodes, MixtureGenerator

__all__ = ["CodeSetting", "Origin", "code_setting", "origin"]

CLUSTERS, ROWS_PER_CLUSTER = 512, 100
TRAINING_ROWS = 20_000
GENERATED_ROWS = 100_000
CostArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows come from."""

    name: str
    mixture: MixtureGenerator
    training: NDArray[np.float32]
    """Rows to fit a hasher on."""


@dataclass(frozen=True, slots=True)
class CodeSetting:
    """Codes of one length and their queries."""

    bits: int
    source: MixtureCodes
    costs: CostArray
    """Costs of the queries by Asym, (queries, bits, 2)."""


def origin(data: Path | None, rows: int, seed: int) -> Origin:
    """Fit the mixture on dense SIFT, or without a folder on generated descriptors."""
    if data is not None:
        name, real = "mixture fitted on dense SIFT", datasets.dsift(data, seed=seed).base
    else:
        fitted = min(GENERATED_ROWS, max(5000, rows))
        name = "mixture fitted on generated descriptors"
        real = datasets.descriptors(fitted, 128, n_queries=1, seed=seed).base
    clusters = min(CLUSTERS, max(1, len(real) // ROWS_PER_CLUSTER))
    mixture = MixtureGenerator(clusters, seed).fit(real)
    chosen = np.random.default_rng(seed).permutation(len(real))[:TRAINING_ROWS]
    return Origin(name, mixture, np.asarray(real[np.sort(chosen)], dtype=np.float32))


def code_setting(start: Origin, bits: int, rows: int, queries: int, seed: int) -> CodeSetting:
    """Return codes by LSH and the costs of queries by Asym, as in the paper for SIFT1B."""
    hasher = LSH(bits, seed=seed).fit(start.training)
    source = MixtureCodes(start.mixture, hasher, rows, seed=seed)
    weigher = Asym().fit(source.sample(TRAINING_ROWS), hasher.thresholds_)
    return CodeSetting(bits, source, weigher.costs(source.queries(queries)))
