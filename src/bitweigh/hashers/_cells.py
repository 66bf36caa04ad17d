"""Thresholds that divide each feature into cells, for a small squared error within the cells.

Thresholds are those of Lloyd and Max: each is in the middle between the means of the cells beside
it. How many a feature gets is decided by what one more of them gains.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_BITS_A_FEATURE", "Cells", "cells_of_features"]

MAX_BITS_A_FEATURE = 255
# Rounds in which thresholds move: while their number is decided, and at last.
_ROUNDS, _LAST_ROUNDS = 40, 200


class Cells(NamedTuple):
    """The cells of one feature, in ascending order; a value at a threshold is below it."""

    thresholds: NDArray[np.float64]
    """(n,)"""
    means: NDArray[np.float64]
    """(n + 1,)"""


def cells_of_features(values: NDArray[np.float64], n_bits: int) -> list[Cells]:
    """Divide features into cells by `n_bits` thresholds in all; some may get none.

    `values` has shape (n, n_features), with at least a row, and is overwritten.
    """
    origins = values.mean(axis=0)
    values -= origins  # sums of squares lose less so
    # Divided by a power of 2, so that nothing is rounded, and squares of any numbers are finite.
    scale = math.ldexp(1.0, math.frexp(float(np.abs(values).max()))[1])
    values /= scale
    data = _Values.of(values)
    counts, found = _shared_out(data, n_bits)
    cells: list[Cells] = [Cells(np.empty(0), np.empty(0))] * len(counts)
    for count in np.unique(counts[counts > 0]).tolist():
        features, thresholds = found[count - 1]
        chosen = counts[features] == count
        some = data.only(features[chosen])
        settled = some.settled(thresholds[chosen], _LAST_ROUNDS)
        means, _ = some.means_and_errors(settled)
        for row, feature in enumerate(features[chosen].tolist()):
            parts = (scale * part[row] + origins[feature] for part in (settled, means))
            cells[feature] = Cells(*parts)
    return cells


def _shared_out(
    data: _Values, n_bits: int
) -> tuple[NDArray[np.int64], list[tuple[NDArray[np.int64], NDArray[np.float64]]]]:
    """How many thresholds each feature gets, and those of the features that got so many.

    The gain of a further threshold hardly ever exceeds that of the one before; where it does, it
    counts as equal. So those that gain most, of all features, are never without those before them,
    and a feature is out once its gain is not among the best `n_bits`.
    """
    features = np.arange(len(data.ordered))
    thresholds = np.empty((len(features), 0))
    errors, last_gains = data.means_and_errors(thresholds)[1][:, 0], np.inf
    found: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    gains, owners = np.empty(0), np.empty(0, np.int64)
    while len(features) and len(found) < MAX_BITS_A_FEATURE:
        some = data.only(features)
        thresholds = some.settled(some.split(thresholds), _ROUNDS)
        found.append((features, thresholds))
        new_errors = some.means_and_errors(thresholds)[1].sum(axis=1)
        last_gains = np.minimum(np.maximum(errors - new_errors, 0.0), last_gains)
        gains = np.concatenate([gains, last_gains])
        owners = np.concatenate([owners, features])
        if len(gains) >= n_bits:
            going_on = last_gains > np.partition(gains, -n_bits)[-n_bits]
        else:
            going_on = np.full(len(features), True)
        features, thresholds, last_gains = (
            part[going_on] for part in (features, thresholds, last_gains)
        )
        errors = new_errors[going_on]
    best = np.argsort(-gains, kind="stable")[:n_bits]
    return np.bincount(owners[best], minlength=len(data.ordered)), found


class _Values(NamedTuple):
    """Sorted values of features, (n_features, n), and sums of the first of them."""

    ordered: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        ordered = np.sort(values.T, axis=1)
        none = np.zeros((len(ordered), 1))
        return cls(
            ordered,
            np.concatenate([none, ordered.cumsum(axis=1)], axis=1),
            np.concatenate([none, np.square(ordered).cumsum(axis=1)], axis=1),
        )

    def only(self, features: NDArray[np.int64]) -> _Values:
        """Those of some features, in ascending order."""
        if len(features) == len(self.ordered):
            return self
        return _Values(*(part[features] for part in self))

    def settled(self, thresholds: NDArray[np.float64], n_rounds: int) -> NDArray[np.float64]:
        """Move thresholds (n_features, m) to where they are between the means of their cells."""
        for _ in range(n_rounds):
            means = self.means_and_errors(thresholds)[0]
            moved = (means[:, 1:] + means[:, :-1]) / 2
            if np.array_equal(moved, thresholds):
                break
            thresholds = moved
        return thresholds

    def split(self, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Thresholds with another one for each feature, in the cell with the largest error."""
        means, errors = self.means_and_errors(thresholds)
        worst = errors.argmax(axis=1)
        added = np.take_along_axis(means, worst[:, np.newaxis], axis=1)
        return np.sort(np.concatenate([thresholds, added], axis=1), axis=1)

    def means_and_errors(
        self, thresholds: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and the sum of squared errors of each cell, (n_features, m + 1).

        An empty cell has the mean of the one below it. The lowest one is never empty: thresholds
        are means of values, or between them.
        """
        places = np.zeros((len(thresholds), thresholds.shape[1] + 2), np.int64)
        places[:, 1:-1] = self.count_up_to(thresholds)
        places[:, -1] = self.ordered.shape[1]
        sizes = np.diff(places, axis=1)
        sums = np.diff(np.take_along_axis(self.sums, places, axis=1), axis=1)
        squares = np.diff(np.take_along_axis(self.squares, places, axis=1), axis=1)
        means = sums / np.maximum(sizes, 1)
        errors = np.where(sizes > 0, np.maximum(squares - sums * means, 0.0), 0.0)
        last_known = np.maximum.accumulate(
            np.where(sizes > 0, np.arange(sizes.shape[1]), 0), axis=1
        )
        return np.take_along_axis(means, last_known, axis=1), errors

    def count_up_to(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many values of its feature do not exceed each threshold, by binary search."""
        n = self.ordered.shape[1]
        low = np.zeros(thresholds.shape, np.int64)
        high = np.full(thresholds.shape, n)
        for _ in range(n.bit_length()):
            middle = (low + high) // 2
            at_middle = np.take_along_axis(self.ordered, np.minimum(middle, n - 1), axis=1)
            below = (middle < n) & (at_middle <= thresholds)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        return low
