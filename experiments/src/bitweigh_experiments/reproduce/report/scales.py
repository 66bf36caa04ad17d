"""Vertical axes of the charts: the position of a value, and the ticks to draw."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Scale", "scale_for"]

MAX_LOG_TICKS = 7
PAD = 1.35  # a log axis extends by this factor, so that no marker touches the frame


@dataclass(frozen=True, slots=True)
class Scale:
    """A vertical axis from `low` to `high`; on a log axis both are positive."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at the bottom, 1 at the top."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def scale_for(values: Iterable[float], *, log: bool) -> Scale:
    """Return an axis for all values; a linear one begins at 0, a log one ignores values <= 0."""
    if log:
        return _log_scale([value for value in values if value > 0] or [1.0])
    return _linear_scale(max(values, default=0.0))


def _log_scale(values: list[float]) -> Scale:
    low, high = min(values) / PAD, max(values) * PAD
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for mantissas in ((1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**e for e in exponents for m in mantissas if low <= m * 10.0**e <= high]
        if len(ticks) <= MAX_LOG_TICKS:
            break
    return Scale(low, high, True, tuple(ticks))


def _linear_scale(largest: float) -> Scale:
    largest = largest if largest > 0 else 1.0
    power = 10.0 ** math.floor(math.log10(largest / 4))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if largest / (m * power) <= 5)
    count = math.ceil(largest / step - 1e-9)
    return Scale(0.0, count * step, False, tuple(step * i for i in range(count + 1)))
