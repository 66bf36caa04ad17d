"""Argument checks that raise one-line errors naming the argument."""

from __future__ import annotations

import operator

__all__ = ["as_integer"]


def as_integer(value: object, name: str, low: int, high: int) -> int:
    """Return `value` as an int from `low` to `high`; bools and non-integers raise TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__} {value!r}")
    integer = operator.index(value)
    if not low <= integer <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {integer}")
    return integer
