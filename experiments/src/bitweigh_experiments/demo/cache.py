"""Embeddings kept between runs: one float16 .npy file per kind of documents.

Invariant: a file's name has the checksum of the model's name and of all texts in their order, and a
file is written whole or not at all. So a file whose name fits is what embedding would make again.
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
    """Where the demo keeps files: below XDG_CACHE_HOME, by default ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "bitweigh" / "demo"


def checksum(model: str, texts: Sequence[str]) -> str:
    """A short checksum of what would be embedded, and by what."""
    state = hashlib.sha256(model.encode())
    for text in texts:
        state.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return state.hexdigest()[:16]


def load(place: Path, kind: str, check: str, n: int) -> NDArray[np.float16] | None:
    """Embeddings (n, d) of these texts, None where there are none or the file is damaged."""
    try:
        vectors = np.load(place / f"{kind}-{check}.npy", allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    if vectors.dtype != np.float16 or vectors.ndim != 2 or len(vectors) != n:
        return None
    return vectors if np.isfinite(vectors).all() else None


def save(place: Path, kind: str, check: str, vectors: NDArray[np.float16]) -> bool:
    """Keep embeddings in place of older ones of this kind; False where that cannot be done."""
    name = f"{kind}-{check}.npy"
    try:
        place.mkdir(parents=True, exist_ok=True)
        # The name first: a file that is there when Ctrl-C comes can be removed by it.
        temporary = place / f"{uuid.uuid4().hex}.part"
        try:
            with temporary.open("xb") as file:
                np.save(file, vectors)
            temporary.replace(place / name)
        finally:
            temporary.unlink(missing_ok=True)
        for other in place.glob(f"{kind}-*.npy"):
            if other.name != name:
                with contextlib.suppress(FileNotFoundError):
                    other.unlink()
    except OSError:
        return False
    return True
