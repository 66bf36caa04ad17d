"""Seeded splits into rows to search and query rows.

Both are in random order: ties go to the lowest id, so rows sorted by label would bias precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitweigh.typing import Ids
from bitweigh_experiments.arguments import as_integer

__all__ = ["as_seed", "by_class", "by_group"]


def as_seed(seed: object) -> int:
    """Return the seed of a split or a generator as an int from 0 to 2^64 - 1."""
    return as_integer(seed, "seed", 0, 2**64 - 1)


def by_group(n: int, group: int, n_queries: int, seed: int) -> tuple[Ids, Ids]:
    """Split n rows into rows to search and query rows; no group has rows in both.

    Each `group` consecutive rows belong together, such as the descriptors of an image. Enough
    groups are held out for `n_queries`; surplus rows of the held-out groups are in neither part.
    """
    n_groups = n // group
    held_out = -(-n_queries // group)
    if n != n_groups * group:
        raise ValueError(f"{n} rows are not whole groups of {group}")
    if not 0 < held_out < n_groups:
        raise ValueError(f"n_queries must be from 1 to {(n_groups - 1) * group}, got {n_queries}")
    rng = np.random.default_rng(seed)
    groups = rng.permutation(n_groups)
    base, queries = (
        rng.permutation((chosen[:, np.newaxis] * group + np.arange(group)).reshape(-1))
        for chosen in (groups[held_out:], groups[:held_out])
    )
    return base, queries[:n_queries]


def by_class(
    labels: NDArray[np.integer], per_class: int, queries_per_class: int, seed: int
) -> tuple[Ids, Ids]:
    """Split into at most `per_class` rows to search and `queries_per_class` queries per class."""
    rng = np.random.default_rng(seed)
    base, queries = [], []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) <= queries_per_class:
            raise ValueError(
                f"class {label} has {len(members)} rows, which leaves none beside its "
                f"{queries_per_class} queries"
            )
        queries.append(members[:queries_per_class])
        base.append(members[queries_per_class : queries_per_class + per_class])
    return rng.permutation(np.concatenate(base)), rng.permutation(np.concatenate(queries))
