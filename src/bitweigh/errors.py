"""Errors that bitweigh raises besides Python's own."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CorruptFileError", "LimitError"]


class LimitError(ValueError):
    """More rows are within the radius than the limit allows."""


class CorruptFileError(ValueError):
    """A stored file is damaged, or is not what it should be."""

    def __init__(self, path: str | Path, reason: str) -> None:
        """Say which file, and what is wrong with it."""
        super().__init__(f"{path}: {reason}")
        self.path = Path(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[Path, str]]:
        """Pickle by what it was made from: worker processes hand exceptions back."""
        return CorruptFileError, (self.path, self.reason)
