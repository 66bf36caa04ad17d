"""The embedding model: wordllama's, which comes inside its wheel and needs no network."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Model", "load_model"]

Floats: TypeAlias = NDArray[np.float32]


class Model(NamedTuple):
    """A model that turns texts into vectors."""

    name: str
    """Name and version; part of the checksum of cached embeddings."""
    embed: Callable[[Sequence[str]], Floats]
    """Maps n texts to vectors (n, d)."""


def load_model() -> Model:
    """Load the 256-dimensional model; ImportError says what to install if wordllama is missing."""
    try:
        wordllama = importlib.import_module("wordllama")
    except ModuleNotFoundError:
        raise ImportError(
            "the demo needs wordllama (Python 3.11 to 3.13): pip install bitweigh-experiments"
        ) from None
    # The default cache folder has no model yet and would be filled from the network.
    package_folder = Path(str(wordllama.__file__)).parent
    loaded = wordllama.WordLlama.load(cache_dir=package_folder, disable_download=True)

    def embed(texts: Sequence[str]) -> Floats:
        vectors: Floats = np.asarray(loaded.embed(list(texts)), dtype=np.float32)
        return vectors

    version = importlib.metadata.version("wordllama")
    return Model(f"wordllama {version}", embed)
