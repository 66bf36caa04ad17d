"""Checking what is stored, and deleting what no version needs any more."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from bitweigh._checks import as_integer
from bitweigh.cluster.opening import open_template, read
from bitweigh.cluster.serving.desired import Desired
from bitweigh.cluster.stores import Store, open_store
from bitweigh.cluster.templates import Template
from bitweigh.cluster.version import StoredShard, Version
from bitweigh.errors import CorruptFileError

__all__ = ["Vacuumed", "vacuum", "verify"]


class Vacuumed(NamedTuple):
    """What `vacuum` has deleted."""

    versions: list[int]
    """Their numbers."""
    shards: list[str]
    """The names of their folders."""
    builds: list[str]
    """The names of builds whose staged files it was."""


def verify(url: str | os.PathLike[str], *, version: int | None = None) -> Version:
    """Check a version: every file against its checksum, and every id against its shard.

    Takes about as long as building the shards.

    Parameters
    ----------
    url : str or path
        As in `open`.
    version : int, optional
        The number of the version; by default the newest.

    Returns
    -------
    Version
        The version, which is in order.

    Raises
    ------
    CorruptFileError
        If a file is damaged or missing, or an id is in the wrong shard; the error names it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=4)
    ...     cluster.verify(folder).rows
    100

    """
    store = open_store(url)
    found = read(store, version)
    template = open_template(store, found)
    for number, shard in enumerate(found.shards):
        _verify_shard(store, found, template, number, shard)
    return found


def vacuum(
    url: str | os.PathLike[str],
    *,
    keep: int = 3,
    staged_older_than: timedelta = timedelta(days=1),
) -> Vacuumed:
    """Delete old versions, shards that no version names, and what killed builds have left.

    Versions that a cluster serves stay. Whoever else has opened a deleted version on this machine
    keeps it; others cannot open it any more. It must not run while a build does: shards that are
    stored but not published yet look unused.

    Parameters
    ----------
    url : str or path
        As in `open`.
    keep : int
        How many of the newest versions to keep, at least 1.
    staged_older_than : timedelta
        The staged files of a build are deleted if the newest of them is older than this. A build
        that runs writes no more of them while it stores its shards, which takes at most as long.

    Returns
    -------
    Vacuumed
        What was deleted: the numbers of versions, and the names of shards and of builds.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=2)
    ...     version = cluster.update(folder, remove=[5])
    ...     gone = cluster.vacuum(folder, keep=1)
    >>> gone.versions, len(gone.shards)
    ([1], 1)

    """
    keep = as_integer(keep, "keep", 1, 10**6)
    if not isinstance(staged_older_than, timedelta):
        got = type(staged_older_than).__name__
        raise TypeError(f"staged_older_than must be a datetime.timedelta, got {got}")
    if staged_older_than < timedelta(0):
        raise ValueError(f"staged_older_than must not be negative, got {staged_older_than}")
    store = open_store(url)
    numbers = store.version_numbers()
    served = {
        number
        for name, raw in store.read_states().items()
        for number in Desired.parsed(raw, f"{store.url}/serving/{name}.json").versions
    }
    old = [number for number in numbers[:-keep] if number not in served]
    # What is kept must be readable before anything is deleted.
    kept = [read(store, number) for number in numbers if number not in old]
    needed = {folder for version in kept for folder in version.folders}
    # Versions first: a version never names a shard that is gone.
    for number in old:
        store.remove_version(number)
    unused = [name for name in store.shard_names() if name not in needed]
    for name in unused:
        store.remove_shard(name)
    written_before = time.time() - staged_older_than.total_seconds()
    left = [build for build, at in sorted(store.staged_builds().items()) if at < written_before]
    for build in left:
        store.remove_staged(build)
    return Vacuumed(old, unused, left)


def _verify_shard(
    store: Store, version: Version, template: Template, number: int, shard: StoredShard
) -> None:
    where = f"{store.url}/shards/{shard.folder}"
    try:
        folder = store.shard_folder(shard.folder)
    except FileNotFoundError:
        raise CorruptFileError(where, f"missing: it is shard {number}") from None
    index = template.verify_shard(folder)
    ids = index.ids
    facts = (len(ids), int(ids[0]) if len(ids) else None, int(ids[-1]) if len(ids) else None)
    if facts != (shard.rows, shard.first_id, shard.last_id) or index.n_bits != version.n_bits:
        raise CorruptFileError(where, f"not the shard {number} that version {version.number} lists")
    misplaced = version.partition.shard_of(ids) != number
    if misplaced.any():
        raise CorruptFileError(
            where, f"id {ids[int(np.argmax(misplaced))]} does not belong to shard {number}"
        )
