"""The whole reproduction: every data set, hasher, weigher and code length, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from bitweigh.hashers import ITQ, LSH
from bitweigh.weighers import Asym, Wh
from bitweigh_experiments import hardware
from bitweigh_experiments.reproduce.data import Scale, Stage, roles_in, set_stage
from bitweigh_experiments.reproduce.measure import Effort, Setting, measure
from bitweigh_experiments.reproduce.published import TABLES
from bitweigh_experiments.reproduce.results import BITS, EXTRA_ROLES, HASHERS, WEIGHERS, Results

__all__ = ["Plan", "Progress", "reproduce"]

TRAINING_ROWS = 20_000
# Code lengths for quick runs and for real sets beyond the paper's: at a million rows and K >= 10,
# scanning longer codes is faster than probing, and fewer rows favour the scan further.
SHORT = (32, 64)
QUICK_ROLES = ("Places205", "SIFT1B")
QUICK = Scale(max_rows=100_000, n_queries=200)
QUICK_EFFORT = Effort(timed_queries=20, rounds=3, turn_seconds=0.02)


class Progress(Protocol):
    """A callback for progress."""

    def __call__(self, share: float, doing: str) -> None:
        """Show that step `doing` begins after `share` of the whole run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    folder: Path | None = None
    """The folder with data sets."""
    tables: frozenset[int] | None = None
    """Measure only what these tables of the paper need; by default the whole grid on all sets."""
    scale: Scale = field(default_factory=Scale)
    effort: Effort = field(default_factory=Effort)
    quick: bool = False

    @classmethod
    def of(
        cls,
        folder: Path | None = None,
        quick: bool = False,
        rows: int | None = None,
        queries: int | None = None,
        seed: int = 0,
        tables: frozenset[int] | None = None,
    ) -> Self:
        """Return a plan at full size, or with `quick` one that takes about two minutes."""
        default = QUICK if quick else Scale()
        scale = Scale(rows or default.max_rows, queries or default.n_queries, seed)
        return cls(folder, tables, scale, QUICK_EFFORT if quick else Effort(), quick)


def _discard(results: Results) -> None:
    """Ignore intermediate results."""


def reproduce(
    plan: Plan, progress: Progress, keep: Callable[[Results], None] = _discard
) -> Results:
    """Measure everything in the plan; call `keep` with the results so far after each setting."""
    start = time.monotonic()
    results = Results(hardware.facts(), {})
    grid = _grid(plan)
    for number, role in enumerate(grid):
        progress(
            number / len(grid),
            f"reading data set {number + 1} of {len(grid)}, with true neighbours",
        )
        stage = set_stage(role, plan.folder, plan.scale)
        results.data.append(stage.facts)
        name = results.name_of(role)
        for share, setting in _settings(stage, grid[role], plan.scale.seed):
            step = f"{name}: {setting.hasher}, {setting.weigher}, {setting.bits} bits"
            progress((number + share) / len(grid), step)
            cells, sweeps, ambiguity = measure(setting, plan.effort)
            results.cells.extend(cells)
            results.sweeps.extend(sweeps)
            results.ambiguity.extend(ambiguity)
            results.settings.update(_settings_used(plan), seconds=_since(start))
            keep(results)
    progress(1.0, "done")
    results.settings.update(_settings_used(plan), seconds=_since(start))
    return results


def _since(start: float) -> float:
    return round(time.monotonic() - start, 1)


def _settings_used(plan: Plan) -> dict[str, object]:
    return {
        "quick": plan.quick,
        "seed": plan.scale.seed,
        "tables": "all" if plan.tables is None else ", ".join(map(str, sorted(plan.tables))),
        "max_rows": plan.scale.max_rows,
        "queries": plan.scale.n_queries,
        "timed_queries": plan.effort.timed_queries,
        "timing_rounds": plan.effort.rounds,
    }


def _grid(plan: Plan) -> dict[str, list[tuple[str, int, str]]]:
    """Return hasher, bits and weigher of every setting, for each data set."""
    if plan.tables is None:
        roles = QUICK_ROLES if plan.quick else roles_in(plan.folder)
        return {
            role: list(
                product(HASHERS, SHORT if plan.quick or role in EXTRA_ROLES else BITS, WEIGHERS)
            )
            for role in roles
        }
    needed: dict[str, dict[tuple[str, int, str], None]] = {}
    for table in TABLES:
        if table.number in plan.tables:
            settings = needed.setdefault(table.role, {})
            for row in table.rows:
                settings |= {(row.hasher, row.bits, weigher): None for weigher in table.weighers}
    return {role: list(settings) for role, settings in needed.items()}


def _settings(
    stage: Stage, grid: list[tuple[str, int, str]], seed: int
) -> Iterator[tuple[float, Setting]]:
    """Yield every setting of a data set, and the share of its work that comes before it."""
    # ITQ cannot have more bits than dimensions.
    possible = [
        (hasher, bits, weigher)
        for hasher, bits, weigher in grid
        if hasher != "ITQ" or bits <= stage.facts.d
    ]
    total = sum(_work(bits) for _, bits, _ in possible)
    done = 0.0
    for (hasher, bits), group in groupby(possible, key=lambda entry: entry[:2]):
        weighers = [weigher for _, _, weigher in group]
        for setting in _hash(stage, hasher, bits, weighers, seed):
            yield done / total, setting
            done += _work(bits)


def _work(bits: int) -> float:
    """Estimate the relative work of a setting, which grows somewhat faster than its bits."""
    return float(bits**1.5)


def _hash(
    stage: Stage, hasher: str, bits: int, weighers: Collection[str], seed: int
) -> Iterator[Setting]:
    """Yield the setting of each weigher, all over the same codes."""
    data, facts = stage.data, stage.facts
    pool = data.base if data.learn is None else data.learn
    rows = np.random.default_rng(seed).permutation(len(pool))[:TRAINING_ROWS]
    training = np.asarray(pool[np.sort(rows)], dtype=np.float32)
    fitted_hasher = {"LSH": LSH, "ITQ": ITQ}[hasher](bits, seed=seed).fit(training)
    codes = fitted_hasher.transform(data.base)
    queries = np.asarray(data.queries[: facts.n_queries], dtype=np.float32)
    query_codes, projected = fitted_hasher.transform(queries), fitted_hasher.project(queries)
    training_projections = fitted_hasher.project(training)
    for weigher in weighers:
        if weigher == "Asym":
            costs = Asym().fit(training_projections, fitted_hasher.thresholds_).costs(projected)
        else:
            costs = (
                Wh(seed=seed)
                .fit(training_projections, fitted_hasher.thresholds_, vectors=training)
                .costs(projected)
            )
        yield Setting(facts.role, hasher, weigher, bits, codes, query_codes, costs, stage.truth)
