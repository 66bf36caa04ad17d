"""The paper's claims, judged by the measurements of a run and by the paper's own figures.

A claim compares figures that belong together, such as the times of two methods at one setting. It
holds if it is true of every such group. A run and the paper are judged by the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from bitweigh_experiments.reproduce.formats import percent, three_digits
from bitweigh_experiments.reproduce.groups import (
    Group,
    Groups,
    along,
    mean_over_k,
    methods_at,
    several,
    ties,
)
from bitweigh_experiments.reproduce.published import PAPER
from bitweigh_experiments.reproduce.results import Results

__all__ = ["Claim", "claims", "clearest_first"]

# Precisions are equal if they differ by less than half of the last printed digit.
SAME = 0.00005
# The smallest share of settings at which a claim "mostly holds".
MOSTLY = 0.9


@dataclass(frozen=True)
class Claim:
    """A claim and its verdict."""

    text: str
    """The claim in plain words, with the place in the paper."""
    holds: bool | None
    """Whether the claim holds in every setting; None if nothing was measured."""
    n_held: int
    """Settings where the claim holds."""
    n_settings: int
    """Settings checked."""
    exceptions: tuple[str, ...]
    """The settings where the claim does not hold, with their figures."""
    evidence: str
    """One line of numbers, ours and the paper's."""

    @property
    def mostly(self) -> bool:
        """Whether the claim holds in at least nine of ten settings but not in all."""
        return MOSTLY * self.n_settings <= self.n_held < self.n_settings


_Figures: TypeAlias = Sequence[float]


class _Check(NamedTuple):
    """How to judge a claim."""

    text: str
    groups: Groups
    holds: Callable[[_Figures], bool]
    size: Callable[[_Figures], float]
    """How clearly the claim holds or fails in a group of figures."""
    size_is: str
    """What `size` measures, in words."""
    show: Callable[[float], str] = three_digits
    unit: str = ""
    """The unit of the figures; that of `size` may differ."""


def claims(results: Results) -> list[Claim]:
    """Judge every claim."""
    return [_judge(check, results) for check in _checks()]


def clearest_first(judged: Iterable[Claim]) -> list[Claim]:
    """Sort claims by the share of settings where they hold, largest first, unmeasured last."""
    return sorted(
        judged, key=lambda claim: -claim.n_held / claim.n_settings if claim.n_settings else 1.0
    )


def _judge(check: _Check, results: Results) -> Claim:
    groups = list(check.groups(results))
    failed = _failed(check, groups)
    return Claim(
        text=check.text,
        holds=not failed if groups else None,
        n_held=len(groups) - len(failed),
        n_settings=len(groups),
        exceptions=tuple(failed),
        evidence=f"{check.size_is}: {_sizes(check, groups) or 'not measured'} here, "
        f"{_in_paper(check)} in the paper",
    )


def _failed(check: _Check, groups: Iterable[Group]) -> list[str]:
    """Return the settings where the claim does not hold, with their figures."""
    return [
        f"{group.where}: "
        + ", ".join(
            f"{name} {check.show(figure)}{check.unit}"
            for name, figure in zip(group.names, group.figures, strict=True)
        )
        for group in groups
        if not check.holds(group.figures)
    ]


def _sizes(check: _Check, groups: Iterable[Group]) -> str:
    sizes = [check.size(group.figures) for group in groups]
    return f"{check.show(min(sizes))} to {check.show(max(sizes))}" if sizes else ""


def _in_paper(check: _Check) -> str:
    groups = list(check.groups(PAPER))
    if not groups:
        return "no numbers"
    failed = _failed(check, groups)
    exceptions = f", not {'; '.join(failed)}" if failed else ""
    count = f"{len(groups) - len(failed)} of {len(groups)}{exceptions}"
    return f"{_sizes(check, groups)} ({count})"


def _same(figures: _Figures) -> bool:
    return max(figures) - min(figures) < SAME


def _rising(figures: _Figures) -> bool:
    return all(a < b for a, b in pairwise(figures))


def _falling(figures: _Figures) -> bool:
    return all(a > b for a, b in pairwise(figures))


def _not_falling(figures: _Figures) -> bool:
    return all(a <= b for a, b in pairwise(figures))


def _smallest_step(figures: _Figures) -> float:
    return min(b - a for a, b in pairwise(figures))


def _smallest_factor(figures: _Figures) -> float:
    return min(b / a if a else math.inf for a, b in pairwise(figures))


def _last_by_first(figures: _Figures) -> float:
    return figures[-1] / figures[0] if figures[0] else math.inf


def _checks() -> list[_Check]:
    return [*_precision_checks(), *_time_checks(), *_work_checks()]


