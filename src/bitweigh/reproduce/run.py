"""The whole reproduction: every data set, hasher, weigher and number of bits, one after another."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from bitweigh import hardware
from bitweigh.hashers import ITQ, LSH
from bitweigh.reproduce.data import Scale, Stage, roles_in, set_stage
from bitweigh.reproduce.measure import Effort, Setting, measure
from bitweigh.reproduce.results import BITS, EXTRA_ROLES, HASHERS, WEIGHERS, Results
from bitweigh.weighers import Asym, Wh

__all__ = ["Plan", "Progress", "reproduce"]

TRAINING_ROWS = 20_000
EXTRA_BITS = (32, 64)
QUICK = Scale(max_rows=20_000, n_queries=200)
QUICK_EFFORT = Effort(timed_queries=20, rounds=3, turn_seconds=0.03)


class Progress(Protocol):
    """Told what is being done; `share` of the whole is done before it."""

    def __call__(self, share: float, doing: str) -> None:
        """Show it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    folder: Path | None = None
    """Where the data sets are."""
    roles: Collection[str] | None = None
    """Which of the paper's sets, and of the extra ones; by default all that there are."""
    scale: Scale = field(default_factory=Scale)
    effort: Effort = field(default_factory=Effort)
    quick: bool = False

    @classmethod
    def for_a_glance(cls, folder: Path | None, roles: Collection[str] | None, seed: int) -> Plan:
        """Small enough for two minutes: fewer rows, queries and turns, the same grid."""
        scale = Scale(QUICK.max_rows, QUICK.n_queries, seed)
        return cls(folder, roles, scale, QUICK_EFFORT, True)


def reproduce(plan: Plan, progress: Progress) -> Results:
    """Measure everything that the plan names."""
    start = time.monotonic()
    results = Results(hardware.facts(), {})
    roles = plan.roles if plan.roles is not None else roles_in(plan.folder)
    for number, role in enumerate(roles):
        progress(number / len(roles), f"{role}: data and its true neighbours")
        stage = set_stage(role, plan.folder, plan.scale)
        results.data.append(stage.facts)
        for share, setting in _settings(stage, plan.scale.seed):
            what = f"{role}: {setting.hasher}, {setting.weigher}, {setting.bits} bits"
            progress((number + share) / len(roles), what)
            cells, sweeps, ambiguity = measure(setting, plan.effort)
            results.cells.extend(cells)
            results.sweeps.extend(sweeps)
            results.ambiguity.extend(ambiguity)
    progress(1.0, "done")
    results.settings.update(
        quick=plan.quick,
        seed=plan.scale.seed,
        timed_queries=plan.effort.timed_queries,
        timing_rounds=plan.effort.rounds,
        seconds=round(time.monotonic() - start, 1),
    )
    return results


def _settings(stage: Stage, seed: int) -> Iterator[tuple[float, Setting]]:
    """Every setting of a data set, and the share of its work that comes before it."""
    role, d = stage.facts.role, stage.facts.d
    grid = [
        (hasher, bits)
        for hasher in HASHERS
        for bits in (EXTRA_BITS if role in EXTRA_ROLES else BITS)
        if hasher != "ITQ" or bits <= d  # ITQ has no more bits than dimensions
    ]
    # Times grow somewhat faster than the number of bits.
    work = np.cumsum([0.0] + [bits**1.5 for _, bits in grid])
    work /= work[-1]
    for number, (hasher, bits) in enumerate(grid):
        for turn, setting in enumerate(_hashed(stage, hasher, bits, seed)):
            share = work[number] + (work[number + 1] - work[number]) * turn / len(WEIGHERS)
            yield float(share), setting


def _hashed(stage: Stage, hasher: str, bits: int, seed: int) -> Iterator[Setting]:
    """The setting of each weigher, over the same codes."""
    data, facts = stage.data, stage.facts
    pool = data.base if data.learn is None else data.learn
    rows = np.random.default_rng(seed).permutation(len(pool))[:TRAINING_ROWS]
    training = np.asarray(pool[np.sort(rows)], dtype=np.float32)
    maker = {"LSH": LSH, "ITQ": ITQ}[hasher](bits, seed=seed).fit(training)
    codes = maker.transform(data.base)
    queries = np.asarray(data.queries[: facts.n_queries], dtype=np.float32)
    query_codes, projected = maker.transform(queries), maker.project(queries)
    fitted = maker.project(training)
    for weigher in WEIGHERS:
        if weigher == "Asym":
            costs = Asym().fit(fitted, maker.threshold_).costs(projected)
        else:
            costs = Wh(seed=seed).fit(fitted, maker.threshold_, vectors=training).costs(projected)
        yield Setting(facts.role, hasher, weigher, bits, codes, query_codes, costs, stage.truth)
