"""Loading a folder of any kind."""

from __future__ import annotations

import os

from bitweigh._storage import folder_kind
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.index import Index
from bitweigh.vector_index import VectorIndex

__all__ = ["load"]


def load(
    path: str | os.PathLike[str], mmap: bool = False, *, verify: bool | None = None
) -> Index | VectorIndex | BinaryEmbeddings:
    """Load an `Index`, a `VectorIndex` or `BinaryEmbeddings`, whichever was saved to the folder.

    A folder of `BinaryEmbeddings` without `rescore` opens as the `Index` of their codes.
    `Index.load`, `VectorIndex.load` and `BinaryEmbeddings.load` each open one kind of folder.

    Parameters
    ----------
    path : str or path
        The folder.
    mmap : bool
        Leave the arrays in their files, and read them when they are needed, instead of reading
        everything now.
    verify : bool, optional
        Whether to compare every byte with its checksum; by default unless mapped.

    Raises
    ------
    CorruptFileError
        If a file is damaged or missing; it says which.
    FileNotFoundError
        If there is no index in that folder.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=8)
    >>> index.add(np.array([[1], [2]], dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(folder)
    ...     bitweigh.load(folder)
    <bitweigh.Index: 2 codes of 8 bits, big>

    """
    kind = folder_kind(path)
    if kind == "embeddings":
        return BinaryEmbeddings.load(path, mmap, verify=verify)
    if kind == "vectors":
        return VectorIndex.load(path, mmap, verify=verify)
    return Index.load(path, mmap, verify=verify)
