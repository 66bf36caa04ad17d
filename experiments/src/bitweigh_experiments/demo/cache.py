"""A cache of embeddings between runs: one float16 .npy file per kind of documents.

Invariant: a file's name contains a checksum of the model's name and of all texts in order, and a
file is written whole or not at all. So a file with a matching name is what embedding would return.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["checksum", "folder", "load", "save"]


def folder() -> Path:
    """Return the demo's cache folder, below XDG_CACHE_HOME or else ~/.cache."""
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = cache_home if cache_home.is_absolute() else Path.home() / ".cache"
    return base / "bitweigh" / "demo"


def checksum(model: str, texts: Sequence[str]) -> str:
    """Return a short checksum of the model's name and the texts to embed."""
    state = hashlib.sha256(model.encode())
    for text in texts:
        state.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return state.hexdigest()[:16]


def load(root: Path, kind: str, check: str, n: int) -> NDArray[np.float16] | None:
    """Return the cached embeddings (n, d), None if there are none or the file is damaged."""
    try:
        vectors = np.load(root / f"{kind}-{check}.npy", allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    if vectors.dtype != np.float16 or vectors.ndim != 2 or len(vectors) != n:
        return None
    return vectors if np.isfinite(vectors).all() else None


def save(root: Path, kind: str, check: str, vectors: NDArray[np.float16]) -> bool:
    """Cache embeddings in place of older ones of this kind; return False if that fails."""
    name = f"{kind}-{check}.npy"
    try:
        root.mkdir(parents=True, exist_ok=True)
        # The name is chosen before the file exists, so that Ctrl-C can never leave it behind.
        temporary = root / f"{uuid.uuid4().hex}.part"
        try:
            with temporary.open("xb") as file:
                np.save(file, vectors)
            temporary.replace(root / name)
        finally:
            temporary.unlink(missing_ok=True)
        for other in root.glob(f"{kind}-*.npy"):
            if other.name != name:
                with contextlib.suppress(FileNotFoundError):
                    other.unlink()
    except OSError:
        return False
    return True
