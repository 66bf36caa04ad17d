"""Helpers for tests of the demo: a fake model that needs no package, and documents for it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bitweigh_experiments.demo.model import Floats, Model

N_DIMS = 48
SUBJECTS = ("files", "sounds", "pictures", "letters", "games", "maps", "stars", "numbers")
DEEDS = ("copies", "edits", "sorts", "prints", "finds", "counts", "draws", "sends")
MANNERS = ("quickly", "slowly", "safely", "together", "twice", "quietly", "at night", "by hand")


def words_as_vectors(texts: Sequence[str]) -> Floats:
    """Embed texts as the sum of a random vector per word, the same in every run."""
    rows = np.zeros((len(texts), N_DIMS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            row += np.random.default_rng(zlib.crc32(word.encode())).standard_normal(N_DIMS)
    return rows


FAKE = Model("words 1", words_as_vectors)


def sentences() -> list[str]:
    """Return 512 distinct texts."""
    return [f"{deed} {what} {how}" for deed in DEEDS for what in SUBJECTS for how in MANNERS]


def texts_file(folder: Path) -> Path:
    """Write a file of all sentences."""
    file = folder / "sentences.txt"
    file.write_text("\n".join(sentences()) + "\n", encoding="utf-8")
    return file
