"""Reading versions, and opening their shards in this process."""

from __future__ import annotations

import os
from pathlib import Path

from bitweigh._checks import as_optional_integer
from bitweigh.cluster.shards import Shards
from bitweigh.cluster.stores import Store, open_store, version_name
from bitweigh.cluster.templates import (
    CodesTemplate,
    Opened,
    Template,
    VectorTemplate,
    loaded_template,
)
from bitweigh.cluster.version import MAX_VERSION, Version
from bitweigh.errors import CorruptFileError

__all__ = [
    "newest",
    "open_shard",
    "open_shards",
    "open_template",
    "open_version",
    "read",
    "versions",
]


def open_shards(
    url: str | os.PathLike[str], *, version: int | None = None, mmap: bool = True
) -> Shards:
    """Open all shards of a version in this process, to search them as one index.

    Parameters
    ----------
    url : str or path
        The folder or URL that `build` wrote to. Shards of an object store are downloaded first, to
        the folder in ``BITWEIGH_CACHE``, or to ``~/.cache/bitweigh``.
    version : int, optional
        The number of the version; by default the newest.
    mmap : bool
        Whether to leave the codes in their files, as in `Index.load`.

    Returns
    -------
    Shards
        Its answers are those of one :class:`bitweigh.Index` of all rows, to the last bit.

    Raises
    ------
    FileNotFoundError
        If there is no such version.
    CorruptFileError
        If a file is damaged or missing; the error names it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh import cluster
    >>> codes = np.arange(100, dtype=np.uint8).reshape(-1, 1)  # (100, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = cluster.build(codes, folder, shards=4)
    ...     shards = cluster.open(folder)
    >>> costs = bitweigh.costs.hamming(np.array([33], dtype=np.uint8), 8)
    >>> shards.search(costs, k=2)
    SearchResult(distances=array([0., 1.]), ids=array([33,  1]))

    """
    store = open_store(url)
    return open_version(store, read(store, version), mmap)


def versions(url: str | os.PathLike[str]) -> list[int]:
    """The numbers of all versions at a URL, ascending.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cluster.versions(folder)
    []

    """
    return open_store(url).version_numbers()


def open_version(store: Store, version: Version, mmap: bool = True) -> Shards:
    """Open all shards of a version."""
    template = open_template(store, version)
    opened = [
        open_shard(store, version, template, shard, mmap) for shard in range(len(version.shards))
    ]
    return Shards(
        [shard.codes for shard in opened],
        version.partition,
        version,
        template=None if isinstance(template, CodesTemplate) else template,
        kept=[shard.vectors for shard in opened if shard.vectors is not None],
    )


def open_template(store: Store, version: Version) -> CodesTemplate | VectorTemplate:
    """What rows of a version are made into."""
    if version.template is None:
        return CodesTemplate(version.n_bits, version.bitorder)
    template = loaded_template(version.kind, _folder(store, version.template, "the template"))
    if (template.n_bits, template.bitorder) != (version.n_bits, version.bitorder):
        raise CorruptFileError(
            f"{store.url}/shards/{version.template}",
            f"not the template that version {version.number} lists",
        )
    return template


def open_shard(
    store: Store, version: Version, template: Template, number: int, mmap: bool = True
) -> Opened:
    """Open one shard of a version, downloading it first if it is elsewhere."""
    shard = version.shards[number]
    folder = _folder(store, shard.folder, f"shard {number}")
    opened = template.load_shard(folder, mmap)
    facts = (len(opened.codes), opened.codes.n_bits, opened.codes.bitorder)
    if facts != (shard.rows, version.n_bits, version.bitorder):
        raise CorruptFileError(folder, f"not the shard that version {version.number} lists")
    return opened


def _folder(store: Store, name: str, what: str) -> Path:
    try:
        return store.shard_folder(name)
    except FileNotFoundError as error:
        raise CorruptFileError(f"{store.url}/shards/{name}", f"missing: it is {what}") from error


def newest(store: Store) -> Version | None:
    """The newest version, or None if there is none."""
    numbers = store.version_numbers()
    return _read(store, numbers[-1]) if numbers else None


def read(store: Store, number: int | None = None) -> Version:
    """A version, by default the newest; raises FileNotFoundError if it is not there."""
    number = as_optional_integer(number, "version", 1, MAX_VERSION)
    numbers = store.version_numbers()
    if not numbers:
        raise FileNotFoundError(f"{store.url} has no versions of shards")
    if number is not None and number not in numbers:
        raise FileNotFoundError(f"{store.url} has no version {number}, the newest is {numbers[-1]}")
    return _read(store, numbers[-1] if number is None else number)


def _read(store: Store, number: int) -> Version:
    where = f"{store.url}/versions/{version_name(number)}"
    version = Version.from_json(store.read_version(number), where)
    if version.number != number:
        raise CorruptFileError(where, f"must have number {number}, has {version.number}")
    return version