def _precision_checks() -> list[_Check]:
    others = ("MIWQ descending", "PQTable", "PQTable_max_heap", "bitweigh")
    order = ("Baseline", "MIH", "MIWQ")
    return [
        _Check(
            "MIWQ has the same precision as Linear Scan (Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", "Linear Scan", "MIWQ"),
            _same,
            _smallest_step,
            "MIWQ less Linear Scan, in points",
            percent,
            " %",
        ),
        _Check(
            "So do the other exact methods that answer every query: MIWQ in descending order and "
            "bitweigh, which are ours; PQTable (section PQTable) answers only a few",
            several(*(methods_at("precision", "Linear Scan", method) for method in others)),
            _same,
            _smallest_step,
            "each less Linear Scan, in points",
            percent,
            " %",
        ),
        _Check(
            "On average over K, MIH is more precise than Baseline and less than MIWQ "
            "(Tables 1, 2, 6 and 13 to 16)",
            mean_over_k("precision", *order),
            _rising,
            _smallest_step,
            "smaller of the two steps, in points",
            percent,
            " %",
        ),
        _Check(
            "For each K, MIH is more precise than Baseline and less than MIWQ "
            "(Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", *order),
            _rising,
            _smallest_step,
            "smaller of the two steps, in points",
            percent,
            " %",
        ),
        _Check(
            "Weights help: Linear Scan by weighted distance is more precise than Baseline by "
            "Hamming distance (Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", "Baseline", "Linear Scan"),
            _rising,
            _smallest_step,
            "Linear Scan less Baseline, in points",
            percent,
            " %",
        ),
    ]


def _time_checks() -> list[_Check]:
    miwq_by_mih = methods_at("ms", "MIH", "MIWQ")
    max_ratio = max(_last_by_first(group.figures) for group in miwq_by_mih(PAPER))
    return [
        _Check(
            "MIWQ is faster than Linear Scan everywhere (Tables 3 to 5, 7 and 9 to 12)",
            methods_at("ms", "MIWQ", "Linear Scan"),
            _rising,
            _last_by_first,
            "speed-up",
            unit=" ms",
        ),
        _Check(
            "The speed-up of MIWQ falls as K grows (Tables 3 to 5, 7 and 9 to 12)",
            along("k", "speed_up", "MIWQ"),
            _falling,
            _last_by_first,
            "speed-up at the largest K divided by that at the smallest",
        ),
        _Check(
            "The speed-up of MIWQ falls as codes get longer (Table 5 beside Table 3)",
            along("bits", "speed_up", "MIWQ"),
            _falling,
            _last_by_first,
            "speed-up of the longest codes divided by that of the shortest",
        ),
        _Check(
            "MIWQ takes about the time of MIH or a little more (Tables 3 to 5, 7 and 9 to 12): "
            f"at most {max_ratio:.2f} times as long, the largest ratio in those tables",
            miwq_by_mih,
            lambda figures: _last_by_first(figures) <= max_ratio,
            _last_by_first,
            "time of MIWQ divided by that of MIH",
            unit=" ms",
        ),
        _Check(
            "PQTable is slower than MIWQ (Table 8)",
            methods_at("ms", "MIWQ", "PQTable"),
            _rising,
            _last_by_first,
            "time of PQTable divided by that of MIWQ",
            unit=" ms",
        ),
        _Check(
            "PQTable_max_heap is slower than MIWQ and faster than PQTable (Table 8)",
            methods_at("ms", "MIWQ", "PQTable_max_heap", "PQTable"),
            _rising,
            _smallest_factor,
            "smaller of the two factors",
            unit=" ms",
        ),
    ]


def _work_checks() -> list[_Check]:
    return [
        _Check(
            "MIWQ compares fewer candidates than MIH, each with its best number of tables (Fig. 2)",
            methods_at("candidates", "MIWQ", "MIH"),
            _rising,
            _last_by_first,
            "candidates of MIH divided by those of MIWQ",
        ),
        _Check(
            "MIWQ probes fewer buckets than MIH, each with its best number of tables (Fig. 2)",
            methods_at("buckets", "MIWQ", "MIH"),
            _rising,
            _last_by_first,
            "buckets of MIH divided by those of MIWQ",
        ),
        _Check(
            "Ours, not the paper's: the descending order of Eq. 10 probes no more buckets than the "
            "printed ascending one, which makes S-hat smallest and so stops latest within a round",
            methods_at("buckets", "MIWQ descending", "MIWQ", same_m=True),
            _not_falling,
            _last_by_first,
            "buckets in ascending order divided by those in descending order",
        ),
        _Check(
            "Weights resolve the ambiguity: more codes share the K-th Hamming distance than the "
            "K-th weighted distance (Introduction)",
            ties,
            _rising,
            _last_by_first,
            "codes at the K-th Hamming distance divided by those at the K-th weighted distance",
        ),
    ]
