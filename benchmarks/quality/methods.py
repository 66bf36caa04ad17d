"""What the table compares: a method builds from vectors, and is searched with one or more settings.

Bytes are those that grow with the rows: codes, norms, ids, bands, links, and vectors for reranking,
wherever they are. What is learned once, such as a codebook or a rotation, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.sets import Floats

__all__ = ["Built", "Ids", "K", "Method", "Search"]

K = 10
Ids: TypeAlias = NDArray[np.int64]
Search: TypeAlias = Callable[[Floats], Ids]
"""From one query (d,) to the ids (K,) of the nearest rows, on one thread."""


class Built(NamedTuple):
    """A method with all rows in it."""

    n_bytes: int
    searches: dict[str, Search]
    """By setting; "" if there is only one."""


class Method(NamedTuple):
    """A method before it is built."""

    family: str
    """What the method is a size of; methods of a family share a line in the plots."""
    name: str
    build: Callable[[Floats], Built]
    """Learns from the rows and adds them; this is timed."""
