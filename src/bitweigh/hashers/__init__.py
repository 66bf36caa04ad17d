"""From real vectors to binary codes, with scikit-learn's manners but without needing scikit-learn.

A hasher's ``project`` gives one real number per bit, ``g``; its ``transform`` gives packed codes
whose bit is ``g > thresholds_``. What one row becomes never depends on the rows beside it.
"""

import os

from bitweigh.hashers import _files
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._itq import ITQ
from bitweigh.hashers._lsh import LSH
from bitweigh.hashers._sign import Sign
from bitweigh.typing import HasherName

__all__ = ["ITQ", "LSH", "Hasher", "Sign", "load"]

BY_NAME: dict[HasherName, type[Hasher]] = {"itq": ITQ, "lsh": LSH, "sign": Sign}


def load(path: str | os.PathLike[str]) -> Hasher:
    """The hasher that its `save` wrote to a file.

    Raises
    ------
    CorruptFileError
        If the file is damaged or holds anything else.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import hashers
    >>> hasher = hashers.Sign().fit(np.ones((1, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hasher.save(Path(folder) / "hasher.npz")
    ...     hashers.load(Path(folder) / "hasher.npz").transform([[1.0, -1.0, 1.0]])
    array([[160]], dtype=uint8)

    """
    return _files.read(path, tuple(BY_NAME.values()))
