"""Formats of numbers and settings in tables and claims."""

from __future__ import annotations

import math

__all__ = ["MISSING", "percent", "spelled", "three_digits"]

MISSING = "\u2013"  # an en dash: not measured, or not printed in the paper


def percent(share: float) -> str:
    """Format a share from 0 to 1 in percent, with the paper's two decimals and no % sign."""
    return f"{round(100 * share, 2) + 0.0:.2f}"  # + 0.0: no "-0.00"


def three_digits(value: float) -> str:
    """Format with at least three significant digits: 0.0123, 4.56, 78.9, 12,345."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def spelled(
    name: str, hasher: str, weigher: str, bits: int | None = None, k: int | None = None
) -> str:
    """Describe a setting: "GIST1M, LSH, Asym, 32 bits, 10-NN"."""
    parts = [name, hasher, weigher]
    if bits is not None:
        parts.append(f"{bits} bits")
    if k is not None:
        parts.append(f"{k}-NN")
    return ", ".join(parts)
