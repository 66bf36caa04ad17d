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
    """What turns texts into vectors."""

    name: str
    """With its version: embeddings are kept under it."""
    embed: Callable[[Sequence[str]], Floats]
    """From n texts to (n, d)."""


def load_model() -> Model:
    """The model of 256 dimensions; ImportError says what to install where wordllama is missing."""
    try:
        wordllama = importlib.import_module("wordllama")
    except ModuleNotFoundError:
        raise ImportError(
            "the demo needs wordllama (Python 3.11 to 3.13): pip install bitweigh-experiments"
        ) from None
    # Its default cache folder has no model yet and would be filled from the network.
    own = Path(str(wordllama.__file__)).parent
    loaded = wordllama.WordLlama.load(cache_dir=own, disable_download=True)

    def embed(texts: Sequence[str]) -> Floats:
        made: Floats = np.asarray(loaded.embed(list(texts)), dtype=np.float32)
        return made

    version = importlib.metadata.version("wordllama")
    return Model(f"wordllama {version}", embed)
