"""Checks of arguments: what is wrong is said in one line, with the name of the argument."""

from __future__ import annotations

import operator

__all__ = ["as_integer"]


def as_integer(value: object, name: str, least: int, most: int) -> int:
    """An int from anything that is an integer without loss, but not a bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__} {value!r}")
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {number}")
    return number
