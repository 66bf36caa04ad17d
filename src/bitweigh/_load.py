"""Opening a folder of any kind."""

from __future__ import annotations

import os

from bitweigh._vectors.manifest import NAME
from bitweigh.index import Index
from bitweigh.vector_index import VectorIndex

__all__ = ["load"]


def load(
    path: str | os.PathLike[str], mmap: bool = False, *, verify: bool | None = None
) -> Index | VectorIndex:
    """Load whatever was saved to a folder: an `Index` or a `VectorIndex`.

    A folder of `BinaryEmbeddings` opens as the `Index` of their codes. `Index.load`,
    `VectorIndex.load` and `BinaryEmbeddings.load` open folders of one kind.

    Parameters
    ----------
    path : str or path
        The folder.
    mmap : bool
        Whether to leave the arrays in their files and read them when they are needed, rather than
        read everything now.
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
    if os.path.lexists(os.path.join(os.fspath(path), NAME)):  # noqa: PTH118
        return VectorIndex.load(path, mmap)
    return Index.load(path, mmap, verify=verify)
