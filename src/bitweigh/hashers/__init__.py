"""Hashers: from real vectors to binary codes. They follow scikit-learn but do not need it.

A hasher's ``project`` returns one real number ``g`` per bit; its ``transform`` returns packed codes
whose bits are ``g > thresholds_``. A row's projection and code never depend on other rows.
"""

import os

from bitweigh.hashers import _files
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._itq import ITQ
from bitweigh.hashers._levels import Levels
from bitweigh.hashers._lsh import LSH
from bitweigh.hashers._scalar import Scalar
from bitweigh.hashers._sign import Sign
from bitweigh.typing import HasherName

__all__ = ["ITQ", "LSH", "Hasher", "Levels", "Scalar", "Sign", "load"]

BY_NAME: dict[HasherName, type[Hasher]] = {
    "itq": ITQ,
    "lsh": LSH,
    "sign": Sign,
    "scalar": Scalar,
    "levels": Levels,
}


def load(path: str | os.PathLike[str]) -> Hasher:
    """Load a hasher from the file that its `save` wrote.

    Raises
    ------
    CorruptFileError
        If the file is damaged or does not hold a hasher.

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
