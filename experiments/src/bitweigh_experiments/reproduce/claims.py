"""What the paper claims, judged from what a run measured and from the paper's own figures.

A claim is about figures that belong together, such as the times of two methods at one setting. It
holds where it does so for every such group. A run and the paper are judged by the same code.
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

# Precisions are the same where they differ by less than half of the last digit that is printed.
SAME = 0.00005
# The share of settings from which on a claim mostly holds.
MOST = 0.9


@dataclass(frozen=True)
class Claim:
    """A claim and how it fared."""

    text: str
    """In plain words, with the place in the paper."""
    holds: bool | None
    """None where nothing was measured."""
    held: int
    """Settings in which it holds ..."""
    of: int
    """... of so many."""
    exceptions: tuple[str, ...]
    """The other settings, with their numbers."""
    evidence: str
    """One line with numbers, ours and the paper's."""

    @property
    def mostly(self) -> bool:
        """Whether it holds in at least nine of ten settings but not in all."""
        return MOST * self.of <= self.held < self.of


_Figures: TypeAlias = Sequence[float]


class _Check(NamedTuple):
    """How to judge a claim."""

    text: str
    groups: Groups
    holds: Callable[[_Figures], bool]
    size: Callable[[_Figures], float]
    """How clearly it holds, or not."""
    size_is: str
    """What that number is."""
    show: Callable[[float], str] = three_digits
    unit: str = ""
    """Of the figures, which the size need not share."""


def claims(results: Results) -> list[Claim]:
    """Judge every claim."""
    return [_judge(check, results) for check in _checks()]


def clearest_first(judged: Iterable[Claim]) -> list[Claim]:
    """Claims that hold, then others by the share of settings in which they do, unmeasured last."""
    return sorted(judged, key=lambda claim: -claim.held / claim.of if claim.of else 1.0)


def _judge(check: _Check, results: Results) -> Claim:
    groups = list(check.groups(results))
    failed = _failed(check, groups)
    return Claim(
        text=check.text,
        holds=not failed if groups else None,
        held=len(groups) - len(failed),
        of=len(groups),
        exceptions=tuple(failed),
        evidence=f"{check.size_is}: {_sizes(check, groups) or 'not measured'} here, "
        f"{_in_paper(check)} in the paper",
    )


def _failed(check: _Check, groups: Iterable[Group]) -> list[str]:
    """The settings in which the claim does not hold, with their figures."""
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
    but = f" but for {'; '.join(failed)}" if failed else ""
    held = f"{len(groups) - len(failed)} of {len(groups)}{but}"
    return f"{_sizes(check, groups)} ({held})"


def _same(figures: _Figures) -> bool:
    return max(figures) - min(figures) < SAME


def _rising(figures: _Figures) -> bool:
    return all(a < b for a, b in pairwise(figures))


def _falling(figures: _Figures) -> bool:
    return all(a > b for a, b in pairwise(figures))


def _not_falling(figures: _Figures) -> bool:
    return all(a <= b for a, b in pairwise(figures))


def _least_step(figures: _Figures) -> float:
    return min(b - a for a, b in pairwise(figures))


def _least_factor(figures: _Figures) -> float:
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
            "MIWQ has the precision of Linear Scan (Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", "Linear Scan", "MIWQ"),
            _same,
            _least_step,
            "MIWQ less Linear Scan, in points",
            percent,
            " %",
        ),
        _Check(
            "So have the other exact methods that were asked every query: MIWQ in descending order "
            "and bitweigh, which are ours; PQTable (section PQTable) is only asked a few",
            several(*(methods_at("precision", "Linear Scan", method) for method in others)),
            _same,
            _least_step,
            "each less Linear Scan, in points",
            percent,
            " %",
        ),
        _Check(
            "In the mean over K, MIH is more precise than Baseline and less than MIWQ "
            "(Tables 1, 2, 6 and 13 to 16)",
            mean_over_k("precision", *order),
            _rising,
            _least_step,
            "smaller of the two steps, in points",
            percent,
            " %",
        ),
        _Check(
            "For each K, MIH is more precise than Baseline and less than MIWQ "
            "(Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", *order),
            _rising,
            _least_step,
            "smaller of the two steps, in points",
            percent,
            " %",
        ),
        _Check(
            "Weights help: Linear Scan by weighted distance is more precise than Baseline by "
            "Hamming distance (Tables 1, 2, 6 and 13 to 16)",
            methods_at("precision", "Baseline", "Linear Scan"),
            _rising,
            _least_step,
            "Linear Scan less Baseline, in points",
            percent,
            " %",
        ),
    ]


def _time_checks() -> list[_Check]:
    miwq_by_mih = methods_at("ms", "MIH", "MIWQ")
    most = max(_last_by_first(group.figures) for group in miwq_by_mih(PAPER))
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
            f"at most {most:.2f} times as long, the most in those tables",
            miwq_by_mih,
            lambda figures: _last_by_first(figures) <= most,
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
            _least_factor,
            "smaller of the two factors",
            unit=" ms",
        ),
    ]


def _work_checks() -> list[_Check]:
    return [
        _Check(
            "MIWQ compares fewer candidates than MIH, each with the number of tables chosen for it "
            "(Fig. 2)",
            methods_at("candidates", "MIWQ", "MIH"),
            _rising,
            _last_by_first,
            "candidates of MIH divided by those of MIWQ",
        ),
        _Check(
            "MIWQ probes fewer buckets than MIH, each with the number of tables chosen for it "
            "(Fig. 2)",
            methods_at("buckets", "MIWQ", "MIH"),
            _rising,
            _last_by_first,
            "buckets of MIH divided by those of MIWQ",
        ),
        _Check(
            "Ours, not the paper's: the descending order of Eq. 10 probes no more buckets than the "
            "ascending one in print, which makes S-hat smallest and so stops latest within a round",
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
