"""Data set files in a folder supplied by the user."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

__all__ = ["PathLike", "need_files"]

PathLike: TypeAlias = str | os.PathLike[str]


def need_files(folder: Path, names: Iterable[str], source: str) -> None:
    """Raise FileNotFoundError naming the missing files and where to get them (`source`)."""
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise FileNotFoundError(f"{folder}: {', '.join(missing)} {verb} missing: {source}")
