"""Numbers for people: counts with their nouns, and sizes."""

from __future__ import annotations

__all__ = ["counted", "readable_bytes"]


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 code, 1,000 codes."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"


def readable_bytes(count: int) -> str:
    """A size for people, in powers of 1000: 999 bytes, 1.5 kB, 20.0 MB."""
    if count < 1000:
        return counted(count, "byte")
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        # Sizes that would round to 1000.0 get the next unit.
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:,.1f} TB"
