"""Exceptions that bitweigh defines."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CorruptFileError", "LimitError"]


class LimitError(ValueError):
    """More rows are within the radius than the limit allows."""


class CorruptFileError(ValueError):
    """A stored file is damaged, missing, or not one that bitweigh can read."""

    def __init__(self, path: str | Path, reason: str) -> None:
        """Name the file, and the reason why it cannot be used."""
        super().__init__(f"{path}: {reason}")
        self.path = Path(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[Path, str]]:
        """Pickle the arguments of `__init__`: worker processes send exceptions back."""
        return CorruptFileError, (self.path, self.reason)
