"""Random streams by purpose and number, so that parts can be drawn in any order or in parallel."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from bitweigh_experiments.datasets.splits import as_seed

__all__ = ["Purpose", "stream"]


class Purpose(IntEnum):
    """What a stream is for: the highest word of Philox's counter."""

    FIT = 0
    CHUNK = 1
    FRESH = 2
    PERTURBED = 3
    CODES = 4
    CODE_QUERIES = 5
    CODE_SAMPLE = 6


def stream(seed: int, purpose: Purpose, number: int) -> np.random.Generator:
    """Return stream `number` of a purpose; no stream can run into another one."""
    key = np.array([as_seed(seed), number], dtype=np.uint64)
    counter = np.array([0, 0, 0, purpose], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
