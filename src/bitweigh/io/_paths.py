"""Checks of files to read, before anything is mapped or parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from bitweigh._checks import as_integer

__all__ = ["PathLike", "as_file", "as_max_rows"]

PathLike: TypeAlias = str | os.PathLike[str]

_MAX_ROWS = 2**48


def as_file(path: PathLike) -> tuple[Path, int]:
    """The path of a file that is not empty, and its size in bytes."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: no such file")
    if not file.is_file():
        raise ValueError(f"{file}: expected a file, got a folder or a device")
    size = file.stat().st_size
    if size == 0:
        raise ValueError(f"{file}: the file is empty")
    return file, size


def as_max_rows(max_rows: object, n_rows: int) -> int:
    """The number of rows to read out of `n_rows`: at most `max_rows`, or all for None."""
    if max_rows is None:
        return n_rows
    return min(as_integer(max_rows, "max_rows", 1, _MAX_ROWS), n_rows)
